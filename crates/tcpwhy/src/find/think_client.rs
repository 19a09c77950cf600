//! The client was silent before it asked (again).
//!
//! # What it says
//! The connection stood open and idle until the client's application sent a request: after the
//! handshake, or between a response and the next request.
//!
//! # How we know
//! Intervals in the state `idle.app_think` of the client, with nothing in flight either way. Together
//! they are at least as long as the active time, so that whoever measures the whole connection would
//! count mostly this.
//!
//! # What it is not
//! Not necessarily a wait: a connection kept open for the next request is idle by design, and that is
//! good. Not the server, and not TCP.
//!
//! # What to do
//! Nothing, if nobody waited. If somebody did, look at the client's program: between a response and
//! the next request it may parse, render, ask another service, or wait for a person. Long pauses cost
//! the open window of the connection besides (Linux halves it for each retransmission timeout).
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6; RFC 5681 section 4.1 (restart after idle).

use super::case::{Case, Told, active_ns};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "THINK_CLIENT",
    severity: Severity::Note,
    file: include_str!("think_client.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let Some(case) = Case::of(connection, 0) else { return Vec::new() };
    let held = case
        .held(|state| state == State::IdleAppThink)
        .and_the_other_is(0, |state| state.is_silence() || state == State::LastFlight);
    let misread = super::scale_lost::explains(&case);
    if misread || held.limits.is_empty() || held.time_ns() < active_ns(connection) {
        return Vec::new();
    }
    let lengths = held.limits.iter().map(|each| each.end_ns - each.start_ns);
    let longest = lengths.max().unwrap_or_default();
    let told = Told {
        title: "the client's application was silent between requests".to_owned(),
        why: format!(
            "nothing was in flight, {}, {} at the longest; requests and answers took {} in all.",
            held.times(),
            said::time(longest),
            said::time(active_ns(connection))
        ),
        not: "not TCP, not the server; perhaps no one waits: a connection kept open is idle by design"
            .to_owned(),
        remedies: vec![remedies::program(
            remedies::CLIENT,
            "if somebody waited then, look at what the program did before it asked",
        )],
    };
    let mut finding = held.finding(RULE.code, told);
    // Whether anybody waited is not in the packets.
    finding.severity = Severity::Note;
    finding.of_ns = connection.duration_ns;
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    fn pauses(pause: i64) -> Connection {
        Sim { bytes: 5_000, times: 2, pause, ..Sim::default() }.run()
    }

    #[test]
    fn a_client_that_pauses_is_told_but_not_accused() {
        let found = find(&pauses(2_000 * MS));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_client_that_asks_on_is_not() {
        assert!(find(&pauses(1_000)).is_empty());
    }

    #[test]
    fn as_long_as_the_active_time_is_enough_and_less_is_not() {
        let connection = pauses(2_000 * MS);
        let equal = find(&connection)[0].cost_ns - active_ns(&connection);
        for (more, number) in [(equal, 1), (equal + 1, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
