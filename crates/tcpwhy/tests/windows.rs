//! Is a receiver named that holds a transfer? The sender fills its windows to the byte. ACKs come
//! together and are answered within microseconds. `testdata/windows` says what the clients did.

#[expect(dead_code, reason = "other tests use the rest of it")]
mod common;

use common::read::{explain, testdata};
use tcpwhy::report::{Direction, State};

fn server(name: &str) -> Direction {
    let report = explain(&testdata("windows").join(format!("{name}.server.pcap.gz")));
    *report.connections[0].directions[1].clone().expect("the server sent data")
}

#[test]
fn no_more_is_in_flight_than_the_window_allowed() {
    let sent = server("small-buffer");
    assert_eq!(sent.max_in_flight_bytes, 8688);
    let window = sent.time_in.get(State::RwndCap).0;
    assert!(window > 1_100_000_000, "{:?}", sent.time_in);
}

#[test]
fn a_slow_reader_is_named_though_its_windows_scale_is_not_told() {
    let sent = server("slow-reader-midway");
    let [reader, slow_start] =
        [State::RwndReader, State::CwndSlowStart].map(|s| sent.time_in.get(s).0);
    assert!(reader > 800_000_000 && slow_start < 100_000_000, "{:?}", sent.time_in);
}

#[test]
fn a_window_that_takes_no_segment_holds_the_sender_until_its_timer_runs_out() {
    let report = explain(&testdata("windows").join("tiny-buffer.server.pcap.gz"));
    let connection = &report.connections[0];
    let sent = connection.directions[1].as_deref().expect("the server sent data");
    let window = sent.time_in.get(State::RwndCap).0;
    assert!(window > 2_400_000_000, "{:?}", sent.time_in);
    let codes: Vec<&str> = connection.findings.iter().map(|each| &*each.code).collect();
    assert_eq!(codes, ["WINDOW_CAP"]);
    let transfers: Vec<u64> = connection.transfers.iter().map(|each| each.bytes).collect();
    assert_eq!(transfers, [100, 1000, 100, 1000], "a part of an answer is no answer");
}
