//! Does a policer drop what exceeds a rate?
//!
//! A token bucket without a queue lets bursts pass until its credit is spent, and drops from then
//! on. So each loss episode begins when the bucket runs dry, and between two such instants just
//! `rate * time` has passed, however long that time was. Losses that do not care for the rate come
//! after times and bytes whose quotient varies with the sawtooth of the window. A full queue drops
//! at one rate too, but there the round trip has grown; and losses at even distances look alike in
//! everything.

use crate::clocks::StackTime;
use crate::offsets::Offset;

/// Distances between losses that are compared. Ours: quotients of a random sawtooth vary by about
/// 30 %; that six of them agree within a tenth happens less than once in 10,000 times.
const DISTANCES: usize = 6;
/// Rates within this of each other are one, in per cent of the largest.
const ALIKE_PERCENT: i128 = 10;
/// The longest distance is at least this many per cent of the shortest, or the losses may just
/// come evenly.
const VARIED_PERCENT: i64 = 150;
/// Of the times that this was asked, one of this many at least has to fit. Ours: of thousands of losses behind a
/// program that wrote at one rate, the last six agreed for a twentieth of the time. How often they do behind policers was not counted.
const MOST: u64 = 2;

/// The instants at which losses began, as far as they matter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policer {
    last: Option<(StackTime, Offset)>,
    /// Time and bytes between losses, the newest overwriting the oldest.
    distances: [(i64, i64); DISTANCES],
    count: usize,
    /// The losses fit one, and have not ceased to.
    is_one: bool,
    /// How often that was asked, and how often they did.
    asked: u64,
    fitted: u64,
}

impl Policer {
    /// A loss episode begins with the packet sent at `at` at offset `sent`; `queued` if packets
    /// stood in a queue then, `least` the shortest round trip.
    pub(crate) fn on_loss(&mut self, at: StackTime, sent: Offset, queued: bool, least: i64) {
        if queued {
            *self = Self::default();
            return;
        }
        let Some((then, before)) = self.last else {
            self.last = Some((at, sent));
            return;
        };
        // What follows within a few round trips belongs to the same overshoot.
        if at - then < 4 * least.max(1) {
            return;
        }
        self.distances[self.count % DISTANCES] = (at - then, sent - before);
        self.count += 1;
        self.last = Some((at, sent));
        // Once the window has settled, the losses come evenly at the rate proven before.
        self.is_one = self.has_one_rate() && (self.is_one || self.is_uneven());
        self.asked += u64::from(self.count >= DISTANCES);
        self.fitted += u64::from(self.is_one);
    }

    /// Whether the losses fit a policer.
    pub(crate) fn is_one(&self) -> bool {
        self.is_one && self.fitted * MOST >= self.asked
    }

    fn has_one_rate(&self) -> bool {
        let rate =
            |(time, bytes): (i64, i64)| i128::from(bytes) * 1_000_000 / i128::from(time.max(1));
        let (slowest, fastest) = bounds(self.distances.map(rate));
        self.count >= DISTANCES
            && slowest > 0
            && (fastest - slowest) * 100 <= fastest * ALIKE_PERCENT
    }

    fn is_uneven(&self) -> bool {
        let (shortest, longest) = bounds(self.distances.map(|distance| distance.0));
        longest / VARIED_PERCENT >= shortest / 100
    }
}

fn bounds<T: Copy + Ord, const N: usize>(values: [T; N]) -> (T, T) {
    values.iter().fold((values[0], values[0]), |(low, high), v| (low.min(*v), high.max(*v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses after these times (in units of 100 ms) at `rate` bytes per unit, give or take `noise`.
    fn losses(times: &[i64], rate: i64, noise: &[i64], queued: bool) -> Policer {
        let mut policer = Policer::default();
        let (mut at, mut sent) = (0, 0);
        policer.on_loss(StackTime(at), Offset::at(sent), queued, 20_000_000);
        for (time, noise) in times.iter().zip(noise.iter().cycle()) {
            at += time * 100_000_000;
            sent += time * rate * (100 + noise) / 100;
            policer.on_loss(StackTime(at), Offset::at(sent), queued, 20_000_000);
        }
        policer
    }

    const TIMES: [i64; 6] = [3, 5, 2, 4, 3, 5];

    #[test]
    fn one_rate_between_losses_at_uneven_times_is_a_policer() {
        assert!(losses(&TIMES, 125_000, &[0, 3, -3], false).is_one());
    }

    #[test]
    fn five_distances_prove_nothing() {
        assert!(!losses(&TIMES[1..], 125_000, &[0], false).is_one());
    }

    #[test]
    fn rates_that_vary_with_the_sawtooth_are_no_policer() {
        assert!(!losses(&TIMES, 125_000, &[0, 8, -8], false).is_one());
    }

    #[test]
    fn losses_at_even_distances_are_no_policer() {
        assert!(!losses(&[3; 6], 125_000, &[0], false).is_one());
    }

    #[test]
    fn once_proven_it_may_become_even_but_not_another_rate() {
        let even = [TIMES.as_slice(), &[4; 8]].concat();
        assert!(losses(&even, 125_000, &[0], false).is_one());
        let mut policer = losses(&TIMES, 125_000, &[0], false);
        let (at, sent) = policer.last.expect("losses came");
        policer.on_loss(at + 400_000_000, sent + 400_000, false, 20_000_000);
        assert!(!policer.is_one());
    }

    #[test]
    fn a_queue_that_grew_before_them_speaks_against_it() {
        assert!(!losses(&TIMES, 125_000, &[0], true).is_one());
    }

    #[test]
    fn what_fits_less_than_half_the_time_fits_by_chance() {
        // Six distances of different rates, and then this many of one.
        let after = |good: usize| {
            let times: Vec<i64> = TIMES.into_iter().cycle().take(6 + good).collect();
            let noise = [vec![0, 30, 0, 30, 0, 30], vec![0; good]].concat();
            losses(&times, 125_000, &noise, false).is_one()
        };
        assert_eq!([after(10), after(11)], [false, true], "five of eleven, and six of twelve");
    }

    #[test]
    fn losses_within_four_round_trips_are_one() {
        let mut policer = losses(&TIMES, 125_000, &[0], false);
        let (at, sent) = policer.last.expect("losses came");
        policer.on_loss(at + 79_000_000, sent + 9_000_000, false, 20_000_000);
        assert!(policer.is_one());
        policer.on_loss(at + 80_000_000, sent + 9_000_000, false, 20_000_000);
        assert!(!policer.is_one());
    }
}
