//! Sending: how much of the queue may leave now, in what pieces, and why it stops.
//!
//! Follows `tcp_write_xmit`, `__tcp_transmit_skb`, `tcp_event_new_data_sent`, `tcp_fragment`,
//! `tso_fragment`, `tcp_cwnd_validate`, `tcp_push_pending_frames`, `tcp_rate_skb_sent`.

use super::chrono::Phase;
use super::mtu::Probed;
use super::queue::{SentState, Skb};
use super::state::Purpose;
use super::{Socket, State};
use crate::path::ETHERNET;
use crate::profile::{Growth, Version};
use crate::segment::{Ecn, Flags, Segment, after, before};

/// Why the sender stopped.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Wait {
    /// Nothing is left to send.
    #[default]
    Nothing,
    /// The congestion window is full.
    Cwnd,
    /// The peer's window is.
    ReceiveWindow,
    /// A small segment waits for an acknowledgment (Nagle), or is corked.
    Nagle,
    /// TSO waits for more room, whatever gives it.
    Defer,
    /// TSO waits for more room in the congestion window.
    DeferCwnd,
    /// TSO waits for more room in the peer's window.
    DeferWindow,
    /// Earlier segments have not left the host (TCP small queues), or it takes no more.
    SmallQueue,
    /// It is not yet time (pacing).
    Pacing,
}

/// How small segments are held back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Nagle {
    pub(super) off: bool,
    pub(super) cork: bool,
    pub(super) push: bool,
}

impl Nagle {
    pub(super) const PUSH: Self = Self { off: false, cork: false, push: true };
    pub(super) const CORK: Self = Self { off: false, cork: true, push: false };
    pub(super) const OFF: Self = Self { off: true, cork: false, push: false };

    pub(super) const fn with_push(self) -> Self {
        Self { push: true, ..self }
    }
}

/// How much is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Push {
    /// All that may.
    All,
    /// One segment.
    One,
    /// One segment, whatever the congestion window says: a loss probe.
    Probe,
}

impl Socket {
    /// Sends what may be sent; a timer for window probes is set if nothing may and nothing is out.
    pub(super) fn push_pending(&mut self, mss: u32, nagle: Nagle, out: &mut Vec<Segment>) {
        if self.state == State::Closed || !self.q.has_unsent() {
            return;
        }
        if self.write_xmit(mss, nagle, Push::All, out) {
            self.check_probe_timer();
        }
    }

    /// After an ACK: sends, and wakes a writer (`tcp_data_snd_check`).
    pub(super) fn send_more(&mut self, out: &mut Vec<Segment>) {
        self.follow_route();
        let mss = self.current_mss();
        self.push_pending(mss, self.nagle(), out);
        self.check_space();
    }

    /// Whether nothing is under way although something waits.
    pub(super) fn write_xmit(
        &mut self,
        mss: u32,
        nagle: Nagle,
        push: Push,
        out: &mut Vec<Segment>,
    ) -> bool {
        let most = self.tso_segments(mss);
        let probed = if push == Push::All { self.probe_mtu(out) } else { Probed::No };
        let mut sent = match probed {
            Probed::No => 0,
            Probed::Waits => return false,
            Probed::Sent => 1,
        };
        let mut deferred_for_cwnd = false;
        self.wait = loop {
            match self.next_piece(mss, nagle, push, most) {
                Ok(()) => {}
                Err(wait) => {
                    deferred_for_cwnd = wait == Wait::DeferCwnd;
                    break wait;
                }
            }
            let place = self.q.sent();
            if !self.transmit(place, out) {
                break Wait::SmallQueue;
            }
            sent += self.on_new_data_sent(mss);
            if push != Push::All {
                break if self.q.has_unsent() { self.wait } else { Wait::Nothing };
            }
        };
        if matches!(self.wait, Wait::ReceiveWindow | Wait::DeferWindow) {
            self.begin_phase(Phase::WindowLimited);
        } else {
            self.end_phase(Phase::WindowLimited);
        }
        let limited = deferred_for_cwnd || self.in_flight() >= self.cw.cwnd;
        if sent > 0 || limited {
            self.validate_cwnd(limited);
        }
        if sent > 0 {
            if self.in_reduction() {
                self.cw.prr_out += sent;
            }
            if push != Push::Probe {
                self.schedule_loss_probe(false);
            }
            return false;
        }
        self.rec.packets_out == 0 && self.q.has_unsent()
    }

