//! What holds a sender whose packets are seen away from its host?
//!
//! There the ACK that released a packet cannot be told from one that passed by, and time in queues before the tap
//! makes each send seem late. But the tap sees what its sender does not: whether the stream pauses. A window or a
//! buffer that holds the sender leaves the way silent for the rest of the round trip; a link that is full does not.

use super::Rounds;
use super::rate::are_same;
use crate::limits::round::Round;
use crate::limits::sense::{OPENING_MISSES, OPENING_ROUNDS, SAME_SEGMENTS, STREAM_PACKETS};

impl Rounds {
    /// How long the way to the tap held up what found nothing of its sender's before it, at most.
    pub(crate) fn held_up(&self) -> i64 {
        self.kept.iter().map(|round| round.held_up).max().unwrap_or(0)
    }

    /// The rate before the newest loss and after its repair, if that is one: the window was cut meanwhile, and so
    /// did not hold the sender.
    pub(super) fn rate_across_loss(&self) -> Option<u64> {
        let clean = |at: usize| self.kept.get(at).filter(|round| !round.loss && !round.holed);
        let after = self.kept.len().checked_sub(1)?;
        // The first round behind a repair answers what the repair let out.
        let repair = after.checked_sub(2).filter(|at| clean(*at).is_none())?;
        let before = (0..repair).rev().find_map(clean)?;
        let [rate, old] = [clean(after)?, clean(after - 1).and(Some(before))?].map(Round::rate);
        rate.filter(|rate| old.is_some_and(|old| are_same(*rate, old)))
    }

    /// Whether the round at `at` ran at a rate that a loss did not change.
    pub(super) fn ran_so_across_a_loss(&self, at: usize) -> bool {
        let rate = self.kept[at].rate();
        self.across_loss.is_some_and(|unmoved| rate.is_some_and(|rate| are_same(rate, unmoved)))
    }

    /// Whether data kept passing the tap in the rounds around `at`: evenly, or without a silence as long as
    /// each packet of the round stood in a queue. Then that was not empty, and lets packets out in bursts,
    /// as a token bucket does.
    pub(super) fn passes_steadily(&self, at: usize, rtt_min: i64) -> bool {
        let near = || self.around(at).filter(|r| !r.loss);
        let steady = |r: &Round| r.passes_evenly() || r.tap_gap <= r.standing_queue(rtt_min);
        near().map(|r| r.sends).sum::<u32>() >= STREAM_PACKETS && near().all(steady)
    }

    /// Whether flights around `at` grow by a segment a round, as a window that nothing else holds does in congestion
    /// avoidance (RFC 5681 section 3.1). At a pace what is in flight stays the same.
    pub(super) fn opens_at(&self, at: usize) -> bool {
        let near = || self.around(at).filter(|round| !round.loss).map(|r| r.flight_segments);
        let rounds = near().count() as u64;
        let falls = near().zip(near().skip(1)).any(|(one, next)| next + SAME_SEGMENTS < one);
        let grown =
            near().last().zip(near().next()).map(|(last, first)| last.saturating_sub(first).get());
        rounds >= OPENING_ROUNDS
            && !falls
            && grown.is_some_and(|grown| grown + OPENING_MISSES >= rounds)
    }

    /// Whether the round at `at` ran at a rate at which a queue had stood.
    pub(super) fn runs_at_full_rate(&self, at: usize) -> bool {
        let rate = self.kept[at].rate();
        self.full_rate.is_some_and(|full| rate.is_some_and(|rate| are_same(rate, full)))
    }

    /// In the newest round a queue stood all the time: if its rate is one with those before, the link has no more.
    pub(crate) fn note_full(&mut self) {
        let newest = self.kept.len() - 1;
        if !self.kept[newest].loss && self.is_rate_flat(newest) {
            self.full_rate = self.kept[newest].rate();
            if !self.is_far_below_before(self.full_rate) {
                self.came_back |= self.fell;
                self.fastest = self.fastest.max(self.full_rate);
            }
        }
    }
}
