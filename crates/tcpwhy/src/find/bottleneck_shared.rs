//! The path is full, but others have a part of it.
//!
//! # What it says
//! There is a queue at the narrowest link, and between this transfer's packets others' leave it: this
//! transfer gets its share of the link, two thirds of it or less.
//!
//! # How we know
//! Intervals in the state `bandwidth.external`. While there is a queue its link is never idle: packets that
//! stood next to each other leave it at its rate, and never closer. Of the last 64 ACKs a seventh and more
//! came with one least spacing, which is the link's, in at least three rounds the same; the others, in between,
//! came much later, and all together made two thirds of that rate or less. They hold at least a tenth of the
//! working time.
//!
//! # What it is not
//! Not a link that is slower for a while: that changes all spacings for that while. Not ACKs that their own
//! way spaces: those come at even distances. Not bunches as radio links and busy hosts let them out: a rate more than
//! eight times what was got is not taken for the link's. What a shaper in front of a faster link lets out keeps to an
//! even rate within a few packets, and differs by that; where its rhythm changes it can be taken for others for a
//! while (three of 300 runs, for a twentieth of theirs), so away from the sender it is named as possible. Mostly not
//! seen are therefore constant traffic (a call, a stream), others of more than seven such shares, and where this
//! transfer's packets and others' take turns one by one. What the other traffic is these packets do not show.
//!
//! # What to do
//! Find what else uses the link (the router's counters, a capture there), move it to another time, give it or
//! this transfer a class of its own, or use a queue that shares fairly (`fq_codel`, CAKE). No setting of these
//! two hosts makes the link wider; more connections in parallel take more of the share from others.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 6; packet pairs: Keshav, A Control-Theoretic Approach to Flow
//! Control (1991); RFC 8290. Ours: runs of the model with several connections on a link, and with one on
//! links that jitter, reorder, vary, space the ACKs or have constant traffic (`crates/cli/tests/shared_link.toml`);
//! `testdata/openings/shared-link`.

use super::case::{Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Direction, Finding, Severity, State};
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

pub(super) const RULE: Rule = Rule {
    code: "BOTTLENECK_SHARED",
    severity: Severity::Limit,
    file: include_str!("bottleneck_shared.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::BandwidthExternal);
        if !held.is_worth_naming() {
            return None;
        }
        let told = Told {
            title: "the path is full, and others have a part of it".to_owned(),
            why: format!(
                "{} went by behind a queue that others' packets stand in, too{}{}.",
                said::time(held.time_ns()),
                share(case.direction),
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

/// What this transfer got of the link, to follow other words.
fn share(direction: &Direction) -> String {
    match (direction.shared_link_rate_bps, direction.bottleneck_rate_bps) {
        (Some(link), Some(own)) => format!(
            ": the closest of this transfer's packets leave the narrowest link at {}, but it got {}",
            BitRate(link),
            BitRate(own)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn other_traffic_in_the_queue_is_told() {
        let mut connection = held_by(State::BandwidthExternal, 5_000);
        let server = connection.directions[1].as_mut().expect("it sent data");
        (server.shared_link_rate_bps, server.bottleneck_rate_bps) =
            (Some(20_000_000), Some(5_000_000));
        let found = find(&connection);
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
