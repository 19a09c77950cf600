//! Which of the receiver's limits held a sender at the edge of its window.
//!
//! Question: does the window stand at its maximum, does it grow, or has the receiving program not read?

use super::piece::Base;
use super::walker::Walker;
use super::window::AT_MAXIMUM_PERCENT;
use crate::flow::event::Event;
use crate::report::State;

/// A receiver may wait for a second full segment before it answers (RFC 1122 section 4.2.3.2); for one more it
/// does so at once.
const DELAYABLE_SEGMENTS: i64 = 2;
/// An answer that comes sooner after the data than this was not kept back: it is what hosts take to handle a
/// batch. Ours: not measured.
const PROMPT_NS: i64 = 1_000_000;
/// An answer that is late may be a jittery path's doing, and what reads all there is at long intervals would be
/// helped by a larger window. Ours: not measured.
const KEPT_BACK_CONFIDENCE: u8 = 70;

impl Walker {
    /// Whether the receiver's window holds the sender though the last flight seems not to fill it: one
    /// did, and without a cut the congestion window does not become smaller than that. Away from the
    /// sender a flight looks smaller than it is by what stands in queues on the way.
    pub(super) fn is_window_proven(&self) -> bool {
        !self.terms.tap_at_sender
            && self.repairs.current() == 0
            && self.is_edge_told()
            && self.window.was_filled(self.stop.evidence.window, self.terms.mss)
    }

    /// Which of the receiver's limits the window was at.
    pub(super) fn window_wait(&self, confidence: u8, alternative: &'static [State]) -> Base {
        let (state, confidence, alternative) = match self.window_state() {
            state if self.terms.shift_guessed => {
                (state, 55, &[State::Sndbuf, State::CwndAvoidance, State::App] as &[_])
            }
            State::RwndCap if self.is_answer_kept_back() => {
                let others: &[State] = match alternative {
                    [] => &[State::RwndCap],
                    _ => &[State::RwndCap, State::CwndAvoidance],
                };
                (State::RwndReader, confidence.min(KEPT_BACK_CONFIDENCE), others)
            }
            state => (state, confidence, alternative),
        };
        Base::Fixed { state, confidence, alternative }
    }

    /// Whether the window at the last stop is at its maximum, grows, or waits for a reader.
    pub(super) fn window_state(&self) -> State {
        if self.window.largest > self.stop.window_largest {
            State::RwndAutotune
        } else if self.stop.evidence.window * 100 >= self.stop.window_recent * AT_MAXIMUM_PERCENT {
            State::RwndCap
        } else {
            State::RwndReader
        }
    }

    /// Whether the receiver answered the flight that filled its window late and at once, or opened the window only
    /// later than it answered.
    fn is_answer_kept_back(&self) -> bool {
        let acks = &self.releases.acks;
        match acks.front() {
            Some(first) if first.una == self.flight.nxt => {
                self.is_kept_back(self.stop.evidence.in_flight, first.at - self.sends.last)
            }
            _ => acks.back().is_some_and(|last| self.is_late(self.window.moved_at - last.at)),
        }
    }

    /// Whether the receiver kept its answer back that took all of a flight, `acked` bytes, and came `rtt` after the
    /// last of it, though that had filled its window. Linux answers every second segment while it can offer the
    /// whole window, and otherwise when the program reads (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`). A queue lets
    /// segments through one by one, and its answers come like that.
    pub(super) fn is_kept_back(&self, acked: i64, rtt: i64) -> bool {
        acked > DELAYABLE_SEGMENTS * self.terms.mss
            && self.stop.evidence.room < self.terms.mss
            && self.is_late(rtt - self.least_rtt())
    }

    /// Whether the sender of `event` at `at` had filled the receiver's window when it stopped, and was a little late to use
    /// the answer.
    pub(super) fn is_full_until_late(&self, event: &Event, at: i64) -> bool {
        let most = (self.rtt_scale() / 10).max(PROMPT_NS);
        !self.had_room(event, self.stop.evidence.room)
            && self.releases.acks.back().is_some_and(|ack| at - ack.at <= most)
    }

    /// Whether what comes `late` is more than the path took.
    fn is_late(&self, late: i64) -> bool {
        late >= self.least_rtt().max(PROMPT_NS)
    }
}
