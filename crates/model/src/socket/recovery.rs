//! The states of recovery: when losses are believed, how the window is reduced, when all is well.
//!
//! Follows `tcp_fastretrans_alert`, `tcp_process_loss`, `tcp_enter_recovery`, `tcp_enter_loss`,
//! `tcp_cwnd_reduction` (PRR), `tcp_identify_packet_loss`, `NewReno` without SACK
//! (`tcp_add_reno_sack` and its like), `tcp_enter_cwr`. Losses by counting duplicates
//! (`tcp_recovery` without bit 0, removed in v6.17) are followed only without SACK.

use tcpwhy::cc::Increase;

use super::known::{Ack, Resend};
use super::output::Nagle;
use super::{CaState, INFINITE_SSTHRESH, Socket};
use crate::profile::Prr;
use crate::segment::{Segment, after, before};

impl Socket {
    pub(super) fn alert(&mut self, ack: &mut Ack, duplicates: u32, resend: &mut Resend) {
        if self.rec.packets_out == 0 {
            self.rec.sacked_out = 0;
        }
        if ack.ece {
            self.cw.prior_ssthresh = 0;
        }
        if ack.reneging && ack.una_advanced {
            self.distrust_sacks(ack);
            return;
        }
        if self.rec.state == CaState::Open {
            self.rec.retrans_stamp = None;
        } else if !before(self.snd.una, self.rec.high_seq) && self.leave_state(ack) {
            return;
        }
        match self.rec.state {
            CaState::Recovery => {
                if self.stay_in_recovery(ack, duplicates) {
                    return;
                }
            }
            CaState::Loss => {
                self.process_loss(ack, duplicates, resend);
                self.identify_loss(ack);
                if self.rec.state != CaState::Open && !ack.lost_retrans {
                    return;
                }
                if self.consider_recovery(ack, duplicates) {
                    return;
                }
            }
            _ => {
                if self.consider_recovery(ack, duplicates) {
                    return;
                }
            }
        }
        *resend = Resend::Lost;
    }

