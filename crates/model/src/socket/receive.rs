//! Data arrives: in order, before its time, or again.
//!
//! Follows `tcp_rcv_established` (its slow path), `tcp_validate_incoming`, `tcp_data_queue`,
//! `tcp_data_queue_ofo`, `tcp_ofo_queue`, `tcp_try_rmem_schedule`, `tcp_sack_new_ofo_skb`,
//! `tcp_sack_remove`. Left out: urgent data, PAWS, collapsing of buffers.

use super::delack::MAX_QUICKACKS;
use super::state::{Held, Received};
use super::{Socket, State};
use crate::profile::{ReceiveCharge, Version};
use crate::segment::{Flags, SackBlocks, Segment, after, before, later};

impl Socket {
    pub(super) fn on_segment_established(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        // A reset need not be new.
        if self.is_from_before(segment) && !segment.flags.has(Flags::RST) {
            self.answer_duplicate(segment, out);
            return;
        }
        if !self.is_acceptable(segment, out) {
            return;
        }
        if !segment.flags.has(Flags::ACK) || !self.on_ack(segment, out) {
            return;
        }
        if self.fast.passive {
            self.end_early(segment, out);
        }
        if self.on_acked_fin() || self.refuses_data(segment, out) {
            return;
        }
        self.measure_rcv_rtt_by_echo(segment);
        if segment.len > 0 || segment.flags.has(Flags::FIN) {
            self.take_data(segment, out);
        }
        if self.state == State::Closed {
            return;
        }
        self.send_more(out);
        self.check_ack(out);
    }

    /// The next timestamp to echo (`tcp_replace_ts_recent`).
    pub(super) fn take_stamp(&mut self, segment: &Segment) {
        if let Some(stamps) = segment.options.stamps
            && self.stamps
            && !after(segment.seq, self.rcv.wup)
            && !before(stamps.value, self.rcv.ts_recent)
        {
            self.rcv.ts_recent = stamps.value;
        }
    }

    /// Whether its timestamp is older than what was seen, and it is not merely an acknowledgment that
    /// was overtaken (RFC 7323 section 5.3; `tcp_paws_discard`, `tcp_disordered_ack`).
    fn is_from_before(&self, segment: &Segment) -> bool {
        /// `TCP_PAWS_WINDOW` of include/net/tcp.h.
        const WINDOW: i32 = 1;
        let Some(stamps) = segment.options.stamps.filter(|_| self.stamps) else { return false };
        let age = self.rcv.ts_recent.wrapping_sub(stamps.value).cast_signed();
        if age <= WINDOW || self.rcv.ts_recent == 0 {
            return false;
        }
        let tells_nothing = segment.end_seq() == segment.seq
            && segment.seq == self.rcv.nxt
            && segment.ack == self.snd.una
            && u32::from(segment.window) << self.snd.wscale <= self.snd.wnd;
        let overtaken = u64::from(age.unsigned_abs()) <= self.us_from_jiffies(self.rtt.rto) / 1000;
        !(tells_nothing && overtaken)
    }

    /// Whether the segment lies in the window; others are answered (RFC 9293 section 3.10.7.4).
    fn is_acceptable(&mut self, segment: &Segment, out: &mut Vec<Segment>) -> bool {
        let beyond = self.is_beyond_window(segment);
        self.counters.beyond_window += u64::from(beyond);
        if before(segment.end_seq(), self.rcv.wup) || beyond {
            if !segment.flags.has(Flags::RST) && !self.refuses_too_often(segment) {
                self.answer_duplicate(segment, out);
            }
            return false;
        }
        if segment.flags.has(Flags::RST) {
            // Any other number within the window may be forged and is asked about (RFC 5961 section 3.2).
            let held_to = self.rcv.sacks.iter().map(|(_, to)| *to).reduce(later);
            if segment.seq == self.rcv.nxt || held_to == Some(segment.seq) {
                self.give_up(true);
            } else {
                self.challenge(out);
            }
            return false;
        }
        if segment.flags.has(Flags::SYN) {
            self.challenge(out);
            return false;
        }
        true
    }

    /// Whether it does not lie in the window. One that merely ends behind it is let in if nothing lies
    /// unread; a FIN needs no room (`tcp_sequence`).
    fn is_beyond_window(&self, segment: &Segment) -> bool {
        let edge = self.acceptable_end();
        if !self.config.kernel.checks_ends {
            return after(segment.seq, edge);
        }
        let end = segment.seq.wrapping_add(segment.len);
        after(end, edge) && (after(segment.seq, edge) || !self.rcv.queue.is_empty())
    }

    /// Segments without data outside of the window are not all answered, lest two hosts answer
    /// each other without end (`tcp_oow_rate_limited`).
    pub(super) fn refuses_too_often(&mut self, segment: &Segment) -> bool {
        segment.len == 0 && !segment.flags.has(Flags::FIN) && self.refused_lately()
    }

