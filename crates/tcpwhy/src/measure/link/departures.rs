//! When packets left the narrowest link, as the ACKs that came back tell at the sender's tap.
//!
//! An ACK that newly delivers data left its receiver when that arrived, so the newest packet that it tells of left the
//! link a constant way before the ACK came: the least round trip. All times are those of the tap, as if the link
//! stood there. What SACK reports counts as delivered (RFC 2018); a packet that was retransmitted counts as its newest copy
//! that is old enough to have arrived (draft-cheng-iccrg-delivery-rate-estimation).

use std::collections::{BTreeSet, VecDeque};

use super::gap::{Gap, Lost, Terms};
use crate::flow::event::Block;
use crate::offsets::Offset;

/// A copy younger than this many tenths of the least round trip is not the one that arrived.
const OLD_ENOUGH_TENTHS: i64 = 9;

/// Most segments that are followed at once. Ours: who calls follows fewer, but for the rest of what it began with.
const MOST: usize = 1 << 16;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: Offset,
    end: Offset,
    /// Number and time of its newest copy, and of the one before.
    newest: (u64, i64),
    before: Option<(u64, i64)>,
    wire: u32,
    is_delivered: bool,
}

/// What is in flight, and what left last.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    /// The least round trip, and the bytes on the wire of the packet that made it.
    base: Option<(i64, u32)>,
    /// Packets that may yet leave, in the order in which they were sent: when, and their bytes on the wire.
    sends: VecDeque<(i64, u32)>,
    /// How many packets were sent before those.
    gone: u64,
    /// In the order of their data.
    flight: VecDeque<Piece>,
    acked: u64,
    /// Up to where SACK reported, and what is missing below that, by number.
    reported: Offset,
    missing: BTreeSet<u64>,
    /// What did not arrive.
    pub(super) lost: Vec<Lost>,
    /// When the ACK came that told of the newest departure.
    left_at: Option<i64>,
    /// By how much that may be too late.
    coarse: i64,
}

impl Departures {
    /// A segment with data from `start` to `end` was sent, with this many bytes on the wire.
    pub(super) fn on_send(&mut self, (start, end): Block, at: i64, wire: u32) {
        if start >= end || self.sends.len() == MOST {
            return;
        }
        let copy = (self.gone + self.sends.len() as u64, at);
        self.sends.push_back((at, wire));
        if self.flight.back().is_none_or(|last| start >= last.end) {
            let piece = Piece { start, end, newest: copy, before: None, wire, is_delivered: false };
            self.flight.push_back(piece);
        } else {
            let first = self.flight.partition_point(|piece| piece.start < start);
            let same = self.flight.range_mut(first..).take_while(|piece| piece.end <= end);
            for piece in same.filter(|piece| !piece.is_delivered) {
                piece.before = Some(core::mem::replace(&mut piece.newest, copy));
            }
        }
    }

    /// How far the times of departures can be relied on.
    pub(super) fn terms(&self) -> Terms {
        let (least, own) = self.base.unwrap_or_default();
        Terms { late: least as f64, trip: least as f64, own, tick: Some(0) }
    }

    /// What is in flight will not be followed to its end.
    pub(super) fn forget(&mut self) {
        self.gone += self.sends.len() as u64;
        self.acked += self.flight.len() as u64;
        self.sends.clear();
        self.flight.clear();
        self.missing.clear();
        self.left_at = None;
    }

