//! When packets left the narrowest link before the tap: as they arrive.
//!
//! Between the link and a tap behind it nothing holds packets up, so they come as they left, and the time is that of the
//! tap, as if the link stood there. When they were sent their time stamps tell ([`Stamps`]). Data missing before what
//! arrives was sent, too: it counts as lost once a later copy came.

use crate::clocks::TapTime;
use crate::offsets::Offset;
use std::collections::VecDeque;

use super::gap::{Gap, Lost};
use crate::measure::stamps::Stamps;

/// Holes that are remembered: of more, the oldest are not told of. Ours: RFC 2018 lets an ACK tell of four at once.
const MOST_HOLES: usize = 1024;

/// A copy that fills a hole sooner than this many tenths of the least round trip was only overtaken.
const OLD_ENOUGH_TENTHS: i64 = 9;

/// Data that arrives at the tap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Data {
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) at: i64,
    /// Its time stamp, and how long a tick of that is.
    pub(super) stamp: Option<(u32, i64)>,
    /// Bytes on the wire, and in how many packets.
    pub(super) wire: u32,
    pub(super) packets: u32,
    /// The payload of a segment, and the bytes of its headers.
    pub(super) mss: i64,
    pub(super) headers: u32,
    /// The least round trip.
    pub(super) trip: i64,
}

/// Data that had not come when later data did.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: Offset,
    end: Offset,
    /// The number of its first packet, and when it was seen.
    number: u64,
    at: i64,
    /// When what came before it was sent, and the stamp of what came behind it.
    before: i64,
    stamp: u32,
}

/// What arrived last, and what is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    last: Option<i64>,
    /// When that was sent.
    sent: i64,
    /// Offset after the highest byte.
    top: Offset,
    stamps: Stamps,
    /// How many packets were sent, lost ones included.
    number: u64,
    /// In the order of their data.
    holes: VecDeque<Hole>,
    pub(super) lost: Vec<Lost>,
}

impl Arrivals {
    /// What comes next is not the one behind the last that came.
    pub(super) fn forget(&mut self) {
        self.last = None;
        self.holes.clear();
    }

    /// Data arrived: the gap before it, and whether it had been sent when the packet before it left.
    pub(super) fn on_data(&mut self, data: &Data) -> Option<(Gap, bool)> {
        let Data { start, end, at, stamp, wire, packets, .. } = *data;
        let tick = stamp.map_or(0, |(_, tick)| tick);
        let sent_at = match stamp {
            Some((stamp, tick)) => self.stamps.unhindered(TapTime(at), stamp, tick).0,
            None => at,
        };
        let Some(from) = self.last.replace(at) else {
            (self.top, self.sent) = (end, sent_at);
            self.number += u64::from(packets);
            return None;
        };
        let missing = u32::try_from((start - self.top).max(0)).unwrap_or(u32::MAX / 4);
        let pieces = missing.div_ceil(u32::try_from(data.mss).unwrap_or(u32::MAX).max(1));
        let number = self.number;
        if missing > 0 {
            let hole = Hole {
                start: self.top,
                end: start,
                number,
                at,
                before: self.sent,
                stamp: stamp.map_or(0, |stamp| stamp.0),
            };
            if self.holes.len() == MOST_HOLES {
                self.holes.pop_front();
            }
            self.holes.push_back(hole);
        } else if start < self.top && !self.holes.is_empty() {
            self.fill(data);
        }
        self.top = self.top.max(end);
        self.sent = sent_at;
        let lost = missing.saturating_add(pieces.saturating_mul(data.headers));
        let gap = Gap {
            from,
            to: at,
            first: sent_at,
            last: sent_at,
            work: wire,
            sent: wire.saturating_add(lost),
            packets,
            coarse: 0,
            chain: pieces.saturating_add(packets),
            number,
        };
        self.number += u64::from(gap.chain);
        let waited = missing == 0 && (stamp.is_none() || sent_at <= from + tick);
        Some((gap, waited))
    }

