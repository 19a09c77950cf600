//! Retransmissions of data that was first sent before the capture began.
//!
//! A capture that begins midway takes the first byte it meets for the oldest in flight; older ones may be in
//! flight, too, until an ACK tells.

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::{Block, Event};
use crate::limits::proof::Proven;
use crate::limits::sense::LEAST_TIMER_NS;
use crate::measure::ipid::Step;
use crate::offsets::Offset;
use crate::report::RepeatCause;
use crate::segments::Segments;

impl Sender {
    /// The capture begins midway with an ACK: what lies between it and the end of its SACK blocks had been sent.
    pub(crate) fn begin_with_ack(&mut self, ack: Offset, blocks: &[Block]) {
        self.flight.restart(ack);
        self.send_before(end_of(blocks), self.now);
    }

    /// A capture that starts midway starts the account at the first byte that it meets; an ACK that came before tells
    /// what else is in flight, up to the first new byte. Behind a SYN that was seen, what is missing before the first
    /// data is a hole like any other.
    pub(crate) fn begin_midway(&mut self, seq: Offset, at: StackTime) {
        let is_over = self.handshake.last_syn[self.terms.side].is_some()
            || (!self.transfers.runs.is_empty() && !self.flight.ends_before());
        if is_over || seq <= self.flight.nxt {
            return;
        }
        let is_first = self.transfers.first_at.is_none();
        let is_allowed = self.window.end >= seq || self.terms.shift_guessed;
        if (is_first || self.flight.outstanding() > 0) && self.window.is_known() && is_allowed {
            self.send_before(seq, at);
        }
        if is_first && self.flight.segments_to_nxt == 0 && seq > Offset::FIRST {
            self.flight.restart(seq);
        }
    }

    /// Takes the first ACK, if data came before it: what lies between it and the first byte, and up to the end of what
    /// its SACK blocks report, was sent before the capture (RFC 9293 section 3.4: an ACK covers all before it, and
    /// nothing behind; RFC 2018 section 3).
    pub(crate) fn reach_back(&mut self, event: &Event, blocks: &[Block]) {
        let window = i64::from(event.window) << self.terms.shift;
        let Some(began) = self.transfers.first_at.filter(|_| !self.window.is_known()) else {
            return;
        };
        let is_allowed = event.ack + window >= self.flight.una || self.terms.shift_guessed;
        if self.handshake.last_syn != [None; 2] || !is_allowed {
            return;
        }
        if event.ack < self.flight.una {
            self.flight.reach_back(event.ack, self.sent_between(began), self.terms.mss);
            self.batch.clear();
        }
        if event.ack <= self.flight.nxt {
            self.send_before(end_of(blocks), began);
        }
    }

    /// All up to `end` was sent before the capture began.
    fn send_before(&mut self, end: Offset, began: StackTime) {
        let times = self.sent_between(began);
        self.flight.send_before(end, times, self.terms.mss);
    }

    /// When what is in flight at the beginning was sent: the oldest a round trip ago, as ACKs clock it, the newest just
    /// now. It passed a tap at its own host in order, so that none of it comes late there.
    fn sent_between(&self, began: StackTime) -> (StackTime, StackTime) {
        let oldest = began.min(self.now - self.rtt_scale());
        (oldest, if self.terms.tap_at_sender { oldest } else { began })
    }

    /// Whether `event`, sent at `at` and by its numbers after all others, repeats data older than the capture that no
    /// ACK has covered.
    pub(crate) fn is_of_before(&self, event: &Event, at: StackTime, step: Step) -> bool {
        event.end() <= self.flight.una
            && matches!(step, Step::After(_))
            && self.handshake.last_syn == [None; 2]
            && !self.terms.unanswered
            && !self.window.is_known()
            && at - self.sends.last >= LEAST_TIMER_NS
    }

    /// No ACK came, so no sign of a loss did: a timer made the sender repeat.
    pub(crate) fn repeat_of_before(&mut self, event: &Event, at: StackTime, segments: Segments) {
        self.prove(self.sends.last, Proven::TimeoutBeforeCapture);
        (self.tally.rto, self.tally.lost) = (self.tally.rto + segments, self.tally.lost + segments);
        if self.repairs.begin_tail(self.flight.nxt, true) {
            self.cut_window(self.flight.outstanding_segments(), at);
        }
        self.repairs.note_repeat(event, false);
        self.list(event, at, RepeatCause::Rto, Vec::new());
        self.progress.at = at;
    }
}

/// The end of what SACK blocks report.
fn end_of(blocks: &[Block]) -> Offset {
    blocks.iter().map(|block| block.1).max().unwrap_or(Offset::MIN)
}
