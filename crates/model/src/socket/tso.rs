//! How large the pieces are that are handed down: TSO's size and its waiting, Nagle, small queues,
//! pacing.
//!
//! Follows `tcp_tso_autosize`, `tcp_tso_should_defer`, `tcp_mss_split_point`, `tcp_cwnd_test`,
//! `tcp_nagle_test`, `tcp_minshall_check`, `tcp_small_queue_check`, `tcp_pacing_check`,
//! `tcp_update_skb_after_send`, `tcp_update_pacing_rate`.

use super::output::{Nagle, Wait};
use super::queue::Skb;
use super::{CaState, Socket};
use crate::profile::Defer;
use crate::segment::{Flags, Segment, after};

impl Socket {
    /// Most packets of one piece: what a millisecond of the pacing rate carries, and more on short
    /// round trips.
    pub(super) fn tso_segments(&self, mss: u32) -> u32 {
        let mut bytes = self.snd.pacing_rate >> self.cc.pacing_shift();
        if self.config.kernel.tso_by_rtt {
            let halvings = self.min_rtt_us() >> self.config.sysctl.tso_rtt_log;
            if halvings < u32::BITS {
                bytes += u64::from(self.gso_max() >> halvings);
            }
        }
        let bytes = bytes.min(u64::from(self.gso_max())) as u32;
        let least =
            self.cc.min_tso_segs(self.snd.pacing_rate).unwrap_or(self.config.sysctl.min_tso_segs);
        (bytes / mss).max(least).min(self.config.link.gso_max_segs)
    }

    /// Packets that the congestion window allows, at most half of it at a time.
    pub(super) fn cwnd_quota(&self, skb: &Skb, fin_passes: bool) -> u32 {
        if fin_passes && skb.flags.has(Flags::FIN) && skb.len <= self.snd.mss_cache {
            return 1;
        }
        let in_flight = self.in_flight();
        if in_flight >= self.cw.cwnd {
            return 0;
        }
        (self.cw.cwnd >> 1).max(1).min(self.cw.cwnd - in_flight)
    }

    /// Whether a small segment may leave.
    pub(super) fn nagle_allows(&self, skb: &Skb, mss: u32, nagle: Nagle) -> bool {
        nagle.push || skb.flags.has(Flags::FIN) || !self.nagle_holds(skb.len < mss, nagle)
    }

    /// Holds a partial segment while it is corked, or while an earlier one is unacknowledged.
    const fn nagle_holds(&self, partial: bool, nagle: Nagle) -> bool {
        let minshall = after(self.snd.sml, self.snd.una) && !after(self.snd.sml, self.snd.nxt);
        let held = !nagle.off && !nagle.push && self.rec.packets_out > 0 && minshall;
        partial && (nagle.cork || held)
    }

    /// Bytes of a segment that leave as one.
    pub(super) fn split_point(
        &self,
        skb: &Skb,
        is_last: bool,
        mss: u32,
        segments: u32,
        nagle: Nagle,
    ) -> u32 {
        let window = self.window_end().wrapping_sub(skb.seq);
        let most = mss.saturating_mul(segments);
        if most <= window && !is_last {
            return most;
        }
        let needed = skb.len.min(window);
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if self.nagle_holds(partial != 0, nagle) { needed - partial } else { needed }
    }

    /// Whether TSO waits for a larger piece, and for what.
    pub(super) fn should_defer(&self, skb: &Skb, is_last: bool, most: u32) -> Option<Wait> {
        if self.rec.state >= CaState::Recovery
            || self.now_ns > self.snd.wstamp_ns + DEFER_AFTER_WRITE_NS
        {
            return None;
        }
        let mss = self.snd.mss_cache;
        let window = self.window_end().wrapping_sub(skb.seq);
        let cwnd = (self.cw.cwnd - self.in_flight()) * mss;
        let limit = window.min(cwnd);
        if limit >= most.saturating_mul(mss) || (!is_last && limit >= skb.len) {
            return None;
        }
        let whole = self.snd.wnd.min(self.cw.cwnd.saturating_mul(mss));
        let share = whole.checked_div(self.config.sysctl.tso_win_divisor);
        let enough = share.map_or(limit > MAX_TSO_DEFERRED_MSS * mss, |share| limit >= share);
        if enough || !self.ack_is_near() {
            return None;
        }
        if cwnd < window {
            if cwnd <= skb.len {
                return Some(Wait::DeferCwnd);
            }
        } else if window <= skb.len {
            return Some(Wait::DeferWindow);
        }
        (!skb.flags.has(Flags::FIN) && !skb.eor).then_some(Wait::Defer)
    }

