//! Closed rounds as the report lists them: what it says of each, and what names the wait after it.

use crate::clocks::StackTime;
use crate::limits::round::Round;
use crate::report::{Cwnd, State};
use crate::segments::Segments;

/// A closed round with the state of the wait after its last send, once known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedRound {
    pub(crate) start: StackTime,
    pub(crate) bytes: i64,
    pub(crate) segments: Segments,
    pub(crate) rtt_min: Option<i64>,
    /// Payload acknowledged by its length, in bytes per second.
    pub(crate) rate: Option<u64>,
    /// What was left of the receiver's window where the last send stopped, and what was in flight.
    pub(crate) room: i64,
    pub(crate) in_flight: i64,
    pub(crate) cwnd: Cwnd,
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    pub(crate) stopped_at: StackTime,
    flight_segments: Segments,
    loss: bool,
    pub(crate) limited_by: State,
}

impl ListedRound {
    /// `round`, before the wait after its last send is decided.
    pub(crate) fn of(round: &Round) -> Self {
        Self {
            start: round.start,
            bytes: round.bytes,
            segments: round.segments,
            rtt_min: round.rtt_min,
            rate: round.rate(),
            room: round.stop.room,
            in_flight: round.stop.in_flight,
            cwnd: round.cwnd,
            first_frame: round.first_frame,
            last_frame: round.last_frame,
            stopped_at: round.stopped_at,
            flight_segments: round.flight_segments,
            loss: round.loss,
            limited_by: State::Unknown,
        }
    }

    /// The wait after its last send is decided. Where the congestion window stopped the round's sends, its
    /// last flight is the window, better than any replay but that of slow start, which is exact while it
    /// lives. With a loss the flight holds what was lost too.
    pub(crate) fn name(&mut self, limited_by: State) {
        self.limited_by = limited_by;
        let by_window = match limited_by {
            State::CwndSlowStart => self.cwnd.best.is_none(),
            State::CwndAvoidance
            | State::CwndPostLoss
            | State::CwndAfterIdle
            | State::CwndCachedSsthresh => true,
            _ => false,
        };
        if by_window && !self.loss && self.flight_segments > Segments::NONE {
            let window = Some(self.flight_segments.get());
            self.cwnd = Cwnd { low: window, high: window, best: window };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_is_the_window_where_that_stopped_it_and_nothing_was_lost() {
        let best = |round: &Round, state| {
            let mut listed = ListedRound::of(round);
            listed.name(state);
            (listed.limited_by, listed.cwnd.best)
        };
        let round = Round { flight_segments: Segments::new(36), ..Round::default() };
        let (slow_start, avoidance) = (State::CwndSlowStart, State::CwndAvoidance);
        assert_eq!(best(&round, avoidance), (avoidance, Some(36)));
        assert_eq!(best(&round, State::RwndCap), (State::RwndCap, None));
        let replayed = Cwnd { best: Some(38), ..Cwnd::default() };
        let replayed = Round { cwnd: replayed, ..round };
        assert_eq!(best(&replayed, avoidance), (avoidance, Some(36)));
        assert_eq!(best(&replayed, slow_start), (slow_start, Some(38)));
        assert_eq!(best(&Round { loss: true, ..round }, avoidance), (avoidance, None));
    }
}
