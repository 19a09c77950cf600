//! Segments that just go on, which nearly all are: new data or a new acknowledgement, in order, where
//! this side was always met, with nothing to tell of the connection that is not known.
//!
//! What [`Flow::push`] does for any segment comes down to little for these, and the same comes
//! out, for two thirds of the instructions.

use super::connection::Flow;
use super::copies::Spot;
use super::event::{ACK, Event, FROM_SERVER, ID, PSH, Side, TS};
use crate::units::Seq;
use crate::wire::{Direction, Flags, Segment};

impl Flow {
    /// Takes `segment` if it just goes on; whether it did.
    #[inline]
    pub(super) fn goes_on(&mut self, side: Side, segment: &Segment<'_>) -> bool {
        let spot = Spot::of(segment);
        let Some(event) = self.next_event(side, segment, spot) else { return false };
        if !self.copies.is_next(side, spot, event.end(), event.ack) {
            return false;
        }
        self.copies.take_next(&event);
        self.packets += 1;
        self.last_frame = segment.frame;
        let info = &mut self.sides[side];
        info.reference = Some((Seq(segment.seq.0.wrapping_add(event.len)), event.end()));
        match segment.link.direction {
            Some(Direction::Outgoing) => info.outgoing += 1,
            Some(Direction::Incoming) => info.incoming += 1,
            None => {}
        }
        info.timestamps |= event.has(TS);
        info.note_data(&event);
        let window = self.scaled_window(side, &event);
        self.peers.take_next(&event, window);
        self.last_tap = event.tap;
        self.events.push(event);
        true
    }

    /// The event of a segment that follows the last one of its side, at a time when everything is
    /// known that a segment could tell.
    #[inline]
    fn next_event(&self, side: Side, segment: &Segment<'_>, spot: Spot) -> Option<Event> {
        const PUSHED: u16 = Flags::ACK.0 | Flags::PSH.0;
        #[cfg(test)]
        if self.long_way {
            return None;
        }
        let info = &self.sides[side];
        let ((next, seq), (newest, ack)) = (info.reference?, self.sides[1 - side].reference?);
        let acked = segment.ack.since(newest);
        let is_plain = segment.flags.0 | Flags::PSH.0 == PUSHED
            && segment.window != 0
            && segment.options.sack_count == 0
            && segment.link.checksum.is_none()
            && segment.ip.ttl == info.ttl;
        let is_next = segment.seq == next
            && acked <= 0
            && segment.payload_len <= 1 << 20
            && self.peers.is_next(side, seq);
        let tells = self.gap_pending
            || self.handshake.awaits_ack() && side == 0
            || segment.payload_len > 0 && self.tls.is_open();
        let tap = self.tap_of(segment);
        if !is_plain || !is_next || tells || tap < self.last_tap {
            return None;
        }
        let mut bits = segment.flags.0 & (ACK | PSH);
        bits |= if side == 1 { FROM_SERVER } else { 0 };
        bits |= if segment.options.timestamps.is_some() { TS } else { 0 };
        bits |= if segment.ip.id.is_some() { ID } else { 0 };
        let (tsval, tsecr) = segment.options.timestamps.unwrap_or_default();
        Some(Event {
            tap,
            frame: segment.frame,
            seq,
            ack: ack + i64::from(acked),
            tsval,
            tsecr,
            len: segment.payload_len,
            sack_at: 0,
            sack_count: 0,
            interface: spot.interface(),
            window: segment.window,
            id: segment.ip.id.unwrap_or_default(),
            bits,
        })
    }
}
