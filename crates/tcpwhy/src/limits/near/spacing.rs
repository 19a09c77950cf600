//! How far apart the narrowest link let this sender's packets out.
//!
//! A queue that never empties keeps its link busy. Packets next to each other in it leave one after the other, spaced
//! by their length at the link's rate, and never closer (packet pairs; Jacobson 1988, Keshav 1991). Their ACKs keep
//! that spacing. Where the sender's packets are alone in the queue all of them are spaced so, and the rate of a round
//! is the link's. Where others are among them some pairs are still neighbours: the closest ones tell the link's rate,
//! all together the share of it that this sender got.

use crate::limits::sense::{
    CLOSE, CLOSER, CLOSEST, MID_CLOSEST, NOT_BUNCHED, ONE_ASTRAY, ONE_SPACING, SECOND_NS, SHARED,
    SPACED_ROUNDS, SPACED_STEPS, STEPS, STRAYED_STEPS, TURNS,
};
use std::collections::VecDeque;

use super::Rounds;

/// From one ACK to the next.
#[derive(Clone, Copy, Debug)]
struct Step {
    ns: u32,
    bytes: u32,
}

impl Step {
    fn rate(self) -> u64 {
        u64::from(self.bytes) * SECOND_NS.cast_unsigned() / u64::from(self.ns.max(1))
    }
}

/// The last steps from one ACK to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spacing {
    steps: VecDeque<Step>,
}

impl Spacing {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        core::mem::swap(&mut self.steps, &mut old.steps);
        self.steps.clear();
    }

    /// An ACK for `bytes` came `ns` after the one before it.
    pub(crate) fn push(&mut self, bytes: i64, ns: i64) {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        let most = |of: i64| u32::try_from(of).unwrap_or(u32::MAX);
        self.steps.push_back(Step { ns: most(ns.max(0)), bytes: most(bytes.max(0)) });
    }

    /// The rate of the link, in bytes per second, if these packets stood in its queue among others': some came
    /// as close as it lets them, none closer, and in between others came much later.
    pub(crate) fn link(&self) -> Option<u64> {
        let count = self.steps.len();
        if count < SPACED_STEPS {
            return None;
        }
        let mut rates = [0; STEPS];
        self.steps.iter().zip(&mut rates).for_each(|(step, rate)| *rate = step.rate());
        let rates = &mut rates[..count];
        let fastest = fastest(rates);
        let is_close = |rate: u64| CLOSE.is_reached(rate, fastest);
        let is_change = |pair: &&[u64]| is_close(pair[0]) != is_close(pair[1]);
        let changes = rates.windows(2).filter(is_change).count() as u64;
        // Where ACKs come at even distances, what they are for differs: their own way is the narrow one.
        let near = self.steps.iter().zip(&*rates).filter(|(_, rate)| is_close(**rate));
        let ns = |step: &Step| u64::from(step.ns);
        let (sum, alike) = near.fold((0, 0), |(sum, n), (step, _)| (sum + ns(step), n + 1));
        let all: u64 = self.steps.iter().map(ns).sum();
        let steps = count as u64;
        let is_closer = CLOSER.is_kept(sum * steps, all * alike);
        let are_enough = alike > CLOSEST.of(steps);
        if !are_enough || !TURNS.is_reached(changes, steps) || !is_closer || !self.strays() {
            return None;
        }
        Some(mid_closest(rates))
    }

    /// The rate of the step in the middle of the closest seventh, in bytes per second. Others that join the queue leave
    /// it as it was, as long as some packets are neighbours.
    pub(crate) fn closest(&self) -> Option<u64> {
        let mut rates = [0; STEPS];
        self.steps.iter().zip(&mut rates).for_each(|(step, rate)| *rate = step.rate());
        let count = self.steps.len();
        (count >= SPACED_STEPS).then(|| mid_closest(&mut rates[..count]))
    }

    /// Whether what came strays from an even rate further than a shaper's clock makes it, that lets out a few
    /// packets at a time in front of a faster link. Constant traffic of others leaves as even a rate.
    fn strays(&self) -> bool {
        let (ns, bytes) = self.steps.iter().fold((0, 0), |(ns, bytes), step| {
            (ns + i64::from(step.ns), bytes + i64::from(step.bytes))
        });
        let (mut at, mut came, mut least, mut most) = (0, 0, i128::MAX, i128::MIN);
        let mut note = |at: i64, came: i64| {
            let ahead = i128::from(came) * i128::from(ns) - i128::from(bytes) * i128::from(at);
            (least, most) = (least.min(ahead), most.max(ahead));
        };
        for step in &self.steps {
            at += i64::from(step.ns);
            note(at, came);
            came += i64::from(step.bytes);
            note(at, came);
        }
        let of_steps = (most - least) * self.steps.len() as i128;
        of_steps >= STRAYED_STEPS * i128::from(bytes) * i128::from(ns)
    }
}

