//! Do `--connection`, `--sort` and `--top` show what was asked for?

mod common;

use common::report::full;
use tcpwhy::report::{Connection, Report};
use tcpwhy::view;
use tcpwhy_cli::choose::{Sort, only};

/// Three connections, by what they lasted, carried and repeated.
fn report() -> Report {
    let connection = full().connections.remove(0);
    let make = |id, duration_ns, bytes, repeats| {
        let mut made: Connection = connection.clone();
        made.id = id;
        made.part = None;
        made.duration_ns = duration_ns;
        made.transfers[0].start_ns = 0;
        made.transfers[0].end_ns = 2 * duration_ns;
        made.directions[0] = None;
        made.failure = None;
        let sent = made.directions[1].as_mut().expect("data");
        sent.bytes = bytes;
        sent.retransmitted.fast = repeats;
        made
    };
    let mut report = full();
    report.connections =
        vec![make(0, 100_000, 80_000, 0), make(1, 300_000, 90_000, 2), make(2, 200_000, 0, 1)];
    report
}

fn ids(report: &Report) -> Vec<u64> {
    report.connections.iter().map(|connection| connection.id).collect()
}

#[test]
fn each_key_puts_the_worst_first() {
    for (key, order) in [
        (Sort::Start, [0, 1, 2]),
        (Sort::Time, [1, 2, 0]),
        (Sort::Duration, [1, 2, 0]),
        (Sort::Bytes, [1, 0, 2]),
        (Sort::Rate, [1, 0, 2]),
        (Sort::Loss, [1, 2, 0]),
    ] {
        let mut report = report();
        view::keep_first(&mut report, key.into(), 3);
        assert_eq!(ids(&report), order, "{key:?}");
    }
}

#[test]
fn only_the_first_are_kept() {
    let mut report = report();
    view::keep_first(&mut report, Sort::Bytes.into(), 2);
    assert_eq!(ids(&report), [1, 0]);
}

#[test]
fn one_connection_is_kept_by_its_number() {
    let mut one = report();
    only(&mut one, 2).expect("is there");
    assert_eq!(ids(&one), [2]);
    let error = only(&mut report(), 3).expect_err("there are three").to_string();
    assert_eq!(error, "there is no connection 3: they are numbered 0 to 2");
}
