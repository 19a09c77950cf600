//! Data that nobody acknowledges: how often its head was sent, and what came back meanwhile. A window that is shut
//! over data, or over a hole.
//!
//! A packet to a peer that is gone is no repair (RFC 9293 section 3.8.3: after some repeats TCP gives up). And a
//! retransmission while the window is 0 is a probe of it (RFC 9293 section 3.8.6: a sender has to bear a window that
//! was taken back; Linux `tcp_retransmit_timer` with `snd_wnd` 0): its answers tell of the window, not of losses.
//! Only the facts are kept here; what they mean is decided when all is known ([`crate::analysis::ending`]).

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::{Block, Event, RST};
use crate::limits::sense::{NEVER, NOWHERE};
use crate::measure::flight::{RETRANSMITTED, UNSEEN};
use crate::offsets::Offset;
use crate::report::State;

/// What of this is known of a direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// Repeats of what was the oldest unacknowledged data then, which begins at `head`.
    pub(crate) repeats: u64,
    head: Offset,
    /// When and in which frame it was sent first and last.
    pub(crate) first: (StackTime, u64),
    pub(crate) last: (StackTime, u64),
    /// When it last acknowledged more.
    pub(crate) advanced: StackTime,
    /// What the receiver acknowledged last without acknowledging more, and when.
    told: (Offset, StackTime),
    pub(crate) shut: Shut,
}

/// ACKs that announced a window of 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shut {
    pub(crate) acks: u64,
    /// Those of them that reported data behind a hole.
    pub(crate) with_hole: u64,
    /// How large the hole was, and how much lay behind it, when that was reported last.
    pub(crate) missing: i64,
    pub(crate) held: i64,
    /// Bytes that were under way when it was announced, at most: the window was taken back.
    pub(crate) over: i64,
}

impl Default for Silence {
    fn default() -> Self {
        Self {
            repeats: 0,
            head: NOWHERE,
            first: (NEVER, 0),
            last: (NEVER, 0),
            advanced: NEVER,
            told: (NOWHERE, NEVER),
            shut: Shut::default(),
        }
    }
}

impl Silence {
    /// What begins at `una` was retransmitted at `at`, in `frame`; `original`: when and in which frame it was before.
    pub(crate) fn on_repeat(
        &mut self,
        una: Offset,
        now: (StackTime, u64),
        original: Option<(StackTime, u64)>,
    ) {
        if self.head != una {
            (self.repeats, self.head, self.first) = (0, una, original.unwrap_or(now));
        }
        self.repeats += 1;
        self.last = now;
    }

    /// The receiver acknowledges no more than `ack`, at `at`.
    pub(crate) fn on_same_ack(&mut self, ack: Offset, at: StackTime) {
        self.told = (ack, at);
    }

    /// How often what begins at `una` was sent, the original included; 0 if it never was again.
    pub(crate) fn sends(&self, una: Offset) -> u64 {
        if self.head == una && self.repeats > 0 { self.repeats + 1 } else { 0 }
    }

    /// When the receiver last said that it has nothing behind `una`, if it did so at `since` or later.
    pub(crate) fn told_since(&self, una: Offset, since: StackTime) -> Option<StackTime> {
        Some(self.told.1).filter(|at| self.told.0 == una && *at >= since)
    }
}

impl Shut {
    /// A window of 0 behind `ack`, with `outstanding` bytes under way; `blocks` are what lies behind a hole.
    fn on_ack(&mut self, ack: Offset, outstanding: i64, blocks: &[Block]) {
        self.acks += 1;
        self.over = self.over.max(outstanding);
        let behind = || blocks.iter().filter(|block| block.0 > ack);
        if let Some(first) = behind().map(|block| block.0).min() {
            self.with_hole += 1;
            self.missing = first - ack;
            self.held = behind().map(|block| block.1 - block.0).sum();
        }
    }
}

/// What the time from one instant to another was spent on, as the end of a connection tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tail {
    /// In the report's time.
    pub(crate) from: i64,
    pub(crate) until: i64,
    pub(crate) state: State,
}

impl Sender {
    /// Takes what an ACK tells of silence and of shut windows.
    pub(crate) fn watch_silence(
        &mut self,
        event: &Event,
        at: StackTime,
        advanced: bool,
        blocks: &[Block],
    ) {
        if advanced {
            self.silence.advanced = at;
        } else {
            self.silence.on_same_ack(event.ack, at);
        }
        if event.window == 0 && !event.has(RST) {
            self.silence.shut.on_ack(event.ack, self.flight.outstanding(), blocks);
        }
    }

    /// Whether the receiver's window is 0, whatever it allowed before. Then nothing is sent but probes.
    #[inline]
    pub(crate) fn is_at_zero(&self) -> bool {
        self.window.size == 0 && self.window.is_known()
    }

    /// Whether `event`, which repeats data, probes a window that was taken back; then it is no repair.
    pub(crate) fn is_probe_of_shut(&mut self, event: &Event, at: StackTime) -> bool {
        if !self.is_at_zero() || event.end() <= self.flight.una {
            return false;
        }
        self.has_probed = true;
        for entry in self.flight.overlapping(event.seq, event.end()) {
            entry.flags = (entry.flags | RETRANSMITTED) & !UNSEEN;
            entry.at = at;
        }
        true
    }

    /// The receiver's window is 0 at the end, with nothing under way, and the sender probes it.
    pub(crate) fn is_probing_shut(&self) -> bool {
        self.is_at_zero() && self.has_probed && self.flight.outstanding() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::block;

    #[test]
    fn sends_of_the_head_are_counted_while_it_is_the_head() {
        let mut silence = Silence::default();
        assert_eq!(silence.sends(Offset::FIRST), 0);
        silence.on_repeat(Offset::at(500), (StackTime(20), 2), Some((StackTime(10), 1)));
        silence.on_repeat(Offset::at(500), (StackTime(40), 3), Some((StackTime(20), 2)));
        assert_eq!(
            (silence.sends(Offset::at(500)), silence.first, silence.last),
            (3, (StackTime(10), 1), (StackTime(40), 3))
        );
        assert_eq!(silence.sends(Offset::at(900)), 0, "that was acknowledged since");
        silence.on_repeat(Offset::at(900), (StackTime(60), 5), None);
        assert_eq!((silence.sends(Offset::at(900)), silence.first), (2, (StackTime(60), 5)));
    }

    #[test]
    fn what_the_receiver_said_before_says_nothing_of_what_came_after() {
        let mut silence = Silence::default();
        silence.on_same_ack(Offset::at(500), StackTime(30));
        assert_eq!(silence.told_since(Offset::at(500), StackTime(30)), Some(StackTime(30)));
        assert_eq!(silence.told_since(Offset::at(500), StackTime(31)), None);
        assert_eq!(
            silence.told_since(Offset::at(900), StackTime(0)),
            None,
            "it has acknowledged more since"
        );
    }

    #[test]
    fn a_shut_window_tells_of_the_hole_that_it_is_shut_over() {
        let mut shut = Shut::default();
        shut.on_ack(Offset::at(100), 0, &[]);
        assert_eq!((shut.acks, shut.with_hole), (1, 0));
        shut.on_ack(Offset::at(100), 9, &[block(700, 800), block(900, 1_500), block(20, 50)]);
        assert_eq!((shut.acks, shut.with_hole, shut.over), (2, 1, 9));
        assert_eq!((shut.missing, shut.held), (600, 700), "what lies before is a duplicate");
    }
}