/// The rate in the middle of the fastest seventh of `rates`.
fn mid_closest(rates: &mut [u64]) -> u64 {
    let middle = MID_CLOSEST.of(rates.len() as u64) as usize;
    *rates.select_nth_unstable_by(middle, |a, b| b.cmp(a)).1
}

/// The fastest of `rates`, though a fiftieth of them may be faster: one, where all are kept.
fn fastest(rates: &[u64]) -> u64 {
    const { assert!(STEPS / ONE_ASTRAY == 1) }
    let two = rates.iter().fold((0, 0), |(first, second), rate| {
        if *rate > first { (*rate, first) } else { (first, second.max(*rate)) }
    });
    if rates.len() < ONE_ASTRAY { two.0 } else { two.1 }
}

impl Rounds {
    /// The rate of the link that round `number` shared with others, in bytes per second.
    pub(crate) fn link_at(&self, number: u64) -> Option<u64> {
        self.index(number).and_then(|at| self.shared_link(at))
    }

    /// The rate of the link, in bytes per second, if others have a part of it: what the spacing of the rounds
    /// kept says, with which this sender got much less around `at`.
    pub(super) fn shared_link(&self, at: usize) -> Option<u64> {
        let links = || self.kept.iter().filter_map(|round| round.link);
        let (least, most) = (links().min()?, links().max()?);
        if links().count() < SPACED_ROUNDS || !ONE_SPACING.is_reached(least, most) {
            return None;
        }
        let near = || self.around(at).filter(|round| !round.loss && !round.holed);
        let acked: i64 = near().map(|round| round.acked).sum();
        let span: i64 = near().map(|round| round.end - round.start).sum();
        let share = i128::from(u64::try_from(acked).ok()?) * i128::from(SECOND_NS);
        let whole = i128::from(least) * i128::from(u64::try_from(span).ok()?);
        (SHARED.is_kept(share, whole) && NOT_BUNCHED.is_reached(share, whole)).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::StackTime;
    use crate::limits::round::Round;

    /// What two segments take on the link.
    const SLOT: i64 = 1_200_000;
    const LINK: u64 = 2 * 1448 * 1_000_000_000 / 1_200_000;

    /// `count` ACKs of two segments each, over and over in these distances.
    fn told(count: usize, slots: &[i64]) -> Option<u64> {
        let mut spacing = Spacing::default();
        slots.iter().cycle().take(count).for_each(|ns| spacing.push(2 * 1448, *ns));
        spacing.link()
    }

    #[test]
    fn of_fifty_rates_one_may_be_faster_than_the_fastest() {
        let rates: Vec<u64> = (1..=50).collect();
        let backwards: Vec<u64> = rates.iter().rev().copied().collect();
        assert_eq!((fastest(&rates), fastest(&backwards)), (49, 49));
        assert_eq!((fastest(&rates[..49]), fastest(&backwards[1..])), (49, 49), "of fewer none");
        assert_eq!(fastest(&[7; 50]), 7, "two of them");
    }

    /// Distances among others' packets: a run of its own ones and a few pairs, then only others'.
    fn among() -> Vec<i64> {
        let pairs = [SLOT, SLOT, 3 * SLOT, 2 * SLOT, 3 * SLOT].into_iter().cycle();
        pairs.take(15).chain([20 * SLOT]).collect()
    }

    #[test]
    fn packets_among_others_come_as_close_as_the_link_lets_them_and_never_closer() {
        assert_eq!(told(200, &among()), Some(LINK));
        assert_eq!(told(SPACED_STEPS, &among()), Some(LINK));
        assert_eq!(told(SPACED_STEPS - 1, &among()), None, "too few");
        assert_eq!(told(200, &[SLOT]), None, "alone");
    }

    #[test]
    fn the_closest_seventh_tells_the_links_rate_alone_or_among_others() {
        let closest = |count: usize, slots: &[i64]| {
            let mut spacing = Spacing::default();
            slots.iter().cycle().take(count).for_each(|ns| spacing.push(2 * 1448, *ns));
            spacing.closest()
        };
        assert_eq!(closest(64, &[SLOT]), Some(LINK));
        assert_eq!(closest(64, &among()), Some(LINK));
        assert_eq!(closest(64, &[4 * SLOT]), Some(LINK / 4));
        let few =
            |close: usize| closest(64, &[vec![SLOT; close], vec![4 * SLOT; 64 - close]].concat());
        assert_eq!((few(5), few(4)), (Some(LINK), Some(LINK / 4)), "of 64");
        assert_eq!(closest(SPACED_STEPS - 1, &[SLOT]), None, "too few");
    }

    #[test]
    fn the_closest_are_a_seventh_or_more() {
        let rare = |alike: usize| {
            let mut slots = vec![2 * SLOT; 16];
            (0..alike).for_each(|n| slots[n * 5] = SLOT);
            slots[15] = 20 * SLOT;
            told(64, &slots)
        };
        assert_eq!(rare(3), Some(LINK), "three of sixteen");
        assert_eq!(rare(2), None, "two of sixteen");
    }

    #[test]
    fn a_clock_that_lets_out_a_few_at_a_time_keeps_to_its_rate() {
        assert_eq!(told(200, &[SLOT, SLOT, 4 * SLOT]), None, "a token bucket before a faster link");
        let silence = |slots: i64| {
            let mut steps = [SLOT, 2 * SLOT].repeat(16);
            steps[31] = slots * SLOT;
            told(64, &steps)
        };
        // So long a silence falls behind by four ACKs, or seven.
        assert_eq!(silence(6), None);
        assert_eq!(silence(14), Some(LINK));
    }

    #[test]
    fn jitter_is_no_traffic_of_others() {
        for width in (5..=100).step_by(5) {
            // This many per cent to either side of the mean, evenly; and a silence.
            let spread = |n: i64| SLOT * (100 + (n * 26 % 63 - 31) * width / 31) / 100;
            let spread: Vec<i64> = (0..63).map(spread).chain([10 * SLOT]).collect();
            let share = told(200, &spread).map(|link| LINK as f64 / link as f64);
            assert!(share.is_none_or(|share| share > 2.0 / 3.0), "{width} %: {share:?}");
        }
    }

    #[test]
    fn a_link_that_is_slower_for_a_while_is_none_that_is_shared() {
        let blocks = |each: usize| {
            let mut steps = [vec![SLOT; each], vec![3 * SLOT; each]].concat().repeat(4);
            steps.push(30 * SLOT);
            told(64, &steps)
        };
        assert_eq!(blocks(8), None);
        assert_eq!(blocks(2), Some(LINK), "in turns");
    }

    #[test]
    fn acks_at_even_distances_were_spaced_by_their_own_way() {
        let mut spacing = Spacing::default();
        for segments in [[4, 2].repeat(16), vec![2; 32]].concat() {
            spacing.push(segments * 1448, SLOT);
        }
        assert!(spacing.strays());
        assert_eq!(spacing.link(), None);
    }

    /// Six rounds of this share of `LINK`, in per mille. The first of them told of these rates of the link.
    fn shared(share: i64, links: &[u64]) -> Option<u64> {
        let mut rounds = Rounds::default();
        for number in 0..6 {
            let link = links.get(number as usize).copied();
            let acked = LINK as i64 * share / 1000;
            let (start, end) = (number * 1_000_000_000, (number + 1) * 1_000_000_000);
            rounds.push(&Round {
                number: number as u64,
                start: StackTime(start),
                end: StackTime(end),
                acked,
                link,
                ..Round::default()
            });
        }
        rounds.shared_link(3)
    }

    #[test]
    fn two_thirds_of_a_link_are_a_share_of_it_and_more_is_the_link() {
        assert_eq!(shared(666, &[LINK; 3]), Some(LINK));
        assert_eq!(shared(668, &[LINK; 3]), None);
        assert_eq!(shared(126, &[LINK; 3]), Some(LINK));
        assert_eq!(shared(124, &[LINK; 3]), None, "bunches");
        assert_eq!(shared(500, &[LINK; 2]), None, "two rounds");
        assert_eq!(shared(500, &[LINK, LINK, LINK * 91 / 100]), Some(LINK * 91 / 100));
        assert_eq!(shared(500, &[LINK, LINK, LINK * 89 / 100]), None, "two links");
    }
}
