//! Sides that talk in turns, a frame at a time, as those of most short connections do.
//!
//! Question: is there anything to decide about this sender? Not if it sends a frame only as its first or
//! as an answer to data of the peer, with nothing in flight, and gets all of it acknowledged at once while
//! the receiver's window is open. Then each frame is a transfer, and up to its ACK it is that transfer's
//! last flight: a walk would lay down pieces, rounds and books, and come to the same.
//!
//! Whatever is otherwise gives `None`, and a [`Walker`](crate::limits::sender::Walker) takes all of it. So do sides
//! that have to tell more than their data and their transfers add up to.

use crate::clocks::StackTime;
use crate::flow::event::{ACK, AFTER_GAP, CORRUPT, ECE, Event, FIN, PROBE, RST, SYN, UNSEEN_CAUSE};
use crate::flow::facts::Facts;
use crate::flow::gathered::Gathered;
use crate::limits::sender::Terms;
use crate::limits::sender::sends::segments_of;
use crate::limits::sense::{NOWHERE, TURN_PACKETS};
use crate::measure::ipid::{Ledger, Step};
use crate::offsets::Offset;

/// What one sender sent in one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// On the sender's timeline: when it left, and when its ACK came.
    pub(crate) start: StackTime,
    pub(crate) end: StackTime,
    pub(crate) bytes: u32,
}

/// One sender's turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) done: Vec<Turn>,
    /// Constant part of the way from the tap to this sender.
    pub(crate) shift_in: i64,
    mss: i64,
    /// Shift of the receiver's windows, and the highest byte they allowed.
    shift: u8,
    window_end: Offset,
    now: StackTime,
    una: Offset,
    nxt: Offset,
    /// Offset after the highest byte of the peer.
    peer_end: Offset,
    /// The handshake is over for this side.
    is_open: bool,
    /// This side sent its FIN.
    is_closed: bool,
    /// It may send: nothing was sent yet, or the peer answered.
    is_its: bool,
    ids: Ledger,
}

/// Whether both sides of a connection may talk in turns, all of whose packets were `gathered`.
pub(crate) fn may_be_turns(facts: &Facts, gathered: &Gathered) -> bool {
    const ODD: u16 = RST | ECE | AFTER_GAP | PROBE | CORRUPT | UNSEEN_CAUSE;
    let is_plain = |event: &Event| {
        event.bits & ODD == 0
            && event.bits & (ACK | SYN) != 0
            && event.sack_count == 0
            && (event.len == 0 || !event.has(SYN))
    };
    gathered.frames() <= TURN_PACKETS
        && gathered.events.len() == gathered.frames()
        && facts.sides.iter().all(|side| side.syns == 1)
        && facts.window_shift(0).is_some()
        // Exchanges show what came before an answer, and a walk shows exchanges.
        && facts.tls.early().is_none()
        && gathered.events.iter().all(is_plain)
}

impl Turns {
    /// Forgets all, and keeps the room. `shift_in` is the constant way from the tap to this sender.
    pub(crate) fn renew(&mut self, terms: &Terms, shift_in: i64) {
        let mut done = core::mem::take(&mut self.done);
        done.clear();
        *self = Self {
            done,
            shift_in,
            mss: terms.mss,
            shift: terms.shift,
            window_end: NOWHERE,
            now: StackTime::of_report(0, shift_in),
            is_its: true,
            ..Self::default()
        };
        self.ids.is_of(terms.counter);
    }

    /// Takes a packet of this sender, which left at `at`; `None` if that is no matter of turns.
    pub(crate) fn on_out(&mut self, event: &Event, at: StackTime) -> Option<()> {
        self.now = self.now.max(at);
        let step = self.ids.push(event, segments_of(event.len, self.mss));
        if event.has(SYN) {
            return (!self.is_open).then_some(());
        }
        if event.len > 0 {
            let is_next = event.seq == self.nxt && self.una == self.nxt && !self.is_closed;
            let is_lost_before = matches!(step, Step::After(missing) if missing > 0);
            if !is_next || !self.is_its || !self.is_open || is_lost_before {
                return None;
            }
            self.nxt = event.end();
            self.is_its = false;
            self.done.push(Turn { start: self.now, end: self.now, bytes: event.len });
        }
        if event.has(FIN) {
            self.is_closed = true;
            // Its place tells of data that the tap has not seen.
            return (event.end() == self.nxt && self.has_room()).then_some(());
        }
        // What it lacks was on its way though it had passed the tap.
        if event.len == 0 && event.has(ACK) && event.ack < self.peer_end {
            return None;
        }
        // So does that of a bare ACK.
        let is_in_place = event.seq <= self.nxt + i64::from(self.is_closed);
        (is_in_place && self.has_room()).then_some(())
    }

    /// Takes a packet of the peer; `None` if that is no matter of turns.
    pub(crate) fn on_in(&mut self, event: &Event) -> Option<()> {
        self.now = self.now.max(event.tap.at_stack());
        let shift = if event.has(SYN) { 0 } else { self.shift };
        if event.has(SYN) && self.is_open {
            return None;
        }
        if event.has(ACK) {
            // Its window is shut, whatever it allowed before.
            if event.window == 0 {
                return None;
            }
            self.is_open = true;
            let end = event.ack + (i64::from(event.window) << shift);
            self.window_end = self.window_end.max(end);
            let is_of_all = event.ack == self.nxt || event.ack == self.nxt + 1 && self.is_closed;
            if !is_of_all {
                return None;
            }
            if self.una < self.nxt {
                self.una = self.nxt;
                if let Some(turn) = self.done.last_mut() {
                    turn.end = self.now;
                }
            }
        }
        self.is_its |= event.len > 0;
        if event.len > 0 {
            self.peer_end = self.peer_end.max(event.end());
        }
        (self.una == self.nxt && self.has_room()).then_some(())
    }

    /// Whether all that was sent is acknowledged.
    pub(crate) fn are_over(&self) -> bool {
        self.una == self.nxt
    }

    /// Whether the receiver's window, if it is known, takes another segment.
    fn has_room(&self) -> bool {
        self.window_end == NOWHERE || self.window_end - self.nxt >= self.mss
    }
}