    /// Makes the first unsent segment just what may leave now, or says why nothing may.
    fn next_piece(&mut self, mss: u32, nagle: Nagle, push: Push, most: u32) -> Result<(), Wait> {
        let place = self.q.sent();
        let Some(&skb) = self.q.send_head() else { return Err(Wait::Nothing) };
        if self.must_pace() {
            return Err(Wait::Pacing);
        }
        let grows = self.config.kernel.version >= Version::new(6, 12);
        let mut quota = self.cwnd_quota(&skb, !grows);
        if quota == 0 {
            if push != Push::Probe {
                return Err(Wait::Cwnd);
            }
            quota = 1;
        }
        quota = quota.min(most);
        if grows {
            self.grow_head(quota * mss);
        }
        let skb = self.q.at_mut(place);
        skb.cut_for(mss);
        let skb = *skb;
        if !self.window_allows(&skb, mss) {
            return Err(Wait::ReceiveWindow);
        }
        let is_last = self.q.len() == place + 1;
        if skb.pcount == 1 {
            let rule = if is_last { nagle } else { Nagle::PUSH };
            if !self.nagle_allows(&skb, mss, rule) {
                return Err(Wait::Nagle);
            }
        } else if push == Push::All
            && let Some(wait) = self.should_defer(&skb, is_last, most)
        {
            return Err(wait);
        }
        let limit =
            if skb.pcount > 1 { self.split_point(&skb, is_last, mss, quota, nagle) } else { mss };
        if skb.len > limit {
            self.split(place, limit, mss);
        }
        let truesize = self.q.at(place).truesize;
        if self.is_throttled(truesize, 0) {
            return Err(Wait::SmallQueue);
        }
        let skb = self.q.at(place);
        if skb.seq == skb.end_seq { Err(Wait::Nothing) } else { Ok(()) }
    }

    /// The head takes bytes of those behind it, to be as large as may be sent (`tcp_grow_skb`,
    /// v6.10).
    fn grow_head(&mut self, wanted: u32) {
        let place = self.q.sent();
        let head = *self.q.at(place);
        if head.len >= wanted || self.q.len() <= place + 1 || head.eor {
            return;
        }
        let next = *self.q.at(place + 1);
        let taken = (wanted - head.len).min(next.len);
        if taken == 0 {
            return;
        }
        let head = self.q.at_mut(place);
        head.len += taken;
        head.truesize += taken;
        head.end_seq = head.end_seq.wrapping_add(taken);
        if taken < next.len {
            let next = self.q.at_mut(place + 1);
            next.seq = next.seq.wrapping_add(taken);
            next.len -= taken;
            next.truesize -= taken;
            return;
        }
        head.end_seq = next.end_seq;
        head.flags = head.flags.with(next.flags);
        head.eor = next.eor;
        self.snd.wmem_queued -= next.truesize - taken;
        self.q.remove_unsent(place + 1);
    }

    /// Cuts the segment at `place` after `len` bytes; both parts stay charged.
    pub(super) fn split(&mut self, place: usize, len: u32, mss: u32) {
        let empty = self.config.kernel.memory.empty();
        let skb = self.q.at_mut(place);
        let whole = *skb;
        let rest_len = whole.len - len;
        let mut rest = Skb {
            seq: whole.seq.wrapping_add(len),
            len: rest_len,
            truesize: empty + rest_len,
            ..whole
        };
        skb.end_seq = rest.seq;
        skb.len = len;
        skb.truesize = skb.truesize.saturating_sub(rest_len);
        skb.eor = false;
        skb.flags = whole.flags.without(Flags::FIN.with(Flags::PSH));
        skb.cut_for(mss);
        rest.cut_for(mss);
        let more = (skb.pcount + rest.pcount).cast_signed() - whole.pcount.cast_signed();
        let was_sent = place < self.q.sent();
        self.q.insert_behind(place, rest);
        self.snd.wmem_queued += empty;
        if was_sent {
            self.adjust_counts(whole, more);
        }
    }

    /// A segment that was sent turned out to make more (or fewer) packets (`tcp_adjust_pcount`).
    pub(super) fn adjust_counts(&mut self, skb: Skb, more: i32) {
        let add = |count: &mut u32| *count = count.saturating_add_signed(more);
        add(&mut self.rec.packets_out);
        if skb.marks.sacked {
            add(&mut self.rec.sacked_out);
        }
        if skb.marks.resent {
            add(&mut self.rec.retrans_out);
        }
        if skb.marks.lost {
            add(&mut self.rec.lost_out);
        }
        if !self.sack && more < 0 {
            add(&mut self.rec.sacked_out);
        }
    }

