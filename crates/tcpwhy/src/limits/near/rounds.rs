//! Rounds, and what a run of them says that one wait cannot.
//!
//! A round starts at the first send, or at the ACK that first covers data sent in the current
//! round, and ends when `snd_una` exceeds the marker: `snd_nxt` just before the sends that ACK
//! releases (BBR's delivered-based round; it survives TSO, GRO and pacing).
//!
//! Waits that an ACK ended look alike whether the congestion window, the send buffer, an
//! application's window or the path's rate held the sender. Rounds tell them apart: does the
//! flight grow, does the round trip grow with it, does the rate?

use std::collections::VecDeque;

use crate::limits::beat::Beats;
use crate::limits::pulse::Pulses;
use crate::limits::round::{Phase, Round, is_queue};
use crate::limits::sense::{
    CREPT_LID_ROUNDS, LID_ROUNDS, PLATEAU_NS, RENO_ROUNDS, ROUNDS, ROUNDS_AFTER, ROUNDS_BEFORE,
    SAME_SEGMENTS, SWINGS, UNCUT_LID_ROUNDS,
};
use crate::report::Cwnd;
use crate::segments::Segments;

/// The last rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    pub(in crate::limits) kept: VecDeque<Round>,
    /// The newest rate, in bytes per second, that a loss did not change.
    pub(super) across_loss: Option<u64>,
    /// The newest rate, in bytes per second, at which a queue stood.
    pub(super) full_rate: Option<u64>,
    /// The fastest such rate.
    pub(super) fastest: Option<u64>,
    /// The link was slower than that, and then as fast again.
    pub(super) fell: bool,
    pub(in crate::limits) came_back: bool,
}

