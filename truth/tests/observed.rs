//! What an observed kernel's records tell, where two of them have to be read together.

use std::fs;

use truth::{State, of_folder};

const MS: u64 = 1_000_000;

/// One record of the server's socket; numbers count from its first byte.
fn record(ms: u64, place: &str, why: &str, (una, nxt, end): (u32, u32, u32), ca: u8) -> String {
    format!(
        "{{\"t\":{},\"event\":\"tcp_truth\",\"sport\":8000,\"dport\":5000,\"where\":\"{place}\",\"why\":\"{why}\",\
         \"una\":{una},\"nxt\":{nxt},\"end\":{end},\"wnd\":65535,\"cwnd\":10,\"ssthresh\":10,\"ca\":{ca}}}\n",
        ms * MS
    )
}

fn event(ms: u64, name: &str, more: &str) -> String {
    format!("{{\"t\":{},\"event\":\"{name}\",\"sport\":8000,\"dport\":5000,{more}}}\n", ms * MS)
}

/// What held at that instant.
fn state_at(ms: u64, kernel: &[String]) -> State {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("plan.json"), r#"{"flows":[{"port":8000}]}"#).expect("written");
    fs::write(folder.path().join("kernel.jsonl"), kernel.concat()).expect("written");
    let truth = of_folder(folder.path()).expect("a truth");
    let server = truth.connections[0].directions[1].as_ref().expect("it sent");
    server.intervals.iter().find(|i| i.end_ns > ms * MS).expect("in time").state
}

#[test]
fn a_timer_that_finds_a_loss_begins_a_repair() {
    // Its record is before what it does (RACK's timer for reordering).
    let kernel = [
        record(10, "xmit", "nothing", (0, 3000, 3000), 0),
        event(40, "tcp_cong_state_set", "\"cong_state\":1"),
        record(40, "ack", "nothing", (0, 3000, 3000), 1),
        record(60, "timer", "reo", (0, 3000, 3000), 1),
        event(60, "tcp_cong_state_set", "\"cong_state\":3"),
        record(120, "ack", "nothing", (3000, 3000, 3000), 0),
        record(130, "write", "begin", (3000, 3000, 9000), 0),
    ];
    assert_eq!(state_at(50, &kernel), State::App);
    assert_eq!(state_at(100, &kernel), State::Recovery);
}

#[test]
fn a_repair_of_which_all_data_has_an_ack_is_over_for_the_fin() {
    let kernel = [
        record(10, "xmit", "nothing", (0, 3000, 3000), 3),
        record(40, "ack", "nothing", (3000, 3000, 3000), 3),
        event(41, "tcp_segment", "\"seq\":3000,\"end_seq\":3001,\"flags\":17"),
        record(41, "xmit", "nothing", (3000, 3001, 3001), 3),
        record(80, "ack", "nothing", (3001, 3001, 3001), 3),
    ];
    assert_eq!(state_at(20, &kernel), State::Recovery);
    assert_eq!(state_at(60, &kernel), State::Closing);
}
