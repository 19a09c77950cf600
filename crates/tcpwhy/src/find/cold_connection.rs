//! A new connection was made where an open one could have been used.
//!
//! # What it says
//! The same client had just had a connection to the same port of the same server, used it, and
//! opened another one: the handshake (and TLS, and a window that begins small) was paid again.
//!
//! # How we know
//! Another connection of the same two hosts to the same port carried a request and its answer, and
//! had nothing to do any more, at most 15 s before this one began. Opening this one, with its TLS
//! handshake, held at least a tenth of its active time. The finding says how the rest divides: slow start
//! only where an answer was larger than the first flight.
//!
//! # What it is not
//! Not a fault of TCP. Connections in parallel are not counted: they cannot share one without
//! waiting, unless the protocol multiplexes (HTTP/2). A request that the server took with the SYN
//! (`FAST_OPEN`) paid no handshake. What the earlier connection's protocol would
//! have allowed (did the server close it?) is not in these packets in every case; where the earlier
//! one ended by the server's wish, the server must keep it open first.
//!
//! # What to do
//! In the client's program: a connection pool, keep-alive, one session object for all requests; on
//! the server: an idle timeout longer than the usual pause, and no close after each answer. Cost:
//! idle sockets on both sides.
//!
//! # Sources
//! RFC 9112 section 9.3 (persistent connections). Ours: 15 s, a usual idle timeout of servers, not
//! measured.

use super::case::{Case, Held, Told, active_ns};
use super::{Rule, fast_open, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;
use tcpwhy_words::units::Time;

pub(super) const RULE: Rule = Rule {
    code: "COLD_CONNECTION",
    severity: Severity::Wrong,
    file: include_str!("cold_connection.rs"),
    find,
};

/// An earlier connection may have stayed open for so long. Ours: a usual idle timeout of servers.
const KEPT_NS: i64 = 15_000_000_000;

/// One connection shows nothing of this: see [`among`].
const fn find(_: &Connection) -> Vec<Finding> {
    Vec::new()
}

/// The finding for `connection`, if one of `earlier` could have been used instead of it.
pub(super) fn among(connection: &Connection, earlier: &[Connection]) -> Option<Finding> {
    let begins = Time::from_rfc3339(&connection.start)?;
    let same = |other: &&Connection| {
        other.client.ip() == connection.client.ip() && other.server == connection.server
    };
    let could_be_used = |other: &&Connection| {
        let idle_since = other.transfers.iter().map(|each| each.end_ns).max();
        let starts = Time::from_rfc3339(&other.start);
        let pause = idle_since.zip(starts).map(|(idle, start)| begins.since(start).0 - idle);
        // What failed could not be used again.
        other.exchanges.iter().any(|each| each.response.is_some())
            && !other.clear_errors.iter().any(|each| each.kind == "tls_alert")
            && pause.is_some_and(|pause| (0..=KEPT_NS).contains(&pause))
    };
    let before = earlier.iter().rev().filter(same).find(could_be_used)?;
    let held = opening(connection)?;
    let tls = connection.tls.as_ref().and_then(|tls| Some(tls.end_ns? - tls.start_ns));
    // A request that went with the SYN did not wait for the handshake, but for a SYN that was lost.
    let opening = if fast_open::is_taken(connection) {
        held.time_of(&[State::SynRetry])
    } else {
        held.time_ns()
    };
    let opened = opening + tls.unwrap_or(0).max(0);
    if connection.exchanges.is_empty() || opened * 10 < active_ns(connection) {
        return None;
    }
    let told = Told {
        title: "a new connection where an open one could have been used".to_owned(),
        why: format!(
            "the same client had a connection (number {}) to the same port that was idle by then; {}.",
            before.id,
            split(connection, opening, tls)
        ),
        not: "not TCP's doing; whether the server would have kept the earlier one is for its settings to say"
            .to_owned(),
        remedies: vec![
            remedies::program(
                remedies::CLIENT,
                "keep connections open in the program and use them again (a pool, keep-alive)",
            ),
            remedies::program(
                remedies::SERVER,
                "close none after an answer, and let them idle for longer than the usual pause",
            ),
        ],
    };
    Some(held.finding_of(opened, RULE.code, told))
}

/// The opening, as the direction that shows more of it tells.
fn opening(connection: &Connection) -> Option<Held<'_>> {
    let opening = |state| matches!(state, State::Handshake | State::SynRetry);
    let cases = [0, 1].into_iter().filter_map(|at| Case::of(connection, at));
    let held = cases.map(|case| case.held(opening)).max_by_key(Held::time_ns)?;
    (connection.handshake_rtt_ns.is_some() && !held.limits.is_empty()).then_some(held)
}