    pub(super) fn refused_lately(&mut self) -> bool {
        let pause_ms = u64::from(self.config.sysctl.invalid_ratelimit_ms);
        let (now, pause) = (self.jiffies(), self.jiffies_from_ms(pause_ms));
        if self.rcv.last_refusal.is_some_and(|last| now - last < pause) {
            return true;
        }
        self.rcv.last_refusal = Some(now);
        false
    }

    /// Asks about what may be forged (RFC 5961; `tcp_send_challenge_ack`).
    pub(super) fn challenge(&mut self, out: &mut Vec<Segment>) {
        if !self.refused_lately() {
            self.send_ack(out);
        }
    }

    /// `tcp_send_dupack`.
    fn answer_duplicate(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        let end = segment.end_seq();
        if end != segment.seq && before(segment.seq, self.rcv.nxt) {
            self.enter_quickack_mode(MAX_QUICKACKS);
            let known = if after(end, self.rcv.nxt) { self.rcv.nxt } else { end };
            self.tell_duplicate(segment.seq, known);
        }
        self.send_ack(out);
    }

    fn take_data(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        let (seq, end) = (segment.seq, segment.end_seq());
        let edge = self.rcv.nxt.wrapping_add(self.receive_window());
        // Some send it over and over into a closed window (`tcp_data_queue`; seen in 6.12.117).
        let is_bare_end = seq == self.rcv.nxt
            && segment.len == 0
            && self.config.kernel.version >= Version::new(6, 12);
        if is_bare_end {
            self.take_in_order(segment, out);
        } else if !after(end, self.rcv.nxt) {
            // Retransmitted although it had arrived.
            self.tell_duplicate(seq, end);
            self.refuse();
        } else if !before(seq, edge) {
            self.counters.zero_window += u64::from(seq == self.rcv.nxt);
            self.counters.beyond_window += u64::from(seq != self.rcv.nxt);
            self.refuse();
        } else if after(seq, self.rcv.nxt) {
            self.hold(segment, out);
        } else {
            if before(seq, self.rcv.nxt) {
                self.tell_duplicate(seq, self.rcv.nxt);
            }
            if self.receive_window() == 0 {
                self.counters.zero_window += 1;
                self.refuse();
                return;
            }
            self.take_in_order(segment, out);
        }
    }

    /// What cannot be taken is answered at once.
    fn refuse(&mut self) {
        self.enter_quickack_mode(MAX_QUICKACKS);
        self.ack.scheduled = true;
    }

    fn take_in_order(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        if self.rcv.rmem_alloc > self.rcv.rcvbuf && !self.make_room() {
            self.ack.scheduled = true;
            self.ack.now = true;
            self.ack.no_memory = self.config.kernel.closes_without_memory;
            if segment.len > 0 && !self.rcv.queue.is_empty() {
                self.counters.no_memory += 1;
                return;
            }
        }
        let new = segment.end_seq().wrapping_sub(self.rcv.nxt);
        let bytes = new - u32::from(segment.flags.has(Flags::FIN));
        let truesize = self.charge(segment);
        if bytes > 0 {
            let end_seq = self.rcv.nxt.wrapping_add(bytes);
            let pieces = self.fragments(segment);
            self.append(Received { end_seq, truesize, pieces }, self.payload_charge(segment));
            self.rcv.bytes += u64::from(bytes);
            self.rcv.nxt = end_seq;
            self.on_data_received(segment, truesize);
        }
        if segment.flags.has(Flags::FIN) {
            self.on_fin(out);
        }
        if !self.rcv.out_of_order.is_empty() {
            self.take_held(self.rcv.nxt, out);
            self.ack.now |= self.rcv.out_of_order.is_empty();
        }
        self.forget_sacks();
        self.events.readable = true;
    }

    /// Adds a run to the receive queue; it joins the last one if that has room for more pieces
    /// (`tcp_try_coalesce`).
    pub(super) fn append(&mut self, run: Received, payload: u32) {
        let most = self.most_pieces();
        if let Some(tail) = self.rcv.queue.back_mut()
            && self.config.kernel.memory.receive != ReceiveCharge::Copied
            && tail.pieces + run.pieces <= most
        {
            tail.end_seq = run.end_seq;
            tail.pieces += run.pieces;
            tail.truesize += payload;
            self.rcv.rmem_alloc += payload;
            return;
        }
        self.rcv.rmem_alloc += run.truesize;
        self.rcv.queue.push_back(run);
    }

