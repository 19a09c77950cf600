//! What one sender has in flight, on its own timeline.
//!
//! The flight is a contiguous run of entries from `una` to `nxt`, one a captured frame, so any
//! sequence number is found by bisection; frames of one size that left together are one entry until
//! something else happens to one of them. Bytes the tap never saw get an entry of their own
//! (`UNSEEN`): they were lost before the tap, are still to come out of order, or were missed by
//! the capture; which of these shows later. Segments are counted as the wire counts them: a
//! captured super-segment is as many as fit its length.

use std::collections::VecDeque;

mod before;
mod volley;

use before::BEFORE;
use volley::Volley;
pub(crate) use volley::{DAMAGED, Left, RETRANSMITTED, Sent, UNSEEN};

use super::drop_first;
use crate::clocks::StackTime;
use crate::flow::event::{Block, Event};
use crate::flow::run::Follower;
use crate::offsets::Offset;
use crate::segments::Segments;

/// What an ACK took out of the flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    pub(crate) bytes: i64,
    /// When the newest entry fully acknowledged was sent; `None` if none, or it was retransmitted.
    pub(crate) newest_at: Option<StackTime>,
    /// When the oldest was sent; `None` if any was retransmitted (Karn).
    pub(crate) oldest_at: Option<StackTime>,
    /// Segments acknowledged that the tap never saw.
    pub(crate) unseen_segments: Segments,
    /// Payload of the largest segment among them; of one that was repeated it is not known.
    pub(crate) largest: i64,
}

/// Entries that are looked through for the time of one. Ours: not measured; it bounds the work of a SACK.
const NEAR: usize = 64;

/// One direction's flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    entries: VecDeque<Volley>,
    others: VecDeque<Follower>,
    pub(crate) una: Offset,
    pub(crate) nxt: Offset,
    /// Segments sent up to `nxt`.
    pub(crate) segments_to_nxt: u64,
    /// Ranges above `una` the receiver reported (RFC 2018), sorted and disjoint.
    sacked: Vec<Block>,
    /// Retransmitted since the last time nothing was missing, and not yet acknowledged.
    pub(crate) retransmitted_out: i64,
}

/// Most frames in flight kept. Ours: 131,072 segments are 190 MB in flight, 100 Gbit/s over 15 ms; a few less, so that
/// those that come before the oldest go need no more room.
const MAX_ENTRIES: usize = (1 << 17) - 8;

/// Most SACK ranges kept: a hostile peer cannot make us remember more.
const MAX_SACKED: usize = 1024;

