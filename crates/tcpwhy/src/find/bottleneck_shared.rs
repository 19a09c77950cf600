//! The path is full, but the queue in it is mostly somebody else's.
//!
//! # What it says
//! The round trip is well above its least, and not because of what this transfer has in flight:
//! other traffic fills the same queue, and this transfer gets its share of what is left.
//!
//! # How we know
//! Intervals in the state `bandwidth.external`: the delivery rate stayed flat with a queue that was
//! there from the start or did not follow this transfer's own flight. They hold at least a tenth of
//! the working time.
//!
//! # What it is not
//! Not this transfer's doing: with less in flight it would only get less. What the other traffic is
//! cannot be seen in these packets.
//!
//! # What to do
//! Find what else uses the link (the router's counters, a capture there), give it or this transfer
//! a class of its own, or use a queue that shares fairly (`fq_codel`, CAKE). No setting of these two
//! hosts helps, but more connections in parallel take more of the share from others.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6; RFC 8290.

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, State};
use crate::words;

pub(super) const RULE: Rule =
    Rule { code: "BOTTLENECK_SHARED", file: include_str!("bottleneck_shared.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::BandwidthExternal);
        if !held.is_worth_naming() {
            return None;
        }
        let told = Told {
            title: "the path is full of other traffic".to_owned(),
            why: format!(
                "{} went by behind a queue that does not follow this transfer's own flight{}.",
                words::time(held.time_ns()),
                super::bottleneck::queue(case)
            ),
            not: "not this transfer's windows or buffers; whose traffic it is these packets do not show"
                .to_owned(),
            remedies: vec![remedies::path(
                "find what else uses the link; share it fairly (fq_codel, CAKE), or give this traffic a class",
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
    fn other_traffic_in_the_queue_is_told() {
        let found = find(&held_by(State::BandwidthExternal, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::BandwidthExternal, 1_000)).len(), 1);
        assert!(find(&held_by(State::BandwidthExternal, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
