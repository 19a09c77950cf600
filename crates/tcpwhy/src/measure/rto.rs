//! The retransmission and probe timers as Linux computes them.
//!
//! Linux v6.18 `net/ipv4/tcp_input.c`, `tcp_rtt_estimator` and `tcp_set_rto`; RFC 6298 with the
//! kernel's changes (the variance's floor is 200 ms, its maximum decays once a round trip).

use crate::cc::RTO_MIN_NS;
use crate::offsets::Offset;

/// Linux `TCP_RTO_MAX` = 120 s.
const RTO_MAX_NS: i64 = 120_000_000_000;
/// Linux `TCP_TIMEOUT_INIT` = 1 s (RFC 6298 §2.1).
const RTO_INIT_NS: i64 = 1_000_000_000;

/// Smoothed round-trip time and what follows from it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rto {
    srtt: Option<i64>,
    /// Mean deviation, four times itself as in the kernel.
    mdev: i64,
    mdev_max: i64,
    rttvar: i64,
    round_end: Offset,
}

impl Rto {
    /// Takes a sample; `una` and `nxt` delimit the round in which the variance may decay.
    pub(crate) fn sample(&mut self, rtt: i64, una: Offset, nxt: Offset) {
        let rtt = rtt.max(1);
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.mdev = 2 * rtt;
            self.rttvar = self.mdev.max(RTO_MIN_NS);
            self.mdev_max = self.rttvar;
            self.round_end = nxt;
            return;
        };
        let error = rtt - srtt;
        self.srtt = Some(srtt + error / 8);
        // When the sample is far below, only an eighth of the usual weight (kernel comment: to
        // avoid the RTO growing when the round trip falls).
        let deviation = error.abs() - self.mdev / 4;
        self.mdev += if error < 0 && deviation > 0 { deviation / 8 } else { deviation };
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if una > self.round_end {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) / 4;
            }
            self.round_end = nxt;
            self.mdev_max = RTO_MIN_NS;
        }
    }

    /// The retransmission timeout.
    pub(crate) fn rto(&self) -> i64 {
        self.srtt.map_or(RTO_INIT_NS, |srtt| (srtt + self.rttvar).min(RTO_MAX_NS))
    }

    /// The tail loss probe's timeout (`tcp_schedule_loss_probe`): two round trips, and for a lone
    /// packet the receiver's longest delay of an ACK; never later than the RTO.
    pub(crate) fn pto(&self, lone: bool) -> i64 {
        let srtt = self.srtt.unwrap_or(RTO_INIT_NS / 2);
        (2 * srtt + if lone { RTO_MIN_NS } else { 2_000_000 }).min(self.rto())
    }

    /// The smoothed round-trip time.
    pub(crate) fn srtt(&self) -> Option<i64> {
        self.srtt
    }
}