    /// Hands down the segment at `place`, new or again (`__tcp_transmit_skb`); whether it was taken.
    /// A queue that refuses it counts as congestion.
    pub(super) fn transmit(&mut self, place: usize, out: &mut Vec<Segment>) -> bool {
        self.look_up_route();
        let skb = *self.q.at(place);
        let prior_stamp = self.snd.wstamp_ns;
        self.snd.wstamp_ns = prior_stamp.max(self.now_ns);
        let stamp = self.snd.wstamp_ns;
        let mut flags = skb.flags;
        if skb.pcount > 1 && self.config.kernel.version >= Version::new(5, 4) {
            flags = flags.with(Flags::PSH);
        }
        let window = self.select_window();
        let mut segment = Segment {
            seq: skb.seq,
            ack: self.rcv.nxt,
            flags,
            window,
            len: skb.len,
            piece: skb.mss as u16,
            options: self.data_options(stamp),
            truesize: skb.truesize,
            page_offset: self.page_offset(skb.seq),
            departs_ns: stamp.saturating_sub(self.config.clock_ns),
            ..Segment::default()
        };
        self.mark_ecn(&mut segment, !before(skb.seq, self.snd.nxt));
        self.on_ack_sent();
        self.traffic.segs_out += skb.pcount.max(1);
        self.traffic.bytes_sent += u64::from(skb.len);
        if skb.len > 0 {
            self.on_data_sent(skb.pcount);
        }
        if self.config.link.refuses {
            self.q.at_mut(place).sent_ns = stamp;
            self.enter_cwr();
            return false;
        }
        if self.config.link.holds {
            if self.passes_at_once(&segment) {
                segment.truesize = 0;
            } else {
                self.snd.wmem_alloc += skb.truesize;
            }
        }
        let rate = self.sent_state(stamp);
        self.pace_after(skb.len, prior_stamp);
        let skb = self.q.at_mut(place);
        skb.sent_ns = stamp;
        skb.rate = rate;
        if place < self.q.sent() {
            self.q.touch(place);
        }
        out.push(segment);
        true
    }

    /// Whether a segment has left the host before anything else is done: its memory is free again.
    fn passes_at_once(&mut self, segment: &Segment) -> bool {
        let headers = self.config.link.ip_header() + segment.header_bytes() + ETHERNET;
        let bytes = u64::from(headers * segment.piece_count() + segment.len);
        let is_due = segment.departs_ns + self.config.clock_ns <= self.now_ns;
        let passes = is_due && bytes <= self.snd.passes;
        self.snd.passes = if passes { self.snd.passes - bytes } else { 0 };
        passes
    }

    /// `tcp_event_data_sent`.
    fn on_data_sent(&mut self, pieces: u32) {
        if self.in_flight() == 0 {
            let now = self.jiffies();
            self.cc.on_start(now, self.snd.lsndtime);
            self.with_model(crate::cc::Bbr::on_start);
        }
        self.snd.data_segs_out = self.snd.data_segs_out.saturating_add(pieces);
        let now = self.jiffies();
        self.snd.lsndtime = now;
        if now.saturating_sub(self.ack.lrcvtime) < self.ack.ato {
            self.ack.pingpong = self.ack.pingpong.saturating_add(1);
        }
    }

    /// What had been delivered by now (`tcp_rate_skb_sent`).
    pub(super) fn sent_state(&mut self, stamp: u64) -> SentState {
        if self.rec.packets_out == 0 {
            self.dlv.first_sent_ns = stamp;
            self.dlv.delivered_ns = stamp;
        }
        SentState {
            delivered: self.rec.delivered,
            delivered_ns: self.dlv.delivered_ns,
            first_sent_ns: self.dlv.first_sent_ns,
            app_limited: self.dlv.app_limited != 0,
        }
    }

    /// The first unsent segment has left for the first time; its packets.
    pub(super) fn on_new_data_sent(&mut self, mss: u32) -> u32 {
        let place = self.q.sent();
        let skb = *self.q.at(place);
        self.q.mark_sent();
        self.snd.nxt = skb.end_seq;
        let had = self.rec.packets_out;
        self.rec.packets_out += skb.pcount;
        if had == 0 {
            self.timers.before_flight = self.timers.transmit;
        }
        if had == 0 || self.pending() == Some(Purpose::LossProbe) {
            self.rearm_rto();
        }
        self.check_space_when_sent();
        if skb.len < skb.pcount * mss {
            self.snd.sml = skb.end_seq;
        }
        skb.pcount
    }

