//! An acknowledgment arrives: what it takes off the queue, what it tells, and what follows.
//!
//! ```text
//!   window -> SACK marks -> cumulative part -> round trip -> RACK window -> tail probe
//!          -> recovery's state -> timer -> delivery rate -> congestion control -> retransmissions
//! ```
//!
//! Follows `tcp_ack`, `tcp_ack_update_window`, `tcp_clean_rtx_queue`, `tcp_cong_control`,
//! `tcp_rate_gen`, `tcp_may_raise_cwnd`.

use super::chrono::Phase;
use super::known::{Ack, Resend};
use super::queue::Skb;
use super::{CaState, Socket};
use crate::cc::RateSample;
use crate::segment::{Flags, Segment, after, before};

/// What the cumulative part took off the queue.
#[derive(Default)]
struct Cleaned {
    packets: u32,
    first_us: Option<u64>,
    last_us: u64,
    reordered: Option<u32>,
    wholly: bool,
}

impl Socket {
    /// Whether the acknowledgment is acceptable.
    pub(super) fn on_ack(&mut self, segment: &Segment, out: &mut Vec<Segment>) -> bool {
        let mut ack = Ack {
            number: segment.ack,
            echo: segment.options.stamps.map(|stamps| stamps.echo),
            prior_una: self.snd.una,
            ..Ack::default()
        };
        let delivered = self.rec.delivered;
        if before(ack.number, self.snd.una) {
            return self.on_old_ack(segment, ack, out);
        }
        if after(ack.number, self.snd.nxt) {
            self.challenge_unsent(out);
            return false;
        }
        self.take_stamp(segment);
        if after(ack.number, self.snd.una) {
            ack.una_advanced = true;
            self.rec.retransmits = 0;
        }
        ack.prior_fack = if self.sack { self.highest_sacked() } else { self.snd.una };
        ack.rate.prior_in_flight = self.in_flight();
        let lost = self.rec.lost;
        let prior_packets = self.rec.packets_out;
        let was_reneging = self.rec.reneging;
        ack.data = segment.len > 0 || segment.flags.has(Flags::SYN.with(Flags::FIN));
        ack.win_update = self.update_window(segment);
        self.advance_una(ack.number);
        if !segment.options.sack.is_empty() && self.sack {
            self.mark_sacked(segment, &mut ack);
        }
        ack.ece = self.ecn.ok && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN);
        self.count_delivered(ack.sack_delivered, ack.ece);
        if segment.flags.has(Flags::CWR) {
            self.ecn.demand_cwr = false;
        }
        self.rec.probes_out = 0;
        self.rec.heard = self.jiffies();
        if prior_packets == 0 {
            self.on_ack_without_queue(ack, out);
            return true;
        }
        self.clean_queue(&mut ack);
        self.update_reordering_window(ack.rate.prior_delivered);
        if self.rec.tlp_high_seq.is_some() {
            self.process_tlp_ack(&ack);
        }
        let mut resend = Resend::Nothing;
        if !ack.not_dup() || ack.alert() || self.rec.state != CaState::Open {
            let duplicate = !ack.una_advanced && !ack.not_dup() && !ack.dsacking;
            self.alert(&mut ack, u32::from(duplicate), &mut resend);
        }
        if ack.set_timer && !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
        let delivered = self.rec.delivered - delivered;
        ack.rate.is_ack_delayed = ack.maybe_delayed;
        self.generate_rate(&mut ack, delivered, self.rec.lost - lost, was_reneging);
        self.control_congestion(&ack, delivered);
        self.resend_for(resend, out);
        true
    }

    /// What was not sent cannot be acknowledged (RFC 5961 section 5.2).
    fn challenge_unsent(&mut self, out: &mut Vec<Segment>) {
        if self.config.kernel.challenges_unsent {
            self.challenge(out);
        }
    }

    /// An acknowledgment older than the newest may still carry SACKs.
    fn on_old_ack(&mut self, segment: &Segment, mut ack: Ack, out: &mut Vec<Segment>) -> bool {
        let acked = u32::try_from(self.snd.bytes_acked).unwrap_or(u32::MAX);
        let bounds = self.config.kernel.bounds_old_acks;
        let most = self.snd.max_window.min(if bounds { acked } else { u32::MAX });
        if before(ack.number, self.snd.una.wrapping_sub(most)) {
            // RFC 5961 section 5.2.
            self.challenge(out);
            return false;
        }
        self.take_stamp(segment);
        if !segment.options.sack.is_empty() && self.sack {
            ack.prior_fack = self.highest_sacked();
            self.mark_sacked(segment, &mut ack);
            self.count_delivered(ack.sack_delivered, false);
            let mut resend = Resend::Nothing;
            self.alert(&mut ack, 0, &mut resend);
            self.resend_for(resend, out);
        }
        true
    }

    fn on_ack_without_queue(&mut self, mut ack: Ack, out: &mut Vec<Segment>) {
        if ack.dsacking {
            let mut resend = Resend::Nothing;
            self.alert(&mut ack, 0, &mut resend);
            self.resend_for(resend, out);
        }
        self.on_ack_probe();
        if self.rec.tlp_high_seq.is_some() {
            self.process_tlp_ack(&ack);
        }
    }

    fn advance_una(&mut self, ack: u32) {
        self.snd.bytes_acked += u64::from(ack.wrapping_sub(self.snd.una));
        self.snd.una = ack;
    }

    /// Takes the peer's window if the segment is new enough (RFC 9293 section 3.10.7.4); whether.
    fn update_window(&mut self, segment: &Segment) -> bool {
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.snd.wscale };
        let window = u32::from(segment.window) << scale;
        let newer = after(segment.ack, self.snd.una)
            || after(segment.seq, self.snd.wl1)
            || (segment.seq == self.snd.wl1
                && (window > self.snd.wnd
                    || (window == 0 && self.config.kernel.takes_zero_window)));
        if !newer {
            return false;
        }
        self.snd.wl1 = segment.seq;
        if window != self.snd.wnd {
            self.snd.wnd = window;
            if self.q.has_unsent() {
                self.restart_after_idle();
            }
            if window > self.snd.max_window {
                self.snd.max_window = window;
                self.sync_mss();
            }
        }
        true
    }

    pub(super) fn count_delivered(&mut self, packets: u32, ece: bool) {
        self.rec.delivered = self.rec.delivered.wrapping_add(packets);
        if ece {
            self.rec.delivered_ce = self.rec.delivered_ce.wrapping_add(packets);
        }
    }

    /// Takes off the queue what is acknowledged, and learns from it.
    fn clean_queue(&mut self, ack: &mut Ack) {
        let prior_sacked = self.rec.sacked_out;
        let mut cleaned = Cleaned { wholly: true, ..Cleaned::default() };
        while let Some(&skb) = self.q.head() {
            let packets = if skb.ends_by(self.snd.una) {
                skb.pcount
            } else {
                cleaned.wholly = false;
                let packets = if skb.pcount > 1 { self.trim_head() } else { 0 };
                if packets == 0 {
                    break;
                }
                packets
            };
            self.on_packets_acked(&skb, packets, ack, &mut cleaned);
            if !cleaned.wholly {
                break;
            }
            if let Some(skb) = self.q.pop_head() {
                self.snd.wmem_queued = self.snd.wmem_queued.saturating_sub(skb.truesize);
                if self.rec.retransmit_hint == Some(skb.seq) {
                    self.rec.retransmit_hint = None;
                }
            }
        }
        if self.q.sent() == 0 {
            self.end_phase(Phase::Busy);
        }
        ack.reneging = self.q.head().is_some_and(|head| head.marks.sacked);
        self.after_cleaning(ack, &cleaned, prior_sacked);
    }

    /// Part of the head is acknowledged: it is cut off; its whole packets (`tcp_tso_acked`).
    pub(super) fn trim_head(&mut self) -> u32 {
        let una = self.snd.una;
        let head = self.q.at_mut(0);
        let cut = una.wrapping_sub(head.seq);
        let had = head.pcount;
        if cut == 0 || before(una, head.seq) {
            return 0;
        }
        head.seq = una;
        head.len -= cut;
        head.truesize = head.truesize.saturating_sub(cut);
        if had > 1 {
            let mss = head.mss.max(1);
            head.cut_for(mss);
        }
        let now = head.pcount;
        self.snd.wmem_queued = self.snd.wmem_queued.saturating_sub(cut);
        had - now
    }

    fn on_packets_acked(&mut self, skb: &Skb, packets: u32, ack: &mut Ack, cleaned: &mut Cleaned) {
        if skb.marks.resent || skb.marks.ever_resent {
            if skb.marks.resent {
                self.rec.retrans_out = self.rec.retrans_out.saturating_sub(packets);
            }
            ack.retrans_acked = true;
        } else if !skb.marks.sacked {
            cleaned.last_us = skb.sent_us();
            cleaned.first_us.get_or_insert(skb.sent_us());
            if before(skb.seq, cleaned.reordered.unwrap_or(self.snd.nxt)) {
                cleaned.reordered = Some(skb.seq);
            }
            if !after(skb.end_seq, self.rec.high_seq) {
                ack.orig_sack_acked = true;
            }
        }
        if skb.marks.sacked {
            self.rec.sacked_out = self.rec.sacked_out.saturating_sub(packets);
        } else if self.sack {
            self.count_delivered(packets, ack.ece);
            let spurious = (skb.marks.resent || skb.marks.ever_resent)
                && self.echo_is_before(ack.echo, self.stamp_at(skb.sent_ns));
            if !spurious {
                self.advance_rack(skb);
            }
        }
        if skb.marks.lost {
            self.rec.lost_out = self.rec.lost_out.saturating_sub(packets);
        }
        self.rec.packets_out = self.rec.packets_out.saturating_sub(packets);
        cleaned.packets += packets;
        self.note_delivery(skb, &mut ack.rate);
        if skb.flags.has(Flags::SYN) {
            ack.syn_acked = true;
            self.rec.retrans_stamp = None;
        } else {
            ack.data_acked = true;
        }
    }

    fn after_cleaning(&mut self, ack: &mut Ack, cleaned: &Cleaned, prior_sacked: u32) {
        let now_us = self.now_us();
        let mut sample = None;
        let mut newest = None;
        if let Some(first) = cleaned.first_us
            && !ack.retrans_acked
        {
            sample = Some(now_us.saturating_sub(first));
            newest = Some(now_us.saturating_sub(cleaned.last_us));
            let lone = cleaned.packets == 1 && cleaned.wholly && prior_sacked == 0;
            let small = self.snd.una.wrapping_sub(ack.prior_una) < self.snd.mss_cache;
            let plain = !ack.data_sacked && !ack.ece && !ack.dsacking && !ack.syn_acked;
            let next = ack.rate.prior_delivered.wrapping_add(1) == self.rec.delivered;
            ack.maybe_delayed = lone && small && plain && next;
        }
        let sacked = ack.first_sacked_us.map(|first| now_us.saturating_sub(first));
        if sacked.is_some() {
            newest = Some(now_us.saturating_sub(ack.last_sacked_us));
        }
        let mut sample = sample.or(sacked);
        if sample.is_none() && ack.acked() {
            // Karn's rule leaves the timestamp's echo.
            sample = self.echo_delay_us(ack.echo);
            newest = sample.or(newest);
        }
        ack.rate.rtt_us = newest.map(|us| us as u32);
        let updated = self.update_rtt(sample, newest, ack.maybe_delayed);
        if ack.acked() {
            ack.set_timer = true;
            self.on_probe_acked();
            if self.sack {
                if let Some(low) = cleaned.reordered
                    && before(low, ack.prior_fack)
                {
                    self.note_reordering(low);
                }
            } else {
                self.remove_dup_acks(cleaned.packets, ack.ece);
                if ack.retrans_acked {
                    ack.orig_sack_acked = false;
                }
            }
        } else if updated
            && let Some(head) = self.q.head()
            && sacked.is_some_and(|us| us > now_us.saturating_sub(head.sent_us()))
        {
            ack.set_timer = true;
        }
        let at = self.surroundings();
        self.cc.on_packets_acked(ack.rate.rtt_us, &mut self.cw, &at);
    }

    /// Age of an echoed timestamp, at least a millisecond.
    fn echo_delay_us(&self, echo: Option<u32>) -> Option<u64> {
        let echo = echo.filter(|echo| self.stamps && *echo != 0)?;
        let delta = self.stamp_at(self.now_ns).wrapping_sub(echo);
        (delta < i32::MAX as u32 / 1000).then(|| u64::from(delta.max(1)) * 1000)
    }

    /// Newest of the segments that this ACK delivered (`tcp_rate_skb_delivered`).
    pub(super) fn note_delivery(&mut self, skb: &Skb, rate: &mut RateSample) {
        let sent = skb.rate;
        if sent.delivered_ns == 0 || skb.marks.sacked {
            return;
        }
        let newer = rate.prior_delivered == 0 && rate.prior_ns == 0
            || after(sent.delivered, rate.prior_delivered)
            || (sent.delivered == rate.prior_delivered && after(skb.end_seq, rate.last_end_seq));
        if newer {
            rate.prior_delivered = sent.delivered;
            rate.prior_ns = sent.delivered_ns;
            rate.is_app_limited = sent.app_limited;
            rate.is_retrans = skb.marks.resent || skb.marks.ever_resent;
            rate.last_end_seq = skb.end_seq;
            rate.interval_us = (skb.sent_ns.saturating_sub(sent.first_sent_ns) / 1000) as u32;
            self.dlv.first_sent_ns = skb.sent_ns;
        }
    }

    /// Makes a sample of the delivery rate (`tcp_rate_gen`).
    fn generate_rate(&mut self, ack: &mut Ack, delivered: u32, lost: u32, reneging: bool) {
        if self.dlv.app_limited != 0 && after(self.rec.delivered, self.dlv.app_limited) {
            self.dlv.app_limited = 0;
        }
        if delivered > 0 {
            self.dlv.delivered_ns = self.now_ns;
        }
        let rate = &mut ack.rate;
        rate.acked_sacked = delivered;
        rate.losses = lost;
        if rate.prior_ns == 0 || reneging {
            rate.delivered = None;
            return;
        }
        let got = self.rec.delivered.wrapping_sub(rate.prior_delivered);
        let ack_us = (self.now_ns.saturating_sub(rate.prior_ns) / 1000) as u32;
        rate.interval_us = rate.interval_us.max(ack_us);
        rate.delivered = (rate.interval_us >= self.min_rtt_us()).then_some(got);
    }

    /// The window follows what arrived (`tcp_cong_control`).
    fn control_congestion(&mut self, ack: &Ack, delivered: u32) {
        if self.cc.controls_itself() {
            self.with_model(|bbr, transport| bbr.on_sample(&ack.rate, transport));
            self.follow_book(ack);
            return;
        }
        if self.in_reduction() {
            self.reduce_cwnd(
                delivered,
                ack.rate.losses,
                ack.una_advanced,
                ack.retrans_acked && !ack.lost_retrans,
            );
        } else if self.may_raise(ack) {
            if self.is_cwnd_limited() {
                let at = self.surroundings();
                self.cc.on_ack(delivered, &mut self.cw, &at);
            }
            self.cw.stamp = self.jiffies();
        }
        self.update_pacing_rate();
    }

    /// Grows only on data in order, unless the path is known to reorder much.
    const fn may_raise(&self, ack: &Ack) -> bool {
        if self.rec.reordering > self.config.sysctl.reordering {
            ack.acked() || ack.data_sacked
        } else {
            ack.data_acked
        }
    }
}
