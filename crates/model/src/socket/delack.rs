//! When to acknowledge: at once, with data, or later.
//!
//! Follows `__tcp_ack_snd_check`, `tcp_event_data_recv`, `tcp_measure_rcv_mss`,
//! `tcp_send_delayed_ack`, `tcp_delack_timer_handler`, `tcp_event_ack_sent`,
//! `tcp_enter_quickack_mode`.

use super::Socket;
use crate::profile::Space;
use crate::segment::{Flags, Segment};

impl Socket {
    /// Data arrived in order: learns the size and rhythm of the peer's segments.
    pub(super) fn on_data_received(&mut self, segment: &Segment, truesize: u32) {
        self.ack.scheduled = true;
        self.measure_rcv_mss(segment, truesize);
        self.measure_rcv_rtt_by_window();
        let now = self.jiffies();
        let (ato_min, rto) = (self.ato_min(), self.rtt.rto);
        if self.ack.ato == 0 {
            self.raise_quick(MAX_QUICKACKS);
            self.ack.ato = ato_min;
        } else {
            let gap = now.saturating_sub(self.ack.lrcvtime);
            if gap <= ato_min / 2 {
                self.ack.ato = (self.ack.ato >> 1) + ato_min / 2;
            } else if gap < self.ack.ato {
                self.ack.ato = ((self.ack.ato >> 1) + gap).min(rto);
                if self.config.kernel.delack_below_rto_min {
                    self.ack.ato = self.ack.ato.min(self.delack_max());
                }
            } else if gap > rto {
                self.raise_quick(MAX_QUICKACKS);
            }
        }
        self.ack.lrcvtime = now;
        self.check_ce(segment);
        if segment.len >= SMALL {
            let charged = if self.config.kernel.grows_by_payload {
                self.payload_charge(segment)
            } else {
                truesize
            };
            self.grow_window(segment.len, charged);
        }
    }

    /// Size of the peer's full segments, and whether this was the end of a write.
    pub(super) fn measure_rcv_mss(&mut self, segment: &Segment, truesize: u32) {
        let last = std::mem::take(&mut self.ack.last_seg_size);
        let len = if segment.piece > 0 { u32::from(segment.piece) } else { segment.len };
        if len >= self.ack.rcv_mss {
            if len != self.ack.rcv_mss && self.config.kernel.space == Space::Ratio {
                self.measure_ratio(segment.len, truesize);
            }
            self.ack.rcv_mss = len.min(self.rcv.advmss);
            if segment.flags.has(Flags::PSH) && self.config.kernel.push_counts_full {
                self.ack.pushed = true;
            }
            return;
        }
        let with_header = len + segment.header_bytes();
        if with_header >= super::options::DEFAULT_MSS + 20
            || (with_header >= LEAST_MSS + 20
                && !segment.flags.has(Flags::PSH.with(Flags::FIN).with(Flags::SYN)))
        {
            let len = with_header - (20 + self.stamp_bytes());
            self.ack.last_seg_size = len;
            if len == last {
                self.ack.rcv_mss = len;
                return;
            }
        }
        self.ack.pushed_again |= self.ack.pushed;
        self.ack.pushed = true;
    }

    /// Share of payload in what arrives (`scaling_ratio`, v6.6).
    fn measure_ratio(&mut self, len: u32, truesize: u32) {
        let ratio = ((u64::from(len) << 8) / u64::from(truesize.max(1))).clamp(1, 255) as u32;
        if ratio == self.rcv.scaling_ratio {
            return;
        }
        self.rcv.scaling_ratio = ratio;
        self.rcv.window_clamp = self.full_space().max(0) as u32;
        self.rcv.space = self.rcv.space.min(self.rcv.window_clamp);
    }

    /// Acknowledges now or plans to, if something waits for it.
    pub(super) fn check_ack(&mut self, out: &mut Vec<Segment>) {
        if !self.ack.scheduled {
            return;
        }
        let pending = self.rcv.nxt.wrapping_sub(self.rcv.wup);
        let enough = pending > self.ack.rcv_mss && self.window_now() >= self.rcv.wnd;
        if enough || self.in_quickack_mode() || self.ack.now {
            self.send_ack(out);
        } else if self.rcv.out_of_order.is_empty() {
            self.send_delayed_ack(out);
        } else if self.may_compress() {
            self.compress_ack();
        } else {
            self.send_ack(out);
        }
    }

    /// Several duplicates with SACK may be told in one.
    fn may_compress(&mut self) -> bool {
        if !self.sack || self.ack.compressed >= self.config.sysctl.comp_sack_nr {
            return false;
        }
        if self.ack.compressed_nxt != self.rcv.nxt {
            self.ack.compressed_nxt = self.rcv.nxt;
            self.ack.dup_count = 0;
        }
        if self.config.kernel.compress_after_three && self.ack.dup_count < FAST_RETRANSMIT_THRESH {
            self.ack.dup_count += 1;
            return false;
        }
        true
    }

    fn compress_ack(&mut self) {
        self.ack.compressed += 1;
        if self.timers.compressed.is_some() {
            return;
        }
        let mut rtt = self.rcv.rtt_us;
        if self.rtt.srtt_us > 0 && self.rtt.srtt_us < rtt {
            rtt = self.rtt.srtt_us;
        }
        let delay = (u64::from(rtt) * 125 / 20).min(self.config.sysctl.comp_sack_delay_ns);
        let slack = self.config.sysctl.comp_sack_slack_ns;
        self.timers.compressed = Some(self.now_ns + delay + slack);
    }