    /// Whether any that are followed have not left.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        !self.flight.is_empty()
    }

    /// An ACK came at a time that may be too late by `coarse`: what it says of the newest departure.
    pub(super) fn on_ack(
        &mut self,
        (at, coarse): (i64, i64),
        ack: Offset,
        blocks: &[Block],
    ) -> Option<(Gap, bool)> {
        let coarse = coarse.max(core::mem::replace(&mut self.coarse, coarse));
        let mut told = Told { at, coarse, least: self.base.map(|base| base.0), ..Told::default() };
        while let Some(piece) = self.flight.front().filter(|piece| piece.end <= ack) {
            if !piece.is_delivered {
                told.take(piece, &mut self.lost);
            }
            self.missing.remove(&self.acked);
            self.flight.pop_front();
            self.acked += 1;
        }
        self.reported = self.reported.max(ack);
        // What a D-SACK reports (RFC 2883) was delivered before, and counts no more.
        for block in blocks {
            self.on_block(*block, &mut told);
        }
        if let Some(((_, sent), wire)) = told.once
            && self.base.is_none_or(|(least, _)| at - sent < least)
        {
            self.base = Some((at - sent, wire));
        }
        self.depart(&told)
    }

    /// The receiver has what lies in `block`.
    fn on_block(&mut self, block: Block, told: &mut Told) {
        let of = |number: u64, acked: u64| (number - acked) as usize;
        // Each piece is looked at once as it is passed, and once more as it is filled.
        let from = self.flight.partition_point(|piece| piece.start < self.reported);
        let upto = self.flight.partition_point(|piece| piece.end <= block.1);
        for at in from..upto {
            let piece = &mut self.flight[at];
            if piece.start >= block.0 {
                told.take(piece, &mut self.lost);
                piece.is_delivered = true;
            } else if !piece.is_delivered {
                self.missing.insert(self.acked + at as u64);
            }
            self.reported = self.reported.max(piece.end);
        }
        let first = self.flight.partition_point(|piece| piece.start < block.0);
        if first >= upto {
            return;
        }
        let span = self.acked + first as u64..self.acked + upto as u64;
        let filled: Vec<u64> = self.missing.range(span).copied().collect();
        for number in filled {
            let piece = &mut self.flight[of(number, self.acked)];
            told.take(piece, &mut self.lost);
            piece.is_delivered = true;
            self.missing.remove(&number);
        }
    }

    /// The gap before the newest departure that was `told` of, and whether each of its packets waited for the one
    /// before it; `None` if it is not newer than the last.
    fn depart(&mut self, told: &Told) -> Option<(Gap, bool)> {
        let newest = told.newest?;
        let chain = usize::try_from((newest + 1).checked_sub(self.gone)?).ok()?;
        let before = self.left_at.replace(told.at);
        if chain == 0 || chain > self.sends.len() {
            self.left_at = before;
            return None;
        }
        let wires = self.sends.range(..chain).map(|(_, wire)| *wire);
        let sent = wires.fold(0_u32, u32::saturating_add);
        let gap = before.zip(self.base).map(|(from, (base, _))| {
            let gap = Gap {
                from,
                to: told.at,
                coarse: told.coarse,
                first: told.oldest_since(self.gone).unwrap_or(self.sends[chain - 1].0),
                last: self.sends[chain - 1].0,
                work: told.work,
                sent,
                packets: told.packets,
                chain: chain as u32,
                number: self.gone,
            };
            (gap, sent == told.work && self.all_waited(chain, &gap, base))
        });
        self.sends.drain(..chain);
        self.gone += chain as u64;
        gap
    }

    /// Whether each of the next `chain` packets was sent before the one in front of it had left.
    fn all_waited(&self, chain: usize, gap: &Gap, base: i64) -> bool {
        let (from, time) = (gap.from - base - gap.coarse, i128::from(gap.to - gap.from));
        let mut done = 0_i128;
        self.sends.range(..chain).all(|(at, wire)| {
            let turn = i128::from(from) + time * done / i128::from(gap.work.max(1));
            done += i128::from(*wire);
            i128::from(*at) <= turn
        })
    }
}

/// What one ACK tells of newly delivered packets.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    at: i64,
    coarse: i64,
    least: Option<i64>,
    work: u32,
    packets: u32,
    newest: Option<u64>,
    /// The packet sent first of all: number and time; the first two are enough to pass over an old copy.
    oldest: [Option<(u64, i64)>; 2],
    /// The newest that was sent once, and its bytes on the wire.
    once: Option<((u64, i64), u32)>,
}

impl Told {
    fn take(&mut self, piece: &Piece, lost: &mut Vec<Lost>) {
        let is_old = |copy: (u64, i64)| {
            self.least.is_none_or(|least| {
                (self.at - copy.1).saturating_mul(10) >= least.saturating_mul(OLD_ENOUGH_TENTHS)
            })
        };
        let copy = match piece.before {
            Some(before) if !is_old(piece.newest) => before,
            Some(before) => {
                lost.push(Lost { number: before.0, seq: piece.start, sent: before.1 });
                piece.newest
            }
            None => piece.newest,
        };
        self.work = self.work.saturating_add(piece.wire);
        self.packets += 1;
        self.newest = self.newest.max(Some(copy.0));
        if piece.before.is_none() && self.once.is_none_or(|(once, _)| once.0 < copy.0) {
            self.once = Some((copy, piece.wire));
        }
        match self.oldest {
            [None, _] => self.oldest[0] = Some(copy),
            [Some(first), _] if copy.0 < first.0 => self.oldest = [Some(copy), Some(first)],
            [_, Some(second)] if copy.0 >= second.0 => {}
            _ => self.oldest[1] = Some(copy),
        }
    }

