//! Losses come with a large flight: a queue on the path overflows.
//!
//! # What it says
//! Segments are lost when much is in flight. That is how a full queue tells a sender to slow down;
//! the window is cut each time and grows again.
//!
//! # How we know
//! Intervals in the states `recovery.loss`, `cwnd.post_loss` and, after the first
//! loss, `cwnd.avoidance` hold at least a tenth of the working
//! time, and the flights at which lost segments were sent are larger than those of all sends, by a
//! rank-sum test (at most one chance in twenty that it is none), and about as large as nine tenths of all; and the path was
//! full for a twentieth of the time. Or, from one episode on, three quarters of the lost segments found the queue of the
//! narrowest link at least half as long as it ever was, and took no turn on that link.
//!
//! # What it is not
//! Not a bad cable or radio: that does not care how much is in flight. Whose traffic fills the
//! queue these losses do not say. Losses as such are how TCP finds the path's rate: if most of the
//! time is spent at a full path (`BOTTLENECK`), look there first.
//!
//! # What to do
//! On the path: a queue of about one round trip's worth at the bottleneck, or one that marks and
//! drops early (`fq_codel`, CAKE, ECN). On the sender: a controller that does not fill queues (BBR, a
//! trial on one route; it must be available, and where queues are short it loses more itself and can starve
//! others), or `fq`, which spaces bursts out. A larger initial window or buffer makes it worse.
//!
//! # Sources
//! `docs/reference/limits-method.md` section 8 (rank-sum test of the flights at losses against all
//! sends); RFC 5681 section 3.1; Linux `cubictcp_recalc_ssthresh` (v6.1, `net/ipv4/tcp_cubic.c`:
//! the window is cut to 717/1024).

use super::case::{Case, Held, Told, in_each};
use super::losses::{after_losses, has_period, unseen_at_sender};
use super::{Rule, damaged, remedies};
use crate::report::{Connection, Finding, Severity, State};
use crate::report::{LossPattern, LossToldBy};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "LOSS_CONGESTION",
    severity: Severity::Limit,
    file: include_str!("loss_congestion.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let (held, pattern) = held_by_loss(case).filter(|_| is_congestion(case))?;
        let told = Told {
            title: "losses come with a large flight: a queue on the path overflows".to_owned(),
            why: format!(
                "{}{}{}{}.",
                lost(case, pattern),
                if is_by_link(pattern) {
                    ", where the narrowest link's queue was full"
                } else {
                    ""
                },
                usual_flight(case),
                beat(pattern)
            ),
            not: "not a bad cable or radio: that does not care how much is in flight".to_owned(),
            remedies: vec![
                remedies::path(
                    "a queue at the bottleneck that holds about a round trip's worth, or drops and marks early \
                     (fq_codel, CAKE)",
                ),
                remedies::bbr(case),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// The path is full, as far as losses are concerned, if it is for this share of the active time.
/// Ours, not measured.
pub(super) const FULL_PERCENT: f64 = 5.0;

/// Whether the losses depend on the flight and a queue stood: larger flights alone are also those
/// that had more time to meet a random loss (`testdata/truth/lossy-sender` passes the test by chance).
pub(super) fn is_congestion(case: &Case<'_>) -> bool {
    case.direction.loss_pattern.as_deref().is_some_and(|pattern| {
        let is_full = is_by_link(pattern) || case.path_full_percent() >= FULL_PERCENT;
        is_full && pattern.kind == "congestion"
    })
}

/// Whether the narrowest link tells where they were lost.
pub(super) fn is_by_link(pattern: &LossPattern) -> bool {
    pattern.told_by == LossToldBy::Link
}

/// The time that repairs took, and the cut window that grows slowly after them, if worth naming, and
/// how the losses fall. What the sender's own host lost tells nothing of the path.
pub(super) fn held_by_loss<'a>(case: &Case<'a>) -> Option<(Held<'a>, &'a LossPattern)> {
    held_by_any_loss(case).filter(|_| unseen_at_sender(case).is_none())
}

/// The same wherever they were lost.
pub(super) fn held_by_any_loss<'a>(case: &Case<'a>) -> Option<(Held<'a>, &'a LossPattern)> {
    let held = after_losses(case, |_| false);
    let lost = case.direction.events.lost > 0 && case.rtt().is_some();
    // What was too large for a link, or damaged on it, tells nothing of queues or chance.
    if super::path_mtu::explains(case) || damaged::explains(case) {
        return None;
    }
    let known = case.direction.loss_pattern.as_deref().filter(|_| lost)?;
    Some((held, known)).filter(|(held, _)| held.is_worth_naming())
}

/// How much was lost, in words.
pub(super) fn lost(case: &Case<'_>, pattern: &LossPattern) -> String {
    let share = said::percent(
        i64::try_from(case.direction.events.lost).unwrap_or(i64::MAX),
        i64::try_from(case.direction.segments).unwrap_or(i64::MAX),
    );
    format!(
        "{} of {} ({share}) were lost, in {}{}",
        said::grouped(case.direction.events.lost),
        said::count(case.direction.segments, "segment"),
        said::count(pattern.episodes, "episode"),
        cut(case)
    )
}

/// What the repairs took, and what the window that was cut for them.
fn cut(case: &Case<'_>) -> String {
    let all = after_losses(case, |_| false).time_ns();
    let repairs = case.held(|state| state == State::RecoveryLoss).time_ns();
    if repairs == 0 || all <= repairs {
        return String::new();
    }
    format!(
        " (repairs took {}, the window that was cut for them {} more)",
        said::time(repairs),
        said::time(all - repairs)
    )
}

/// A window that grows until the queue overflows, and is cut each time, does so at even distances.
fn beat(pattern: &LossPattern) -> &'static str {
    if has_period(pattern) {
        "; they come at even distances, as from a window that grows until the queue overflows"
    } else {
        ""
    }
}

