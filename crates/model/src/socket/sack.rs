//! Selective acknowledgments: marks on the queue, D-SACKs, and what they say of reordering.
//!
//! Follows `tcp_sacktag_write_queue`, `tcp_sacktag_one`, `tcp_match_skb_to_sack`,
//! `tcp_is_sackblock_valid`, `tcp_check_dsack`, `tcp_check_sack_reordering`; the merging of marked
//! neighbours is in [`super::shift`].

use super::Socket;
use super::known::Ack;
use super::queue::{Marks, Skb};
use super::shift::Shifted;
use crate::segment::{SackBlocks, Segment, after, before, later};

impl Socket {
    /// End of what was selectively acknowledged (`tcp_highest_sack_seq`).
    pub(super) const fn highest_sacked(&self) -> u32 {
        if self.rec.sacked_out == 0 { self.snd.una } else { later(self.rec.fack, self.snd.una) }
    }

    pub(super) fn mark_sacked(&mut self, segment: &Segment, ack: &mut Ack) {
        if self.rec.sacked_out == 0 {
            self.rec.fack = self.snd.una;
        }
        let blocks = segment.options.sack.as_slice();
        let duplicate = self.is_dsack(ack, blocks);
        if self.rec.packets_out > 0 {
            self.mark_blocks(blocks, duplicate, ack);
        }
        let in_loss = self.rec.state == super::CaState::Loss;
        if let Some(low) = ack.reordered
            && (!in_loss || self.rec.undo_marker.is_some())
        {
            self.note_reordering(low);
        }
    }

    fn mark_blocks(&mut self, blocks: &[(u32, u32)], duplicate: bool, ack: &mut Ack) {
        let mut sorted = [(0, 0, false); SackBlocks::MOST];
        let mut count = 0;
        for (index, &(from, to)) in blocks.iter().enumerate() {
            let is_dup = duplicate && index == 0;
            let is_old = index > 0 && !after(to, ack.prior_una);
            if !is_old && self.is_block_valid(is_dup, from, to) {
                sorted[count] = (from, to, is_dup);
                count += 1;
            }
        }
        let sorted = &mut sorted[..count];
        let una = self.snd.una;
        sorted.sort_by_key(|(from, ..)| from.wrapping_sub(una).cast_signed());
        // What was told before is passed over, unless nothing was marked; what grew is walked from where it ended, or
        // from its beginning where that lies behind all that is marked.
        let known = if self.rec.sacked_out > 0 { self.rec.sack_cache } else { [(0, 0); 4] };
        for &(from, to, is_dup) in sorted.iter() {
            let told = known.iter().find(|(a, b)| *a != *b && !after(*a, from) && before(from, *b));
            let entry = match told {
                Some(&(_, end)) if !is_dup && !before(end, to) => continue,
                Some(&(_, end)) if !is_dup && before(from, self.highest_sacked()) => end,
                _ => from,
            };
            self.walk_block(later(entry, una), (from, to), is_dup, ack);
        }
        self.rec.sack_cache = [(0, 0); 4];
        for (place, &(from, to, _)) in sorted.iter().enumerate() {
            self.rec.sack_cache[place] = (from, to);
        }
    }

    fn walk_block(&mut self, entry: u32, (from, to): (u32, u32), is_dup: bool, ack: &mut Ack) {
        let mut place = self.q.find(entry);
        while place < self.q.sent() {
            let skb = *self.q.at(place);
            if !before(skb.seq, to) {
                break;
            }
            match self.shift_into_previous(place, from, to, is_dup, ack) {
                Shifted::Into(previous) => place = previous,
                Shifted::Untouched => {}
                Shifted::No => match self.cut_to_block(place, &skb, from, to) {
                    Some(true) => self.mark_one(place, is_dup, ack),
                    Some(false) => {}
                    None => break,
                },
            }
            place += 1;
        }
    }

    /// Whether the segment lies in the block; cut at whole packets if only part of it does.
    fn cut_to_block(&mut self, place: usize, skb: &Skb, from: u32, to: u32) -> Option<bool> {
        let inside = !after(from, skb.seq) && !before(to, skb.end_seq);
        if skb.pcount <= 1 || inside || !after(skb.end_seq, from) {
            return Some(inside);
        }
        let mss = skb.mss.max(1);
        let begins_inside = !after(from, skb.seq);
        let mut len = if begins_inside {
            let len = to.wrapping_sub(skb.seq);
            if len < mss {
                return None;
            }
            len
        } else {
            from.wrapping_sub(skb.seq).max(mss)
        };
        if len > mss {
            let whole = len / mss * mss;
            len = if !begins_inside && whole < len { whole + mss } else { whole };
        }
        if len >= skb.len && !begins_inside {
            return Some(false);
        }
        if len < skb.len {
            if !self.may_split(place) {
                return None;
            }
            self.split(place, len, mss);
        }
        Some(begins_inside)
    }

    /// Whether a segment that was sent may be cut: a peer's blocks must not fill the memory with pieces (CVE-2019-11478). Two
    /// large segments are an allowance for programs that ask for a small buffer (`tcp_fragment`, v6.1).
    pub(super) fn may_split(&self, place: usize) -> bool {
        /// `GSO_LEGACY_MAX_SIZE`.
        const LARGE: u32 = 65_536;
        let memory = self.config.kernel.memory;
        let limit = u64::from(self.snd.sndbuf) + 2 * u64::from(LARGE + memory.skb + memory.shared);
        let is_end = place == 0 || place + 1 == self.q.sent();
        !self.config.kernel.bounds_splits || is_end || u64::from(self.snd.wmem_queued >> 1) <= limit
    }

