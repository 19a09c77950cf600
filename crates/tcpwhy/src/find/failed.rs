//! Which connections failed: those that were waiting when the capture ended, and those of which a finding tells.
//!
//! What a connection shows by itself is known before (`analysis::failed`). Here the others of the capture tell how
//! long it went on behind a connection's last packet, so that a request right before its end is no failure.

use crate::analysis::failed::{LONG_NS, ONE_SYN_NS};
use crate::report::{Connection, Failure, FailureKind, Totals};
use crate::units::Time;

/// Findings that tell of something that did not work.
const CODES: [&str; 3] = ["HANDSHAKE_REFUSED", "TLS_ALERT", "HTTP_ERROR"];

/// Decides what was left open, and counts what is new in `totals`.
pub(crate) fn fill(connections: &mut [Connection], totals: &mut Totals) {
    let any_open = connections.iter().any(|each| each.failure.as_ref().is_some_and(|f| f.open));
    let end = if any_open { connections.iter().filter_map(ends).max() } else { None };
    for connection in connections {
        let known = connection.failure.as_ref().is_some_and(|failure| !failure.open);
        if known {
            continue;
        }
        connection.failure =
            still_open(connection, end).or_else(|| found(connection)).map(Box::new);
        totals.add_failure(connection);
    }
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
    if finding.severity == "info" {
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
    use crate::report::Finding;
    use crate::units::Duration;

    const SECOND: i64 = 1_000_000_000;

    /// A connection with this failure, and another that ends so much later.
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

    #[test]
    fn a_finding_of_a_failure_is_one_unless_it_is_a_plain_fact() {
        let told = |severity: &str, code: &str| {
            let (severity, code) = (severity.to_owned(), code.to_owned());
            let findings = vec![Finding { code, severity, cost_ns: 7, ..Finding::default() }];
            found(&Connection { findings, ..sample::download() }).map(|failure| failure.waited_ns)
        };
        assert_eq!(told("error", "TLS_ALERT"), Some(7));
        assert_eq!(told("info", "TLS_ALERT"), None);
        assert_eq!(told("error", "SLOW_START"), None);
    }
}
