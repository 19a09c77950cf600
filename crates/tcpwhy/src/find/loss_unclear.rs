//! Segments were lost; why, they are too few or too alike to say.
//!
//! # What it says
//! Repairing losses, and the congestion window that they cut, held the transfer. The losses are too
//! few, or the flight too even, to tell congestion from a bad link.
//!
//! # How we know
//! Intervals in the states `recovery.loss`, `cwnd.post_loss` and, after the first
//! loss, `cwnd.avoidance` hold at least a tenth of the working
//! time, and none of `LOSS_CONGESTION`, `LOSS_RANDOM`, `LOSS_PERIODIC` and `POLICER` is shown.
//!
//! # What it is not
//! Not proven to be congestion, and not proven to be anything else. What the capture itself missed
//! is not counted.
//!
//! # What to do
//! Get more of it: a longer transfer, several transfers, or captures at both ends. Meanwhile look
//! at the error and drop counters of the interfaces on the way.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 8; RFC 5681 section 3.2.

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity};

use super::loss_congestion::{FULL_PERCENT, held_by_loss, is_by_link, is_congestion, lost};
use super::loss_random::is_random;
use super::losses::has_period;
use super::policer::is_policed;

pub(super) const RULE: Rule =
    Rule { code: "LOSS", severity: Severity::Wrong, file: include_str!("loss_unclear.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let (held, pattern) = held_by_loss(case)?;
        if is_congestion(case) || is_random(case) || has_period(pattern) || is_policed(case) {
            return None;
        }
        let full = case.path_full_percent() >= FULL_PERCENT;
        let why = match &*pattern.kind {
            "unknown" if is_by_link(pattern) => {
                "not to a full queue of the narrowest link, and too many at once for chance"
            }
            "congestion" => "at flights larger than usual, but no queue stood before",
            _ if full => "not clearly at larger flights, though the path was full at times",
            _ => "too few, or at flights too alike, for a pattern",
        };
        let told = Told {
            title: "segments were lost; why, these losses do not tell".to_owned(),
            why: format!("{}: {why}.", lost(case, pattern)),
            not: "not shown to be congestion, nor to be a bad link".to_owned(),
            remedies: vec![remedies::counters(
                case,
                "look at errors and drops of the interfaces on the way",
            )],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, lossy};
    use super::*;

    #[test]
    fn a_few_losses_are_told_without_a_cause() {
        let found = find(&lossy(sample::pattern("unknown", 3), 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&lossy(sample::pattern("unknown", 3), 1_000)).len(), 1);
        assert!(find(&lossy(sample::pattern("unknown", 3), 999)).is_empty());
    }

    #[test]
    fn losses_with_a_cause_are_told_elsewhere() {
        assert!(find(&lossy(sample::pattern("random", 20), 5_000)).is_empty());
    }

    #[test]
    fn larger_flights_without_a_queue_are_told_as_just_that() {
        let why = &find(&lossy(sample::pattern("congestion", 20), 5_000))[0].why;
        assert!(why.contains("no queue stood"), "{why}");
    }
}