    /// The buffer is over-full: it may grow, else what came early is given up
    /// (`tcp_prune_queue`, `tcp_clamp_window`).
    fn make_room(&mut self) -> bool {
        self.ack.quick = 0;
        let most = self.config.sysctl.rmem[2];
        if self.rcv.rcvbuf < most && self.config.options.rcvbuf.is_none() {
            self.rcv.rcvbuf = self.rcv.rmem_alloc.min(most);
        }
        if self.rcv.rmem_alloc > self.rcv.rcvbuf {
            self.rcv.ssthresh = self.rcv.window_clamp.min(2 * self.rcv.advmss);
            self.collapse();
        }
        while self.rcv.rmem_alloc > self.rcv.rcvbuf {
            let Some(held) = self.rcv.out_of_order.pop() else { break };
            self.rcv.rmem_alloc = self.rcv.rmem_alloc.saturating_sub(held.truesize);
        }
        self.rcv.rmem_alloc <= self.rcv.rcvbuf
    }

    /// Packs what is held into full buffers (`tcp_collapse`): payload, and an overhead for each
    /// piece of a page.
    fn collapse(&mut self) {
        let empty = self.config.kernel.memory.skb + self.config.kernel.memory.shared;
        let packed = |bytes: u32| bytes + bytes.div_ceil(PAGE - empty).max(1) * empty;
        let mut from = self.rcv.copied_seq;
        let mut total = 0;
        for run in &mut self.rcv.queue {
            run.truesize = run.truesize.min(packed(run.end_seq.wrapping_sub(from)));
            from = run.end_seq;
            total += run.truesize;
        }
        for held in &mut self.rcv.out_of_order {
            held.truesize = held.truesize.min(packed(held.end_seq.wrapping_sub(held.seq)));
            total += held.truesize;
        }
        self.rcv.rmem_alloc = total;
    }

    /// Keeps what came before its time, and tells of it.
    fn hold(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        self.ack.scheduled = true;
        if self.rcv.rmem_alloc > self.rcv.rcvbuf && !self.make_room() {
            return;
        }
        let (seq, end_seq) = (segment.seq, segment.end_seq());
        if segment.flags.has(Flags::FIN) {
            self.rcv.fin = Some(end_seq.wrapping_sub(1));
        }
        if self.is_held(seq, end_seq) {
            self.tell_duplicate(seq, end_seq);
            self.tell_held(seq, end_seq, out);
            return;
        }
        self.traffic.rcv_ooopack += segment.piece_count();
        let (truesize, payload) = (self.charge(segment), self.payload_charge(segment));
        if self.config.kernel.measures_early_segments {
            self.measure_rcv_mss(segment, truesize);
        }
        let new = Held { seq, end_seq, truesize, pieces: self.fragments(segment) };
        let joined = self.join_held(&new, payload);
        let lean = joined && self.config.kernel.grows_by_payload;
        if joined && self.sack {
            self.grow_window(segment.len, if lean { payload } else { truesize });
        }
        self.tell_held(seq, end_seq, out);
        if !joined {
            // The window grows before the segment is charged.
            if self.sack {
                self.grow_window(segment.len, truesize);
            }
            self.insert_held(new);
        }
        if self.config.kernel.grows_on_early && !self.rcv.waits && !self.rcv.abandoned {
            self.grow_rcvbuf(self.rcv.space);
        }
    }

    /// Adds bytes to the run that they continue, if that has room (`tcp_ooo_try_coalesce`).
    fn join_held(&mut self, new: &Held, payload: u32) -> bool {
        if self.config.kernel.memory.receive == ReceiveCharge::Copied {
            return false;
        }
        let most = self.most_pieces();
        let held = &mut self.rcv.out_of_order;
        let place = held.partition_point(|other| before(other.seq, new.seq));
        let reaches_next = held.get(place).is_some_and(|next| after(new.end_seq, next.seq));
        let Some(last) = place.checked_sub(1).map(|last| &mut held[last]) else { return false };
        if last.end_seq != new.seq || last.pieces + new.pieces > most || reaches_next {
            return false;
        }
        last.end_seq = new.end_seq;
        last.pieces += new.pieces;
        last.truesize += payload;
        self.rcv.rmem_alloc += payload;
        true
    }

    fn is_held(&self, seq: u32, end_seq: u32) -> bool {
        self.rcv
            .out_of_order
            .iter()
            .rev()
            .any(|held| !before(seq, held.seq) && !after(end_seq, held.end_seq))
    }

