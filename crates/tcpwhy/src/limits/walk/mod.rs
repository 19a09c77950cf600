//! One sender's walk: the only place that knows its facts, the rules and the account.
//!
//! An event first lets the time before it be laid down, then changes what is known of the sender. What that proves of
//! time that has passed is taken down, and new data ends the open wait ([`settle`]).

use crate::segments::Segments;

mod settle;
#[cfg(test)]
mod tests;

use super::sender::sends::segments_of;
use super::sender::{Sender, Terms};
use crate::clocks::StackTime;
use crate::flow::event::{ACK, AFTER_GAP, Block, Event, FIN, PROBE, SYN, UNSEEN_CAUSE};
use crate::limits::account::due::Due;
use crate::limits::account::ledger::Ledger;
use crate::limits::account::piece::{Base, Piece};
use crate::limits::account::waits::Waits;
use crate::limits::evidence::Evidence;
use crate::limits::proof::Proof;
use crate::limits::rule::{self};
use crate::limits::sense::{LISTED, PIECES};
use crate::limits::wait::{Lull, Release};
use crate::measure::ipid::Step;
use crate::report::State;

/// One sender's walk: what is known of it, and where its time went.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    pub(crate) sender: Sender,
    pub(crate) waits: Waits,
    /// Up to where time is judged, in the report's time, and what of that is not booked yet.
    pub(crate) judged_until: i64,
    pub(crate) due: Due,
    pub(crate) ledger: Ledger,
    /// Never take the short ways, for the test that holds both against each other.
    #[cfg(test)]
    pub(crate) long_way: bool,
}

impl Walker {
    /// A walker that has seen nothing; `midway` if the capture lacks the handshake, `shift_in` the
    /// constant way from the tap to this sender.
    pub(crate) fn new(terms: Terms, midway: bool, shift_in: i64) -> Self {
        Self {
            sender: Sender::new(terms, midway, shift_in),
            waits: Waits::default(),
            judged_until: 0,
            due: Due::default(),
            ledger: Ledger::new(terms.detail),
            #[cfg(test)]
            long_way: false,
        }
    }

    /// Starts anew as [`Walker::new`] does, and keeps the room of what grows in every connection.
    pub(crate) fn renew(&mut self, terms: Terms, midway: bool, shift_in: i64) {
        let mut new = Self::new(terms, midway, shift_in);
        new.sender.reuse(&mut self.sender);
        new.waits.reuse(&mut self.waits);
        new.ledger.reuse(&mut self.ledger);
        *self = new;
    }

    /// Whether some list was cut short.
    pub(crate) fn is_truncated(&self) -> bool {
        self.ledger.truncated
            || self.sender.transfers.dropped > 0
            || self.sender.book.is_full()
            || self.sender.retransmissions.len() >= LISTED
    }

