//! The path's rate varies under the transfer (radio, ACKs in clumps).
//!
//! # What it says
//! What the path carries goes up and down while the transfer fills it, as on Wi-Fi, mobile networks
//! and links that collect packets before they send them.
//!
//! # How we know
//! Intervals in the state `bandwidth.variable`: a queue stood all the time, and the rate went up and down by a third
//! and more, or it fell by a third and more, and even packets that were neighbours in the queue came further apart.
//! They hold at least a tenth of the working time.
//!
//! It was held against real kernels (Linux 5.10, 6.1, 6.12) behind a link between 12 and 40 Mbit/s that changes every
//! 100 to 150 ms, at the sender's host alone: there it held half of the time and more, in each of ten
//! variants of that link. At the receiver such a path is only called full. Changes much quicker than a round
//! trip average out. A link whose rate falls to a quarter for a second (`tcpwhy lab run changing-rate`) shows by the
//! rounds that are slower than those before. Others that begin to use the link leave some packets neighbours, at its
//! rate; where they take turns packet by packet (`fq_codel`, CAKE), that looks alike. A rate that
//! does not come back is the link's.
//!
//! # What it is not
//! Not the hosts' windows or buffers. Whether the radio, other stations or the provider changes the
//! rate is not in these packets.
//!
//! # What to do
//! Look at the link: signal, channel, retries on the radio; try a cable. If the receiver is a
//! laptop or phone, its power saving may collect packets. On the hosts, a controller that measures
//! the rate (BBR) may follow the changes better: a trial on one route tells.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6 (`bandwidth.variable`).

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "VARIABLE_RATE",
    severity: Severity::Limit,
    file: include_str!("variable_rate.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::BandwidthVariable);
        if !held.is_worth_naming() {
            return None;
        }
        let told = Told {
            title: "the path is full, and its rate varies".to_owned(),
            why: format!(
                "a queue stood, and what came through changed by a third and more, for {}, as on radio links.",
                said::time(held.time_ns())
            ),
            not: "not a window or a buffer of the hosts".to_owned(),
            remedies: vec![remedies::path(
                "look at the link: radio signal and retries, power saving of the receiver; try a cable",
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
    fn a_rate_that_moves_is_told() {
        let found = find(&held_by(State::BandwidthVariable, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::BandwidthVariable, 1_000)).len(), 1);
        assert!(find(&held_by(State::BandwidthVariable, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
