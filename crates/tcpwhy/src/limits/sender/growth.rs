//! How the flight grew from round to round, and where slow start ended (limits-method section 5).
//!
//! What a round sends is the window's worth. In slow start it doubles; two rounds in three that
//! grow by less than half, and do grow, are congestion avoidance since the first slow one. A
//! flight that stays the same, or rises once, has another lid than the window; so has one below what the window has
//! let out since it was last cut. Where the receiver thins its ACKs, a sender that counts ACKs and not bytes grows in
//! slow start by less than half, too, but by more than in congestion avoidance.
//!
//! A loss cuts the window and ends slow start. Linux takes both back when it learns that nothing of the repair was needed
//! (v6.1 `tcp_may_undo`, `tcp_undo_cwnd_reduction`): where slow start went on before, it goes on.

use super::hystart::Signs;
use crate::clocks::StackTime;
use crate::limits::round::{Phase, Round};
use crate::limits::sense::{
    AVOIDANCE, DOUBLES, FILLS, GROWN_STEPS, SAME_SEGMENTS, THINNED, UNCUT_LID_ROUNDS,
};
use crate::segments::Segments;

/// Why slow start ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ExitCause {
    Loss,
    HystartDelay,
    HystartTrain,
    Cached,
    Unknown,
    /// In a gap of the capture.
    Unseen,
}

/// The first flight, once an ACK of data ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialFlight {
    pub(crate) segments: Segments,
    pub(crate) bytes: i64,
    pub(crate) full: Option<bool>,
}

/// A round from which the flight no longer doubled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SlowFrom {
    pub(crate) flight: Segments,
    pub(crate) start: StackTime,
    pub(crate) number: u64,
    /// What `HyStart` saw up to then since the flight last doubled.
    signs: Signs,
}

/// Flights of the cwnd-limited rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    last: Segments,
    slow: u32,
    /// The first of the slow rounds.
    slow_from: Option<SlowFrom>,
    /// ACKs since then, and how many segments they took.
    acks: u64,
    taken: Segments,
    /// What `HyStart` saw since the flight last doubled.
    signs: Signs,
    /// The round from which on the flight grew by thinned ACKs: what it would be on all of them tells nothing then.
    pub(crate) thinned_from: Option<u64>,
    /// Which of the last three of them grew.
    steps: u8,
    /// Most segments in flight since the window was last cut.
    most: Segments,
    /// When slow start ended, with which window, and why.
    pub(crate) exit: Option<(StackTime, Option<Segments>, ExitCause)>,
    /// Threshold left by an idle restart; slow start goes on up to it.
    pub(crate) regain: Option<Segments>,
    /// Flight at the last loss, until regained.
    pub(crate) lost_at: Option<Segments>,
    /// A loss or a mark has cut the window.
    pub(crate) was_cut: bool,
    /// What the newest repair took from the window.
    taken_by: Option<Taken>,
    /// A cut was taken back in slow start, which was not replayed meanwhile: flights alone tell how it goes on.
    pub(crate) goes_by_flights: bool,
}

/// What a cut of the window took, until it is known whether that was for a loss.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// The repair that it was for.
    repair: u32,
    exit: Option<(StackTime, Option<Segments>, ExitCause)>,
    regain: Option<Segments>,
    lost_at: Option<Segments>,
    was_cut: bool,
}

impl Growth {
    /// Slow start ended at `at` with a window of `ssthresh`, unless it had ended before.
    pub(crate) fn leave_slow_start(
        &mut self,
        at: StackTime,
        ssthresh: Option<Segments>,
        cause: ExitCause,
    ) {
        self.exit.get_or_insert((at, ssthresh, cause));
    }

    /// A loss that `repair` mends (0 for none) cuts the window of `cwnd` segments.
    pub(crate) fn cut(&mut self, cwnd: Segments, repair: u32) {
        let Self { exit, regain, lost_at, was_cut, .. } = *self;
        self.taken_by = (repair != 0).then_some(Taken { repair, exit, regain, lost_at, was_cut });
        (self.lost_at, self.was_cut, self.most) = (Some(cwnd), true, Segments::NONE);
    }

    /// Nothing of `repair` was needed: what it took is given back, unless another has cut the window since. Whether it was.
    /// How much the window lets out now, flights tell from here on: those behind a hole count what has arrived.
    pub(crate) fn give_back(&mut self, repair: u32) -> bool {
        let Some(taken) = self.taken_by.take_if(|taken| taken.repair == repair) else {
            return false;
        };
        (self.exit, self.regain, self.lost_at) = (taken.exit, taken.regain, taken.lost_at);
        self.was_cut = taken.was_cut;
        self.goes_by_flights |= self.exit.is_none();
        true
    }

    /// Whether the window, which nothing has cut since, has let out clearly more than `flight` segments.
    pub(crate) fn has_let_out_more(&self, flight: Segments) -> bool {
        self.regain.is_none() && !FILLS.is_reached(flight, self.most)
    }

