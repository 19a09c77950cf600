//! BBR's guess at a policer: two intervals of heavy loss with the same rate, and that rate is kept
//! for a while (`bbr_lt_bw_sampling` of `net/ipv4/tcp_bbr.c`).

use super::RateSample;
use super::transport::{BW_UNIT, Transport};

/// What is known of a policer.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    samples: bool,
    uses: bool,
    rate: u64,
    rounds: u32,
    last_ms: u64,
    last_delivered: u32,
    last_lost: u32,
}

impl Policer {
    /// Its rate, if one is believed.
    pub(super) fn rate(&self) -> Option<u64> {
        self.uses.then_some(self.rate)
    }

    /// A new interval begins.
    pub(super) const fn restart(&mut self, delivered: u32, lost: u32, delivered_ns: u64) {
        self.last_ms = delivered_ns / 1_000_000;
        self.last_delivered = delivered;
        self.last_lost = lost;
        self.rounds = 0;
    }

    /// Whether the rate has been kept long enough and the path is to be probed anew.
    pub(super) fn sample(
        &mut self,
        sample: &RateSample,
        round: bool,
        probes: bool,
        t: &Transport<'_>,
    ) -> bool {
        if self.uses {
            if round && probes {
                self.rounds += 1;
                if self.rounds >= MOST_ROUNDS {
                    self.reset(t);
                    return true;
                }
            }
            return false;
        }
        if !self.samples {
            if sample.losses == 0 {
                return false;
            }
            self.restart(t.delivered, t.lost, t.delivered_ns);
            self.samples = true;
        }
        if sample.is_app_limited {
            self.reset(t);
            return false;
        }
        self.rounds += u32::from(round);
        if self.rounds < LEAST_ROUNDS {
            return false;
        }
        if self.rounds > 4 * LEAST_ROUNDS {
            self.reset(t);
            return false;
        }
        self.end_interval(sample, t);
        false
    }

    /// The interval ends where packets are lost: was it lossy enough?
    fn end_interval(&mut self, sample: &RateSample, t: &Transport<'_>) {
        if sample.losses == 0 {
            return;
        }
        let lost = t.lost.wrapping_sub(self.last_lost);
        let delivered = t.delivered.wrapping_sub(self.last_delivered);
        if delivered == 0 || (lost << 8) < LOSS_THRESHOLD * delivered {
            return;
        }
        let ms = t.delivered_ns / 1_000_000 - self.last_ms;
        if ms < 1 {
            return;
        }
        if ms >= u64::from(u32::MAX) / 1000 {
            self.reset(t);
            return;
        }
        let rate = u64::from(delivered) * BW_UNIT / (ms * 1000);
        let change = rate.abs_diff(self.rate);
        let in_bytes = (change * u64::from(t.mss) * 1_000_000) >> 24;
        if self.rate > 0 && (change << 8 <= NEAR * self.rate || in_bytes <= NEAR_BYTES) {
            self.rate = u64::midpoint(rate, self.rate);
            self.uses = true;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.restart(t.delivered, t.lost, t.delivered_ns);
    }

    fn reset(&mut self, t: &Transport<'_>) {
        *self = Self::default();
        self.restart(t.delivered, t.lost, t.delivered_ns);
    }
}

/// `bbr_lt_intvl_min_rtts`, `bbr_lt_bw_max_rtts`.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 48;

/// `bbr_lt_loss_thresh`: a fifth, in 256ths.
const LOSS_THRESHOLD: u32 = 50;

/// `bbr_lt_bw_ratio`: an eighth, in 256ths; `bbr_lt_bw_diff`: 4 kbit/s.
const NEAR: u64 = 32;
const NEAR_BYTES: u64 = 500;
