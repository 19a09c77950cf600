//! Losses come at even distances.
//!
//! # What it says
//! The loss episodes follow each other in even times, or after even numbers of segments. Chance and
//! congestion do not keep such a beat: something on the path does.
//!
//! # How we know
//! Intervals in the states `recovery.loss`, `cwnd.post_loss` and, after the first
//! loss, `cwnd.avoidance` hold at least a tenth of the working
//! time; at least seven episodes, the distances between them alike (standard deviation at most a
//! fifth of the mean).
//!
//! # What it is not
//! Not random errors. A window that grows and overflows a queue has a beat of its own: where a queue
//! stood and losses depend on the flight, that is `LOSS_CONGESTION`, and where they do without a queue it
//! is said here. Nor a policer, where `POLICER` is said: a window that is cut each time comes to its rate at
//! even distances, too.
//!
//! # What to do
//! Look for what happens at that beat on the path: a radio that scans, a device that writes its
//! state, a rate limit refilled by a timer, an emulator's rule (every n-th packet).
//!
//! # Sources
//! Ours: the coefficient of variation of independent losses is 1; 6 of their distances fall under
//! 0.2 once in 1,000 times (`measure/loss.rs`).

use super::case::{Told, in_each};
use super::loss_congestion::{held_by_loss, is_congestion, lost};
use super::losses::has_period;
use super::policer::is_policed;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "LOSS_PERIODIC",
    severity: Severity::Wrong,
    file: include_str!("loss_periodic.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let is_other = |pattern| has_period(pattern) && !is_congestion(case) && !is_policed(case);
        let (held, pattern) = held_by_loss(case).filter(|(_, pattern)| is_other(*pattern))?;
        let beat = match (pattern.period_ns, pattern.period_segments) {
            (Some(ns), _) => format!("every {}", said::time(ns)),
            (None, segments) => format!("every {} segments", said::grouped(segments.unwrap_or(0))),
        };
        let own = if pattern.kind == "congestion" {
            "; they also come with a large flight: a window that grows and overflows a queue has such a beat too"
        } else {
            ""
        };
        let told = Told {
            title: format!("losses come at even distances: {beat}"),
            why: format!("{}, alike in their distances{own}.", lost(case, pattern)),
            not: "not random errors".to_owned(),
            remedies: vec![remedies::path(format!(
                "look for what happens {beat} on the path: a radio that scans, a limit refilled by a timer, an \
                 emulator's rule"
            ))],
        };
        Some(held.finding(RULE.code, told))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, lossy};
    use super::*;
    use crate::report::LossPattern;

    #[test]
    fn losses_with_a_beat_are_told() {
        let found = find(&lossy(beat(), 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&lossy(beat(), 1_000)).len(), 1);
        assert!(find(&lossy(beat(), 999)).is_empty());
    }

    fn beat() -> LossPattern {
        LossPattern { period_ns: Some(200_000_000), ..sample::pattern("random", 20) }
    }

    #[test]
    fn losses_without_one_are_not() {
        assert!(find(&lossy(sample::pattern("random", 20), 5_000)).is_empty());
    }

    #[test]
    fn a_windows_own_beat_is_owned_up_to() {
        let pattern = LossPattern { kind: "congestion".to_owned(), ..beat() };
        let why = &find(&lossy(pattern, 5_000))[0].why;
        assert!(why.contains("overflows a queue"), "{why}");
    }

    #[test]
    fn what_a_policer_drops_is_not() {
        assert!(find(&sample::policed(lossy(beat(), 5_000))).is_empty());
    }
}
