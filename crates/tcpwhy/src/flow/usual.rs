//! Segments that just go on, which nearly all are: new data or a new acknowledgement, in order, where
//! this side was always met, with nothing to tell of the connection that is not known.
//!
//! What [`Flow::push`] does for any segment comes down to moving a few numbers for these. They are
//! kept apart ([`Next`]) while nothing else comes: whatever is no such segment puts them back to
//! where they belong before it is looked at, and takes them out again behind it.

use super::connection::{Flow, LONGEST_NS};
use super::copies::{Spot, is_counted};
use super::event::{ACK, Event, FROM_SERVER, GOES_ON, ID, PSH, Side, TS};
use crate::units::Seq;
use crate::wire::{Alike, Checksum, Direction, Flags, Head};

/// Where the next segment of one side goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    /// A segment may go on here.
    is_open: bool,
    /// The window last announced, as it stands in the header, and in bytes; 0 if none was.
    window: u16,
    room: i64,
    /// The number of the next byte, and its offset.
    seq: Seq,
    at: i64,
    /// The number last acknowledged, which is the newest, and its offset.
    ack: Seq,
    acked: i64,
    /// Up to where this side's own numbers were met, with SYN and FIN.
    met: i64,
    spot: Spot,
}

impl Flow {
    /// Takes the segment with `head` and no SACK blocks if it just goes on; whether it did.
    // The head is then never written to memory.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, side: Side, head: &Head) -> bool {
        const PUSHED: u16 = Flags::ACK.0 | Flags::PSH.0;
        let (next, other) = (&self.next[side], &self.next[1 - side]);
        let end = next.at + i64::from(head.payload_len);
        let newly_acked = head.ack.since(next.ack);
        let is_plain = head.flags.0 | Flags::PSH.0 == PUSHED
            && head.window != 0
            && head.link.checksum != Some(Checksum::Bad);
        let is_next = next.is_open
            && head.seq == next.seq
            && newly_acked >= 0
            && head.ack.since(other.seq) <= 0
            && head.payload_len <= 1 << 20
            && (head.payload_len > 0 && end > next.met || newly_acked > 0);
        // `tap_of` without its bounds, which such times keep.
        let tap = head.time.0.wrapping_sub(self.facts.start.0);
        let is_in_order =
            head.time >= self.facts.start && (self.facts.last_tap..LONGEST_NS).contains(&tap);
        let spot = Spot::of(head.ip, head.link);
        if !is_plain || !is_next || !is_in_order || spot != next.spot {
            return false;
        }
        let fills_window =
            head.payload_len > 0 && other.room > 0 && end == other.acked + other.room;
        let room = self.facts.window_shift(side).map_or(0, |shift| i64::from(head.window) << shift);
        let mut bits = head.flags.0 & (ACK | PSH);
        bits |= if side == 1 { FROM_SERVER } else { 0 };
        bits |= if head.timestamps.is_some() { TS } else { 0 };
        bits |= if head.ip.id.is_some() { ID } else { 0 };
        let (tsval, tsecr) = head.timestamps.unwrap_or_default();
        let mut event = Event {
            tap,
            frame: head.frame,
            seq: next.at,
            ack: next.acked + i64::from(newly_acked),
            tsval,
            tsecr,
            len: head.payload_len,
            sack_at: 0,
            sack_count: 0,
            interface: spot.interface(),
            window: head.window,
            id: head.ip.id.unwrap_or_default(),
            bits,
        };
        let next = &mut self.next[side];
        next.seq = Seq(head.seq.0.wrapping_add(head.payload_len));
        next.at = end;
        next.met = next.met.max(end);
        (next.ack, next.acked, next.window) = (head.ack, event.ack, head.window);
        next.room = room;
        self.facts.peers.counts[side].window_full += u64::from(fills_window);
        self.copies.count_new(event.len > 0 || is_counted(&event));
        self.note_usual(side, head.link.direction, head.link.checksum, &event);
        if self.gathered.events.last().is_some_and(|before| event.goes_on_from(before)) {
            event.bits |= GOES_ON;
        }
        self.gathered.events.push(event);
        true
    }

    /// Takes the segment in a frame that is like the one that `side` sent last, of which the last event
    /// tells, if it just goes on; whether it did.
    #[inline]
    pub(crate) fn goes_on_alike(&mut self, side: Side, alike: &Alike) -> bool {
        let (next, other) = (&self.next[side], &self.next[1 - side]);
        let Some(before) = self.gathered.events.last() else { return false };
        let tap = alike.time.0.wrapping_sub(self.facts.start.0);
        let is_in_order =
            alike.time >= self.facts.start && (self.facts.last_tap..LONGEST_NS).contains(&tap);
        if !next.is_open || alike.seq != next.seq || before.end() != next.at || !is_in_order {
            return false;
        }
        let pushed = if alike.is_pushed { PSH } else { 0 };
        let bits = before.bits & !PSH | pushed | GOES_ON;
        let (tap, frame, seq, id) = (tap, alike.frame, next.at, alike.id);
        let event = Event { tap, frame, seq, id, bits, ..*before };
        let end = event.end();
        let fills_window = other.room > 0 && end == other.acked + other.room;
        let next = &mut self.next[side];
        next.seq = Seq(next.seq.0.wrapping_add(event.len));
        (next.at, next.met) = (end, next.met.max(end));
        self.facts.peers.counts[side].window_full += u64::from(fills_window);
        self.copies.count_new(true);
        self.note_usual(side, alike.direction, None, &event);
        self.gathered.events.push(event);
        true
    }

    #[inline]
    fn note_usual(
        &mut self,
        side: Side,
        direction: Option<Direction>,
        checksum: Option<Checksum>,
        event: &Event,
    ) {
        self.facts.packets += 1;
        self.facts.last_frame = event.frame;
        self.facts.last_tap = event.tap;
        let info = &mut self.facts.sides[side];
        match direction {
            Some(Direction::Outgoing) => info.outgoing += 1,
            Some(Direction::Incoming) => info.incoming += 1,
            None => {}
        }
        match checksum {
            Some(Checksum::Good) => info.good_sums += 1,
            Some(Checksum::Offloaded) => info.open_sums += 1,
            Some(Checksum::Bad) | None => {}
        }
        info.timestamps |= event.has(TS);
        info.note_data(event);
    }

    /// Takes out what the next segments may go on from, at a time when everything is known that a
    /// segment could tell.
    pub(super) fn open_next(&mut self) {
        let tells = self.gap_pending || self.facts.tls.is_open();
        #[cfg(test)]
        let tells = tells || self.long_way;
        for side in [0, 1] {
            let next = self.next_of(side).filter(|_| !tells);
            self.next[side] = Next { is_open: next.is_some(), ..next.unwrap_or_default() };
        }
        // A side that may not go on itself still says how far the other may.
        for side in [0, 1] {
            if let Some((seq, at)) = self.facts.sides[side].reference {
                (self.next[side].seq, self.next[side].at) = (seq, at);
            }
            if let Some(last) = self.facts.peers.last(side) {
                let next = &mut self.next[side];
                (next.acked, next.window, next.room) = (last.ack, last.window, last.scaled_window);
            }
        }
    }

    /// What `side` goes on from, if all accounts of it agree.
    fn next_of(&self, side: Side) -> Option<Next> {
        let ((seq, at), (newest, offset)) =
            (self.facts.sides[side].reference?, self.facts.sides[1 - side].reference?);
        let (spot, met, acked) = self.copies.front(side)?;
        let last = self.facts.peers.last(side)?;
        let is_shut = self.facts.peers.last(1 - side).is_some_and(|last| last.window == 0);
        let agree = last.next_seq == at && met >= at && acked == last.ack && acked <= offset;
        let awaits_ack = self.facts.handshake.awaits_ack() && side == 0;
        let is_met_alike = spot.hops_left() == Spot::hops(self.facts.sides[side].ttl);
        let ack = Seq(newest.0.wrapping_sub((offset - acked) as u32));
        (agree && is_met_alike && !is_shut && !awaits_ack).then_some(Next {
            is_open: true,
            window: last.window,
            room: last.scaled_window,
            seq,
            at,
            ack,
            acked,
            met,
            spot,
        })
    }

    /// Puts back what segments that went on have moved, and lets no more of them.
    pub(super) fn close_next(&mut self) {
        for side in [0, 1] {
            let next = self.next[side];
            if !core::mem::take(&mut self.next[side].is_open) {
                continue;
            }
            self.facts.sides[side].reference = Some((next.seq, next.at));
            self.copies.move_front(side, next.met, next.acked);
            self.facts.peers.move_on(side, next.at, next.acked, (next.window, next.room));
        }
    }
}
