//! Marked neighbours in the queue become one segment, whose memory is charged once.
//!
//! Follows `tcp_shift_skb_data`, `tcp_shifted_skb`, `tcp_skb_shift`: what a block covers of a segment
//! moves into the one before, if that is selectively acknowledged and made of packets of the same size.
//! Nothing on the wire follows from it at once, but a writer finds room earlier. Left out: that a segment
//! takes no more than 17 pieces of memory, which the bound on its length comes before.

use super::Socket;
use super::known::Ack;
use super::queue::{Marks, Skb};
use crate::segment::{Flags, after, before};

/// What became of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shifted {
    /// It, or what a block covers of it, is part of the one at this place.
    Into(usize),
    /// Nothing, and a block covers no whole packet of it.
    Untouched,
    /// It is to be marked where it is.
    No,
}

/// What moves: payload, packets, and the payload of one.
#[derive(Clone, Copy)]
struct Part {
    len: u32,
    pcount: u32,
    mss: u32,
}

impl Socket {
    pub(super) fn shift_into_previous(
        &mut self,
        place: usize,
        from: u32,
        to: u32,
        is_dup: bool,
        ack: &mut Ack,
    ) -> Shifted {
        let skb = *self.q.at(place);
        let copy_is_under_way = skb.marks.resent && !skb.marks.lost && !is_dup;
        if copy_is_under_way || skb.len == 0 || skb.ends_by(self.snd.una) || place == 0 {
            return Shifted::No;
        }
        let previous = *self.q.at(place - 1);
        if !takes_more(&previous) {
            return Shifted::No;
        }
        let part = match covered(&skb, from, to) {
            Ok(part) if part.mss == packet(&previous) => part,
            Ok(_) => return Shifted::No,
            Err(shifted) => return shifted,
        };
        if part.len < part.mss && part.len < skb.len {
            return Shifted::Untouched;
        }
        if !after(skb.seq.wrapping_add(part.len), self.snd.una) || !fits(&previous, part) {
            return Shifted::No;
        }
        let is_whole = self.shift(place, part, is_dup, ack);
        if is_whole && place < self.q.sent() {
            // A hole was filled: what is behind it may join, too.
            let (joined, next) = (*self.q.at(place - 1), *self.q.at(place));
            let part = Part { len: next.len, pcount: next.pcount, mss: part.mss };
            let alike = next.len > 0 && is_just_sacked(next.marks) && packet(&next) == part.mss;
            if alike && !joined.eor && fits(&joined, part) {
                self.shift(place, part, false, ack);
            }
        }
        Shifted::Into(place - 1)
    }

    /// Moves a part of the one at `place` into the one before; whether nothing is left of it.
    fn shift(&mut self, place: usize, part: Part, is_dup: bool, ack: &mut Ack) -> bool {
        let skb = *self.q.at(place);
        let end_seq = skb.seq.wrapping_add(part.len);
        self.note_delivery(&skb, &mut ack.rate);
        self.count_sacked(&Skb { end_seq, pcount: part.pcount, ..skb }, is_dup, ack);
        let is_whole = part.len == skb.len;
        let previous = self.q.at_mut(place - 1);
        previous.end_seq = if is_whole { skb.end_seq } else { end_seq };
        previous.len += part.len;
        previous.truesize += part.len;
        previous.pcount += part.pcount;
        if previous.mss == 0 {
            previous.mss = part.mss;
        }
        previous.marks.ever_resent |= skb.marks.ever_resent;
        if is_whole {
            previous.flags = previous.flags.with(skb.flags);
            previous.eor = skb.eor;
        }
        let hint = if is_whole { previous.seq } else { end_seq };
        if self.rec.retransmit_hint == Some(skb.seq) {
            self.rec.retransmit_hint = Some(hint);
        }
        if is_whole {
            self.q.remove_sent(place);
            let empty = skb.truesize.saturating_sub(skb.len);
            self.snd.wmem_queued = self.snd.wmem_queued.saturating_sub(empty);
        } else {
            let rest = self.q.at_mut(place);
            rest.seq = end_seq;
            rest.len -= part.len;
            rest.truesize = rest.truesize.saturating_sub(part.len);
            rest.pcount -= part.pcount;
            if rest.pcount <= 1 {
                rest.mss = 0;
            }
        }
        is_whole
    }
}

/// What a block covers of a segment, in whole packets.
fn covered(skb: &Skb, from: u32, to: u32) -> Result<Part, Shifted> {
    if !after(from, skb.seq) && !before(to, skb.end_seq) {
        return Ok(Part { len: skb.len, pcount: skb.pcount, mss: packet(skb) });
    }
    if !after(skb.end_seq, from) || skb.pcount <= 1 {
        return Err(Shifted::Untouched);
    }
    if after(from, skb.seq) {
        return Err(Shifted::No);
    }
    let mss = skb.mss.max(1);
    let len = to.wrapping_sub(skb.seq);
    let pcount = len / mss;
    Ok(Part { len: if pcount == 0 { len } else { pcount * mss }, pcount, mss })
}

/// Payload of a packet (`tcp_skb_seglen`).
const fn packet(skb: &Skb) -> u32 {
    if skb.pcount == 1 { skb.len } else { skb.mss }
}

fn takes_more(skb: &Skb) -> bool {
    is_just_sacked(skb.marks) && !skb.eor && !skb.flags.has(Flags::SYN)
}

const fn is_just_sacked(marks: Marks) -> bool {
    marks.sacked && !marks.lost && !marks.resent
}

const fn fits(skb: &Skb, part: Part) -> bool {
    skb.len + part.len < MOST_BYTES && skb.pcount + part.pcount <= MOST_PACKETS
}

/// `tcp_skb_shift`: what the fields for GSO can hold, of packets of `TCP_MIN_GSO_SIZE` (8) bytes.
const MOST_BYTES: u32 = MOST_PACKETS * 8;
const MOST_PACKETS: u32 = 65_535;
