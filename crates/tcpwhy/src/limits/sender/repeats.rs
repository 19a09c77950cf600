//! Recent retransmissions, and how much of them the receiver had already.
//!
//! Three things prove a repeat needless. The receiver reports data that it got twice (D-SACK,
//! RFC 2883): that names the range. Or the first ACK across a hole echoes a timestamp older than
//! the repeat's: then the original filled the hole (RFC 3522, RFC 7323 §4.3); it tells of the hole
//! at the left edge alone, for that is what the receiver takes its echo from. Away from the sender the original
//! may pass behind its repeat, with an older timestamp. Linux takes back a cut window when each repeat is reported
//! (`tcp_may_undo`: `undo_retrans` is 0).

use std::collections::VecDeque;

use super::Sender;
use super::sends::segments_of;
use crate::flow::event::{ACK, Block, Event, TS};
use crate::limits::sense::REPEATS;
use crate::offsets::Offset;
use crate::segments::Segments;

/// Data retransmitted in one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(crate) start: Offset,
    pub(crate) end: Offset,
    /// Its timestamp, if it has one.
    pub(crate) stamp: Option<u32>,
    /// Loss episode that it belongs to, 0 for none.
    pub(crate) episode: u32,
    /// Bytes of it that are proven needless.
    pub(crate) needless: i64,
}

impl Repeat {
    /// What `event` retransmits in `episode`.
    pub(crate) fn of(event: &Event, episode: u32) -> Self {
        let stamp = event.has(TS).then_some(event.tsval);
        Self { start: event.seq, end: event.end(), stamp, episode, needless: 0 }
    }

    /// Takes as needless what lies between `from` and `to` and was not before; how much that is.
    fn take(&mut self, from: Offset, to: Offset) -> Option<Needless> {
        let (overlap, len) = (to.min(self.end) - from.max(self.start), self.end - self.start);
        let bytes = overlap.min(len - self.needless).max(0);
        self.needless += bytes;
        let Self { episode, start, needless, .. } = *self;
        (bytes > 0).then_some(Needless { episode, start, bytes, of: (needless, len) })
    }
}

/// Bytes proven needless, and the episode in which they were retransmitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Needless {
    pub(crate) episode: u32,
    pub(crate) start: Offset,
    pub(crate) bytes: i64,
    /// How much of that packet is proven needless with them, and how long it was.
    pub(crate) of: (i64, i64),
}

impl Needless {
    /// Segments that are proven needless by it: a part of one may be all that arrived twice.
    pub(crate) fn segments(&self, mss: i64) -> Segments {
        let (needless, len) = self.of;
        let whole = |bytes: i64| {
            if bytes == len {
                segments_of(len.clamp(0, 1 << 20) as u32, mss)
            } else {
                Segments::new((bytes / mss.max(1)) as u64)
            }
        };
        whole(needless).saturating_sub(whole(needless - self.bytes))
    }
}

/// The last repeats of a direction, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    kept: VecDeque<Repeat>,
    /// How many of the first are needless to the last byte: nothing more can be told of them.
    told: usize,
    /// The highest end of all there were.
    end: Offset,
}

impl Repeats {
    /// Something is retransmitted.
    pub(crate) fn push(&mut self, repeat: Repeat) {
        if self.kept.len() == REPEATS {
            self.kept.pop_front();
            self.told = self.told.saturating_sub(1);
        }
        self.end = self.end.max(repeat.end);
        self.kept.push_back(repeat);
    }

