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

use super::case::{Case, Told, active_ns, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Round, State};
use crate::units::BitRate;
use crate::words;

pub(super) const RULE: Rule =
    Rule { code: "TOKEN_BUCKET", file: include_str!("token_bucket.rs"), find };

/// Rounds at the burst's rate and at the base rate, at least. Ours, not measured.
const BEFORE: usize = 3;
const AFTER: usize = 6;
/// Rates alike are within this of their median, in per cent. Ours, not measured.
const ALIKE_PERCENT: u64 = 20;
/// One round in so many may have another rate. Ours, not measured.
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
                words::time(step.at_ns)
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
    // Both sides of the border stay sorted while it moves: sorting them anew at each took a fifth of the time of a long capture.
    let (mut before, mut after) = (Vec::new(), rates.iter().map(|row| row.1).collect::<Vec<_>>());
    after.sort_unstable();
    (0..last).find_map(|at| {
        let passed = rates[at].1;
        before.insert(before.partition_point(|&rate| rate < passed), passed);
        after.remove(after.partition_point(|&rate| rate < passed));
        if before.len() < BEFORE {
            return None;
        }
        let (before_median, after_median) = (alike(&before)?, alike(&after)?);
        let fell = u128::from(after_median) * 3 <= u128::from(before_median) * 2;
        fell.then_some(Step {
            at_ns: rates[at + 1].0.start_ns,
            before: before_median,
            after: after_median,
        })
    })
}

/// The median of sorted rates, if all but one in ten are near it: the first round at a full path, or the one in
/// which the bucket ran dry, has a rate between.
fn alike(sorted: &[u64]) -> Option<u64> {
    let median = sorted[sorted.len() / 2];
    let near = |rate: u64| {
        rate.abs_diff(median).saturating_mul(100) <= median.saturating_mul(ALIKE_PERCENT)
    };
    let below = sorted.partition_point(|&rate| rate < median && !near(rate));
    let above = sorted.partition_point(|&rate| rate <= median || near(rate));
    let odd = below + sorted.len() - above;
    (odd * ODD <= sorted.len() || odd == 0).then_some(median)
}

#[cfg(test)]
mod tests {
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