    /// What was under way when the state began is acknowledged; whether nothing more is to do.
    fn leave_state(&mut self, ack: &Ack) -> bool {
        match self.rec.state {
            CaState::Cwr if self.snd.una != self.rec.high_seq => {
                self.end_reduction();
                self.set_ca_state(CaState::Open);
            }
            CaState::Recovery => {
                if !self.sack {
                    self.rec.sacked_out = 0;
                }
                if self.try_undo_recovery_with(ack.echo) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// Whether nothing is to be retransmitted.
    fn stay_in_recovery(&mut self, ack: &mut Ack, duplicates: u32) -> bool {
        if ack.una_advanced {
            if self.try_undo_partial(ack) {
                return true;
            }
        } else if !self.sack {
            self.add_dup_acks(duplicates, ack.ece);
        }
        if self.try_undo_dsack() {
            self.try_to_open(ack);
        }
        self.identify_loss(ack);
        if self.rec.state != CaState::Recovery {
            if self.rec.lost_out == 0 {
                return true;
            }
            self.enter_recovery(ack.ece);
        }
        false
    }

    /// Enters recovery if something is lost; whether it did not.
    fn consider_recovery(&mut self, ack: &mut Ack, duplicates: u32) -> bool {
        if !self.sack {
            if ack.una_advanced {
                self.rec.sacked_out = 0;
            }
            self.add_dup_acks(duplicates, ack.ece);
        }
        if self.rec.state <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.identify_loss(ack);
        if self.rec.lost_out == 0 {
            self.try_to_open(ack);
            return true;
        }
        if !self.is_probe_lost() {
            self.enter_recovery(ack.ece);
        }
        false
    }

    /// The peer acknowledges what it had told to have, but not what lies before: it may have
    /// thrown it away, and the timer decides soon (`tcp_check_sack_reneging`).
    fn distrust_sacks(&mut self, ack: &mut Ack) {
        let delay =
            self.jiffies_from_us(u64::from(self.rtt.srtt_us >> 4)).max(self.jiffies_from_ms(10));
        self.set_timer(super::Purpose::Retransmit, delay);
        ack.set_timer = false;
    }

    fn identify_loss(&mut self, ack: &mut Ack) {
        if self.q.sent() == 0 {
            return;
        }
        if !self.sack {
            self.mark_newreno(ack.una_advanced);
        } else if self.is_rack() {
            let had = self.rec.retrans_out;
            if self.rack_mark_lost() {
                ack.set_timer = false;
            }
            ack.lost_retrans |= had > self.rec.retrans_out;
        }
    }

    /// Without SACK: the head is lost after enough duplicates, or after a partial ACK (RFC 6582).
    fn mark_newreno(&mut self, una_advanced: bool) {
        let begins =
            self.rec.state < CaState::Recovery && self.rec.sacked_out >= self.rec.reordering;
        let goes_on = self.rec.state == CaState::Recovery && una_advanced;
        if !begins && !goes_on {
            return;
        }
        let skb = *self.q.at(0);
        if skb.marks.lost {
            return;
        }
        if skb.pcount > 1 && skb.len > skb.mss {
            self.split(0, skb.mss, skb.mss);
        }
        self.mark_lost(0);
    }

    pub(super) fn mark_lost(&mut self, place: usize) {
        let skb = self.q.at_mut(place);
        if skb.marks.sacked {
            return;
        }
        let (seq, pcount) = (skb.seq, skb.pcount);
        if skb.marks.lost {
            if !skb.marks.resent {
                return;
            }
            skb.marks.resent = false;
            self.rec.retrans_out = self.rec.retrans_out.saturating_sub(pcount);
        } else {
            skb.marks.lost = true;
            self.rec.lost_out += pcount;
        }
        self.rec.lost = self.rec.lost.wrapping_add(pcount);
        if self.rec.retransmit_hint.is_some_and(|hint| before(seq, hint)) {
            self.rec.retransmit_hint = Some(seq);
        }
    }

    fn process_loss(&mut self, ack: &Ack, duplicates: u32, resend: &mut Resend) {
        let recovered = !before(self.snd.una, self.rec.high_seq);
        if ack.una_advanced && self.try_undo_loss(ack.echo, false) {
            return;
        }
        if self.rec.frto {
            if ack.orig_sack_acked && self.try_undo_loss(ack.echo, true) {
                return;
            }
            if after(self.snd.nxt, self.rec.high_seq) {
                if ack.data_sacked || duplicates > 0 {
                    self.rec.frto = false;
                }
            } else if ack.una_advanced && !recovered {
                self.rec.high_seq = self.snd.nxt;
                if self.q.has_unsent() && after(self.window_end(), self.snd.nxt) {
                    *resend = Resend::New;
                    return;
                }
                self.rec.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery_with(ack.echo);
            return;
        }
        if !self.sack {
            if after(self.snd.nxt, self.rec.high_seq) && duplicates > 0 {
                self.add_dup_acks(duplicates, ack.ece);
            } else if ack.una_advanced {
                self.rec.sacked_out = 0;
            }
        }
        *resend = Resend::Lost;
    }

    /// What the acknowledgment allows is sent (`tcp_xmit_recovery`).
    pub(super) fn resend_for(&mut self, resend: Resend, out: &mut Vec<Segment>) {
        match resend {
            Resend::Nothing => return,
            Resend::New => {
                let mss = self.current_mss();
                self.push_pending(mss, Nagle::OFF, out);
                if after(self.snd.nxt, self.rec.high_seq) {
                    return;
                }
                self.rec.frto = false;
            }
            Resend::Lost => {}
        }
        self.retransmit_queue(out);
    }

    pub(super) fn enter_recovery(&mut self, ece: bool) {
        if self.q.head().is_none_or(|head| !head.marks.ever_resent) && self.rec.retrans_out == 0 {
            self.rec.retrans_stamp = None;
        }
        self.cw.prior_ssthresh = 0;
        self.begin_undo();
        if !self.in_reduction() {
            if !ece {
                self.cw.prior_ssthresh = self.current_ssthresh();
            }
            self.begin_reduction();
        }
        self.set_ca_state(CaState::Recovery);
    }

    /// Losses that no congestion made: what is marked goes again, and the window stays
    /// (`tcp_non_congestion_loss_retransmit`).
    pub(super) fn enter_uncongested_loss(&mut self) {
        if self.rec.state != CaState::Loss {
            self.rec.high_seq = self.snd.nxt;
            self.cw.ssthresh = self.current_ssthresh();
            self.cw.prior_ssthresh = 0;
            self.rec.undo_marker = None;
            self.set_ca_state(CaState::Loss);
        }
    }

    /// The retransmission timer expired (`tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self) {
        self.traffic.total_rto += 1;
        let first = self.rec.state < CaState::Recovery;
        self.mark_timeout_lost();
        if self.rec.state <= CaState::Disorder
            || !after(self.rec.high_seq, self.snd.una)
            || (self.rec.state == CaState::Loss && self.rec.retransmits == 0)
        {
            self.cw.prior_ssthresh = self.current_ssthresh();
            self.cw.prior_cwnd = self.cw.cwnd;
            self.cw.ssthresh = self.cc.ssthresh(&self.cw, self.snd.flight());
            self.begin_undo();
        }
        self.cw.cwnd = self.in_flight() + 1;
        self.cw.increase = Increase::default();
        self.cw.stamp = self.jiffies();
        let reordering = self.config.sysctl.reordering;
        if self.rec.state <= CaState::Disorder && self.rec.sacked_out >= reordering {
            self.rec.reordering = self.rec.reordering.min(reordering);
        }
        self.set_ca_state(CaState::Loss);
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_high_seq = None;
        self.queue_cwr();
        self.rec.frto = self.config.sysctl.frto > 0 && (first || self.rec.retransmits > 0);
    }

    /// All that is not known to have arrived is lost, but for what was sent too recently.
    fn mark_timeout_lost(&mut self) {
        let reneging = self.q.head().is_some_and(|head| head.marks.sacked);
        if reneging {
            self.rec.sacked_out = 0;
            self.rec.reneging = true;
            self.rec.sack_cache = [(0, 0); 4];
        } else if !self.sack {
            self.rec.sacked_out = 0;
        }
        for place in 0..self.q.sent() {
            let skb = *self.q.at(place);
            if reneging {
                self.q.at_mut(place).marks.sacked = false;
            } else if self.sack && self.is_rack() && place > 0 && self.rack_time_left(&skb, 0) > 0 {
                continue;
            }
            self.mark_lost(place);
        }
        self.rec.retransmit_hint = None;
    }

    /// Congestion was told without loss (`tcp_enter_cwr`).
    pub(super) fn enter_cwr(&mut self) {
        self.cw.prior_ssthresh = 0;
        if self.rec.state < CaState::Cwr {
            self.rec.undo_marker = None;
            self.begin_reduction();
            self.set_ca_state(CaState::Cwr);
        }
    }

    pub(super) fn begin_reduction(&mut self) {
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_high_seq = None;
        self.cw.increase = Increase::default();
        self.cw.prior_cwnd = self.cw.cwnd;
        self.cw.prr_delivered = 0;
        self.cw.prr_out = 0;
        self.cw.ssthresh = self.cc.ssthresh(&self.cw, self.snd.flight());
        self.queue_cwr();
    }

    fn queue_cwr(&mut self) {
        self.ecn.queue_cwr |= self.ecn.ok;
    }

    /// Proportional rate reduction (RFC 9937, and Linux's ways before it).
    pub(super) fn reduce_cwnd(
        &mut self,
        delivered: u32,
        newly_lost: u32,
        una_advanced: bool,
        resent_acked: bool,
    ) {
        if delivered == 0 || self.cw.prior_cwnd == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let room = i64::from(self.cw.ssthresh) - i64::from(in_flight);
        self.cw.prr_delivered += delivered;
        let out = i64::from(self.cw.prr_out);
        let (all, new) = (i64::from(self.cw.prr_delivered), i64::from(delivered));
        let mut send = if room < 0 {
            let share = u64::from(self.cw.ssthresh) * u64::from(self.cw.prr_delivered);
            share.div_ceil(u64::from(self.cw.prior_cwnd)) as i64 - out
        } else {
            let good = match self.config.kernel.prr {
                Prr::AfterRetransmit => resent_acked,
                Prr::AfterProgress | Prr::Rfc9937 => una_advanced && newly_lost == 0,
            };
            match self.config.kernel.prr {
                Prr::Rfc9937 => room.min((all - out).max(new) + i64::from(good)),
                _ if good => room.min((all - out).max(new) + 1),
                _ => room.min(new),
            }
        };
        if self.cw.prr_out == 0 {
            send = send.max(1);
        }
        self.cw.cwnd = (i64::from(in_flight) + send.max(0)) as u32;
    }

    pub(super) fn end_reduction(&mut self) {
        if self.cc.controls_itself() {
            return;
        }
        if self.cw.ssthresh < INFINITE_SSTHRESH
            && (self.rec.state == CaState::Cwr || self.rec.undo_marker.is_some())
        {
            self.cw.cwnd = self.cw.ssthresh;
            self.cw.stamp = self.jiffies();
        }
    }

    pub(super) fn set_ca_state(&mut self, state: CaState) {
        if state == CaState::Loss {
            let at = self.surroundings();
            self.cc.on_loss_state(&at);
        }
        self.rec.state = state;
    }

    fn try_to_open(&mut self, ack: &Ack) {
        if !self.any_resent() {
            self.rec.retrans_stamp = None;
        }
        if ack.ece {
            self.enter_cwr();
        }
        if self.rec.state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    pub(super) fn try_keep_open(&mut self) {
        let left_out = self.rec.sacked_out + self.rec.lost_out > 0;
        let state = if left_out || self.any_resent() { CaState::Disorder } else { CaState::Open };
        if state != self.rec.state {
            self.set_ca_state(state);
            self.rec.high_seq = self.snd.nxt;
        }
    }

    /// Something that was retransmitted is not acknowledged (`tcp_any_retrans_done`).
    pub(super) fn any_resent(&self) -> bool {
        self.rec.retrans_out > 0 || self.q.head().is_some_and(|head| head.marks.ever_resent)
    }

    /// Without SACK each duplicate ACK counts as one packet that arrived.
    fn add_dup_acks(&mut self, duplicates: u32, ece: bool) {
        if duplicates == 0 {
            return;
        }
        let had = self.rec.sacked_out;
        self.rec.sacked_out += duplicates;
        self.limit_dup_acks(0);
        self.count_delivered(self.rec.sacked_out.saturating_sub(had), ece);
    }

    pub(super) fn remove_dup_acks(&mut self, acked: u32, ece: bool) {
        if acked > 0 {
            let delivered = acked.saturating_sub(self.rec.sacked_out).max(1);
            self.count_delivered(delivered, ece);
            self.rec.sacked_out = self.rec.sacked_out.saturating_sub(acked - 1);
        }
        self.limit_dup_acks(acked);
    }

    pub(super) fn limit_dup_acks(&mut self, addend: u32) {
        let holes = self.rec.lost_out.max(1).min(self.rec.packets_out);
        if self.rec.sacked_out + holes > self.rec.packets_out {
            self.rec.sacked_out = self.rec.packets_out - holes;
            self.rec.reordering =
                (self.rec.packets_out + addend).min(self.config.sysctl.max_reordering);
            self.rec.reord_seen = true;
            self.traffic.reord_seen += 1;
        }
    }
}
