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