    /// Puts bytes into the order of what is held; what they cover goes, and is reported as duplicate.
    fn insert_held(&mut self, new: Held) {
        let held = &mut self.rcv.out_of_order;
        let place = held.partition_point(|other| before(other.seq, new.seq));
        let covered =
            held[place..].iter().take_while(|other| !after(other.end_seq, new.end_seq)).count();
        let mut duplicate: Option<(u32, u32)> = None;
        let mut note = |from: u32, to: u32| {
            duplicate = Some(duplicate.map_or((from, to), |(low, high)| {
                (if before(from, low) { from } else { low }, later(to, high))
            }));
        };
        if let Some(last) = place.checked_sub(1).map(|last| held[last])
            && before(new.seq, last.end_seq)
        {
            note(new.seq, last.end_seq);
        }
        for gone in held.drain(place..place + covered) {
            note(gone.seq, gone.end_seq);
            self.rcv.rmem_alloc = self.rcv.rmem_alloc.saturating_sub(gone.truesize);
        }
        if let Some(next) = held.get(place)
            && before(next.seq, new.end_seq)
        {
            note(next.seq, new.end_seq);
        }
        self.rcv.rmem_alloc += new.truesize;
        held.insert(place, new);
        if let Some((from, to)) = duplicate {
            self.tell_duplicate(from, to);
        }
    }

    /// What was held and is now in order goes to the reader (`tcp_ofo_queue`).
    /// What of it the segment up to `covered` brought once more is reported as duplicate.
    fn take_held(&mut self, covered: u32, out: &mut Vec<Segment>) {
        let empty = self.buffer_charge();
        let ready =
            self.rcv.out_of_order.iter().take_while(|held| !after(held.seq, self.rcv.nxt)).count();
        let mut taken: Vec<Held> = Vec::new();
        taken.extend(self.rcv.out_of_order.drain(..ready));
        for held in taken {
            self.rcv.rmem_alloc = self.rcv.rmem_alloc.saturating_sub(held.truesize);
            if before(held.seq, covered) {
                let to = if before(held.end_seq, covered) { held.end_seq } else { covered };
                self.tell_duplicate_too(held.seq, to);
            }
            let mut end_seq = held.end_seq;
            let ends = self.rcv.fin.is_some_and(|fin| after(end_seq, fin));
            if ends {
                end_seq = end_seq.wrapping_sub(1);
            }
            if after(end_seq, self.rcv.nxt) {
                self.rcv.bytes += u64::from(end_seq.wrapping_sub(self.rcv.nxt));
                let run = Received { end_seq, truesize: held.truesize, pieces: held.pieces };
                self.rcv.nxt = end_seq;
                self.append(run, held.truesize.saturating_sub(empty));
            }
            if ends {
                self.on_fin(out);
            }
        }
        // A run may have reached one that was not yet in order when this began.
        if self.rcv.out_of_order.first().is_some_and(|held| !after(held.seq, self.rcv.nxt)) {
            self.take_held(covered, out);
        }
    }

    /// Remembers a range to tell, newest first; neighbours join (`tcp_sack_new_ofo_skb`). Before a range beyond the
    /// second moves up, the held-back ACK is sent.
    fn tell_held(&mut self, seq: u32, end_seq: u32, out: &mut Vec<Segment>) {
        if !self.sack {
            return;
        }
        let touches = |(low, high): &(u32, u32)| !after(seq, *high) && !after(*low, end_seq);
        let place = self.rcv.sacks.iter().position(touches).unwrap_or(self.rcv.sacks.len());
        if place >= EXPECTED_RANGES
            && self.config.kernel.third_range_flushes
            && self.ack.compressed > 0
        {
            self.send_ack(out);
        }
        let (mut from, mut to) = (seq, end_seq);
        let mut place = 0;
        while let Some(&(low, high)) = self.rcv.sacks.get(place) {
            if !after(from, high) && !after(low, to) {
                from = if before(low, from) { low } else { from };
                to = later(high, to);
                self.rcv.sacks.remove(place);
                place = 0;
            } else {
                place += 1;
            }
        }
        self.rcv.sacks.insert(0, (from, to));
        self.rcv.sacks.truncate(SackBlocks::MOST);
    }

    /// What has come in order is not told any more.
    fn forget_sacks(&mut self) {
        let next = self.rcv.nxt;
        self.rcv.sacks.retain(|(low, _)| after(*low, next));
    }

    /// The same of one more, which joins the one to be told if they touch (`tcp_dsack_extend`).
    fn tell_duplicate_too(&mut self, seq: u32, end_seq: u32) {
        match &mut self.rcv.dsack {
            None => self.tell_duplicate(seq, end_seq),
            Some((from, to)) if !after(seq, *to) && !after(*from, end_seq) => {
                *from = if before(seq, *from) { seq } else { *from };
                *to = later(*to, end_seq);
            }
            Some(_) => {}
        }
    }

    /// The next acknowledgment tells of a duplicate (RFC 2883).
    fn tell_duplicate(&mut self, seq: u32, end_seq: u32) {
        if self.sack && self.config.sysctl.dsack {
            self.rcv.dsack = Some((seq, end_seq));
        }
    }
}

/// `TCP_SACK_BLOCKS_EXPECTED` of `net/ipv4/tcp_input.c`.
const EXPECTED_RANGES: usize = 2;

/// Bytes of a page.
const PAGE: u32 = 4096;
