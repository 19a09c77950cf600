//! The receiver's window where the sender last stopped.

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::{
    AT_MAXIMUM, DEFERRED, DELAYABLE_SEGMENTS, PROMPT_NS, SHRUNK, TINY_WINDOW, ran_out,
};
use crate::limits::wait::Window;
use crate::report::State;

impl Sender {
    /// The receiver's window when the sender stopped.
    pub(super) fn window_at_stop(&self) -> Window {
        let stop = &self.stop.evidence;
        Window {
            state: self.window_state(),
            is_scale_guessed: self.terms.shift_guessed,
            is_told: self.is_edge_told(),
            is_near: stop.room < DEFERRED.of(stop.window),
            was_answer_kept_back: self.is_answer_kept_back(),
            may_want_more: self.is_at_maximum() && !self.has_shrunk(),
            ..Window::OPEN
        }
    }

    /// Whether the receiver's window holds the sender though the last flight seems not to fill it: one
    /// did, and without a cut the congestion window does not become smaller than that. Away from the
    /// sender a flight looks smaller than it is by what waits in queues on the way.
    pub(super) fn is_window_proven(&self) -> bool {
        !self.terms.tap_at_sender
            && self.repairs.episodes.current() == 0
            && self.is_edge_told()
            && self.window.was_filled(self.stop.evidence.window, self.terms.mss)
    }

    /// Whether the window at the last stop is at its maximum, grows, or waits for a reader. A tiny one that never had
    /// room for a segment is a buffer's, however soon that is read.
    fn window_state(&self) -> State {
        if self.window.largest > self.stop.window_largest {
            State::RwndAutotune
        } else if self.window.largest < self.terms.mss && self.window.largest <= TINY_WINDOW
            || self.is_at_maximum() && !self.answers.are_readers()
        {
            State::RwndCap
        } else {
            State::RwndReader
        }
    }

    /// Whether the window at the last stop was as large as any of the last rounds.
    fn is_at_maximum(&self) -> bool {
        AT_MAXIMUM.is_reached(self.stop.evidence.window, self.stop.window_recent)
    }

    /// Whether a sender with nothing in flight waited until it sent `event` at `at` because the receiver's window had room
    /// for no whole segment: TCP sends a part only when its timer runs out, and then all that fits (RFC 9293 section
    /// 3.8.6.2.1; `tcp_snd_wnd_test`, `tcp_write_wakeup`). No segment is larger than the largest
    /// window, or than half of it if that is not tiny.
    pub(crate) fn is_part_by_timer(&self, event: &Event, at: StackTime) -> bool {
        let (room, largest) = (self.window.room(event.seq), self.window.largest);
        let segment = if largest > TINY_WINDOW { largest / 2 } else { largest };
        event.len > 0
            && room == i64::from(event.len)
            && room < segment.min(self.terms.mss)
            && ran_out(self.trips.timers.rto(), at - self.gone_on_at())
    }

    /// Whether it was clearly less than the largest of all.
    pub(crate) fn has_shrunk(&self) -> bool {
        SHRUNK.is_kept(self.stop.evidence.window, self.window.largest)
    }

    /// Whether the receiver answered the flight that filled its window late and at once, or opened the window only
    /// later than it answered.
    fn is_answer_kept_back(&self) -> bool {
        let acks = &self.releases.acks;
        match acks.front() {
            Some(first) if first.una == self.flight.nxt => {
                self.is_kept_back(self.stop.evidence.in_flight, (self.sends.last, first.at))
            }
            _ => acks.back().is_some_and(|last| self.is_late(self.window.moved_at - last.at)),
        }
    }

    /// Whether the receiver kept its answer back that took all of a flight, `acked` bytes, the last of them `sent` then,
    /// and `came` then, though that had filled its window. Linux answers every second segment while it can offer the
    /// whole window, and otherwise when the program reads (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`). A queue lets
    /// segments through one by one, and its answers come like that.
    pub(crate) fn is_kept_back(&self, acked: i64, (sent, came): (StackTime, StackTime)) -> bool {
        acked > DELAYABLE_SEGMENTS * self.terms.mss
            && self.stop.evidence.room < self.terms.mss
            && self.is_late(came - sent - self.least_rtt())
    }

    /// Whether what comes `late` is more than the path took.
    fn is_late(&self, late: i64) -> bool {
        late >= self.least_rtt().max(PROMPT_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::sender::Terms;
    use crate::offsets::Offset;

    /// Whether `len` bytes that were sent after `quiet` with nothing in flight are a part of a segment that a timer let
    /// out, 10 ms being the round trip; the receiver had announced 256 bytes once, and now `window`.
    fn is_part(len: u32, quiet: i64, window: i64) -> bool {
        is_part_of(256, len, quiet, window)
    }

    /// The same where it had announced `largest`.
    fn is_part_of(largest: i64, len: u32, quiet: i64, window: i64) -> bool {
        let mut walker = Sender::new(Terms { mss: 1448, ..Terms::default() }, true, 0);
        walker.trips.sample(10_000_000, Offset::FIRST, Offset::FIRST);
        let una = Offset::at(largest + 1);
        walker.flight.restart(una);
        walker.window.take(Offset::FIRST, largest, Offset::FIRST);
        walker.window.take(una, window, una);
        (walker.progress.at, walker.sends.last) = (StackTime(0), StackTime(0));
        walker.is_part_by_timer(&Event { seq: una, len, ..Event::default() }, StackTime(quiet))
    }

    #[test]
    fn a_part_of_a_segment_that_fills_what_is_left_of_the_window_waited_for_its_timer() {
        assert!(is_part(128, 205_000_000, 128));
        // 210 ms, a fifth off.
        assert_eq!([is_part(128, 168_000_000, 128), is_part(128, 167_999_999, 128)], [true, false]);
        assert!(!is_part(104, 205_000_000, 128), "the end of a write");
        assert!(!is_part(256, 205_000_000, 256), "no segment is larger than the largest window");
        assert!(is_part(255, 205_000_000, 255));
        assert!(is_part_of(536, 400, 205_000_000, 400), "a segment has all of 536 bytes");
        assert!(!is_part_of(537, 400, 205_000_000, 400), "and half of 537");
        assert!(is_part_of(537, 267, 205_000_000, 267));
        assert!(!is_part(0, 205_000_000, 0), "a FIN");
    }
}