fn usual_flight(case: &Case<'_>) -> String {
    let mut flights: Vec<u64> = case.direction.in_flight_at_loss.iter().map(|l| l.bytes).collect();
    flights.sort_unstable();
    flights.get(flights.len() / 2).map_or_else(String::new, |median| {
        format!("; half of the episodes began with {} or more in flight", said::bytes(*median))
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, lossy};
    use super::*;

    /// The same with the path full while the last ACKs were awaited.
    fn full(share: i64) -> Connection {
        let mut connection = lossy(sample::pattern("congestion", 20), share);
        let limits = &mut connection.directions[1].as_mut().expect("data").limits;
        for limit in limits.iter_mut().filter(|limit| limit.state == State::LastFlight) {
            limit.state = State::BandwidthSelfQueue;
        }
        connection
    }

    #[test]
    fn larger_flights_without_a_queue_prove_nothing() {
        assert!(find(&lossy(sample::pattern("congestion", 20), 5_000)).is_empty());
    }

    #[test]
    fn losses_at_the_largest_flights_are_a_full_queue() {
        let found = find(&full(5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn where_lost_packets_found_the_queue_full_one_episode_is_enough() {
        let by_link = |kind| LossPattern { told_by: LossToldBy::Link, ..sample::pattern(kind, 1) };
        let found = find(&lossy(by_link("congestion"), 5_000));
        assert!(found[0].why.contains("queue was full"), "{}", found[0].why);
        assert!(find(&lossy(by_link("random"), 5_000)).is_empty());
        assert!(find(&lossy(by_link("unknown"), 5_000)).is_empty());
    }

    #[test]
    fn a_queue_for_a_twentieth_of_the_time_is_enough_and_less_is_not() {
        // The last flight's 20 ms are 5.2 % of the time, or 4.7 %.
        assert_eq!(find(&full(2_100)).len(), 1);
        assert!(find(&full(1_900)).is_empty());
    }

    #[test]
    fn a_sawtooths_beat_does_not_hide_the_queue() {
        let mut connection = full(5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        direction.loss_pattern.as_mut().expect("losses").period_segments = Some(900);
        let found = find(&connection);
        assert!(found[0].why.contains("even distances"), "{}", found[0].why);
        assert!((super::super::loss_periodic::RULE.find)(&connection).is_empty());
    }

    #[test]
    fn where_nothing_was_lost_in_the_end_there_is_no_cause_of_losses() {
        let mut connection = full(5_000);
        connection.directions[1].as_mut().expect("data").events.lost = 0;
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn the_window_that_was_cut_is_told_beside_the_repairs() {
        let mut connection = full(5_000);
        assert!(!find(&connection)[0].why.contains("repairs took"), "no window was cut");
        let limits = &mut connection.directions[1].as_mut().expect("data").limits;
        let repair = limits.iter().find(|each| each.state == State::RecoveryLoss);
        let mut cut = repair.expect("a repair").clone();
        cut.state = State::CwndPostLoss;
        let time = said::time(cut.end_ns - cut.start_ns);
        limits.push(cut);
        let why = &find(&connection)[0].why;
        assert!(why.contains(&format!("the window that was cut for them {time} more")), "{why}");
    }

    #[test]
    fn losses_at_any_flight_are_not() {
        assert!(find(&lossy(sample::pattern("random", 20), 5_000)).is_empty());
    }
}