    /// Whether the acknowledgment of the oldest segment is expected soon.
    fn ack_is_near(&self) -> bool {
        let Some(head) = self.q.head() else { return false };
        let srtt_ns = u64::from(self.rtt.srtt_us) * 125;
        match self.config.kernel.defer {
            Defer::Imminent => {
                let expected = head.sent_ns + srtt_ns;
                let soon = (srtt_ns >> 1).min(DEFER_AFTER_WRITE_NS);
                expected <= self.now_ns + soon
            }
            Defer::HalfRoundTrip => self.now_ns >= head.sent_ns + (srtt_ns >> 1),
        }
    }

    /// Whether too much is still in the host (TCP small queues); `factor` is for retransmissions.
    pub(super) fn is_throttled(&mut self, truesize: u32, factor: u32) -> bool {
        let paced = self.snd.pacing_rate >> self.cc.pacing_shift();
        let mut limit = u64::from(2 * truesize).max(paced);
        if !self.is_pacing() || !self.config.kernel.departure_times {
            limit = limit.min(u64::from(self.config.sysctl.limit_output_bytes));
        }
        // The socket itself counts as one (`sk_alloc`).
        if u64::from(self.snd.wmem_alloc) < limit << factor {
            return false;
        }
        let few = usize::from(self.config.kernel.tsq_passes_single);
        if self.q.sent() <= few {
            return false;
        }
        self.snd.throttled = true;
        true
    }

    /// Segments left the host, and the sender waited for that (`tcp_tsq_write`).
    pub(super) fn on_unthrottled(&mut self, out: &mut Vec<Segment>) {
        self.snd.throttled = false;
        if self.rec.lost_out > self.rec.retrans_out && self.cw.cwnd > self.in_flight() {
            self.retransmit_queue(out);
        }
        let mss = self.current_mss();
        self.write_xmit(mss, self.nagle(), super::output::Push::All, out);
    }

    /// Somebody enforces the pacing rate.
    pub(super) fn is_pacing(&self) -> bool {
        self.snd.paced || self.config.link.paces
    }

    /// Whether TCP itself has to wait for the next departure.
    pub(super) fn must_pace(&mut self) -> bool {
        if !self.snd.paced || self.config.link.paces || self.snd.wstamp_ns <= self.now_ns {
            return false;
        }
        self.timers.pacing.get_or_insert(self.snd.wstamp_ns);
        true
    }

    /// The next departure, after `len` bytes.
    pub(super) fn pace_after(&mut self, len: u32, prior_stamp: u64) {
        let rate = self.snd.pacing_rate;
        if !self.is_pacing() || rate == 0 || rate == u64::MAX {
            return;
        }
        if self.snd.data_segs_out < UNPACED_SEGMENTS {
            return;
        }
        let gap = u64::from(len) * 1_000_000_000 / rate;
        let credit = self.snd.wstamp_ns - prior_stamp;
        self.snd.wstamp_ns += gap - (gap / 2).min(credit);
    }

    /// The rate that the window makes, and some room to grow.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.cc.controls_itself() {
            return;
        }
        let sysctl = &self.config.sysctl;
        let ratio = if self.cw.cwnd < self.cw.ssthresh / 2 {
            sysctl.pacing_ss_ratio
        } else {
            sysctl.pacing_ca_ratio
        };
        let mut rate = u64::from(self.snd.mss_cache) * (10_000 << 3) * u64::from(ratio);
        rate *= u64::from(self.cw.cwnd.max(self.rec.packets_out));
        if self.rtt.srtt_us > 0 {
            rate /= u64::from(self.rtt.srtt_us);
        }
        self.snd.pacing_rate = rate.min(self.snd.max_pacing_rate);
    }
}

/// TSO waits only while the application writes on: the last write was so recent
/// (`tcp_tso_should_defer`, v5.0: a millisecond).
const DEFER_AFTER_WRITE_NS: u64 = 1_000_000;

/// `tcp_max_tso_deferred_mss` of include/net/tcp.h.
const MAX_TSO_DEFERRED_MSS: u32 = 3;

/// "Original `sch_fq` does not pace first 10 MSS" (`tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u32 = 10;
