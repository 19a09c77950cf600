//! The rate fell in one step: a token bucket ran dry.
//!
//! # What it says
//! A shaper lets a burst through at a high rate while its tokens last, and then only its base rate.
//! Short transfers look fast, long ones slow, and a speed test that ends early shows the burst.
//!
//! # How we know
//! Rounds in which the path was full ran at one rate at first, then at one that is at most two
//! thirds of it, and never went back. At least three rounds before the step and six after it, each
//! but one in ten within a fifth of their median, and hardly a queue of others after it. The time after the step is the cost; it holds at least a tenth
//! of the active time.
//!
//! It was held against a real bucket at the sender's host alone. At the receiver, and in between, the
//! rounds before the step are rebuilt less well and may not show it.
//!
//! # What it is not
//! Not other traffic that comes and goes, which does not keep a rate to a fifth. One other transfer that
//! came at that moment and stayed shares a link as evenly: these packets cannot exclude it, and it is
//! said. Not loss: a shaper queues. Where it drops instead, see `POLICER`.
//!
//! # What to do
//! Nothing on the hosts makes it faster. Whoever runs the path (a cloud instance's network credits,
//! a provider's plan, a shaper of one's own) sets both rates and the size of the bucket. On the
//! sender's own host `tc -s qdisc show` names a tbf or htb.
//!
//! # Sources
//! RFC 2697 and RFC 2698 (token buckets), Linux `net/sched/sch_tbf.c` (v6.1). Ours: the step and
//! the counts of rounds, not measured.

use core::iter;

use super::case::{Case, Told, active_ns, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Round, Severity, State};
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

pub(super) const RULE: Rule = Rule {
    code: "TOKEN_BUCKET",
    severity: Severity::Limit,
    file: include_str!("token_bucket.rs"),
    find,
};

/// Rounds at the burst's rate and at the base rate, at least. Ours, not measured.
const BEFORE: usize = 3;
const AFTER: usize = 6;
/// Rates alike are within this of their median, in per cent. Ours, not measured.
const ALIKE_PERCENT: u64 = 20;
/// One round in this many may have another rate. Ours, not measured.
const ODD: usize = 10;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let step = step(case)?;
        let mut held = case.held(State::is_path);
        held.limits.retain(|limit| limit.start_ns >= step.at_ns);
        let whole = active_ns(connection);
        if held.limits.is_empty() || held.time_ns() * 10 < whole || is_shared(case, step) {
            return None;
        }
        let [before, after] = [step.before, step.after].map(BitRate);
        let told = Told {
            title: format!("the path's rate fell in one step from {before} to {after}"),
            why: format!(
                "after {} of the connection it never rose again, as behind a token bucket that ran dry; other \
                 traffic that came then and stayed at a steady rate would look alike.",
                said::time(step.at_ns)
            ),
            not: "not a setting of these hosts, unless the shaper is on one of them; not a share that varies"
                .to_owned(),
            remedies: vec![
                remedies::queues(case),
                remedies::path("whoever runs the path sets both rates and the bucket"),
            ],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether a queue of others stood for a good part of the time after the step: then this is a share that
/// became less. Other traffic that came and never left, without such a sign, looks alike.
fn is_shared(case: &Case<'_>, step: Step) -> bool {
    let mut others = case.held(|state| state == State::BandwidthExternal);
    others.limits.retain(|limit| limit.start_ns >= step.at_ns);
    let mut full = case.held(State::is_path);
    full.limits.retain(|limit| limit.start_ns >= step.at_ns);
    others.time_ns() * 4 > full.time_ns()
}

#[derive(Clone, Copy, Debug)]
struct Step {
    at_ns: i64,
    before: u64,
    after: u64,
}

/// Where the rate of rounds at a full path fell once and for all.
fn step(case: &Case<'_>) -> Option<Step> {
    let full = case.direction.rounds.iter().filter(|round| round.limited_by.is_path());
    let rates: Vec<(&Round, u64)> =
        full.filter_map(|round| Some((round, round.delivery_rate_bps?))).collect();
    let last = rates.len().checked_sub(AFTER)?;
    let mut sorted: Vec<u64> = rates.iter().map(|row| row.1).collect();
    sorted.sort_unstable();
    let (mut before, mut after) = (Chosen::none_of(&sorted), Chosen::none_of(&sorted));
    for (_, rate) in &rates {
        after.take(*rate);
    }
    (0..last).find_map(|at| {
        before.take(rates[at].1);
        after.drop(rates[at].1);
        if at + 1 < BEFORE {
            return None;
        }
        let (before_median, after_median) = (before.median(), after.median());
        let fell = u128::from(after_median) * 3 <= u128::from(before_median) * 2;
        (fell && before.are_alike() && after.are_alike()).then_some(Step {
            at_ns: rates[at + 1].0.start_ns,
            before: before_median,
            after: after_median,
        })
    })
}

/// Some of the rates, by their rank: a tree of counts that tells in few steps how many are below one of them, and which
/// one is in the middle (P. Fenwick, "A new data structure for cumulative frequency tables", 1994). To sort both sides
/// anew for each border took a quarter of the instructions for 2,000,000 packets.
struct Chosen<'a> {
    sorted: &'a [u64],
    tree: Vec<usize>,
    count: usize,
}

impl<'a> Chosen<'a> {
    fn none_of(sorted: &'a [u64]) -> Self {
        Self { sorted, tree: vec![0; sorted.len() + 1], count: 0 }
    }

    /// Takes one of the rates.
    fn take(&mut self, rate: u64) {
        self.count += 1;
        self.at_each_of(rate, |count| *count += 1);
    }

