//! A policer drops what exceeds its rate.
//!
//! # What it says
//! Somewhere on the path a device lets a burst through while its credit lasts, then drops
//! everything above a fixed rate, without queueing it. The transfer runs fast, loses a lot at once,
//! and goes on at that rate with losses.
//!
//! # How we know
//! Intervals in the state `bandwidth.policer`. At the sender each drop tells that the credit is spent: from one to the next
//! just as much passes as the rate allows, to a segment, more than chance would have it, although flights come
//! through as fast as they are sent. Elsewhere six losses in a row have one rate between them, to a tenth, without a
//! queue. With the repairs and the window cut for them they hold at least a tenth of the working time.
//!
//! # What it is not
//! Not a full queue: the round trip did not grow before the losses. Not a bad link: losses follow
//! the rate.
//!
//! # What to do
//! On the path: shape (queue) instead of police, raise the rate, or let the burst be at least the
//! rate times the round trip. On the sender: send a little slower than the rate (`SO_MAX_PACING_RATE`, in bytes a
//! second, in the program, or `fq` with `maxrate` on the route's device). BBR recognises such rates by itself
//! in part.
//!
//! # Sources
//! Flach et al., An Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016;
//! `docs/reference/limits-method.md` section 6.

use super::case::{Case, Told, in_each};
use super::losses::after_losses;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

pub(super) const RULE: Rule =
    Rule { code: "POLICER", severity: Severity::Wrong, file: include_str!("policer.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        if !is_policed(case) {
            return None;
        }
        // What the policer drops is repaired, and the window cut for it grows slowly.
        let held = after_losses(case, |state| state == State::BandwidthPolicer);
        if !held.is_worth_naming() {
            return None;
        }
        let rate = case
            .direction
            .bottleneck_rate_bps
            .map_or_else(String::new, |rate| format!(" of about {}", BitRate(rate)));
        let told = Told {
            title: format!("a policer drops what exceeds its rate{rate}"),
            why: format!(
                "{} were lost, beginning when a credit was spent; the rate was flat afterwards, without a queue.",
                said::count(case.direction.events.lost, "segment")
            ),
            not: "not a full queue: the round trip did not grow before; not a bad link".to_owned(),
            remedies: vec![
                remedies::path(
                    "raise the rate, or shape (queue) instead of policing, with a burst of at least the rate times the \
                     round trip",
                ),
                remedies::program(
                    case.at,
                    "let the program send a little slower than that: nothing is lost then, and it takes as long as the \
                     rate lets it (SO_MAX_PACING_RATE counts bytes a second, an eighth of the number; a policer counts \
                     headers, too, and all connections that it polices)",
                ),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether the losses were seen to begin each time when a credit was spent. Then neither chance nor a
/// period explains them.
pub(super) fn is_policed(case: &Case<'_>) -> bool {
    !case.held(|state| state == State::BandwidthPolicer).limits.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn a_policed_rate_is_told() {
        let found = find(&held_by(State::BandwidthPolicer, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::BandwidthPolicer, 1_000)).len(), 1);
        assert!(find(&held_by(State::BandwidthPolicer, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
