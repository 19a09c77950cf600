//! Congestion marks slowed the sender down.
//!
//! # What it says
//! A router marked packets instead of dropping them, the receiver echoed the marks, and the sender
//! cut its window as for a loss, without anything lost.
//!
//! # How we know
//! Intervals in the state `recovery.ecn`: a reduction after ACKs with the echo (ECE) and without a
//! retransmission. They hold at least a tenth of the working time.
//!
//! # What it is not
//! Not loss: nothing had to be sent again. Not an error: this is how a short queue is kept.
//!
//! # What to do
//! Nothing on the hosts makes the path faster. If the queue that marks belongs to you, see at which
//! length it begins (`fq_codel`'s target and interval, RED's thresholds): too early on a long path
//! leaves rate unused. Switching ECN off only turns marks into losses.
//!
//! # Sources
//! RFC 3168 section 6.1.2; Linux `tcp_enter_cwr`, `tcp_ecn_rcv_ecn_echo` (v6.1,
//! `net/ipv4/tcp_input.c`).

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, State};
use crate::words;

pub(super) const RULE: Rule = Rule { code: "ECN", file: include_str!("ecn.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::RecoveryEcn);
        if !held.is_worth_naming() {
            return None;
        }
        let told = Told {
            title: format!("congestion marks (ECN) slowed the {} down", case.sender()),
            why: format!(
                "{} of the {} echoed a mark, and the window was cut without a loss.",
                words::count(case.direction.events.ecn_echo, "ACK"),
                case.receiver()
            ),
            not: "not loss, and not an error: a router keeps its queue short this way".to_owned(),
            remedies: vec![remedies::path(
                "if the router is yours, see at which queue it begins to mark; switching ECN off only turns marks \
                 into losses",
            )],
        };
        Some(held.finding(RULE.code, told))
    })
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
        assert_eq!(find(&held_by(State::RecoveryEcn, 1_000)).len(), 1);
        assert!(find(&held_by(State::RecoveryEcn, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