impl Flight {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        core::mem::swap(&mut self.entries, &mut old.entries);
        core::mem::swap(&mut self.others, &mut old.others);
        core::mem::swap(&mut self.sacked, &mut old.sacked);
        self.entries.clear();
        self.others.clear();
        self.sacked.clear();
    }

    /// Bytes sent and not cumulatively acknowledged.
    pub(crate) fn outstanding(&self) -> i64 {
        self.nxt - self.una
    }

    /// Bytes in flight in the kernel's sense (`tcp_packets_in_flight`): outstanding, less what
    /// SACK says has arrived, less the holes below that, plus what was retransmitted.
    pub(crate) fn in_flight(&self) -> i64 {
        let Some(&(_, highest)) = self.sacked.last() else { return self.outstanding() };
        // With three segments reported above a hole RFC 6675 calls it lost; RACK does so within a
        // quarter of a round trip. Holes are small against the flight, so all count as lost.
        (self.nxt - highest + self.retransmitted_out).clamp(0, self.outstanding())
    }

    /// Bytes reported by SACK.
    pub(crate) fn sacked_bytes(&self) -> i64 {
        self.sacked.iter().map(|b| b.1 - b.0).sum()
    }

    /// Segments in flight that the tap never saw.
    pub(crate) fn unseen_segments(&self) -> Segments {
        let unseen =
            self.entries.iter().filter(|entry| entry.first.flags & (UNSEEN | BEFORE) == UNSEEN);
        Segments::new(unseen.map(|entry| u64::from(entry.first.segments)).sum())
    }

    /// When the oldest in flight left.
    pub(crate) fn oldest_at(&self) -> Option<StackTime> {
        self.entries.front().map(|oldest| oldest.first.at)
    }

    /// Segments in flight.
    pub(crate) fn outstanding_segments(&self) -> Segments {
        Segments::new(self.segments_to_nxt - self.segments_to(self.una))
    }

    /// How many more frames it keeps; the next takes the oldest one's place.
    pub(crate) fn frames_left(&self) -> usize {
        MAX_ENTRIES.saturating_sub(self.frames())
    }

    fn frames(&self) -> usize {
        self.entries.len() + self.others.len()
    }

    /// Segments sent up to offset `at`.
    #[inline]
    pub(crate) fn segments_to(&self, at: Offset) -> u64 {
        match self.entries.front() {
            // Asked for `una` above all, which is where the first entry begins.
            Some(Volley { first, .. }) if at <= first.start => {
                first.segments_to - u64::from(first.segments)
            }
            _ => self.segments_within(at),
        }
    }

    fn segments_within(&self, at: Offset) -> u64 {
        let index = match self.entries.front() {
            Some(first) if first.end() > at => 0,
            _ => self.entries.partition_point(|e| e.end() <= at),
        };
        let Some(volley) = self.entries.get(index) else { return self.segments_to_nxt };
        let e = volley.behind(volley.before(at));
        let share = if at > e.start {
            i64::from(e.segments) * (at - e.start) / (e.end - e.start).max(1)
        } else {
            0
        };
        e.segments_to - u64::from(e.segments) + share as u64
    }

    /// As [`Self::push`] for `first`, which left the stack at `at`, and for `others` that follow it and
    /// `left` then, each of so many `segments`.
    pub(crate) fn push_each(
        &mut self,
        first: &Event,
        at: StackTime,
        (others, left): (&[Follower], Left),
        segments: Segments,
    ) {
        let first = self.behind_nxt(Sent::of(first, at, segments));
        let volley = Volley { first, more: others.len(), left };
        let last = volley.behind(volley.more);
        (self.nxt, self.segments_to_nxt) = (last.end, last.segments_to);
        self.entries.push_back(volley);
        self.others.extend(others);
    }

    /// Adds data right behind `nxt`, where there is room.
    fn push(&mut self, sent: Sent) {
        let sent = self.behind_nxt(sent);
        (self.nxt, self.segments_to_nxt) = (sent.end, sent.segments_to);
        self.entries.push_back(Volley::of(sent));
    }

    /// `sent` as the next to enter the flight.
    fn behind_nxt(&self, sent: Sent) -> Sent {
        let segments_to = self.segments_to_nxt + u64::from(sent.segments);
        Sent { segments_to, flight_then: sent.end - self.una, ..sent }
    }

    /// Makes each frame an entry of its own.
    fn spread(&mut self) {
        if self.others.is_empty() {
            return;
        }
        let mut others = core::mem::take(&mut self.others).into_iter();
        let mut singles = VecDeque::with_capacity(self.frames() + others.len());
        for volley in &self.entries {
            singles.push_back(Volley::of(volley.first));
            let more = (1..=volley.more).zip(&mut others);
            singles.extend(more.map(|(number, own)| Volley::of(volley.other(number, own))));
        }
        self.entries = singles;
    }

    /// Takes the first `frames` of the oldest entry out, which has as many; when the last of them left.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    fn pop(&mut self, frames: usize) -> Option<StackTime> {
        let volley = self.entries.front_mut()?;
        if volley.more == 0 {
            return self.entries.pop_front().map(|alone| alone.first.at);
        }
        let last = frames.checked_sub(2).and_then(|at| self.others.get(at));
        let last = last.map_or(volley.first.at, |own| volley.left.when(own.tap));
        if frames > volley.more {
            drop_first(&mut self.others, volley.more);
            self.entries.pop_front();
        } else if let Some(own) = self.others.get(frames - 1).copied() {
            volley.first = volley.other(frames, own);
            volley.more -= frames;
            drop_first(&mut self.others, frames);
        }
        Some(last)
    }

    /// Adds data beyond `nxt`; a jump over bytes never seen gets its own entry.
    pub(crate) fn send_new(&mut self, mut sent: Sent, mss: i64) {
        self.send_unseen(sent.start, sent.at, mss);
        sent.start = sent.start.max(self.nxt);
        self.push(sent);
        self.let_go();
    }

    /// Without ACKs (a capture of one direction) nothing ever leaves, and what was missing may come in ever smaller
    /// parts: of too many the oldest is let go.
    fn let_go(&mut self) {
        while self.frames() > MAX_ENTRIES
            && let Some(oldest) = self.entries.front()
        {
            self.una = self.una.max(oldest.first.end);
            self.pop(1);
        }
    }

    /// Bytes up to `end` were sent that the tap did not see.
    pub(crate) fn send_unseen(&mut self, end: Offset, at: StackTime, mss: i64) {
        if end <= self.nxt {
            return;
        }
        let missing = (end - self.nxt + mss - 1) / mss.max(1);
        self.segments_to_nxt += missing as u64;
        let first = Sent {
            start: self.nxt,
            end,
            at,
            flight_then: end - self.una,
            frame: 0,
            segments_to: self.segments_to_nxt,
            segments: missing as u32,
            flags: UNSEEN,
        };
        self.entries.push_back(Volley::of(first));
        self.nxt = end;
    }

    /// The capture lacks packets here: everything up to `at` was sent and acknowledged unseen.
    /// Returns how many segments that is.
    pub(crate) fn skip_to(&mut self, at: Offset, mss: i64) -> Segments {
        let unseen = (at - self.nxt).max(0) as u64;
        self.segments_to_nxt += unseen.div_ceil(mss.max(1) as u64);
        self.restart(at.max(self.una));
        self.retransmitted_out = 0;
        Segments::new(unseen.div_ceil(mss.max(1) as u64))
    }

    /// The frames that overlap `[start, end)`.
    pub(crate) fn overlapping(
        &mut self,
        start: Offset,
        end: Offset,
    ) -> impl Iterator<Item = &mut Sent> {
        self.spread();
        let first = self.entries.partition_point(|e| e.first.end <= start);
        let frames = self.entries.range_mut(first..).map(|e| &mut e.first);
        frames.take_while(move |e| e.start < end)
    }

    /// Whether `[start, end)` lies in one entry the tap has not seen.
    pub(crate) fn is_unseen(&self, start: Offset, end: Offset) -> bool {
        let first = self.entries.partition_point(|e| e.end() <= start);
        let mut entries = self.entries.range(first..).map(|e| e.first);
        entries.by_ref().take_while(|e| e.start < end).all(|e| e.flags & UNSEEN != 0)
            && start >= self.una
            && end <= self.nxt
    }

    /// Marks `[start, end)` of an unseen entry as seen in `frame`; splits the entry.
    pub(crate) fn fill(
        &mut self,
        start: Offset,
        end: Offset,
        at: StackTime,
        frame: u64,
        flags: u8,
    ) {
        self.spread();
        let index = self.entries.partition_point(|e| e.first.end <= start);
        let Some(old) = self.entries.get(index).map(|e| e.first) else { return };
        let (start, end) = (start.max(old.start), end.min(old.end));
        let piece = |from: Offset, to: Offset, flags: u8, before: u32| {
            let span = (old.end - old.start).max(1);
            let upto = (i64::from(old.segments) * (to - old.start) / span) as u32;
            let base = old.segments_to - u64::from(old.segments);
            Sent {
                start: from,
                end: to,
                segments: upto.saturating_sub(before),
                segments_to: base + u64::from(upto),
                flags,
                ..old
            }
        };
        let mut pieces = Vec::with_capacity(3);
        let mut before = 0;
        for (from, to, seen) in
            [(old.start, start, false), (start, end, true), (end, old.end, false)]
        {
            if to > from {
                let mut p = piece(from, to, if seen { flags } else { old.flags }, before);
                before += p.segments;
                if seen {
                    (p.at, p.frame) = (at, frame);
                }
                pieces.push(Volley::of(p));
            }
        }
        self.entries.remove(index);
        for (offset, p) in pieces.into_iter().enumerate() {
            self.entries.insert(index + offset, p);
        }
        self.let_go();
    }

    /// Moves `una` forward.
    pub(crate) fn ack(&mut self, ack: Offset) -> Acked {
        let ack = ack.min(self.nxt);
        let mut acked = Acked { bytes: ack - self.una, ..Acked::default() };
        let mut clean = true;
        while let Some(volley) = self.entries.front() {
            let (entry, frames) = (volley.first, volley.before(ack));
            if frames == 0 {
                break;
            }
            let last_at = self.pop(frames);
            if entry.flags & UNSEEN != 0 {
                let is_missing = entry.flags & BEFORE == 0;
                let missing = if is_missing { u64::from(entry.segments) } else { 0 };
                acked.unseen_segments += Segments::new(missing);
            } else if entry.flags & RETRANSMITTED != 0 {
                clean = false;
                self.retransmitted_out -= entry.end - entry.start;
                acked.newest_at = None;
            } else {
                acked.largest = acked.largest.max(entry.segment_bytes());
                acked.newest_at = last_at;
                acked.oldest_at = acked.oldest_at.or(Some(entry.at));
            }
        }
        if !clean {
            acked.oldest_at = None;
        }
        self.una = ack;
        self.sacked.retain(|b| b.1 > ack);
        if let Some(first) = self.sacked.first_mut() {
            first.0 = first.0.max(ack);
        }
        if self.outstanding() == 0 || self.sacked.is_empty() {
            self.retransmitted_out = self.retransmitted_out.max(0).min(self.outstanding());
        }
        acked
    }

    /// Takes SACK blocks above `una`; returns how many bytes are newly reported.
    pub(crate) fn sack(&mut self, blocks: &[Block]) -> i64 {
        let before = self.sacked_bytes();
        for &(left, right) in blocks {
            let (left, right) = (left.max(self.una), right.min(self.nxt));
            if left >= right {
                continue;
            }
            let first = self.sacked.partition_point(|b| b.1 < left);
            let last = self.sacked.partition_point(|b| b.0 <= right);
            let merged = self.sacked[first..last]
                .iter()
                .fold((left, right), |m, b| (m.0.min(b.0), m.1.max(b.1)));
            if first == last && self.sacked.len() == MAX_SACKED {
                continue;
            }
            self.sacked.splice(first..last, [merged]);
        }
        self.sacked_bytes() - before
    }

    /// The highest offset that was reported by SACK and is not yet acknowledged.
    pub(crate) fn highest_sacked(&self) -> Option<Offset> {
        self.sacked.last().map(|block| block.1)
    }

    /// When the frame that ends at `end` left, if it was seen, and sent once.
    pub(crate) fn sent_once(&self, end: Offset) -> Option<StackTime> {
        let index = self.entries.partition_point(|e| e.end() < end);
        let volley = self.entries.get(index)?;
        if volley.first.flags & (UNSEEN | RETRANSMITTED | DAMAGED) != 0 {
            return None;
        }
        match volley.before(end).checked_sub(1)? {
            0 => (volley.first.end == end).then_some(volley.first.at),
            behind => {
                let own = self.others.get(self.others_before(index)? + behind - 1)?;
                (volley.behind(behind).end == end).then(|| volley.left.when(own.tap))
            }
        }
    }

    /// How many of `others` belong to the entries before `index`, where that is near either end: a long flight is
    /// not counted through for each block.
    fn others_before(&self, index: usize) -> Option<usize> {
        let left = self.entries.len().checked_sub(index)?;
        if index <= NEAR {
            Some(self.entries.iter().take(index).map(|e| e.more).sum())
        } else if left <= NEAR {
            let behind: usize = self.entries.iter().rev().take(left).map(|e| e.more).sum();
            self.others.len().checked_sub(behind)
        } else {
            None
        }
    }

    /// Payload of the largest segment that SACK reports whole and that was sent once; 0 without one. Segments that
    /// were sent after each other are one range.
    pub(crate) fn largest_sacked(&self) -> i64 {
        let largest = |block: &Block| {
            let first = self.entries.partition_point(|e| e.end() <= block.0);
            let near = self.entries.range(first..).take(NEAR);
            let inside = near.take_while(|e| e.first.start < block.1);
            inside.filter_map(|e| e.segment_within(*block)).max()
        };
        self.sacked.iter().filter_map(largest).max().unwrap_or(0)
    }

    /// Starts at `at` without anything in flight (a capture that begins midway).
    pub(crate) fn restart(&mut self, at: Offset) {
        self.entries.clear();
        self.others.clear();
        self.sacked.clear();
        (self.una, self.nxt) = (at, at);
    }
}

#[cfg(test)]
mod tests;
