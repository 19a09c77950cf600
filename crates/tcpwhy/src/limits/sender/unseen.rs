//! What the capture does not show: all that the receiver sent, or by how much its windows are scaled.
//!
//! Without the receiver's packets nobody knows what was acknowledged or allowed when, so that no wait
//! for it can be named. Without the handshake a window is the least that it can be
//! ([`crate::analysis::terms::ShiftGuess`]): what has room in it had room, but what fills it may have
//! had more. Only a sender that comes to its end again and again, where it could have stopped anywhere,
//! is held by it.

use super::Sender;
use crate::flow::event::Event;
use crate::limits::sense::{SILLY, TELLING_SEGMENTS};
use crate::report::State;

impl Sender {
    /// Whether a flight that leaves no room in the receiver's window fills it.
    pub(crate) fn is_edge_told(&self) -> bool {
        let (window, mss) = (self.window.size, self.terms.mss);
        !self.terms.shift_guessed
            || window >= TELLING_SEGMENTS * mss && self.window.was_filled(window, mss)
    }

    /// Whether the receiver would have taken `event` with `room` left: all of it, if not even the least
    /// window was too small.
    pub(crate) fn had_room(&self, event: &Event, room: i64) -> bool {
        let least = if self.terms.shift_guessed { i64::from(event.len) } else { self.terms.mss };
        room >= least.min(self.terms.mss)
    }

    /// Whether the receiver's window is shut: it takes no segment, and little is in flight.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        // Mostly it takes more, which is asked first.
        self.window.end - self.flight.nxt < self.terms.mss
            && self.window.is_known()
            && self.is_silly()
    }

    /// Whether the window is too small for its receiver to announce it (RFC 9293 section 3.8.6.2.2), and
    /// little is in flight.
    fn is_silly(&self) -> bool {
        let silly = self.terms.mss.min(SILLY.of(self.window.largest));
        let is_small =
            if self.terms.shift_guessed { self.window.size == 0 } else { self.window.size < silly };
        is_small && self.flight.outstanding() <= silly
    }

    /// Why a wait is not decided that may have been for one of `alternative`.
    pub(crate) fn why_untold(&self, alternative: &[State]) -> &'static str {
        if self.terms.unanswered {
            "nothing that the receiver sent was captured: no ACK tells what the sender waited for"
        } else if alternative.contains(&State::RwndCap) {
            "the capture lacks the scale of the receiver's windows: the flight fills the least that it can be"
        } else if alternative.contains(&State::Pacing) && self.terms.sees_queues {
            "whether an ACK or a clock of the sender let the next send out does not show here"
        } else if alternative.contains(&State::Pacing) {
            "packets come as the path let them through: without time stamps a clock of the sender does not show here"
        } else {
            ""
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terms;
    use super::*;

    #[test]
    fn missing_time_stamps_are_the_reason_only_where_they_are_missing() {
        let why = |sees_queues| {
            let walker = Sender::new(Terms { sees_queues, ..Terms::default() }, true, 0);
            walker.why_untold(&[State::Pacing, State::App])
        };
        assert!(why(false).contains("without time stamps"));
        assert!(why(true).contains("an ACK or a clock"));
    }
}
