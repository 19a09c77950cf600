//! Data sent again that was first sent before the capture began.
//!
//! A capture that begins midway takes the first byte it meets for the oldest in flight; older ones may be in
//! flight, too, until an ACK tells.

use super::account::piece::Base;
use super::rule::Verdict;
use super::walker::Walker;
use crate::flow::event::Event;
use crate::measure::ipid::Step;
use crate::report::State;

/// What nothing answered for so long and then went out by itself, a timer sent. Ours: the least that the timer of
/// the probe waits (`tcp_schedule_loss_probe`: 2 ms, and a tick may have begun).
const LEAST_TIMER_NS: i64 = 1_000_000;

impl Walker {
    /// Whether `event`, sent at `at` and by its numbers after all others, repeats data older than the capture, of
    /// which no ACK has told that it arrived.
    pub(super) fn is_of_before(&self, event: &Event, at: i64, step: Step) -> bool {
        event.end() <= self.flight.una
            && matches!(step, Step::After(_))
            && self.handshake.last_syn == [None; 2]
            && !self.terms.unanswered
            && !self.window.is_known()
            && at - self.sends.last >= LEAST_TIMER_NS
    }

    /// No ACK came, so no sign of a loss did: a timer made the sender repeat.
    pub(super) fn repeat_of_before(&mut self, event: &Event, at: i64, segments: u64) {
        let timer = Base::Told(Verdict::new(State::RtoWait, 75, &[State::TlpWait]));
        self.relabel(self.sends.last, timer);
        (self.tally.rto, self.tally.lost) = (self.tally.rto + segments, self.tally.lost + segments);
        if self.repairs.begin_tail(self.flight.nxt, true) {
            self.cut_window(self.flight.outstanding_segments(), at);
        }
        self.repairs.note_repeat(event, false);
        self.list(event, at, "rto", Vec::new());
        self.progress.at = at;
    }
}
