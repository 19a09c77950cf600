//! The sender's state at each instant against the sending kernel's own account
//! (`testdata/kernel`): a real Linux in simulated time, seen from both hosts.
//!
//! The kernel speaks of its stack, we of what would help, so several of our states may stand for
//! one of its: a full path looks like a full congestion window to it, and a repair beside a full link costs nothing. Instants of calls (`busy`)
//! are left out.

#[expect(dead_code, reason = "other tests use the rest of it")]
mod common;

use std::fs;

use common::read::{explain, names, testdata};
use common::sheet::Sheet;
use serde_json::Value;
use tcpwhy::report::{Connection, Limit};

const DIRECTORY: &str = "kernel";

/// Scenarios whose sender cannot be understood from the receiver's host, and why.
const HIDDEN_FROM_RECEIVER: [(&str, &str); 4] = [
    ("local-tbf-8mbit", "a queue on the sender's own host is a queue somewhere on the path"),
    ("loss-single-packet-rto", "which of two timers fired for a lost tail leaves no trace"),
    ("loss-tail-rto", "which of two timers fired for a lost tail leaves no trace"),
    ("loss-tail-tlp", "which of two timers fired for a lost tail leaves no trace"),
];

/// Our states, by the start of their names, that stand for the kernel's `state`.
fn stands_for(state: &str) -> &'static [&'static str] {
    match state {
        "handshake" => &["handshake", "syn_retry"],
        "syn_retry" => &["syn_retry", "handshake"],
        "idle.app_think" => &["idle.app_think", "idle.kept_open"],
        "idle.peer" => &["idle.peer_think", "receiving", "idle.kept_open"],
        "app" => &["app", "last_flight"],
        "app.peer" => &["app", "last_flight", "idle.peer_think"],
        "nagle" => &["nagle_delack", "app"],
        "cwnd.slow_start" => &["cwnd.slow_start", "cwnd.after_idle", "bandwidth"],
        "cwnd.avoidance" => &["cwnd.", "bandwidth"],
        "defer" => &["cwnd.", "bandwidth", "rwnd."],
        "rwnd" => &["rwnd."],
        "zero_window" => &["zero_window"],
        "sndbuf" => &["sndbuf", "app_window"],
        "tsq" => &["local_qdisc", "pacing"],
        "pacing" => &["pacing", "bandwidth"],
        "recovery" => &["recovery.", "bandwidth"],
        "loss" => &["recovery.", "rto_wait", "cwnd.", "bandwidth"],
        "rto_wait" => &["rto_wait"],
        "tlp_wait" => &["tlp_wait"],
        "last_flight" => &["last_flight"],
        "closing" => &["closing", "idle.kept_open"],
        _ => &[],
    }
}

fn agrees(state: &str, limit: &Limit) -> bool {
    let names = core::iter::once(limit.state).chain(limit.alternative.iter().copied());
    stands_for(state).iter().any(|start| names.clone().any(|s| s.name().starts_with(start)))
}

/// Nanoseconds since 1970 of an RFC 3339 instant of one known day: only the clock is needed,
/// because truth and capture are of the same day.
fn clock_ns(start: &str) -> i64 {
    let clock = start.split('T').nth(1).expect("a time").trim_end_matches('Z');
    let parts: Vec<&str> = clock.split([':', '.']).collect();
    let number = |at: usize| parts[at].parse::<i64>().expect("digits");
    ((number(0) * 60 + number(1)) * 60 + number(2)) * 1_000_000_000 + number(3)
}

const DAY_NS: i64 = 86_400_000_000_000;

/// Time on which both accounts overlap, and on which they differ.
fn compare(connection: &Connection, limits: &[Limit], rows: &[Value]) -> (i64, i64) {
    let start = clock_ns(&connection.start);
    let (mut both, mut differ) = (0, 0);
    for row in rows {
        let from = row[0].as_i64().expect("a time") % DAY_NS - start;
        let to = row[1].as_i64().expect("a time") % DAY_NS - start;
        let state = row[2].as_str().expect("a state");
        for limit in limits.iter().filter(|_| state != "busy") {
            let overlap = (to.min(limit.end_ns) - from.max(limit.start_ns)).max(0);
            both += overlap;
            differ += if agrees(state, limit) { 0 } else { overlap };
        }
    }
    (both, differ)
}

fn check(vantage_is_sender: bool, worst_percent: i64) {
    let mut sheet = Sheet::default();
    for name in names(DIRECTORY, ".truth.json") {
        let truth = fs::read_to_string(testdata(DIRECTORY).join(format!("{name}.truth.json")))
            .expect("truth");
        let truth: Value = serde_json::from_str(&truth).expect("truth is JSON");
        let sender = usize::from(truth["sender"] == "server");
        let host = if (sender == 1) == vantage_is_sender { "server" } else { "client" };
        if !vantage_is_sender && HIDDEN_FROM_RECEIVER.iter().any(|(hidden, _)| *hidden == name) {
            continue;
        }
        let report = explain(&testdata(DIRECTORY).join(format!("{name}.{host}.pcap.gz")));
        let (mut both, mut differ) = (0, 0);
        for connection in &report.connections {
            let rows = &truth["connections"][connection.client.port().to_string()];
            let direction = connection.directions[sender].as_deref();
            if let (Some(rows), Some(direction)) = (rows.as_array(), direction) {
                let (b, d) = compare(connection, &direction.limits, rows);
                (both, differ) = (both + b, differ + d);
            }
        }
        sheet.holds(&name, "time compared", "some", &both.to_string(), both > 0);
        let wrong = differ * 100;
        let shown = format!("{:.1} %", wrong as f64 / both.max(1) as f64);
        let wanted = format!("at most {worst_percent} %");
        sheet.holds(&name, "time in another state", &wanted, &shown, wrong <= both * worst_percent);
    }
    sheet.settle();
}

#[test]
fn at_the_senders_tap_states_are_the_kernels() {
    check(true, 4);
}

#[test]
fn at_the_receivers_tap_states_are_the_sending_kernels() {
    check(false, 4);
}

#[test]
fn retransmissions_are_the_kernels() {
    let mut sheet = Sheet::default();
    for name in names(DIRECTORY, ".truth.json") {
        let truth = fs::read_to_string(testdata(DIRECTORY).join(format!("{name}.truth.json")))
            .expect("truth");
        let truth: Value = serde_json::from_str(&truth).expect("truth is JSON");
        let Some(wanted) = truth["retransmitted_segments"].as_u64() else { continue };
        let sender = usize::from(truth["sender"] == "server");
        let host = if sender == 1 { "server" } else { "client" };
        let report = explain(&testdata(DIRECTORY).join(format!("{name}.{host}.pcap.gz")));
        let found: u64 = report
            .connections
            .iter()
            .filter_map(|c| c.directions[sender].as_deref())
            .map(|d| {
                let r = d.retransmitted;
                r.fast + r.rto + r.tlp + r.unnecessary + r.syn
            })
            .sum();
        sheet.equal(&name, "retransmitted segments", wanted, found);
    }
    sheet.settle();
}