    /// Takes a closed round; from which round on slow start had ended, if this one shows it.
    pub(crate) fn push(&mut self, round: &Round, least_rtt: i64) -> Option<SlowFrom> {
        let flight = round.segments;
        let below = |before: &Segments| round.flight_segments < *before;
        // A loss ends slow start, after a pause too.
        let regaining = self.regain.filter(|_| !round.loss);
        self.regain = regaining.filter(below);
        // What was in flight in the round of a loss was so before it.
        self.lost_at = self.lost_at.filter(|before| round.loss || below(before));
        let is_full = !self.has_let_out_more(round.flight_segments);
        // A pause cuts it, too.
        let most = if self.regain.is_some() { Segments::NONE } else { self.most };
        self.most = most.max(round.flight_segments);
        let limited = round.ack_released > round.free && round.edge_flight == 0 && is_full;
        let signs = Signs::of(round, least_rtt);
        if !limited || self.exit.is_some() {
            (self.last, self.slow, self.signs) = (flight, 0, self.signs.or(signs));
            return None;
        }
        let slow = !DOUBLES.is_reached(flight, self.last);
        let last = core::mem::replace(&mut self.last, flight);
        self.signs = if slow { self.signs.or(signs) } else { signs };
        // Where packets overtake each other rounds vary by what a hole held back, and by a segment wherever ACKs end them.
        if !slow || flight + SAME_SEGMENTS < last && !self.goes_by_flights {
            self.slow = 0;
            return None;
        }
        self.slow += 1;
        if self.slow == 1 {
            let (start, number, signs) = (round.start, round.number, self.signs);
            self.slow_from = Some(SlowFrom { flight, start, number, signs });
            (self.steps, self.acks, self.taken) = (0, 0, Segments::NONE);
            return None;
        }
        self.acks += u64::from(round.advances);
        self.taken += last;
        self.steps = self.steps << 1 & 7 | u8::from(flight > last);
        let grown = |from: &SlowFrom| flight > from.flight + SAME_SEGMENTS;
        let creeps =
            self.steps.count_ones() >= GROWN_STEPS && self.slow_from.as_ref().is_some_and(grown);
        let from = self.slow_from.filter(|from| creeps || self.may_have_ended(from.signs))?;
        if self.is_thinned(&from, flight) {
            self.slow = 0;
            self.thinned_from.get_or_insert(from.number);
            return None;
        }
        self.leave_slow_start(from.start, Some(from.flight), cause(from.signs));
        Some(from)
    }

    /// Whether what the rounds from the first slow one up to `newest` tell of `round`, one of them, is still open: a flight
    /// that creeps fills a window whose slow start has ended, and one that stands still has a lid.
    pub(crate) fn is_undecided(&self, round: u64, newest: u64) -> bool {
        let since = self.slow_from.filter(|_| self.slow > 0 && self.exit.is_none());
        since.is_some_and(|from| {
            round >= from.number && newest < from.number + u64::from(UNCUT_LID_ROUNDS)
        })
    }

    /// Whether slow rounds alone tell its end: a cut was taken back, so that no window says whether flights still fill it,
    /// and `HyStart` saw what ends slow start.
    fn may_have_ended(&self, signs: Signs) -> bool {
        self.goes_by_flights && signs != Signs::default()
    }

    /// Whether the growth from the slow round `from` to this `flight` is that of slow start on thinned ACKs: more
    /// than congestion avoidance gives in these rounds, and a segment or two for each ACK (RFC 5681 section 3.1, RFC
    /// 3465 section 2.1). Each ACK took more than two segments.
    fn is_thinned(&self, from: &SlowFrom, flight: Segments) -> bool {
        let rounds = u64::from(self.slow - 1);
        let grown = flight.saturating_sub(from.flight).get();
        grown > rounds * AVOIDANCE.of(from.flight.get()).max(1)
            // The ACK that ends a round is counted with what it ends.
            && grown + 1 >= self.acks
            && THINNED.is_reached(self.taken, self.acks)
    }

    /// How the waits of the open round are to be named when the congestion window held them.
    pub(crate) fn phase(&self) -> Phase {
        if self.regain.is_some() {
            return Phase::AfterIdle;
        }
        match self.exit {
            None => Phase::SlowStart,
            Some(_) if self.lost_at.is_some() => Phase::AfterLoss,
            // What a loss has cut since is held by what that left, unless that was taken back.
            Some((_, _, ExitCause::Cached)) if !self.was_cut && !self.goes_by_flights => {
                Phase::Cached
            }
            Some((_, _, ExitCause::Unseen)) => Phase::Unseen,
            Some(_) if !self.was_cut => Phase::Uncut,
            Some(_) => Phase::Avoidance,
        }
    }
}

/// What made slow start end without a loss: one of the signs of `HyStart`, else a threshold that was remembered.
const fn cause(signs: Signs) -> ExitCause {
    match signs {
        Signs { delay: true, .. } => ExitCause::HystartDelay,
        Signs { train: true, .. } => ExitCause::HystartTrain,
        _ => ExitCause::Cached,
    }
}

#[cfg(test)]
mod tests;
