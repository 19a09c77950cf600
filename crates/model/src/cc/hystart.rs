//! `HyStart`: slow start ends when acknowledgments come in a train as long as the path, or when
//! round trips grow (`hystart_update` of `net/ipv4/tcp_cubic.c`).

use super::Surroundings;
use crate::segment::after;

/// What is seen of the current round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Train {
    found: bool,
    round_start_us: u64,
    last_ack_us: u64,
    end_seq: u32,
    curr_rtt_us: u32,
    samples: u32,
}

impl Train {
    pub(crate) fn begin_round(&mut self, at: &Surroundings) {
        *self = Self {
            found: self.found,
            round_start_us: clock_us(at),
            last_ack_us: clock_us(at),
            end_seq: at.nxt,
            curr_rtt_us: u32::MAX,
            samples: 0,
        };
    }

    /// The window grows in slow start.
    pub(crate) fn on_growth(&mut self, at: &Surroundings) {
        if at.hystart.late_rounds {
            self.follow(at);
        }
    }

    fn follow(&mut self, at: &Surroundings) {
        if after(at.una, self.end_seq) {
            self.begin_round(at);
        }
    }

    /// Whether slow start is to end now.
    pub(crate) fn is_over(
        &mut self,
        delay_us: u32,
        delay_min_us: u32,
        cwnd: u32,
        at: &Surroundings,
    ) -> bool {
        if self.found || (cwnd < LOW_WINDOW && !at.hystart.early_rounds) {
            return false;
        }
        if !at.hystart.late_rounds {
            self.follow(at);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let train = self.is_long(delay_min_us, at);
        let delay = self.is_slower(delay_us, delay_min_us, at);
        self.found = train || delay;
        self.found
    }

    /// The train of acknowledgments is longer than half the least round trip.
    fn is_long(&mut self, delay_min_us: u32, at: &Surroundings) -> bool {
        let now = clock_us(at);
        if now.saturating_sub(self.last_ack_us) > ACK_DELTA_US {
            return false;
        }
        self.last_ack_us = now;
        let mut threshold = u64::from(delay_min_us);
        if at.hystart.microseconds {
            threshold += ack_delay_us(at);
            if !at.is_paced {
                threshold >>= 1;
            }
        } else {
            threshold >>= 1;
        }
        now - self.round_start_us > threshold
    }

    /// The least round trip of the round is well above the least of all.
    fn is_slower(&mut self, delay_us: u32, delay_min_us: u32, at: &Surroundings) -> bool {
        let counts = !at.hystart.eight_samples || self.samples < MIN_SAMPLES;
        if counts {
            self.curr_rtt_us = self.curr_rtt_us.min(delay_us);
        }
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let margin = (delay_min_us >> 3).clamp(DELAY_MIN_US, DELAY_MAX_US);
        self.curr_rtt_us > delay_min_us + margin
    }
}

/// Before v5.6 this clock ran in milliseconds.
const fn clock_us(at: &Surroundings) -> u64 {
    if at.hystart.microseconds { at.now_us } else { at.now_us / 1000 * 1000 }
}

/// How long a receiver or TSO may hold acknowledgments together (`hystart_ack_delay`).
fn ack_delay_us(at: &Surroundings) -> u64 {
    if at.pacing_rate == 0 {
        return 0;
    }
    (u64::from(at.gso_max) * 4 * 1_000_000 / at.pacing_rate).min(1000)
}

/// `hystart_low_window`.
const LOW_WINDOW: u32 = 16;

/// `hystart_ack_delta_us` (`hystart_ack_delta`, 2 ms, before v5.6).
const ACK_DELTA_US: u64 = 2000;

/// `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u32 = 8;

/// `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`.
const DELAY_MIN_US: u32 = 4_000;
const DELAY_MAX_US: u32 = 16_000;
