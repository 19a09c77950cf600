//! Congestion marks slowed the sender down.
//!
//! # What it says
//! A router marked packets instead of dropping them, the receiver echoed the marks, and the sender
//! cut its window as for a loss, without anything lost.
//!
//! # How we know
//! ACKs with the echo (ECE) tell that packets were marked: that alone is a fact. Intervals in the
//! state `recovery.ecn` (a reduction after such ACKs and without a retransmission) and, where nothing was
//! lost, `cwnd.avoidance` after slow start are its cost, if they hold at least a tenth of the working time.
//!
//! # What it is not
//! Not loss: nothing had to be retransmitted. Not an error: this is how a short queue is kept.
//!
//! # What to do
//! Nothing on the hosts makes the path faster. If the queue that marks belongs to you, see at which
//! length it begins (`fq_codel`'s target and interval, RED's thresholds): too early on a long path
//! leaves rate unused. Switching ECN off only turns marks into losses.
//!
//! # Sources
//! RFC 3168 section 6.1.2; Linux `tcp_enter_cwr`, `tcp_ecn_rcv_ecn_echo` (v6.1,
//! `net/ipv4/tcp_input.c`).

use super::case::{Case, Held, Told, active_ns, filter, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "ECN", severity: Severity::Limit, file: include_str!("ecn.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = held(case);
        let echoed = case.direction.events.ecn_echo;
        if echoed == 0 && held.limits.is_empty() {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let remedies = vec![remedies::path(
            "if the router is yours, see at which queue it begins to mark; switching ECN off only turns marks into \
             losses",
        )];
        let marks = said::count(echoed, "ACK");
        if held.is_worth_naming() {
            let told = Told {
                title: format!("congestion marks (ECN) slowed the {sender} down"),
                why: format!(
                    "{marks} of the {receiver} echoed a mark, and the window was cut without a loss."
                ),
                not: "not loss, and not an error: a router keeps its queue short this way"
                    .to_owned(),
                remedies,
            };
            return Some(held.finding(RULE.code, told));
        }
        Some(Finding {
            code: RULE.code.to_owned(),
            severity: Severity::Note,
            title: "a router marks packets (ECN) instead of dropping them".to_owned(),
            why: format!("{marks} of the {receiver} echoed a mark; it cost hardly any time."),
            not: "not loss, and not an error".to_owned(),
            evidence: vec![Evidence {
                from_ns: 0,
                to_ns: connection.duration_ns,
                frames: connection.frames,
                filter: format!("{} && tcp.flags.ece == 1", filter(connection.frames)),
                text: format!("{marks} with the echo of a mark"),
            }],
            cost_ns: 0,
            of_ns: active_ns(connection),
            remedies,
            ..Finding::default()
        })
    })
}

/// The reductions, and where nothing was lost the slow growth after slow start too: marks ended it.
fn held<'a>(case: &Case<'a>) -> Held<'a> {
    let grows = case.direction.events.ecn_echo > 0 && !case.lost_something();
    let since = case.direction.slow_start_exit.as_deref().map(|exit| exit.at_ns);
    let mut held = case.held(|state| {
        state == State::RecoveryEcn
            || grows
                && matches!(
                    state,
                    State::CwndAvoidance | State::CwndPostLoss | State::CwndCachedSsthresh
                )
    });
    held.limits.retain(|limit| {
        limit.state == State::RecoveryEcn || since.is_some_and(|since| limit.end_ns > since)
    });
    held
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn marks_that_cut_the_window_are_told() {
        let found = find(&held_by(State::RecoveryEcn, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert!(find(&held_by(State::RecoveryEcn, 1_000))[0].cost_ns > 0);
        assert_eq!(find(&held_by(State::RecoveryEcn, 999))[0].cost_ns, 0, "a fact only");
    }

    #[test]
    fn a_mark_is_a_fact_even_where_it_cost_nothing() {
        let mut connection = sample::download();
        connection.directions[1].as_mut().expect("data").events.ecn_echo = 1;
        let found = find(&connection);
        assert_eq!((found[0].severity, found[0].cost_ns), (Severity::Note, 0));
    }

    #[test]
    fn the_growth_after_slow_start_is_the_marks_doing_unless_something_was_lost() {
        let cost = |lost: u64| {
            let mut connection = held_by(State::CwndAvoidance, 5_000);
            let direction = connection.directions[1].as_mut().expect("data");
            direction.events = crate::report::Events { ecn_echo: 5, lost, ..direction.events };
            let exit = crate::report::SlowStartExit::default();
            direction.slow_start_exit = Some(Box::new(exit));
            find(&connection)[0].cost_ns
        };
        assert!(cost(0) > 0);
        assert_eq!(cost(1), 0);
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