    /// When the first of those was sent that are not older than number `since`.
    fn oldest_since(&self, since: u64) -> Option<i64> {
        self.oldest.iter().flatten().find(|copy| copy.0 >= since).map(|copy| copy.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::block;

    const WIRE: u32 = 1_000;

    /// Ten segments of 900 bytes that are sent at once, 1,000 on the wire each.
    fn burst(departures: &mut Departures, from: i64, at: i64, count: i64) {
        for number in from..from + count {
            departures.on_send(block(number * 900, (number + 1) * 900), at, WIRE);
        }
    }

    #[test]
    fn acks_of_a_burst_tell_when_each_packet_left() {
        let mut departures = Departures::default();
        burst(&mut departures, 0, 0, 4);
        assert!(
            departures.on_ack((100, 0), Offset::at(900), &[]).is_none(),
            "the first departure ends no gap"
        );
        let (gap, waited) =
            departures.on_ack((120, 0), Offset::at(2_700), &[]).expect("two packets left");
        assert_eq!(
            (gap.from, gap.to, gap.work, gap.sent, gap.packets),
            (100, 120, 2_000, 2_000, 2)
        );
        assert!(waited, "they were sent before the first left");
        burst(&mut departures, 4, 200, 1);
        departures.on_ack((130, 0), Offset::at(3_600), &[]);
        let (gap, waited) = departures.on_ack((300, 0), Offset::at(4_500), &[]).expect("one more");
        assert!(!waited && gap.first == 200, "it was sent after the others had left");
    }

    #[test]
    fn what_sack_reports_has_left_and_a_lost_packet_was_only_sent() {
        let mut departures = Departures::default();
        burst(&mut departures, 0, 0, 6);
        departures.on_ack((100, 0), Offset::at(900), &[]);
        let (gap, waited) = departures
            .on_ack((110, 0), Offset::at(900), &[block(1_800, 2_700)])
            .expect("the third left");
        assert_eq!((gap.work, gap.sent, gap.packets, gap.chain), (1_000, 2_000, 1, 2));
        assert!(!waited, "the second is missing");
        let (gap, _) = departures
            .on_ack((120, 0), Offset::at(900), &[block(1_800, 3_600)])
            .expect("the fourth left");
        assert_eq!((gap.work, gap.sent), (1_000, 1_000));
        departures.on_send(block(900, 1_800), 130, WIRE);
        let (gap, _) =
            departures.on_ack((240, 0), Offset::at(4_500), &[]).expect("the copy and the fifth");
        assert_eq!(
            (gap.work, gap.packets, gap.chain),
            (2_000, 2, 3),
            "and the sixth is on its way"
        );
    }

    #[test]
    fn blocks_that_grow_together_report_what_was_between_them() {
        let mut departures = Departures::default();
        burst(&mut departures, 0, 0, 8);
        departures.on_ack((100, 0), Offset::at(900), &[]);
        departures.on_ack((110, 0), Offset::at(900), &[block(1_800, 2_700)]);
        departures.on_ack((120, 0), Offset::at(900), &[block(4_500, 5_400), block(1_800, 2_700)]);
        assert_eq!(departures.missing.len(), 3, "the second, fourth and fifth");
        assert!(
            departures.on_ack((130, 0), Offset::at(900), &[block(1_800, 5_400)]).is_none(),
            "they were older"
        );
        assert_eq!(departures.missing.len(), 1);
        departures.on_ack((140, 0), Offset::at(5_400), &[]);
        assert!(departures.missing.is_empty());
    }

    #[test]
    fn a_duplicate_reported_is_no_departure() {
        let mut departures = Departures::default();
        burst(&mut departures, 0, 0, 3);
        departures.on_ack((100, 0), Offset::at(900), &[]);
        assert!(departures.on_ack((110, 0), Offset::at(900), &[block(0, 900)]).is_none());
        departures.on_ack((120, 0), Offset::at(900), &[block(1_800, 2_700)]);
        assert!(
            departures
                .on_ack((130, 0), Offset::at(900), &[block(1_800, 2_700), block(1_800, 2_700)])
                .is_none()
        );
    }

    #[test]
    fn a_copy_too_young_to_have_arrived_is_not_the_one_that_did() {
        let mut departures = Departures::default();
        burst(&mut departures, 0, 0, 2);
        departures.on_ack((100, 0), Offset::at(900), &[]);
        departures.on_send(block(900, 1_800), 150, WIRE);
        let (gap, _) =
            departures.on_ack((200, 0), Offset::at(1_800), &[]).expect("the original, late");
        assert_eq!((gap.first, gap.chain), (0, 1));
        assert!(departures.lost.is_empty());
    }

    #[test]
    fn a_packet_sent_within_what_a_departure_may_be_too_late_by_did_not_surely_wait() {
        // The first leaves at 0 by its ACK, 100 later; the second is sent `after` it.
        let waited = |after: i64, coarse: [i64; 2]| {
            let mut departures = Departures::default();
            burst(&mut departures, 0, -20, 1);
            burst(&mut departures, 1, after, 1);
            departures.on_ack((80, coarse[0]), Offset::at(900), &[]);
            departures.on_ack((180, coarse[1]), Offset::at(1_800), &[]).expect("it left").1
        };
        assert!(waited(-20, [0, 0]), "sent as the first left");
        assert!(!waited(-19, [0, 0]), "sent behind it");
        assert!(!waited(-20, [10, 0]), "the first may have left by 10 earlier");
        assert!(!waited(-20, [0, 10]), "or what it is held against is coarse");
        assert!(waited(-30, [10, 10]));
        assert!(!waited(-29, [10, 10]));
    }
}
