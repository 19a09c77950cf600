//! Losses come at any flight: not this transfer's own congestion.
//!
//! # What it says
//! Segments are lost no matter how much this transfer has in flight. Its window is cut all the
//! same, so it runs below what the path would carry.
//!
//! # How we know
//! Intervals in the states `recovery.loss`, `cwnd.post_loss` and, after the first
//! loss, `cwnd.avoidance` hold at least a tenth of the working
//! time; at least eight losses, whose flights are no larger than those of all sends by a rank-sum
//! test, or lie below three quarters of what else passed; the flight did vary, without which the test would say nothing; and
//! the losses are no policer's. Or, from two losses on, the narrowest link tells: three quarters of them took their
//! turn on it or found its queue empty, so that it did not overflow.
//!
//! # What it is not
//! Not a queue that this transfer fills. It may be a bad cable, a radio, an emulated loss, or a
//! queue that other traffic fills: these packets do not tell which. A test that finds no dependence
//! is no proof that there is none.
//!
//! # What to do
//! Find where it happens: error counters of the interfaces on the way (`ip -s link`, `ethtool -S`),
//! the same transfer over another way, a capture further along. On the sender, BBR does not take
//! each loss for congestion: a trial on one route tells (it must be available, and can starve others
//! where queues are short).
//!
//! # Sources
//! `docs/reference/limits-method.md` section 8 (rank-sum test of the flights at losses against all
//! sends); RFC 5681 section 3.1; Linux `cubictcp_recalc_ssthresh` (v6.1, `net/ipv4/tcp_cubic.c`:
//! the window is cut to 717/1024). Ours: eight losses, not measured.

use super::case::{Case, Told, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, LossPattern, Severity};

use super::loss_congestion::{held_by_loss, is_by_link, lost};
use super::policer::is_policed;

pub(super) const RULE: Rule = Rule {
    code: "LOSS_RANDOM",
    severity: Severity::Wrong,
    file: include_str!("loss_random.rs"),
    find,
};

/// Fewer losses than this are no pattern. Ours, not measured.
const FEWEST: u64 = 8;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let (held, _) = held_by_loss(case).filter(|_| is_random(case))?;
        let pattern = case.direction.loss_pattern.as_deref()?;
        let told = Told {
            title: "losses come at any flight: not this transfer's own congestion".to_owned(),
            why: format!("{}, {}.", lost(case, pattern), how(pattern)),
            not: "not a queue that this transfer fills; a bad link or other traffic's queue, these packets do \
                  not tell which"
                .to_owned(),
            remedies: vec![
                remedies::counters(case, "find where it happens: errors of the interfaces on the way"),
                remedies::bbr(case),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// How the losses fall.
fn how(pattern: &LossPattern) -> &'static str {
    if is_by_link(pattern) {
        "but not to a full queue of the narrowest link: they had passed it, or it was empty"
    } else if pattern.depends_on_flight() {
        "at flights far smaller than others that had passed"
    } else {
        "as often with little in flight as with much"
    }
}

/// Whether the losses show no dependence on a flight that did vary.
pub(super) fn is_random(case: &Case<'_>) -> bool {
    case.direction.loss_pattern.as_deref().is_some_and(|pattern| {
        let by_flights = || {
            case.direction.events.lost >= FEWEST
                && (flight_varied(case) || pattern.depends_on_flight())
                && case.path_full_percent() < super::loss_congestion::FULL_PERCENT
        };
        pattern.kind == "random"
            && !super::losses::has_period(pattern)
            && !is_policed(case)
            && (is_by_link(pattern) || by_flights())
    })
}

/// Whether a quarter of the rounds had a flight a quarter larger than another quarter's.
fn flight_varied(case: &Case<'_>) -> bool {
    let mut flights: Vec<u64> =
        case.direction.rounds.iter().map(|round| round.in_flight_bytes).collect();
    flights.sort_unstable();
    let at = |quarter: usize| flights.get(flights.len() * quarter / 4).copied();
    at(1).zip(at(3)).is_some_and(|(low, high)| high * 4 >= low * 5)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, lossy};
    use super::*;
    use crate::report::LossToldBy;

    #[test]
    fn losses_at_any_flight_are_told() {
        let found = find(&lossy(sample::pattern("random", 20), 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&lossy(sample::pattern("random", 20), 1_000)).len(), 1);
        assert!(find(&lossy(sample::pattern("random", 20), 999)).is_empty());
    }

    #[test]
    fn eight_losses_are_a_pattern_and_seven_are_not() {
        assert_eq!(find(&lossy(sample::pattern("random", 8), 5_000)).len(), 1);
        assert!(find(&lossy(sample::pattern("random", 7), 5_000)).is_empty());
    }

    #[test]
    fn where_lost_packets_had_passed_the_link_two_are_enough() {
        let told_by = LossToldBy::Link;
        let found = find(&lossy(LossPattern { told_by, ..sample::pattern("random", 2) }, 5_000));
        assert!(found[0].why.contains("not to a full queue"), "{}", found[0].why);
        let other = LossPattern { told_by, ..sample::pattern("congestion", 20) };
        assert!(find(&lossy(other, 5_000)).is_empty());
    }

    #[test]
    fn where_the_flight_never_varied_nothing_is_concluded() {
        let mut connection = lossy(sample::pattern("random", 20), 5_000);
        let rounds = &mut connection.directions[1].as_mut().expect("data").rounds;
        for round in rounds.iter_mut() {
            round.in_flight_bytes = 65_000;
        }
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn what_a_policer_drops_is_not() {
        let lossy = lossy(sample::pattern("random", 20), 5_000);
        assert!(find(&sample::policed(lossy)).is_empty());
    }
}
