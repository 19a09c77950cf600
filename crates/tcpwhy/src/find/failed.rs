//! Which connections failed: those that were waiting when the capture ended, and those whose findings say so.
//!
//! What a connection shows by itself is known before (`analysis::failed`). Here the others of the capture tell how
//! long it went on behind a connection's last packet, so that a request right before its end is no failure. And here
//! it is known which SYNs were answered by an ICMP error after all: those have a code of their own (RFC 5461 section 2
//! calls such errors soft: TCP tries on, and nothing but them comes back).

use super::unreachable;
use crate::analysis::failed::{LONG_NS, ONE_SYN_NS};
use crate::report::{Connection, FailedPeer, Failure, FailureKind, Totals};
use tcpwhy_words::units::Time;

/// Findings that tell of something that did not work.
const CODES: [&str; 6] = [
    "HANDSHAKE_REFUSED",
    "NEVER_ACKNOWLEDGED",
    "NEVER_ARRIVED",
    "NO_ANSWER",
    "TLS_ALERT",
    "HTTP_ERROR",
];

/// Decides what was left open, and counts what is new in `totals`.
pub(crate) fn fill(connections: &mut [Connection], totals: &mut Totals) {
    let any_open = connections.iter().any(|each| each.failure.as_ref().is_some_and(|f| f.open));
    let end = if any_open { connections.iter().filter_map(ends).max() } else { None };
    let mut moved = Vec::new();
    for connection in connections.iter_mut() {
        let known = connection.failure.as_ref().is_some_and(|failure| !failure.open);
        let failure = match turned_back(connection) {
            Some(failure) => Some(failure),
            None if known => continue,
            None => still_open(connection, end).or_else(|| found(connection)),
        };
        if known && let Some(counted) = FailedPeer::of(connection) {
            totals.take_back_failure(&counted);
            moved.push(counted);
        }
        connection.failure = failure.map(Box::new);
        totals.add_failure(connection);
    }
    totals.measure_failures_again(&moved, connections);
}

/// A handshake that a device turned back.
fn turned_back(connection: &Connection) -> Option<Failure> {
    let refused = |failure: &Failure| failure.kind == FailureKind::Refused;
    let error = unreachable::refusal(connection)?;
    if connection.failure.as_deref().is_some_and(refused)
        || unreachable::may_be_meant(connection, error)
    {
        return None;
    }
    let tries = connection.syns[0].as_ref().map_or(0, |syn| syn.sent);
    Some(Failure {
        kind: FailureKind::Found,
        code: Some(unreachable::RULE.code.into()),
        waited_ns: unreachable::waited_ns(connection, error),
        tries,
        open: false,
    })
}

/// What was open when the capture ended, if it had been for long.
fn still_open(connection: &Connection, end: Option<i64>) -> Option<Failure> {
    let failure = connection.failure.as_deref()?;
    let behind = end?.saturating_sub(ends(connection)?).max(0);
    let waited_ns = failure.waited_ns.saturating_add(behind);
    let long = match failure.kind {
        FailureKind::NoAnswer => ONE_SYN_NS,
        _ => LONG_NS.max(longest_answer(connection).saturating_mul(3)),
    };
    (waited_ns >= long).then(|| Failure { waited_ns, ..failure.clone() })
}

/// The longest that this client had to wait for an answer before.
fn longest_answer(connection: &Connection) -> i64 {
    let turns = connection.transfers.windows(2);
    let answered = turns.filter(|pair| pair[0].from == "client" && pair[1].from == "server");
    answered.map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns)).max().unwrap_or(0)
}

fn ends(connection: &Connection) -> Option<i64> {
    Some(Time::from_rfc3339(&connection.start)?.0.saturating_add(connection.duration_ns))
}