    pub(super) fn on_compressed_timer(&mut self, out: &mut Vec<Segment>) {
        if self.ack.compressed > 0 {
            // One was already due before the first that was held back.
            self.ack.compressed -= 1;
            self.send_ack(out);
        }
    }

    pub(super) fn send_delayed_ack(&mut self, out: &mut Vec<Segment>) {
        let ato_min = self.ato_min();
        let mut ato = self.ack.ato;
        if ato > ato_min {
            let mut most = u64::from(self.config.kernel.hz / 2);
            if self.in_pingpong_mode() || self.ack.pushed {
                most = self.delack_max();
            }
            if self.rtt.srtt_us > 0 {
                let rtt = self.jiffies_from_us(u64::from(self.rtt.srtt_us >> 3));
                most = most.min(rtt.max(ato_min));
            }
            ato = ato.min(most);
        }
        ato = ato.min(self.delack_max());
        if self.config.kernel.delack_below_rto_min {
            let below = self.jiffies_from_us(u64::from(self.rto_min_us())).saturating_sub(1);
            ato = ato.min(below.max(1));
        }
        let now = self.jiffies();
        let mut timeout = now + ato;
        if self.ack.timer {
            if self.ack.timeout <= now + (ato >> 2) {
                self.send_ack(out);
                return;
            }
            timeout = timeout.min(self.ack.timeout);
        }
        self.ack.timer = true;
        self.ack.timeout = timeout;
        self.timers.delack = Some(self.wheel(timeout));
    }

    /// The acknowledgment of a SYN-ACK waits for a writer, for `TCP_DELACK_MAX` at most.
    pub(super) fn delay_ack_long(&mut self) {
        let timeout = self.jiffies() + self.delack_max();
        self.ack.timer = true;
        self.ack.timeout = timeout;
        self.timers.delack = Some(self.wheel(timeout));
    }

    pub(super) fn on_delack_timer(&mut self, out: &mut Vec<Segment>) {
        if self.ack.compressed > 0 && self.config.kernel.delack_flushes {
            // `tcp_sack_compress_send_ack`.
            self.ack.compressed = 0;
            self.timers.compressed = None;
            self.send_ack(out);
            return;
        }
        if !self.ack.timer {
            return;
        }
        self.ack.timer = false;
        if !self.ack.scheduled {
            return;
        }
        if self.in_pingpong_mode() {
            self.ack.pingpong = 0;
            self.ack.ato = self.ato_min();
        } else {
            self.ack.ato = (self.ack.ato << 1).min(self.rtt.rto);
        }
        self.send_ack(out);
    }

    /// A segment with an acknowledgment leaves.
    pub(super) fn on_ack_sent(&mut self) {
        if self.ack.compressed > 0 {
            self.ack.compressed = 0;
            self.timers.compressed = None;
        }
        if self.ack.quick > 0 && self.ack.scheduled {
            self.ack.quick -= 1;
            if self.ack.quick == 0 {
                self.ack.ato = self.ato_min();
            }
        }
        self.ack.scheduled = false;
        self.ack.timer = false;
        self.ack.pushed = false;
        self.ack.pushed_again = false;
        self.ack.now = false;
        self.ack.no_memory = false;
    }

    pub(super) fn in_quickack_mode(&self) -> bool {
        self.config.route.quickack || (self.ack.quick > 0 && !self.in_pingpong_mode())
    }

    /// The connection goes to and fro: answers carry the acknowledgments.
    pub(super) const fn in_pingpong_mode(&self) -> bool {
        self.ack.pingpong >= self.config.sysctl.pingpong_thresh
    }

    pub(super) fn enter_quickack_mode(&mut self, most: u32) {
        self.raise_quick(most);
        self.ack.pingpong = 0;
        self.ack.ato = self.ato_min();
    }

    fn raise_quick(&mut self, most: u32) {
        let quick = self.rcv.wnd / (2 * self.ack.rcv_mss.max(1));
        let quick = if quick == 0 { 2 } else { quick };
        self.ack.quick = self.ack.quick.max(quick.min(most));
    }

    /// The receiver reports congestion experienced until the peer has reduced (`tcp_ecn_check_ce`).
    fn check_ce(&mut self, segment: &Segment) {
        if !self.ecn.ok {
            return;
        }
        match segment.ecn {
            crate::segment::Ecn::NotEct => {
                if self.ecn.seen {
                    self.enter_quickack_mode(2);
                }
            }
            crate::segment::Ecn::Ce => {
                if !self.ecn.demand_cwr {
                    self.enter_quickack_mode(2);
                    self.ecn.demand_cwr = true;
                }
                self.ecn.seen = true;
            }
            crate::segment::Ecn::Ect0 => self.ecn.seen = true,
        }
    }

    /// `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms.
    const fn ato_min(&self) -> u64 {
        self.config.kernel.hz as u64 / 25
    }

    /// `TCP_DELACK_MAX`: 200 ms.
    const fn delack_max(&self) -> u64 {
        self.config.kernel.hz as u64 / 5
    }
}

/// `TCP_MAX_QUICKACKS` of include/net/tcp.h.
pub(super) const MAX_QUICKACKS: u32 = 16;

/// `TCP_FASTRETRANS_THRESH` of include/net/tcp.h.
const FAST_RETRANSMIT_THRESH: u32 = 3;

/// `TCP_MIN_MSS` of include/net/tcp.h.
const LEAST_MSS: u32 = 88;

/// Smaller segments do not grow the window (`tcp_event_data_recv`).
const SMALL: u32 = 128;
