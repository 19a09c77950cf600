//! What the capture misses: packets that were sent and never captured, told by a gap in it, by data
//! beyond the receiver's window, or by an ACK of what nobody saw.

use super::Sender;
use super::growth::ExitCause;
use super::window::Filled;
use crate::clocks::StackTime;
use crate::flow::event::{ACK, Event};
use crate::limits::proof::{Proof, Proven};
use crate::limits::sense::HOLE_BYTES;
use crate::offsets::Offset;

impl Sender {
    /// Data further than the receiver allowed: the ACKs that allowed it, and more, are missing in
    /// the capture (a rotated file left out, a stall of the capturing host).
    pub(crate) fn is_beyond_window(&self, event: &Event) -> bool {
        event.is_data()
            && self.transfers.first_at.is_some()
            && !self.terms.shift_guessed
            && self.window.is_known()
            && event.seq > self.window.end + HOLE_BYTES
    }

    /// Whether `event` is new data beyond the window that this sender knows of.
    pub(crate) fn lacks_window(&self, event: &Event) -> bool {
        event.is_data()
            && !self.terms.shift_guessed
            && self.window.is_known()
            && event.end() > self.window.end.max(self.flight.nxt)
    }

    /// Whether `event` follows a flight that went with the SYN-ACK and is not acknowledged yet.
    #[inline]
    pub(crate) fn is_first_ack_due(&self, event: &Event) -> bool {
        self.handshake.is_early
            && self.flight.una == Offset::FIRST
            && self.flight.outstanding() > 0
            && event.end() > self.flight.nxt
    }

    /// Whether what arrives with `event` allows data up to `end`.
    pub(crate) fn allows(&self, event: &Event, end: Offset) -> bool {
        event.has(ACK) && event.ack + (i64::from(event.window) << self.terms.shift) >= end
    }

    /// Packets are missing in the capture since `before`: what happened there is not known, and
    /// neither is the window after it.
    pub(crate) fn on_gap(&mut self, before: StackTime, at: Offset) {
        self.settle_full_window();
        self.prove(before, Proven::Gap);
        // A FIN takes one number.
        let at = if at == self.flight.nxt + 1 { self.flight.nxt } else { at };
        if at > self.flight.nxt {
            self.extend_run(before, at);
        }
        // A transfer that was done before it did not go on in it.
        if at > self.flight.una || self.flight.outstanding() > 0 {
            self.progress.at = self.now;
        }
        if at > self.flight.una {
            self.tally.not_captured += self.flight.skip_to(at, self.terms.mss);
        }
        self.proofs.push(Proof::NextWait);
        self.releases.acks.clear();
        self.is_blind = true;
        self.window.filled = Filled::default();
        self.window.forget_edge();
        self.replay.exit();
        self.growth.leave_slow_start(self.now, None, ExitCause::Unseen);
        self.hide_figures();
        self.book.restart(self.now, self.flight.nxt);
    }

    /// What the open wait was for is seen though not what ended it, if less than a segment of room was left: then
    /// TCP may send no whole one, whatever else has room (RFC 9293 section 3.8.6.2.1).
    fn settle_full_window(&mut self) {
        if self.is_blind || self.stop.evidence.room >= self.terms.mss || !self.is_edge_told() {
            return;
        }
        self.proofs.push(Proof::FullBeforeHole(self.wait_without_end()));
    }

    /// Whether `ack` tells of sends that the capture missed.
    pub(crate) fn is_of_unseen(&self, ack: Offset) -> bool {
        if self.transfers.first_at.is_none() {
            // Nothing of its data was seen: what a receiver acknowledges, it had allowed (RFC 9293 section 3.10.7.4).
            return self.handshake.last_syn[self.terms.side].is_some()
                && self.window.is_known()
                && (self.flight.nxt + 2..=self.window.end + HOLE_BYTES).contains(&ack);
        }
        ack > self.flight.nxt + 1
    }

    /// An ACK of bytes beyond all that was seen (and beyond a FIN, which takes one number): the
    /// capture missed the sends.
    pub(crate) fn on_ack_of_unseen(&mut self, ack: Offset, at: StackTime) {
        if !self.is_of_unseen(ack) {
            return;
        }
        // If the capture holds no data of the sender, none of the time before an ACK is known to be silence.
        if ack - self.flight.nxt > HOLE_BYTES || self.tally.frames == 0 {
            self.prove(self.event_before, Proven::UnseenSends);
            self.proofs.push(Proof::NextWait);
            self.releases.acks.clear();
        } else if self.flight.outstanding() == 0 {
            // Nothing seems to be in flight, but what is acknowledged now was, for a round trip at least.
            let since = match self.least_rtt() {
                0 => self.event_before,
                rtt => self.event_before.max(at - rtt),
            };
            self.prove(since, Proven::UnseenSends);
        }
        self.hide_figures();
        self.extend_run(self.event_before, ack);
        self.tally.not_captured += self.flight.skip_to(ack, self.terms.mss);
        self.progress.at = at;
        self.progress.done = at;
    }

    /// What arrived just now is missing in the capture. With data in flight it is taken for the ACK that
    /// releases what is sent now; how much it acknowledged tells the next one, with which it makes one batch.
    pub(crate) fn on_unseen_arrival(&mut self) {
        if self.flight.outstanding() == 0 {
            return;
        }
        self.replay_batch(self.now);
        self.batch.start = Some(self.now);
        self.releases.push(self.now, self.flight.una, false);
    }

    /// The capture misses what passed here: the first flight is not known if it is not over, and of
    /// the open round nobody knows how much was sent in what time.
    fn hide_figures(&mut self) {
        self.initial_hidden |= self.initial.is_none_or(|initial| initial.full.is_none());
        self.book.open.holed = true;
        self.repairs.doubled.forget(self.flight.nxt);
    }
}