    /// A copy came of what was missing, or the original, late.
    fn fill(&mut self, data: &Data) {
        let mss = data.mss.max(1);
        let first = self.holes.partition_point(|hole| hole.end <= data.start);
        let mut at = first;
        while let Some(hole) = self.holes.get(at).copied().filter(|hole| hole.start < data.end) {
            let (from, to) = (hole.start.max(data.start), hole.end.min(data.end));
            let is_copy = match data.stamp {
                Some((stamp, _)) => stamp.wrapping_sub(hole.stamp).cast_signed() > 0,
                None => (data.at - hole.at).saturating_mul(10) >= data.trip * OLD_ENOUGH_TENTHS,
            };
            let mut seq = from;
            while is_copy && seq < to {
                let number = hole.number + ((seq - hole.start) / mss) as u64;
                self.lost.push(Lost { number, seq, sent: hole.before });
                seq += mss;
            }
            let behind =
                Hole { start: to, number: hole.number + ((to - hole.start) / mss) as u64, ..hole };
            match (from > hole.start, to < hole.end) {
                (false, false) => {
                    self.holes.remove(at);
                }
                (false, true) => {
                    self.holes[at] = behind;
                    at += 1;
                }
                (true, has_rest) => {
                    self.holes[at].end = from;
                    if has_rest && self.holes.len() < MOST_HOLES {
                        self.holes.insert(at + 1, behind);
                    }
                    at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const MSS: i64 = 1_000;

    /// Segment `number` arrives at `at` milliseconds and was stamped at `stamp`.
    fn segment(number: i64, at: i64, stamp: u32) -> Data {
        Data {
            start: Offset::at(number * MSS),
            end: Offset::at((number + 1) * MSS),
            at: at * MS,
            stamp: Some((stamp, MS)),
            wire: 1_066,
            packets: 1,
            mss: MSS,
            headers: 66,
            trip: 20 * MS,
        }
    }

    #[test]
    fn packets_that_were_sent_before_the_last_one_came_waited() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.on_data(&segment(0, 10, 0)).is_none(), "the first ends no gap");
        let (gap, waited) = arrivals.on_data(&segment(1, 15, 0)).expect("a gap");
        assert_eq!((gap.from, gap.to, gap.work, gap.sent), (10 * MS, 15 * MS, 1_066, 1_066));
        assert!(waited && gap.first / MS == 10, "both were sent at once");
        let (gap, waited) = arrivals.on_data(&segment(2, 40, 30)).expect("a gap");
        assert!(!waited && gap.last / MS == 40, "it was sent long after the second had come");
    }

    #[test]
    fn what_is_missing_was_sent_and_is_lost_once_a_copy_comes() {
        let mut arrivals = Arrivals::default();
        arrivals.on_data(&segment(0, 10, 0));
        let (gap, waited) = arrivals.on_data(&segment(3, 15, 0)).expect("a gap");
        assert_eq!((gap.work, gap.sent, gap.chain, gap.number), (1_066, 3 * 1_066, 3, 1));
        assert!(!waited && arrivals.lost.is_empty());
        arrivals.on_data(&segment(2, 36, 26));
        let [Lost { number: 2, seq, .. }] = arrivals.lost[..] else {
            panic!("{:?}", arrivals.lost)
        };
        assert_eq!(seq, Offset::at(2_000));
        arrivals.on_data(&segment(1, 37, 27));
        assert_eq!(arrivals.lost[1].number, 1);
        assert!(arrivals.holes.is_empty());
    }

    #[test]
    fn what_was_overtaken_is_not_lost() {
        let late = |at: i64, stamp: Option<(u32, i64)>| {
            let mut arrivals = Arrivals::default();
            for number in [0, 2] {
                arrivals
                    .on_data(&Data { stamp: stamp.and(Some((0, MS))), ..segment(number, 10, 0) });
            }
            arrivals.on_data(&Data { stamp, ..segment(1, at, 0) });
            arrivals.lost.len()
        };
        assert_eq!((late(12, Some((0, MS))), late(32, Some((22, MS)))), (0, 1));
        assert_eq!((late(27, None), late(28, None)), (0, 1), "nine tenths of a round trip");
    }

    #[test]
    fn holes_beyond_those_that_are_kept_are_forgotten() {
        let mut arrivals = Arrivals::default();
        for number in 0..3 * MOST_HOLES as i64 {
            arrivals.on_data(&segment(2 * number, 10, 0));
        }
        assert_eq!(arrivals.holes.len(), MOST_HOLES);
    }
}