    /// The receiver got `block` twice. Each byte of it is the repeat's that was not yet told of: one
    /// report tells of one copy.
    pub(crate) fn on_duplicate(
        &mut self,
        block: Block,
    ) -> impl Iterator<Item = Needless> + use<'_> {
        let mut from = block.0;
        self.untold().filter_map(move |repeat| {
            let overlaps = repeat.start < block.1 && repeat.end > from;
            let told = overlaps.then(|| repeat.take(from, block.1))??;
            from = from.max(repeat.end);
            Some(told)
        })
    }

    /// `event` was repeated before it came, and has an older timestamp than its repeat.
    fn on_original(&mut self, event: &Event) -> Option<Needless> {
        let (from, to) = (event.seq, event.end());
        let is_older =
            |stamp: u32| event.has(TS) && stamp.wrapping_sub(event.tsval).cast_signed() > 0;
        let mut later = self.untold().filter(|repeat| repeat.start <= from && to <= repeat.end);
        later.find(|repeat| repeat.stamp.is_some_and(is_older))?.take(from, to)
    }

    /// `ack` is the first ACK beyond `una`: what it echoes is what filled the hole there.
    pub(crate) fn on_echo(
        &mut self,
        ack: &Event,
        una: Offset,
    ) -> impl Iterator<Item = Needless> + use<'_> {
        let (to, echo) = (ack.ack, ack.tsecr);
        let echoes = ack.has(TS) && ack.has(ACK) && echo != 0;
        let at_hole = move |r: &&mut Repeat| echoes && (r.start..r.end).contains(&una);
        self.untold().filter(at_hole).filter_map(move |repeat| {
            let older = repeat.stamp?.wrapping_sub(echo).cast_signed() > 0;
            if older { repeat.take(una, to) } else { None }
        })
    }

    /// The repeats that more may still be told of.
    fn untold(&mut self) -> impl Iterator<Item = &mut Repeat> {
        let is_told = |repeat: &Repeat| repeat.needless == repeat.end - repeat.start;
        while self.kept.get(self.told).is_some_and(is_told) {
            self.told += 1;
        }
        self.kept.range_mut(self.told..)
    }

    /// Whether all ends at or before `una`, so that no hole there was filled by it.
    pub(crate) fn are_before(&self, una: Offset) -> bool {
        self.end <= una
    }
}

impl Sender {
    /// The receiver reports data it got twice (RFC 2883).
    pub(crate) fn on_dsack(&mut self, block: Block) {
        self.repairs.doubled.on_dsack(block, self.flight.nxt, self.terms.mss);
        // What was sent once and arrived twice was doubled on the way: that tells of no repeat.
        let mut repeats = core::mem::take(&mut self.repairs.repeats);
        repeats.on_duplicate(block).for_each(|told| self.note_needless(told));
        self.repairs.repeats = repeats;
        self.repairs.probe.on_dsack(block);
    }

    /// Whether `event` is the original of what was repeated and had only been overtaken: it passes here behind its repeat
    /// and left before it. Then that was for nothing. Whether the sender learns of it in time does not show here: its cut
    /// stays.
    pub(super) fn came_late(&mut self, event: &Event, segments: Segments) -> bool {
        let told = self.repairs.repeats.on_original(event);
        if let Some(told) = told {
            self.tally.out_of_order += segments;
            self.count_needless(told);
        }
        told.is_some()
    }

    /// The ACK `event` fills a hole at `una`: its echo tells by what.
    pub(crate) fn watch_echo(&mut self, event: &Event, una: Offset) {
        if self.repairs.repeats.are_before(una) {
            return;
        }
        let mut repeats = core::mem::take(&mut self.repairs.repeats);
        repeats.on_echo(event, una).for_each(|told| self.note_needless(told));
        self.repairs.repeats = repeats;
    }

    /// Data was retransmitted although the receiver had it.
    fn note_needless(&mut self, told: Needless) {
        self.count_needless(told);
        self.take_back(told.episode);
    }

