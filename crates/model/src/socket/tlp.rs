//! Tail loss probes (RFC 8985 section 7): a last segment that nobody acknowledges is asked for
//! before the timeout.
//!
//! Follows `tcp_schedule_loss_probe`, `tcp_send_loss_probe`, `tcp_process_tlp_ack`.

use super::handshake::LEAST_TIMEOUT;
use super::known::Ack;
use super::output::{Nagle, Push};
use super::state::Purpose;
use super::{CaState, Socket};
use crate::segment::{Segment, after, before};

impl Socket {
    /// Sets the probe's timer in place of the retransmission's; whether it did.
    pub(super) fn schedule_loss_probe(&mut self, advancing_rto: bool) -> bool {
        if !matches!(self.config.sysctl.early_retrans, 3 | 4)
            || self.rec.packets_out == 0
            || self.fast.passive
            || !self.sack
            || !matches!(self.rec.state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut delay = if self.rtt.srtt_us > 0 {
            let round_trips_us = self.rtt.srtt_us >> 2;
            if self.rec.packets_out == 1 {
                self.jiffies_from_us(u64::from(round_trips_us + self.rto_min_us()))
            } else {
                self.jiffies_with_allowance(round_trips_us)
            }
        } else {
            self.jiffies_from_ms(1000)
        };
        let left_us = if advancing_rto {
            self.us_from_jiffies(self.rtt.rto) as i64
        } else {
            self.rto_left_us()
        };
        if left_us > 0 {
            delay = delay.min(self.jiffies_from_us(left_us.cast_unsigned()));
        }
        self.set_timer(Purpose::LossProbe, delay);
        true
    }

    /// Ticks of a wait with what is allowed besides.
    pub(super) fn jiffies_with_allowance(&self, wait_us: u32) -> u64 {
        if self.config.kernel.allows_two_ticks {
            return self.jiffies_from_us(u64::from(wait_us)) + LEAST_TIMEOUT;
        }
        self.jiffies_from_us(u64::from(wait_us + TIMEOUT_MIN_US))
    }

    /// Sends one new segment, or the last one again.
    pub(super) fn send_loss_probe(&mut self, out: &mut Vec<Segment>) {
        if self.rec.tlp_high_seq.is_none() {
            self.rec.tlp_retrans = false;
            if self.probe(out) {
                self.rec.tlp_high_seq = Some(self.snd.nxt);
                self.clear_timer();
            }
        }
        self.rearm_rto();
    }

    fn probe(&mut self, out: &mut Vec<Segment>) -> bool {
        let mss = self.current_mss();
        if let Some(&head) = self.q.send_head()
            && self.window_allows(&head, mss)
        {
            let had = self.rec.packets_out;
            self.write_xmit(mss, Nagle::OFF, Push::Probe, out);
            return self.rec.packets_out > had;
        }
        let Some(last) = self.q.sent().checked_sub(1) else { return false };
        let skb = *self.q.at(last);
        let whole = skb.pcount.saturating_sub(1) * mss;
        let place = if skb.pcount > 1 && skb.len > whole {
            self.split(last, whole, mss);
            last + 1
        } else {
            last
        };
        self.rec.tlp_retrans = self.resend(place, 1, out);
        self.rec.tlp_retrans
    }

    /// Decides what an ACK says of the probe.
    pub(super) fn process_tlp_ack(&mut self, ack: &Ack) {
        let Some(high_seq) = self.rec.tlp_high_seq else { return };
        if before(ack.number, high_seq) {
            return;
        }
        if !self.rec.tlp_retrans || ack.dsack_tlp {
            self.rec.tlp_high_seq = None;
        } else if after(ack.number, high_seq) {
            // The probe repaired a loss that nothing else told of: the window is reduced for it.
            self.begin_reduction();
            self.set_ca_state(CaState::Cwr);
            self.end_reduction();
            self.try_keep_open();
        } else if !ack.una_advanced && !ack.not_dup() && !ack.data_sacked {
            self.rec.tlp_high_seq = None;
        }
    }
}

/// `TCP_TIMEOUT_MIN_US` of include/net/tcp.h.
const TIMEOUT_MIN_US: u32 = 2_000;
