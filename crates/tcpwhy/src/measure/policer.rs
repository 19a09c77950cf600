//! Does a policer drop what exceeds a rate?
//!
//! A token bucket without a queue lets bursts pass until its credit is spent, and drops from then
//! on. So each loss episode begins when the bucket runs dry, and between two such instants just
//! `rate * time` has passed, however long that time was. Losses that do not care for the rate come
//! after times and bytes whose quotient varies with the sawtooth of the window. A full queue drops
//! at one rate too, but there the round trip has grown; and losses at even distances look alike in
//! everything.

/// Distances between losses that are compared. Ours: quotients of a random sawtooth vary by about
/// 30 %; that six of them agree within a tenth happens less than once in 10,000 times.
const DISTANCES: usize = 6;
/// Rates within this of each other are one, in per cent of the largest.
const ALIKE_PERCENT: i128 = 10;
/// The longest distance is at least this many per cent of the shortest, or the losses may just
/// come evenly.
const VARIED_PERCENT: i64 = 150;

/// The instants at which losses began, as far as they matter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policer {
    last: Option<(i64, i64)>,
    /// Time and bytes between losses, the newest overwriting the oldest.
    distances: [(i64, i64); DISTANCES],
    count: usize,
}

impl Policer {
    /// A loss episode begins with the packet sent at `at` at offset `sent`; `queued` if packets
    /// stood in a queue then, `least` the shortest round trip.
    pub(crate) fn on_loss(&mut self, at: i64, sent: i64, queued: bool, least: i64) {
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
    }

    /// Whether the losses fit a policer.
    pub(crate) fn is_one(&self) -> bool {
        if self.count < DISTANCES {
            return false;
        }
        let times = self.distances.map(|distance| distance.0);
        let rates =
            self.distances.map(|(time, bytes)| i128::from(bytes) * 1_000_000 / i128::from(time));
        let (shortest, longest) = bounds(times);
        let (slowest, fastest) = bounds(rates);
        slowest > 0
            && (fastest - slowest) * 100 <= fastest * ALIKE_PERCENT
            && longest / VARIED_PERCENT >= shortest / 100
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
        policer.on_loss(at, sent, queued, 20_000_000);
        for (time, noise) in times.iter().zip(noise.iter().cycle()) {
            at += time * 100_000_000;
            sent += time * rate * (100 + noise) / 100;
            policer.on_loss(at, sent, queued, 20_000_000);
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
    fn a_queue_that_grew_before_them_speaks_against_it() {
        assert!(!losses(&TIMES, 125_000, &[0], true).is_one());
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