    fn mark_one(&mut self, place: usize, is_dup: bool, ack: &mut Ack) {
        let skb = *self.q.at(place);
        if !skb.ends_by(self.snd.una) {
            self.note_delivery(&skb, &mut ack.rate);
        }
        let marks = self.count_sacked(&skb, is_dup, ack);
        self.q.at_mut(place).marks = marks;
        if marks.sacked && !skb.marks.sacked {
            self.q.forget_time(place);
        }
    }

    /// Counts what was selectively acknowledged; its marks from now on (`tcp_sacktag_one`).
    pub(super) fn count_sacked(&mut self, skb: &Skb, is_dup: bool, ack: &mut Ack) -> Marks {
        let mut marks = skb.marks;
        let was_resent = marks.resent || marks.ever_resent;
        if is_dup && was_resent {
            if self.rec.undo_marker.is_some_and(|marker| after(skb.end_seq, marker))
                && self.rec.undo_retrans > 0
            {
                self.rec.undo_retrans = (self.rec.undo_retrans - skb.pcount as i32).max(0);
            }
            if marks.sacked {
                self.note_low(ack, skb.seq);
            }
        }
        if skb.ends_by(self.snd.una) {
            return marks;
        }
        if !marks.sacked {
            marks = self.count_new(skb, was_resent, ack);
        }
        if is_dup && marks.resent {
            marks.resent = false;
            self.rec.retrans_out = self.rec.retrans_out.saturating_sub(skb.pcount);
        }
        marks
    }

    fn count_new(&mut self, skb: &Skb, was_resent: bool, ack: &mut Ack) -> Marks {
        self.advance_rack(skb);
        let mut marks = skb.marks;
        if marks.resent {
            // A copy of what was not believed lost is believed to be still under way.
            if marks.lost {
                marks.lost = false;
                marks.resent = false;
                self.rec.lost_out = self.rec.lost_out.saturating_sub(skb.pcount);
                self.rec.retrans_out = self.rec.retrans_out.saturating_sub(skb.pcount);
            }
        } else {
            if !was_resent {
                if before(skb.seq, self.highest_sacked()) {
                    self.note_low(ack, skb.seq);
                }
                ack.orig_sack_acked |= !after(skb.end_seq, self.rec.high_seq);
                ack.first_sacked_us.get_or_insert(skb.sent_us());
                ack.last_sacked_us = skb.sent_us();
            }
            if marks.lost {
                marks.lost = false;
                self.rec.lost_out = self.rec.lost_out.saturating_sub(skb.pcount);
            }
        }
        marks.sacked = true;
        self.rec.fack = later(self.rec.fack, skb.end_seq);
        self.rec.sacked_out += skb.pcount;
        ack.data_sacked = true;
        ack.sack_delivered += skb.pcount;
        marks
    }

    fn note_low(&self, ack: &mut Ack, seq: u32) {
        if before(seq, ack.reordered.unwrap_or(self.snd.nxt)) {
            ack.reordered = Some(seq);
        }
    }

    /// Whether the first block tells of a duplicate (RFC 2883); if so it is counted.
    fn is_dsack(&mut self, ack: &mut Ack, blocks: &[(u32, u32)]) -> bool {
        let Some(&(from, to)) = blocks.first() else { return false };
        let inside_second =
            blocks.get(1).is_some_and(|(low, high)| !after(to, *high) && !before(from, *low));
        if !before(from, ack.number) && !inside_second {
            return false;
        }
        let len = to.wrapping_sub(from);
        if !before(from, to) || len > self.snd.max_window {
            return false;
        }
        let mss = self.snd.mss_cache;
        let packets = if len > mss {
            len.div_ceil(mss)
        } else {
            ack.dsack_tlp |= self.rec.tlp_high_seq == Some(to);
            1
        };
        self.traffic.dsack_dups += packets;
        // Nothing was sent so often: the network made the copy.
        if self.config.kernel.doubts_duplicates
            && self.traffic.dsack_dups > self.snd.segs_retrans + self.syn_retries
        {
            return false;
        }
        if self.rec.reord_seen && !ack.dsack_tlp {
            self.rec.rack.dsack_seen = true;
        }
        ack.dsacking = true;
        ack.sack_delivered += packets;
        if let Some(marker) = self.rec.undo_marker
            && self.rec.undo_retrans > 0
            && !after(to, ack.prior_una)
            && after(to, marker)
        {
            self.rec.undo_retrans = (self.rec.undo_retrans - packets as i32).max(0);
        }
        true
    }

    fn is_block_valid(&self, is_dup: bool, from: u32, to: u32) -> bool {
        if after(to, self.snd.nxt) || !before(from, to) || !before(from, self.snd.nxt) {
            return false;
        }
        if after(from, self.snd.una) {
            return true;
        }
        let Some(marker) = self.rec.undo_marker.filter(|_| is_dup) else { return false };
        if after(to, self.snd.una) {
            return false;
        }
        !before(from, marker)
            || (after(to, marker) && !before(from, to.wrapping_sub(self.snd.max_window)))
    }

    /// What lies at `low` came after what was sent later: the path reorders.
    pub(super) fn note_reordering(&mut self, low: u32) {
        let high = self.highest_sacked();
        if !before(low, high) {
            return;
        }
        let distance = high.wrapping_sub(low);
        let mss = self.snd.mss_cache.max(1);
        if distance > self.rec.reordering * mss {
            self.rec.reordering = distance.div_ceil(mss).min(self.config.sysctl.max_reordering);
        }
        self.rec.reord_seen = true;
        self.traffic.reord_seen += 1;
    }
}
