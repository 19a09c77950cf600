//! Tuning of the receive buffer: twice what the application reads in a round trip.
//!
//! Follows `tcp_rcv_space_adjust`, `tcp_rcv_rtt_update`, `tcp_rcv_rtt_measure`,
//! `tcp_rcv_rtt_measure_ts`.

use super::Socket;
use crate::profile::{Space, Tuning};
use crate::segment::{Segment, before};

impl Socket {
    /// The application has read: was it more than in the last round trip?
    pub(super) fn adjust_space(&mut self) {
        let now_us = self.now_us();
        let elapsed = now_us - self.rcv.space_time_us;
        if self.rcv.rtt_us == 0 || elapsed < u64::from(self.rcv.rtt_us >> 3) {
            return;
        }
        let mut copied = i64::from(self.rcv.copied_seq.wrapping_sub(self.rcv.space_seq));
        if self.config.kernel.tuning_counts_read {
            copied -= i64::from(self.rcv.nxt.wrapping_sub(self.rcv.copied_seq));
        }
        if copied > i64::from(self.rcv.space) {
            let copied = copied as u32;
            self.grow_rcvbuf(copied);
            self.rcv.space = copied;
        }
        self.rcv.space_seq = self.rcv.copied_seq;
        self.rcv.space_time_us = now_us;
    }

    /// The buffer grows for these bytes of a round trip, and for what is held (`tcp_rcvbuf_grow`).
    pub(super) fn grow_rcvbuf(&mut self, copied: u32) {
        if !self.config.sysctl.moderate_rcvbuf || self.config.options.rcvbuf.is_some() {
            return;
        }
        let (copied, space) = (u64::from(copied), u64::from(self.rcv.space).max(1));
        let advmss = u64::from(self.rcv.advmss);
        let grown = copied - space;
        let window = match self.config.kernel.tuning {
            Tuning::Doubled | Tuning::DoubledBytes => {
                let window = 2 * copied + 16 * advmss;
                window + 2 * (window * grown / space)
            }
            Tuning::Plain => 2 * copied + self.held_span(),
            Tuning::Anticipating => {
                let window = 2 * copied;
                window + 2 * (window * grown / space) + self.held_span()
            }
        };
        let wanted = match self.config.kernel.tuning {
            Tuning::Doubled => window / advmss * u64::from(self.memory_of_segment()),
            _ => self.space_for(window),
        };
        let wanted = wanted.min(u64::from(self.config.sysctl.rmem[2])) as u32;
        if wanted > self.rcv.rcvbuf {
            self.rcv.rcvbuf = wanted;
            self.rcv.window_clamp = self.window_from(i64::from(wanted)).max(0) as u32;
        }
    }

    /// Memory of one segment, enlarged until its window holds it (`tcp_rcv_space_adjust`).
    fn memory_of_segment(&self) -> u32 {
        let memory = self.config.kernel.memory;
        let mut packet = self.rcv.advmss + memory.headers + memory.skb + memory.shared;
        while self.window_from(i64::from(packet)) < i64::from(self.rcv.advmss) {
            packet += 128;
        }
        packet
    }

    /// Buffer that makes such a window (`tcp_space_from_win`).
    fn space_for(&self, window: u64) -> u64 {
        match self.config.kernel.space {
            Space::Ratio => (window << 8) / u64::from(self.rcv.scaling_ratio.max(1)),
            Space::AdvWinScale => window << 1,
        }
    }

    /// Bytes from the next expected one to the end of what is held out of order.
    fn held_span(&self) -> u64 {
        let end = self.rcv.out_of_order.last().map_or(self.rcv.nxt, |held| held.end_seq);
        u64::from(end.wrapping_sub(self.rcv.nxt))
    }

    /// A sample of the round trip by the echo of a timestamp, once for each: none by data that echoes what an
    /// ACK without data has before it (`tcp_rcv_established` notes every segment's echo, in its fast path too:
    /// 4.19.307 was read, 5.10, 6.1 and 6.12 in simulated time do so).
    pub(super) fn measure_rcv_rtt_by_echo(&mut self, segment: &Segment) {
        let Some(stamps) = segment.options.stamps.filter(|_| self.stamps) else { return };
        if stamps.echo == self.rcv.last_echo {
            return;
        }
        self.rcv.last_echo = stamps.echo;
        if segment.len < self.ack.rcv_mss {
            return;
        }
        let delta = self.stamp_at(self.now_ns).wrapping_sub(stamps.echo);
        let skipped = delta == 0 && self.config.kernel.rcv_rtt_skips_zero;
        if delta < i32::MAX as u32 / 1000 && !skipped {
            self.update_rcv_rtt(delta.max(1) * 1000, false);
        }
    }

    /// A sample by the time that a window takes to arrive.
    pub(super) fn measure_rcv_rtt_by_window(&mut self) {
        let now_us = self.now_us();
        if self.rcv.rtt_time_us != 0 {
            if before(self.rcv.nxt, self.rcv.rtt_seq) {
                return;
            }
            let elapsed = (now_us - self.rcv.rtt_time_us).max(1) as u32;
            self.update_rcv_rtt(elapsed, true);
        }
        self.rcv.rtt_seq = self.rcv.nxt.wrapping_add(self.rcv.wnd);
        self.rcv.rtt_time_us = now_us;
    }

    fn update_rcv_rtt(&mut self, sample_us: u32, by_window: bool) {
        let (old, scaled) = (self.rcv.rtt_us, sample_us.saturating_mul(8));
        let lower_at_once = self.config.kernel.rcv_rtt_takes_lower;
        self.rcv.rtt_us = if old == 0 || (scaled < old && (by_window || lower_at_once)) {
            scaled
        } else if by_window {
            return;
        } else {
            (old - (old >> 3)).saturating_add(sample_us)
        };
    }
}