    /// Gives one back that was taken.
    fn drop(&mut self, rate: u64) {
        self.count -= 1;
        self.at_each_of(rate, |count| *count -= 1);
    }

    fn at_each_of(&mut self, rate: u64, change: impl Fn(&mut usize)) {
        let mut node = self.sorted.partition_point(|&other| other < rate) + 1;
        while let Some(count) = self.tree.get_mut(node) {
            change(count);
            node += node & node.wrapping_neg();
        }
    }

    /// How many have one of the lowest `ranks` ranks.
    fn among_lowest(&self, ranks: usize) -> usize {
        let parent = |node: &usize| Some(node & node.checked_sub(1)?);
        iter::successors(Some(ranks), parent).map_while(|node| self.tree.get(node)).sum()
    }

    fn median(&self) -> u64 {
        let (mut ranks, mut below) = (0, self.count / 2);
        let steps = (0..usize::BITS - self.sorted.len().leading_zeros()).rev();
        for step in steps.map(|bit| 1 << bit) {
            if let Some(count) = self.tree.get(ranks + step).filter(|count| **count <= below) {
                (ranks, below) = (ranks + step, below - count);
            }
        }
        self.sorted[ranks]
    }

    /// Whether all but one in ten are near the median: the first round at a full path, or the one in
    /// which the bucket ran dry, has a rate between.
    fn are_alike(&self) -> bool {
        let median = self.median();
        let near = |rate: u64| {
            rate.abs_diff(median).saturating_mul(100) <= median.saturating_mul(ALIKE_PERCENT)
        };
        let lower = self.sorted.partition_point(|&rate| rate < median && !near(rate));
        let upper = self.sorted.partition_point(|&rate| rate <= median || near(rate));
        let odd = self.count - (self.among_lowest(upper) - self.among_lowest(lower));
        odd * ODD <= self.count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample;
    use super::*;

    /// A transfer behind a full path whose rounds ran at these rates, in Mbit/s.
    fn at_rates(rates: &[u64]) -> Connection {
        let mut connection = sample::held_by(State::BandwidthSelfQueue, 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        let limit =
            direction.limits.iter().find(|l| l.state.is_path()).expect("a full path").clone();
        let length = limit.end_ns - limit.start_ns;
        let at = |number: usize| limit.start_ns + length * number as i64 / rates.len() as i64;
        let round = direction.rounds[0];
        direction.rounds = rates
            .iter()
            .enumerate()
            .map(|(number, mbit)| Round {
                start_ns: at(number),
                delivery_rate_bps: Some(mbit * 1_000_000),
                limited_by: State::BandwidthSelfQueue,
                ..round
            })
            .collect();
        direction.limits = (0..rates.len())
            .map(|number| crate::report::Limit {
                start_ns: at(number),
                end_ns: at(number + 1),
                ..limit.clone()
            })
            .collect();
        connection
    }

    #[test]
    fn a_step_down_that_stays_is_told() {
        let found = find(&at_rates(&[90, 92, 88, 60, 61, 60, 59, 60, 60, 62]));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_rate_that_comes_back_is_no_bucket() {
        assert!(find(&at_rates(&[90, 92, 88, 60, 61, 60, 59, 60, 60, 90])).is_empty());
    }

    #[test]
    fn a_queue_of_others_after_the_step_is_a_share_and_no_bucket() {
        let found = |others: usize| {
            let mut connection = at_rates(&[90, 92, 88, 60, 61, 60, 59, 60, 60, 62, 60]);
            let direction = connection.directions[1].as_mut().expect("data");
            let after = direction.limits.iter_mut().skip(3).take(others);
            after.for_each(|limit| limit.state = State::BandwidthExternal);
            find(&connection).len()
        };
        assert_eq!([found(2), found(3)], [1, 0], "a quarter of eight rounds");
    }

    proptest! {
        #[test]
        fn what_is_chosen_has_the_median_of_the_sorted(
            all in prop::collection::vec((0..20_u64, any::<bool>()), 1..40),
        ) {
            let mut sorted: Vec<u64> = all.iter().map(|(rate, _)| *rate).collect();
            sorted.sort_unstable();
            let mut chosen = Chosen::none_of(&sorted);
            for (rate, _) in &all {
                chosen.take(*rate);
            }
            for (rate, _) in all.iter().filter(|(_, stays)| !stays) {
                chosen.drop(*rate);
            }
            let mut left: Vec<u64> = all.iter().filter(|row| row.1).map(|row| row.0).collect();
            left.sort_unstable();
            prop_assert_eq!(chosen.count, left.len());
            for (rank, rate) in sorted.iter().enumerate() {
                let lower = sorted.partition_point(|other| other < rate);
                let below = left.partition_point(|other| other < rate);
                prop_assert_eq!(chosen.among_lowest(lower), below, "below {} (rank {})", rate, rank);
            }
            if let Some(median) = left.get(left.len() / 2) {
                prop_assert_eq!(chosen.median(), *median);
            }
        }
    }

    #[test]
    fn one_round_in_ten_may_have_another_rate() {
        let found = |before: &[u64]| find(&at_rates(&[before, &[60; 6][..]].concat())).len();
        let ten = [120, 90, 90, 90, 90, 90, 90, 90, 90, 90];
        assert_eq!([found(&ten), found(&ten[..9])], [1, 0]);
    }

    #[test]
    fn two_thirds_is_the_least_step_and_six_rounds_the_least_after_it() {
        let after = |rate: u64, rounds: usize| {
            find(&at_rates(&[&[90; 3][..], &vec![rate; rounds]].concat())).len()
        };
        assert_eq!([after(60, 6), after(61, 6), after(60, 5)], [1, 0, 0]);
    }
}