    fn count_needless(&mut self, told: Needless) {
        let segments = told.segments(self.terms.mss);
        self.repairs.episodes.note_needless(told.episode, told.bytes);
        if segments == Segments::NONE {
            return;
        }
        self.tally.spurious += segments;
        self.tally.lost = self.tally.lost.saturating_sub(segments);
        let listed = self.retransmissions.iter_mut().rev().take(REPEATS);
        let is_whole = told.of.0 == told.of.1;
        let mut listed = listed.into_iter().filter(|_| is_whole);
        if let Some(listed) = listed.find(|r| r.seq == told.start.get() && !r.spurious) {
            listed.spurious = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::block;

    /// Repeats of these ranges, sent at these times, all of episode 1.
    fn repeats(sent: &[(i64, i64, u32)]) -> Repeats {
        let mut repeats = Repeats::default();
        for &(start, end, stamp) in sent {
            let stamp = Some(stamp);
            repeats.push(Repeat {
                start: Offset::at(start),
                end: Offset::at(end),
                stamp,
                episode: 1,
                needless: 0,
            });
        }
        repeats
    }

    fn told(repeats: &mut Repeats, block: Block) -> Vec<(i64, i64)> {
        repeats.on_duplicate(block).map(|n| (n.start.get(), n.bytes)).collect()
    }

    #[test]
    fn a_report_tells_of_the_repeats_in_its_range_alone() {
        let mut repeats = repeats(&[(0, 10, 5), (10, 20, 5), (20, 30, 5)]);
        assert_eq!(told(&mut repeats, block(10, 20)), [(10, 10)]);
        assert_eq!(told(&mut repeats, block(10, 20)), [], "once");
        assert_eq!(told(&mut repeats, block(5, 25)), [(0, 5), (20, 5)]);
        assert_eq!(told(&mut repeats, block(40, 50)), [], "doubled on the way");
    }

    #[test]
    fn a_report_of_a_part_proves_no_segment_needless() {
        let segments = |block: Block| -> Vec<u64> {
            let mut repeats = repeats(&[(1072, 1608, 5), (3000, 6000, 5)]);
            repeats.on_duplicate(block).map(|told| told.segments(1000).get()).collect()
        };
        assert_eq!(segments(block(1460, 1608)), [0]);
        assert_eq!(segments(block(1072, 1608)), [1]);
        assert_eq!(segments(block(3000, 5999)), [2], "of three in one frame");
        assert_eq!(segments(block(3000, 6000)), [3]);
    }

    #[test]
    fn of_two_repeats_of_one_range_each_report_tells_of_one() {
        let mut repeats = repeats(&[(0, 10, 5), (0, 10, 9)]);
        assert_eq!(told(&mut repeats, block(0, 10)), [(0, 10)]);
        assert_eq!(told(&mut repeats, block(0, 10)), [(0, 10)]);
        assert_eq!(told(&mut repeats, block(0, 10)), []);
    }

    #[test]
    fn what_comes_behind_its_repeat_and_is_older_was_overtaken() {
        let event = |seq, len, tsval, bits| Event {
            seq: Offset::at(seq),
            len,
            tsval,
            bits,
            ..Event::default()
        };
        let told = |event: &Event| {
            let mut repeats = repeats(&[(0, 10, 5), (20, 30, 5)]);
            let first = repeats.on_original(event).map(|told| (told.start.get(), told.bytes));
            assert!(repeats.on_original(event).is_none(), "once");
            first
        };
        assert_eq!(told(&event(20, 10, 4, TS)), Some((20, 10)));
        assert_eq!(told(&event(20, 10, 5, TS)), None, "another repeat, or a copy");
        assert_eq!(told(&event(20, 10, 4, 0)), None, "without a timestamp");
        assert_eq!(told(&event(10, 10, 4, TS)), None, "it was not repeated");
        assert_eq!(told(&event(5, 10, 4, TS)), None, "nor was all of this");
    }

    #[test]
    fn an_echo_older_than_the_repeat_tells_of_the_hole_at_the_left_edge() {
        let ack = |tsecr| Event { ack: Offset::at(40), tsecr, bits: TS | ACK, ..Event::default() };
        let sent = [(0, 10, 5), (20, 30, 5)];
        let told = |tsecr, una| {
            let mut repeats = repeats(&sent);
            repeats
                .on_echo(&ack(tsecr), Offset::at(una))
                .map(|n| (n.start.get(), n.bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(4, 0), [(0, 10)], "the other may have filled its hole before");
        assert_eq!(told(5, 0), [], "its own");
        assert_eq!(told(4, 12), [], "nothing was retransmitted there");
    }
}
