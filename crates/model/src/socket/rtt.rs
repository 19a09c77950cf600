//! Round trips and the retransmission timeout.
//!
//! Follows `tcp_ack_update_rtt`, `tcp_rtt_estimator`, `tcp_set_rto`, `tcp_update_rtt_min`.

use tcpwhy::cc::RTO_MIN_NS;

use super::Socket;
use crate::windowed::Windowed;

impl Socket {
    /// Takes a sample; whether there was one.
    pub(super) fn update_rtt(
        &mut self,
        sample_us: Option<u64>,
        newest_us: Option<u64>,
        maybe_delayed: bool,
    ) -> bool {
        let (Some(sample), Some(newest)) = (sample_us, newest_us) else { return false };
        let newest = newest as u32;
        if !maybe_delayed || newest <= self.min_rtt_us() {
            let least = if newest == 0 { self.us_from_jiffies(1) as u32 } else { newest };
            self.update_min_rtt(least);
        }
        let sample = u32::try_from(sample).unwrap_or(u32::MAX);
        self.rtt.last_us = sample;
        self.estimate_rtt(sample);
        self.set_rto();
        self.rec.backoff = 0;
        true
    }

    /// Jacobson's estimator as Linux has it: deviations downwards count less, and the variance
    /// falls once a round trip.
    fn estimate_rtt(&mut self, sample_us: u32) {
        let least = self.rto_min_us();
        let sample_us = sample_us.min(MOST_SAMPLE_US);
        let rtt = &mut self.rtt;
        if rtt.srtt_us == 0 {
            rtt.srtt_us = (sample_us << 3).max(1);
            rtt.mdev_us = sample_us << 1;
            rtt.rttvar_us = rtt.mdev_us.max(least);
            rtt.mdev_max_us = rtt.rttvar_us;
            rtt.round_seq = self.snd.nxt;
            return;
        }
        let error = i64::from(sample_us) - i64::from(rtt.srtt_us >> 3);
        rtt.srtt_us = (i64::from(rtt.srtt_us) + error).max(1) as u32;
        let mut change = error.abs() - i64::from(rtt.mdev_us >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        rtt.mdev_us = (i64::from(rtt.mdev_us) + change) as u32;
        if rtt.mdev_us > rtt.mdev_max_us {
            rtt.mdev_max_us = rtt.mdev_us;
            rtt.rttvar_us = rtt.rttvar_us.max(rtt.mdev_max_us);
        }
        if crate::segment::after(self.snd.una, rtt.round_seq) {
            if rtt.mdev_max_us < rtt.rttvar_us {
                rtt.rttvar_us -= (rtt.rttvar_us - rtt.mdev_max_us) >> 2;
            }
            rtt.round_seq = self.snd.nxt;
            rtt.mdev_max_us = least;
        }
    }

    pub(super) fn set_rto(&mut self) {
        let us = u64::from((self.rtt.srtt_us >> 3) + self.rtt.rttvar_us);
        self.rtt.rto = self.jiffies_from_us(us).min(self.rto_max());
    }

    /// `tcp_rto_min_us`: of the route, else 200 ms.
    pub(super) fn rto_min_us(&self) -> u32 {
        self.config.route.rto_min_ns.map_or(RTO_MIN_US, |ns| (ns / 1000) as u32)
    }

    /// `tcp_rto_max`, in ticks.
    pub(super) const fn rto_max(&self) -> u64 {
        self.jiffies_from_ms(self.config.sysctl.rto_max_ms as u64)
    }

    /// Least round trip of the last five minutes.
    pub(super) const fn min_rtt_us(&self) -> u32 {
        self.rtt.min.get()
    }

    pub(super) fn reset_min_rtt(&mut self) {
        self.rtt.min = Windowed::of(self.jiffies(), u32::MAX);
    }

    fn update_min_rtt(&mut self, sample: u32) {
        let window = u64::from(self.config.sysctl.min_rtt_wlen) * u64::from(self.config.kernel.hz);
        let now = self.jiffies();
        self.rtt.min.take(now, sample, window, |a, b| a <= b);
    }
}

/// The longest round trip; longer ones count as this. The kernel's `srtt_us` has eight times a round trip in 32 bits,
/// and wraps at 537 s. Ours: half of that, so that no sum of it and its variance does.
const MOST_SAMPLE_US: u32 = 1 << 28;

/// In the kernel's microseconds.
pub(super) const RTO_MIN_US: u32 = (RTO_MIN_NS / 1000) as u32;