    /// Takes an event of this sender, `lag` behind its stack beyond the constant part.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    pub(crate) fn on_out(&mut self, event: &Event, at: StackTime, lag: i64) {
        let segments = segments_of(event.len, self.sender.terms.mss);
        let step = self.sender.order.push(event, segments);
        self.sender.take_stop();
        let before = self.sender.now;
        self.advance(at, event.frame);
        if event.has(SYN) {
            self.sender.on_syn(event, at);
            self.take_proofs();
            // Fast Open (RFC 7413): the SYN carries data.
            if event.is_data() {
                self.on_data(event, self.sender.now, lag, segments, step);
            }
            return;
        }
        if event.has(AFTER_GAP) || self.sender.is_beyond_window(event) {
            self.sender.on_gap(before, event.seq);
            self.take_proofs();
        }
        if event.len == 0 && event.has(ACK) && self.sender.peer.was_on_its_way(event) {
            self.on_peers_flow(self.sender.now);
        }
        self.sender.handshake.is_over |= self.sender.terms.unanswered;
        if event.has(UNSEEN_CAUSE) {
            self.sender.on_unseen_arrival();
        }
        if event.is_data() {
            if !self.sender.handshake.is_over {
                if self.sender.peer.last_data.is_none() {
                    // It is the first to speak: the ACK that it waited for has come.
                    self.sender.on_established(self.sender.now);
                } else {
                    self.sender.handshake.is_early = true;
                }
            }
            self.sender.handshake.is_over = true;
            self.on_data(event, self.sender.now, lag, segments, step);
        } else if event.has(PROBE) {
            self.sender.has_probed = true;
        } else if event.has(FIN)
            && event.seq > self.sender.flight.nxt
            && self.sender.handshake.is_over
        {
            self.sender.on_fin_behind_unseen(event.seq);
        }
    }

    /// Takes an arrival at this sender.
    pub(crate) fn on_in(&mut self, event: &Event, at: StackTime, blocks: &[Block]) {
        self.sender.take_stop();
        let before = self.sender.now;
        self.sender.event_before = before;
        self.advance(at, event.frame);
        if event.has(AFTER_GAP) && event.has(ACK) {
            self.sender.on_gap(before, event.ack);
            self.take_proofs();
        }
        if event.has(SYN) {
            self.sender.on_syn(event, at);
            self.take_proofs();
            if event.is_data() {
                // Fast Open: what is sent before the SYN-ACK is acknowledged answers this.
                self.sender.peer.end = self.sender.peer.end.max(event.end());
                self.sender.peer_spoke(at);
            }
            if event.has(ACK) {
                self.sender.on_established(at);
                self.sender.take_window(event);
            }
            return;
        }
        if event.has(ACK) {
            self.sender.on_established(at);
            self.sender.on_ack(event, self.sender.now, blocks);
            self.take_proofs();
        }
        if event.is_data() {
            self.sender.peer.end = self.sender.peer.end.max(event.end());
            self.on_peer_data(self.sender.now);
        }
    }

    /// Lays down time up to `at`, the time of `frame`; the timeline never runs backwards.
    #[inline]
    pub(crate) fn advance(&mut self, at: StackTime, frame: u64) {
        let before = core::mem::replace(&mut self.sender.frame, frame);
        if at > self.sender.now {
            self.lay_down(at, (if before == 0 { frame } else { before }, frame));
        }
    }

    /// Lays down the time up to `at`, between two frames.
    #[inline(never)]
    fn lay_down(&mut self, at: StackTime, (first_frame, last_frame): (u64, u64)) {
        let base = self.base_now();
        let episode = self.sender.repairs.episodes.current();
        let (start, end) = (self.sender.now, at);
        self.sender.now = at;
        let evidence = match base {
            Base::Flying => self.sender.stop.evidence,
            // What shut came after the stop.
            Base::Shut => {
                let window = self.sender.window.size;
                Evidence { window, first_frame, last_frame, ..self.sender.stop.evidence }
            }
            _ => Evidence { first_frame, last_frame, ..self.sender.stop.evidence },
        };
        let at_edge = base == Base::Flying
            && self.sender.window.room(self.sender.flight.nxt) < self.sender.terms.mss
            && self.sender.is_edge_told();
        let join = self.sender.releases.acks.is_empty();
        let piece = Piece { start, end, base, episode, at_edge, by_itself: false, evidence };
        self.waits.lay(piece, join);
        if self.waits.pieces.len() > PIECES {
            // New data may never end the open wait.
            self.flush(false);
        }
    }

    /// Data of this sender at stack time `at`.
    fn on_data(&mut self, event: &Event, at: StackTime, lag: i64, segments: Segments, step: Step) {
        self.sender.begin_data(event, at, segments);
        if event.end() <= self.sender.flight.nxt {
            self.sender.on_repeat(event, at, segments, step);
            self.take_proofs();
        } else {
            self.on_new_data(event, at, lag, segments, step);
        }
        self.sender.after_data(event, at, lag);
    }

    fn on_new_data(
        &mut self,
        event: &Event,
        at: StackTime,
        lag: i64,
        segments: Segments,
        step: Step,
    ) {
        let release = self.sender.release_for(event, at);
        // What Nagle's algorithm holds is all that was written: more data is not right behind it.
        if let Some(nagled) = self.waits.nagled.take()
            && release == Release::Burst
        {
            self.waits.clear_of_nagle(nagled);
        }
        self.sender.before_new(event, at, (release, segments, step));
        self.take_proofs();
        if release != Release::Burst {
            self.settle_wait(release, event, at);
        }
        self.sender.take_new(event, at, lag, (release, segments));
        self.take_proofs();
    }

    /// Takes down what events have proven of time that has passed.
    pub(super) fn take_proofs(&mut self) {
        for at in 0..self.sender.proofs.len() {
            match self.sender.proofs[at] {
                Proof::Since { since, what } => {
                    self.waits.relabel(since, Base::Told(rule::timer::proven(what)));
                }
                Proof::ByItself { since } => self.waits.end_by_itself(since),
                Proof::Episode { since, id } => self.waits.belong(since, id),
                Proof::FullBeforeHole(wait) => {
                    self.waits.tell_flying(Base::Told(rule::window::full_before_hole(&wait)));
                }
                Proof::NextWait => self.waits.begin_next(),
            }
        }
        self.sender.proofs.clear();
    }

    /// Data of the peer arrived: whatever was quiet before was its silence, or its flow.
    pub(crate) fn on_peer_data(&mut self, at: StackTime) {
        self.on_peer_flow_or(self.sender.lull_until(at), at);
    }

    /// Up to `at` data of the peer was on its way here, though it had passed the tap: it stood in a queue.
    fn on_peers_flow(&mut self, at: StackTime) {
        if self.base_now() == Base::Quiet {
            self.on_peer_flow_or(Lull::Flow, at);
        }
    }

    fn on_peer_flow_or(&mut self, lull: Lull, at: StackTime) {
        let silence = Base::Told(rule::app::silence_of_peer(lull));
        let quiet = self.waits.pieces.range(self.waits.from..).any(|p| p.base == Base::Quiet);
        if quiet {
            for piece in self.waits.pieces.range_mut(self.waits.from..) {
                piece.base = match piece.base {
                    Base::Flying => Base::shown(State::LastFlight),
                    Base::Quiet | Base::Shut => silence,
                    decided => decided,
                };
            }
        }
        if self.sender.flight.outstanding() == 0 {
            self.waits.tell_flying(Base::shown(State::LastFlight));
            self.waits.begin_next();
            self.sender.releases.acks.clear();
            // A side that only receives never settles a wait of its own: without this its pieces
            // would grow with the transfer.
            self.waits.merge_settled();
            self.flush(false);
        }
        self.sender.peer_spoke(at);
    }

    /// What is known of the time from now on.
    pub(super) fn base_now(&self) -> Base {
        if !self.sender.handshake.is_over {
            Base::shown(State::Handshake)
        } else if self.sender.is_at_zero() || self.sender.is_shut() {
            Base::Shut
        } else if self.sender.flight.outstanding() > 0 {
            Base::Flying
        } else {
            Base::Quiet
        }
    }
}