/// What a finding tells.
fn found(connection: &Connection) -> Option<Failure> {
    let finding = connection.findings.iter().find(|each| CODES.contains(&&*each.code))?;
    if finding.severity == crate::report::Severity::Note {
        return None;
    }
    let code = Some(finding.code.clone().into());
    let waited_ns = finding.cost_ns;
    Some(Failure { kind: FailureKind::Found, code, waited_ns, ..Failure::default() })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::{Finding, IcmpErrors, Severity, Syn};
    use tcpwhy_words::units::Duration;

    const SECOND: i64 = 1_000_000_000;

    /// A connection with this failure, and another that ends this much later.
    fn filled(failure: Failure, later_ns: i64) -> Option<Failure> {
        let mut connection = sample::download();
        connection.transfers.truncate(1);
        connection.failure = Some(Box::new(failure));
        let mut other = sample::download();
        let start = Time::from_rfc3339(&other.start).expect("a time");
        other.start = (start + Duration(later_ns)).rfc3339();
        let mut both = [connection, other];
        let mut totals = Totals::default();
        fill(&mut both, &mut totals);
        assert_eq!(totals.failed, u64::from(both[0].failure.is_some()));
        both[0].failure.as_deref().cloned()
    }

    #[test]
    fn what_is_open_at_the_captures_end_failed_only_after_long() {
        let kind = FailureKind::RequestUnanswered;
        let open = Failure { kind, open: true, ..Failure::default() };
        assert_eq!(filled(open.clone(), SECOND - 1), None);
        assert_eq!(filled(open, SECOND).map(|f| f.waited_ns), Some(SECOND));
        let kind = FailureKind::NoAnswer;
        let one = Failure { kind, open: true, tries: 1, ..Failure::default() };
        assert_eq!(filled(one.clone(), 3 * SECOND - 1), None);
        assert!(filled(one, 3 * SECOND).is_some());
    }

    /// A client that sent this many SYNs to this server, and what ICMP said of them.
    fn asked(server: &str, sent: u32, kind: Option<&'static str>) -> Connection {
        let mut connection = sample::download();
        connection.server = server.parse().expect("an address");
        connection.directions = [None, None];
        connection.handshake_rtt_ns = None;
        connection.duration_ns = i64::from(sent) * SECOND;
        connection.syns = [Some(Syn { sent, ..Syn::default() }), None];
        let (kind_of, code) = (FailureKind::NoAnswer, Some("SYN_UNANSWERED".into()));
        connection.failure = Some(Box::new(Failure {
            kind: kind_of,
            code,
            waited_ns: connection.duration_ns,
            tries: sent,
            open: sent == 1,
        }));
        connection.icmp = kind
            .map(|kind| IcmpErrors {
                kind: kind.into(),
                about: Some("client".into()),
                first_ns: Some(0),
                last_ns: Some(0),
                ..sample::icmp_errors()
            })
            .into_iter()
            .collect();
        connection
    }

    /// Server, code, connections, the longest wait in seconds, most SYNs.
    fn counted(mut all: Vec<Connection>) -> Vec<(String, String, u64, i64, u32)> {
        let mut totals = Totals::default();
        // What is sure of each by itself is counted before.
        all.iter()
            .filter(|each| each.failure.as_ref().is_some_and(|failure| !failure.open))
            .for_each(|each| totals.add_failure(each));
        fill(&mut all, &mut totals);
        assert_eq!(totals.failed, totals.failures.iter().map(|each| each.connections).sum::<u64>());
        let told = |each: &FailedPeer| {
            let code = each.code.as_deref().unwrap_or_default().to_owned();
            let seconds = each.longest_ns / SECOND;
            (each.server.to_string(), code, each.connections, seconds, each.tries)
        };
        totals.failures.iter().map(told).collect()
    }

    #[test]
    fn a_syn_that_a_device_turned_back_has_the_code_that_says_so() {
        let row = |server: &str, code: &str, count, seconds, tries| {
            (server.to_owned(), code.to_owned(), count, seconds, tries)
        };
        let (one, two) = ("192.0.2.7:80", "192.0.2.8:443");
        let told = counted(vec![
            asked(one, 4, Some("host_unreachable")),
            asked(one, 2, None),
            asked(one, 1, Some("net_unreachable")),
            asked(two, 3, Some("prohibited")),
        ]);
        assert_eq!(
            told,
            [
                row(one, "SYN_UNANSWERED", 1, 2, 2),
                row(one, "UNREACHABLE", 2, 4, 4),
                row(two, "UNREACHABLE", 1, 3, 3),
            ]
        );
    }

    #[test]
    fn a_probe_s_hop_limit_and_what_is_no_end_of_the_way_leave_it_as_it_was() {
        let codes = |all| counted(all).into_iter().map(|each| each.1).collect::<Vec<_>>();
        assert_eq!(codes(vec![asked("192.0.2.7:80", 1, Some("time_exceeded"))]), [""; 0]);
        assert_eq!(
            codes(vec![asked("192.0.2.7:80", 2, Some("source_quench"))]),
            ["SYN_UNANSWERED"]
        );
        let mut reset = asked("192.0.2.7:80", 2, Some("host_unreachable"));
        reset.failure.as_mut().expect("set").kind = FailureKind::Refused;
        assert_eq!(codes(vec![reset]), ["SYN_UNANSWERED"]);
    }

    #[test]
    fn a_finding_of_a_failure_is_one_unless_it_is_a_plain_fact() {
        let told = |severity, code: &str| {
            let code = code.to_owned();
            let findings = vec![Finding { code, severity, cost_ns: 7, ..Finding::default() }];
            found(&Connection { findings, ..sample::download() }).map(|failure| failure.waited_ns)
        };
        assert_eq!(told(Severity::Broken, "TLS_ALERT"), Some(7));
        assert_eq!(told(Severity::Note, "TLS_ALERT"), None);
        assert_eq!(told(Severity::Limit, "SLOW_START"), None);
    }
}