impl Rounds {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        core::mem::swap(&mut self.kept, &mut old.kept);
        self.kept.clear();
        (self.across_loss, self.full_rate, self.fastest) = (None, None, None);
        (self.fell, self.came_back) = (false, false);
    }

    /// Closes a round.
    pub(crate) fn push(&mut self, round: &Round) {
        if self.kept.len() == ROUNDS {
            self.kept.pop_front();
        }
        self.kept.push_back(*round);
        self.fell |= round.is_slower;
        self.across_loss = self.rate_across_loss().or(self.across_loss);
    }

    /// Slow start turns out to have ended before round `number`.
    pub(crate) fn name_from(&mut self, number: u64, phase: Phase) {
        for round in self.kept.iter_mut().filter(|r| r.number >= number) {
            round.phase = phase;
        }
    }

    /// What was replayed from round `number` on was not this sender's window.
    pub(crate) fn forget_window_from(&mut self, number: u64) {
        for round in self.kept.iter_mut().filter(|r| r.number >= number) {
            round.cwnd = Cwnd {
                low: round.cwnd.low.min(Some(round.flight_segments.get())),
                ..Cwnd::default()
            };
        }
    }

    /// Rate of round `number`, in bytes per second.
    pub(crate) fn rate(&self, number: u64) -> Option<u64> {
        self.index(number).and_then(|at| self.kept[at].rate())
    }

    /// Number of the newest closed round.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.kept.back().map(|r| r.number)
    }

    /// Whether packets stood in a queue throughout the newest round.
    pub(crate) fn is_queue_standing(&self, rtt_min: i64) -> bool {
        is_queue(self.standing_queue(rtt_min), rtt_min)
    }

    /// How long packets stood in queues in the newest round, at least.
    pub(crate) fn standing_queue(&self, rtt_min: i64) -> i64 {
        self.kept.back().map_or(0, |round| round.standing_queue(rtt_min))
    }

    pub(super) fn index(&self, number: u64) -> Option<usize> {
        let first = self.kept.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        // A round still open is judged by the last closed one.
        Some(at.min(self.kept.len() - 1))
    }

    fn end_around(&self, at: usize) -> usize {
        (at + ROUNDS_AFTER + 1).min(self.kept.len())
    }

    /// Rounds around `at`: up to three before, two after.
    pub(super) fn around(&self, at: usize) -> impl Iterator<Item = &Round> {
        self.kept.range(at.saturating_sub(ROUNDS_BEFORE)..self.end_around(at))
    }

    /// Whether the last rounds look like a pace that the sender itself set.
    pub(crate) fn are_paced(&self) -> bool {
        let pulses = Pulses::sum(self.kept.iter().filter(|r| !r.loss).map(|r| &r.pulses));
        pulses.are_own() && pulses.are_even_and_whole()
    }

    /// The pulses of the rounds around `at`; each round may hold just one or two.
    pub(super) fn pulses_near(&self, at: usize) -> Pulses {
        Pulses::sum(self.widely_around(at).map(|r| &r.pulses))
    }

    /// Their beats.
    pub(super) fn beats_near(&self, at: usize) -> Beats {
        Beats::sum(self.widely_around(at).map(|r| &r.beats))
    }

    /// Rounds around `at` without a loss: up to six before, two after.
    fn widely_around(&self, at: usize) -> impl Iterator<Item = &Round> {
        let near = self.kept.range(at.saturating_sub(2 * ROUNDS_BEFORE)..self.end_around(at));
        near.filter(|round| !round.loss)
    }

    /// Whether the round at `at` is one of a run whose flights are one to the segment: a lid, or a window
    /// that hardly grows. Or they swing, and it is a lid.
    pub(super) fn stands_still(&self, at: usize) -> bool {
        let later = self.kept.range(at..).zip(0..);
        self.has_lid(at)
            || self.swings(at)
            || later.into_iter().any(|(r, n)| r.still.1 >= LID_ROUNDS as u32 && n < r.still.1)
    }

    /// Whether flights around `at` go up and down between two sizes without a loss, as a send buffer lets them that
    /// takes more of large packets than of small ones, and no congestion window does.
    pub(in crate::limits) fn swings(&self, at: usize) -> bool {
        (at.saturating_sub(3)..=at).any(|from| {
            let mut four = self.kept.iter().skip(from).take(4);
            let (Some(a), Some(b), Some(c), Some(d)) =
                (four.next(), four.next(), four.next(), four.next())
            else {
                return false;
            };
            let are_one = |a: &Round, b: &Round| {
                a.flight_segments.abs_diff(b.flight_segments) <= SAME_SEGMENTS
            };
            let apart = a.flight_segments.abs_diff(b.flight_segments);
            let has_loss = [a, b, c, d].iter().any(|round| round.loss);
            !has_loss
                && are_one(a, c)
                && are_one(b, d)
                && !SWINGS.is_kept(apart, a.flight_segments.max(b.flight_segments))
        })
    }

    /// Whether something else than the congestion window stopped the flight of `at`: in slow start it doubles.
    /// Two rounds in a row tell, or two of three, for a send buffer takes more of large packets than of small ones,
    /// and swings until their sizes settle; but a flight that the receiver's window or the end of what was
    /// written stopped is no swing.
    pub(super) fn stays_below_window(&self, at: usize) -> bool {
        let below = |at: usize| self.kept.get(at).filter(|round| round.is_below_window());
        let swings = |from: usize| {
            let is_free = self.kept.iter().skip(from + 1).take(2).any(|round| round.free > 0);
            !is_free
                && [from, from + 2]
                    .into_iter()
                    .all(|end| below(end).is_some_and(|round| round.edge_flight == 0))
        };
        if self.kept[at].is_below_window() {
            let near = [at.checked_sub(1), Some(at + 1)];
            near.into_iter().flatten().any(|near| below(near).is_some())
                || at.checked_sub(2).is_some_and(swings)
                || swings(at)
        } else {
            self.kept[at].phase == Phase::SlowStart && at.checked_sub(1).is_some_and(swings)
        }
    }

    /// Whether flights stand still without a loss: a run of rounds around `at` of one flight, or
    /// of one number of segments sent, to the segment. In slow start four such rounds are
    /// a lid, because an open window doubles; where it was seen to creep six, to the segment; where no loss has cut it eight
    /// (`UNCUT_LID_ROUNDS`). After a loss the window itself may stand still that long
    /// (CUBIC's plateau), but not for seconds, nor for more rounds than Reno's would take to grow by all of it.
    pub(super) fn has_lid(&self, at: usize) -> bool {
        let this = &self.kept[at];
        let (span, rounds) = this.still;
        let lasts = span > PLATEAU_NS && rounds >= LID_ROUNDS as u32;
        if lasts
            || u64::from(rounds) > RENO_ROUNDS * (this.flight_segments + SAME_SEGMENTS * 2).get()
        {
            return true;
        }
        let stands = |least: u32| {
            let run = self.kept.range(at..).zip(0..).take_while(|(r, _)| r.phase == this.phase);
            run.into_iter().any(|(r, n)| r.still.1 >= least.max(n + 1))
        };
        match this.phase {
            Phase::Uncut => return stands(UNCUT_LID_ROUNDS),
            Phase::SlowStart if stands(LID_ROUNDS as u32) => return true,
            Phase::Cached if stands(UNCUT_LID_ROUNDS) => return true,
            Phase::SlowStart | Phase::Cached => {}
            _ => return false,
        }
        let (apart, least) = if this.phase == Phase::Cached {
            (Segments::NONE, CREPT_LID_ROUNDS)
        } else {
            (SAME_SEGMENTS, LID_ROUNDS)
        };
        let is_alike = |of: fn(&Round) -> Segments| {
            let alike =
                |r: &&Round| of(r).abs_diff(of(this)) <= apart && !r.loss && r.phase == this.phase;
            let before = self.kept.range(..at).rev().take_while(alike).count();
            before + self.kept.range(at..).take_while(alike).count() >= least
        };
        is_alike(|r| r.flight_segments) || is_alike(|r| r.segments)
    }
}
