//! Rates of rounds: does the path bring one rate, whatever is in flight? Does its queue follow this sender's flight?

use core::cmp::Ordering;
use core::ops::RangeInclusive;

use super::Rounds;
use crate::limits::round::{Phase, Round, is_queue};
use crate::limits::sense::{
    AS_FAST, FLAT, FLAT_ROUNDS, LEAST_VARIATION, OWN_SLOPE, ROUNDS_AFTER, ROUNDS_BEFORE, SECOND_NS,
    SLOPE_ERRORS, SLOPE_ROUNDS, VARIED_STEPS, VARIES,
};

/// Whether `rate` is not less than `than`.
fn is_as_fast(rate: u64, than: u64) -> bool {
    AS_FAST.is_reached(rate, than)
}

/// Whether both rates are the same.
pub(super) fn are_same(a: u64, b: u64) -> bool {
    is_as_fast(a, b) && is_as_fast(b, a)
}

/// Whether a round tells of the path: no loss, nothing missing, and no doubling.
fn is_plain(round: &Round) -> bool {
    !round.loss && !round.holed && round.phase != Phase::SlowStart
}

impl Rounds {
    /// Whether the rate went up and down though a queue stood all the time: the link, or the share
    /// of it that this connection got, was not always the same.
    pub(super) fn is_rate_variable(&self, at: usize, rtt_min: i64) -> bool {
        let rates: Vec<u64> = self
            .around(at)
            .filter(|r| !r.loss && is_queue(r.standing_queue(rtt_min), rtt_min))
            .filter_map(Round::rate)
            .collect();
        let steps = rates.windows(2).map(|pair| {
            let (before, after) = (pair[0], pair[1]);
            let much = VARIES.is_reached(before.abs_diff(after), before.max(after));
            if much { after.cmp(&before) } else { Ordering::Equal }
        });
        let (ups, downs) = steps.fold((0, 0), |(ups, downs), step| match step {
            Ordering::Greater => (ups + 1, downs),
            Ordering::Less => (ups, downs + 1),
            Ordering::Equal => (ups, downs),
        });
        ups > 0 && downs > 0 && ups + downs >= VARIED_STEPS
    }

    /// Whether `rate` is far below that of rounds before in which a queue stood as well.
    pub(crate) fn is_far_below_before(&self, rate: Option<u64>) -> bool {
        self.fastest
            .zip(rate)
            .is_some_and(|(fastest, rate)| VARIES.is_reached(fastest.saturating_sub(rate), fastest))
    }

    /// Whether one of the runs of four rounds with `at` among them, of those at most two later,
    /// has one rate.
    pub(super) fn is_rate_flat(&self, at: usize) -> bool {
        (at.saturating_sub(ROUNDS_BEFORE)..=at.saturating_sub(1)).any(|from| {
            if from + FLAT_ROUNDS > self.kept.len() {
                return false;
            }
            self.is_flat_over(from..=from + FLAT_ROUNDS - 1)
        })
    }

    /// Whether the rounds around `at` together ran at a rate that a loss did not change, though it cut the window. Where
    /// delays vary, the ends of rounds do, and one's rate with them; of several in a row that is little.
    pub(super) fn keeps_rate_across_loss(&self, at: usize) -> bool {
        let Some(unmoved) = self.across_loss else { return false };
        let from = at.saturating_sub(ROUNDS_BEFORE);
        // The first round behind a repair answers what the repair let out.
        let first = (from..=at).rev().take_while(|at| {
            let before = at.checked_sub(1).and_then(|before| self.kept.get(before));
            is_plain(&self.kept[*at]) && before.is_none_or(|before| !before.loss)
        });
        let Some(first) = first.last() else { return false };
        let later =
            self.kept.range(at + 1..).take(ROUNDS_AFTER).take_while(|round| is_plain(round));
        let last = at + later.count();
        let acked: i64 = self.kept.range(first..=last).map(|round| round.acked).sum();
        let span = self.kept[last].end - self.kept[first].start;
        last - first + 1 >= FLAT_ROUNDS
            && span > 0
            && are_same(
                unmoved,
                (i128::from(acked) * i128::from(SECOND_NS) / i128::from(span)) as u64,
            )
    }

    /// Whether these rounds have one rate.
    fn is_flat_over(&self, rounds: RangeInclusive<usize>) -> bool {
        let rates = self.kept.range(rounds).map(|r| r.rate().unwrap_or(0));
        let (low, high) = rates.fold((u64::MAX, 0), |m, rate| (m.0.min(rate), m.1.max(rate)));
        low > 0 && FLAT.is_kept(high - low, high)
    }

    /// Whether the queue is made by this sender: `None` where that does not show. A link of its own that
    /// is full has one rate, so the round trip grows as the flight does, per cent for per cent. Where
    /// others fill the queue, too, it grows less, and a larger flight gets a larger share of the rate
    /// instead.
    pub(super) fn follows_own_flight(&self, rtt_min: i64) -> Option<bool> {
        let is_queued = |r: &Round| !r.loss && is_queue(r.standing_queue(rtt_min), rtt_min);
        // What is sent in one round is answered in the next.
        let pairs = self.kept.iter().zip(self.kept.iter().skip(1));
        let points: Vec<(f64, f64)> = pairs
            .filter(|(sent, answered)| !sent.loss && is_queued(answered))
            .filter_map(|(sent, answered)| {
                answered.rtt().map(|rtt| (sent.flight as f64, rtt as f64))
            })
            .collect();
        let n = points.len() as f64;
        let (mean_x, mean_y) =
            points.iter().fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in &points {
            let (x, y) = (x / mean_x - 1.0, y / mean_y - 1.0);
            xy += x * y;
            xx += x * x;
            yy += y * y;
        }
        if points.len() < SLOPE_ROUNDS || xx <= n * LEAST_VARIATION * LEAST_VARIATION {
            return None;
        }
        let slope = xy / xx;
        let error = libm::sqrt((yy - slope * xy).max(0.0) / (n - 2.0) / xx);
        match () {
            () if slope - SLOPE_ERRORS * error > OWN_SLOPE => Some(true),
            () if slope + SLOPE_ERRORS * error < OWN_SLOPE => Some(false),
            () => None,
        }
    }
}
