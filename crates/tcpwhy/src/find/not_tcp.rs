//! Most of this time is not TCP's: there was nothing to send.
//!
//! # What it says
//! For at least half of the connection's life, its closing left out, the windows were open and nothing
//! waited to be sent: one application or the other was silent. No setting of TCP or of the network
//! would have changed that time.
//!
//! # How we know
//! Intervals in the states `idle.app_think`, `idle.peer_think` and `app` of the direction that carried
//! most data: all that was sent was acknowledged, or the next send followed no ACK although all windows
//! had room; and the other direction held still too, so that no timer of it ran for a lost segment.
//!
//! # What it is not
//! Not a statement about the rest of the time: what was sent may have been slow too. Not necessarily a
//! fault: a connection kept open is idle by design. DNS and connections made before this one are not
//! in it.
//!
//! # What to do
//! Look at the programs, not at TCP: `THINK_SERVER`, `THINK_CLIENT` and `SLOW_WRITER` say whose. They
//! speak of the same time: it is not lost twice.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6.

use core::fmt::Write as _;

use super::case::{Case, Told};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "NOT_TCP", severity: Severity::Note, file: include_str!("not_tcp.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    let directions = [0, 1].into_iter().filter_map(|at| Case::of(connection, at));
    let Some(case) = directions.max_by_key(|case| case.direction.bytes) else { return Vec::new() };
    let mut held = case
        .held(State::is_silence)
        .and_the_other_is(case.at, |state| state.is_silence() || state == State::Receiving);
    held.limits.retain(|limit| !super::think_server::ends_with_a_timer(&case, limit));
    let after =
        [State::Closing, State::IdleKeptOpen].map(|state| case.direction.time_in.get(state).0);
    let closing = after.iter().sum::<i64>();
    let lifetime = connection.duration_ns - closing;
    let misread = super::scale_lost::explains(&case);
    if misread || held.limits.is_empty() || held.time_ns() < lifetime - held.time_ns() {
        return Vec::new();
    }
    let (sender, receiver) = (case.sender(), case.receiver());
    let mut silent = [
        (sender, held.time_of(&[State::IdleAppThink, State::App])),
        (receiver, held.time_of(&[State::IdlePeerThink])),
    ];
    silent.sort_by_key(|(_, ns)| core::cmp::Reverse(*ns));
    let said: Vec<String> = silent
        .iter()
        .filter(|(_, ns)| *ns > held.time_ns() / 100)
        .map(|(who, ns)| format!("the {who}'s application for {}", said::time(*ns)))
        .collect();
    let told = Told {
        title: "it is not TCP: before the closing there was mostly nothing to send".to_owned(),
        why: format!("TCP waited for {}.", said::listed(&said)),
        not: "not the network and no setting of TCP; the rest of the time is explained on its own"
            .to_owned(),
        remedies: vec![remedies::application(format!(
            "look at the {}'s program first",
            silent[0].0
        ))],
    };
    let mut finding = held.finding(RULE.code, told);
    // It says where not to look; what is wrong, if anything, others say.
    finding.severity = Severity::Note;
    finding.of_ns = lifetime;
    vec![finding]
}

/// Names the findings that say whose silence it is: they speak of the same time.
pub(super) fn say_whose(found: &mut [Finding]) {
    const SILENCES: [&str; 3] = ["THINK_SERVER", "THINK_CLIENT", "SLOW_WRITER"];
    let named: Vec<String> = SILENCES
        .into_iter()
        .filter(|code| found.iter().any(|f| f.code == *code))
        .map(str::to_owned)
        .collect();
    let Some(whole) = found.iter_mut().find(|finding| finding.code == RULE.code) else { return };
    if !named.is_empty() {
        let verb = if named.len() == 1 { "speaks" } else { "speak" };
        let _ = write!(whole.why, " {} {verb} of the same time.", said::listed(&named));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_connection_that_mostly_idles_is_told_to_look_elsewhere() {
        let idle = Sim { bytes: 5_000, times: 2, pause: 2_000 * MS, ..Sim::default() }.run();
        let found = find(&idle);
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_busy_connection_is_tcps() {
        assert!(find(&sample::download()).is_empty());
    }

    #[test]
    fn half_is_enough_and_less_is_not() {
        let connection = Sim { bytes: 5_000, times: 2, pause: 2_000 * MS, ..Sim::default() }.run();
        let case = Case::of(&connection, 1).expect("data");
        let cost = find(&connection)[0].cost_ns;
        let life = connection.duration_ns - case.direction.time_in.get(State::Closing).0;
        for (more, number) in [(2 * cost - life, 1), (2 * cost - life + 1, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