/// Where this connection's time went, in words.
fn split(connection: &Connection, opening: i64, tls: Option<i64>) -> String {
    let slow =
        connection.transfers.iter().map(|each| each.time_in.get(State::CwndSlowStart).0).sum();
    let thought = connection.exchanges.iter().filter_map(|each| each.server_think_ns).sum();
    let parts: [(&str, i64); 4] = [
        ("the handshake", opening),
        ("TLS", tls.unwrap_or(0)),
        ("slow start", slow),
        ("the server's application", thought),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, ns)| *ns > 0)
        .map(|(what, ns)| format!("{what} took {}", said::time(ns)))
        .collect();
    said::listed(&parts)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;
    use crate::report::Tls;

    /// Two connections of one client, the second so long after the first one's last ACK.
    fn two(pause_ns: i64, bytes: u64) -> [Connection; 2] {
        let first = Sim { bytes, ..Sim::default() }.run();
        let mut second = first.clone();
        second.id = 1;
        let idle = first.transfers.iter().map(|each| each.end_ns).max().expect("some");
        let start = Time::from_rfc3339(&first.start).expect("a time");
        second.start = (start + tcpwhy_words::units::Duration(idle + pause_ns)).rfc3339();
        [first, second]
    }

    fn found([first, second]: [Connection; 2]) -> Option<Finding> {
        among(&second, &[first])
    }

    #[test]
    fn a_second_connection_after_the_first_is_told() {
        let finding = found(two(1_000_000, 5_000)).expect("found");
        assert!(!finding.why.contains("slow start"), "it fits one flight: {}", finding.why);
        insta::assert_snapshot!(sample::shown(&[finding]));
    }

    #[test]
    fn slow_start_is_named_where_the_answer_was_larger() {
        let finding = found(two(1_000_000, 100_000)).expect("found");
        assert!(finding.why.contains("slow start took"), "{}", finding.why);
    }

    #[test]
    fn what_tls_took_counts_for_the_severity_too() {
        let severity = |tls_share: i64| {
            let [first, mut second] = two(1_000_000, 5_000);
            let took = active_ns(&second);
            let end_ns = Some(took * tls_share / 100);
            second.tls = Some(Tls { start_ns: 0, end_ns, flights: Vec::new() });
            found([first, second]).map(|finding| (finding.severity, finding.cost_ns * 100 / took))
        };
        let (with_little, with_much) = (severity(1), severity(60));
        let rank = |of: &Option<(Severity, i64)>| of.expect("found");
        let (little, much) = (rank(&with_little), rank(&with_much));
        assert!(much.1 >= little.1 + 50 && much.0 == RULE.severity, "{little:?} {much:?}");
    }

    #[test]
    fn one_in_parallel_could_not_have_been_used() {
        assert!(found(two(-1, 5_000)).is_none());
        assert!(found(two(0, 5_000)).is_some());
    }

    #[test]
    fn one_that_idled_for_fifteen_seconds_could_be_used_and_longer_not() {
        assert!(found(two(KEPT_NS, 5_000)).is_some());
        assert!(found(two(KEPT_NS + 1, 5_000)).is_none());
    }

    #[test]
    fn a_request_that_went_with_the_syn_paid_no_handshake() {
        let is_told = |acked: u32| {
            let [first, mut second] = two(1_000_000, 5_000);
            let [client, server] = &mut second.syns;
            client.as_mut().expect("SYN").payload = 78;
            server.as_mut().expect("SYN-ACK").acked = Some(acked);
            found([first, second]).is_some()
        };
        assert!(!is_told(78));
        assert!(is_told(0), "the server did not take it");
    }

    #[test]
    fn another_port_is_another_server() {
        let [first, mut second] = two(1_000_000, 5_000);
        second.server.set_port(443);
        assert!(found([first, second]).is_none());
    }
}