    /// Remembers whether the window was what limited (`tcp_cwnd_validate`).
    fn validate_cwnd(&mut self, limited: bool) {
        let packets_out = self.rec.packets_out;
        let renew = match self.config.kernel.growth {
            Growth::FullOrDoubled => {
                !before(self.snd.una, self.cw.usage_seq)
                    || limited
                    || (!self.cw.is_limited && packets_out > self.cw.max_packets_out)
            }
            // The sample is renewed once a window, or with a new maximum.
            Growth::Doubled => {
                !before(self.snd.una, self.cw.usage_seq) || packets_out > self.cw.max_packets_out
            }
        };
        if renew {
            self.cw.is_limited = limited;
            self.cw.max_packets_out = packets_out;
            self.cw.usage_seq = self.snd.nxt;
        }
        if self.is_cwnd_limited() {
            self.cw.used = 0;
            self.cw.stamp = self.jiffies();
            return;
        }
        self.cw.used = self.cw.used.max(packets_out);
        if self.config.sysctl.slow_start_after_idle
            && self.jiffies().saturating_sub(self.cw.stamp) >= self.rtt.rto
            && !self.cc.controls_itself()
        {
            self.shrink_unused_cwnd();
        }
        // Not even what may be sent is there, and the writer waits for room.
        if !self.q.has_unsent()
            && self.snd.nospace
            && matches!(self.state, State::Established | State::CloseWait)
        {
            self.begin_phase(Phase::BufferLimited);
        }
    }

    /// Whether the window may grow (`tcp_is_cwnd_limited`).
    pub(super) const fn is_cwnd_limited(&self) -> bool {
        let doubled = self.cw.cwnd < 2 * self.cw.max_packets_out;
        match self.config.kernel.growth {
            Growth::FullOrDoubled => self.cw.is_limited || (self.in_slow_start() && doubled),
            Growth::Doubled => {
                if self.in_slow_start() {
                    doubled
                } else {
                    self.cw.is_limited
                }
            }
        }
    }

    /// Data that is new counts as capable of ECN and carries a waiting CWR (`tcp_ecn_send`).
    fn mark_ecn(&mut self, segment: &mut Segment, new: bool) {
        if !self.ecn.ok {
            return;
        }
        if segment.len > 0 && new {
            segment.ecn = Ecn::Ect0;
            if self.ecn.queue_cwr {
                self.ecn.queue_cwr = false;
                segment.flags = segment.flags.with(Flags::CWR);
            }
        }
        if self.ecn.demand_cwr {
            segment.flags = segment.flags.with(Flags::ECE);
        }
    }

    /// Sends an acknowledgment without data (`__tcp_send_ack`).
    pub(super) fn send_ack(&mut self, out: &mut Vec<Segment>) {
        let opens = self.is_opening() && !self.fast.passive;
        if opens || self.state == State::Closed {
            return;
        }
        self.send_bare(self.acceptable_seq(), Flags::ACK, out);
    }

    /// Sends a segment without data.
    pub(super) fn send_bare(&mut self, seq: u32, flags: Flags, out: &mut Vec<Segment>) {
        self.snd.wstamp_ns = self.snd.wstamp_ns.max(self.clock_cache_ns);
        let window = self.select_window();
        let mut segment = Segment {
            seq,
            ack: self.rcv.nxt,
            flags,
            window,
            options: self.data_options(self.snd.wstamp_ns),
            departs_ns: self.snd.wstamp_ns.saturating_sub(self.config.clock_ns),
            ..Segment::default()
        };
        self.mark_ecn(&mut segment, false);
        self.on_ack_sent();
        self.traffic.segs_out += 1;
        out.push(segment);
    }

    /// The sequence number of a segment without data (`tcp_acceptable_seq`).
    pub(super) const fn acceptable_seq(&self) -> u32 {
        let end = self.window_end();
        let over = self.snd.nxt.wrapping_sub(end);
        if !before(end, self.snd.nxt) || (self.snd.wscale > 0 && over < (1 << self.snd.wscale)) {
            self.snd.nxt
        } else {
            end
        }
    }

    /// Whether a segment's first packet fits the peer's window (`tcp_snd_wnd_test`).
    pub(super) const fn window_allows(&self, skb: &Skb, mss: u32) -> bool {
        let end = if skb.len > mss { skb.seq.wrapping_add(mss) } else { skb.end_seq };
        !after(end, self.window_end())
    }
}
