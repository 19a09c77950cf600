//! BBR, version 1 (`net/ipv4/tcp_bbr.c`, v4.18 to v6.18; Cardwell et al., ACM Queue 14, 2016): a
//! model of the path, its rate and its least round trip, sets pace and window.
//!
//! Rates are packets a microsecond, scaled by 2^24; gains are scaled by 2^8. Where the kernel draws
//! the phase of its cycle by chance, a seed does here.

use super::RateSample;
use super::policer::Policer;
use super::transport::{BW_SHIFT, BW_UNIT, CaState, Transport};
use crate::path::Chance;
use crate::windowed::Windowed;

/// State of one connection (`struct bbr`).
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's flags, independent")]
pub(crate) struct Bbr {
    mode: Mode,
    /// Greatest rate of ten rounds.
    max_bw: Windowed<u64>,
    min_rtt_us: u32,
    min_rtt_stamp: u64,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    rounds: u32,
    next_round_delivered: u32,
    round_start: bool,
    cycle_ns: u64,
    cycle_index: usize,
    pacing_gain: u64,
    cwnd_gain: u64,
    full_bw: u64,
    full_bw_rounds: u32,
    full_bw_reached: bool,
    idle_restart: bool,
    conserves_packets: bool,
    prior_cwnd: u32,
    prior_state: CaState,
    has_seen_rtt: bool,
    ack_epoch_ns: u64,
    ack_epoch_acked: u32,
    extra_acked: [u32; 2],
    extra_acked_rounds: u32,
    extra_acked_index: usize,
    policer: Policer,
    chance: Chance,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

impl Bbr {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            mode: Mode::Startup,
            max_bw: Windowed::of(0, 0),
            min_rtt_us: u32::MAX,
            min_rtt_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            rounds: 0,
            next_round_delivered: 0,
            round_start: false,
            cycle_ns: 0,
            cycle_index: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_reached: false,
            idle_restart: false,
            conserves_packets: false,
            prior_cwnd: 0,
            prior_state: CaState::Open,
            has_seen_rtt: false,
            ack_epoch_ns: 0,
            ack_epoch_acked: 0,
            extra_acked: [0; 2],
            extra_acked_rounds: 0,
            extra_acked_index: 0,
            policer: Policer::default(),
            chance: Chance::new(seed),
        }
    }

    /// `bbr_init`.
    pub(crate) fn begin(&mut self, t: &mut Transport<'_>) {
        self.next_round_delivered = t.delivered;
        self.min_rtt_us = t.min_rtt_us;
        self.min_rtt_stamp = t.jiffies;
        self.ack_epoch_ns = t.now_ns;
        self.init_pacing_rate(t);
        self.policer.restart(t.delivered, t.lost, t.delivered_ns);
    }

    /// An acknowledgment with its sample of the rate (`bbr_main`).
    pub(crate) fn on_sample(&mut self, sample: &RateSample, t: &mut Transport<'_>) {
        self.update_bandwidth(sample, t);
        self.update_aggregation(sample, t);
        self.update_cycle(sample, t);
        self.check_full_bandwidth(sample);
        self.check_drain(t);
        self.update_min_rtt(sample, t);
        self.update_gains();
        let bw = self.bandwidth();
        self.set_pacing_rate(bw, self.pacing_gain, t);
        self.set_cwnd(sample, bw, t);
    }

    /// Sending begins after nothing was under way (`bbr_cwnd_event`).
    pub(crate) fn on_start(&mut self, t: &mut Transport<'_>) {
        if *t.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        self.ack_epoch_ns = t.now_ns;
        self.ack_epoch_acked = 0;
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate(self.bandwidth(), UNIT, t),
            Mode::ProbeRoundTrip => self.check_probe_rtt_done(t),
            Mode::Startup | Mode::Drain => {}
        }
    }

    pub(super) fn save_cwnd(&mut self, cwnd: u32) {
        self.prior_cwnd =
            if self.prior_state < CaState::Recovery && self.mode != Mode::ProbeRoundTrip {
                cwnd
            } else {
                self.prior_cwnd.max(cwnd)
            };
    }

    /// `bbr_undo_cwnd`: spurious losses do not end the start-up.
    pub(super) fn undo(&mut self) {
        self.full_bw = 0;
        self.full_bw_rounds = 0;
        self.policer = Policer::default();
    }

    /// A retransmission timer expired (`bbr_set_state`).
    pub(super) const fn on_loss_state(&mut self) {
        self.prior_state = CaState::Loss;
        self.full_bw = 0;
        self.round_start = true;
    }

    fn max_bandwidth(&self) -> u64 {
        self.max_bw.get()
    }

    fn bandwidth(&self) -> u64 {
        self.policer.rate().unwrap_or_else(|| self.max_bandwidth())
    }

    fn init_pacing_rate(&mut self, t: &mut Transport<'_>) {
        let rtt_us = if t.srtt_us > 0 {
            self.has_seen_rtt = true;
            (t.srtt_us >> 3).max(1)
        } else {
            1000
        };
        let bw = u64::from(t.cw.cwnd) * BW_UNIT / u64::from(rtt_us);
        *t.pacing_rate = pacing_rate(bw, HIGH_GAIN, t);
    }

    fn set_pacing_rate(&mut self, bw: u64, gain: u64, t: &mut Transport<'_>) {
        let rate = pacing_rate(bw, gain, t);
        if !self.has_seen_rtt && t.srtt_us > 0 {
            self.init_pacing_rate(t);
        }
        if self.full_bw_reached || rate > *t.pacing_rate {
            *t.pacing_rate = rate;
        }
    }

    fn update_bandwidth(&mut self, sample: &RateSample, t: &Transport<'_>) {
        self.round_start = false;
        let Some(delivered) = sample.delivered.filter(|_| sample.interval_us > 0) else { return };
        if !crate::segment::before(sample.prior_delivered, self.next_round_delivered) {
            self.next_round_delivered = t.delivered;
            self.rounds = self.rounds.wrapping_add(1);
            self.round_start = true;
            self.conserves_packets = false;
        }
        let probes = self.mode == Mode::ProbeBandwidth;
        if self.policer.sample(sample, self.round_start, probes, t) {
            self.begin_probe_bandwidth(t);
        }
        let bw = u64::from(delivered) * BW_UNIT / u64::from(sample.interval_us);
        if !sample.is_app_limited || bw >= self.max_bandwidth() {
            self.max_bw.take(u64::from(self.rounds), bw, BW_ROUNDS, |a, b| a >= b);
        }
    }

    /// How much more was acknowledged at once than the rate explains.
    fn update_aggregation(&mut self, sample: &RateSample, t: &Transport<'_>) {
        if sample.acked_sacked == 0 || sample.delivered.is_none() || sample.interval_us == 0 {
            return;
        }
        if self.round_start {
            self.extra_acked_rounds = (self.extra_acked_rounds + 1).min(0x1f);
            if self.extra_acked_rounds >= EXTRA_ACKED_ROUNDS {
                self.extra_acked_rounds = 0;
                self.extra_acked_index ^= 1;
                self.extra_acked[self.extra_acked_index] = 0;
            }
        }
        let epoch_us = t.delivered_ns.saturating_sub(self.ack_epoch_ns) / 1000;
        let mut expected = (self.bandwidth() * epoch_us / BW_UNIT) as u32;
        if self.ack_epoch_acked <= expected
            || self.ack_epoch_acked + sample.acked_sacked >= ACK_EPOCH_MOST
        {
            self.ack_epoch_acked = 0;
            self.ack_epoch_ns = t.delivered_ns;
            expected = 0;
        }
        self.ack_epoch_acked = (self.ack_epoch_acked + sample.acked_sacked).min(0xf_ffff);
        let extra = self.ack_epoch_acked.saturating_sub(expected).min(t.cw.cwnd);
        let kept = &mut self.extra_acked[self.extra_acked_index];
        *kept = (*kept).max(extra);
    }

    fn update_cycle(&mut self, sample: &RateSample, t: &Transport<'_>) {
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(sample, t) {
            self.advance_cycle(t);
        }
    }

    fn phase_is_over(&self, sample: &RateSample, t: &Transport<'_>) -> bool {
        let elapsed_us = t.delivered_ns.saturating_sub(self.cycle_ns) / 1000;
        let full_length = elapsed_us > u64::from(self.min_rtt_us);
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let inflight = self.in_net_at_departure(sample.prior_in_flight, t);
        let bw = self.max_bandwidth();
        if self.pacing_gain > UNIT {
            let filled = inflight >= self.inflight(bw, self.pacing_gain, t);
            return full_length && (sample.losses > 0 || filled);
        }
        full_length || inflight <= self.inflight(bw, UNIT, t)
    }

    const fn advance_cycle(&mut self, t: &Transport<'_>) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_ns = t.delivered_ns;
    }

    fn begin_probe_bandwidth(&mut self, t: &Transport<'_>) {
        self.mode = Mode::ProbeBandwidth;
        self.cycle_index = CYCLE.len() - 1 - self.chance.below(CYCLE_CHANCES) as usize;
        self.advance_cycle(t);
    }

    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if self.full_bw_reached || !self.round_start || sample.is_app_limited {
            return;
        }
        if self.max_bandwidth() >= (self.full_bw * FULL_BW_THRESHOLD) >> 8 {
            self.full_bw = self.max_bandwidth();
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    fn check_drain(&mut self, t: &mut Transport<'_>) {
        let bw = self.max_bandwidth();
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            t.cw.ssthresh = self.inflight(bw, UNIT, t);
        }
        if self.mode == Mode::Drain
            && self.in_net_at_departure(t.in_flight, t) <= self.inflight(bw, UNIT, t)
        {
            self.begin_probe_bandwidth(t);
        }
    }

    fn update_min_rtt(&mut self, sample: &RateSample, t: &mut Transport<'_>) {
        let expired = t.jiffies > self.min_rtt_stamp + MIN_RTT_SECONDS * u64::from(t.hz);
        if let Some(rtt) = sample.rtt_us
            && (rtt < self.min_rtt_us || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt_us = rtt;
            self.min_rtt_stamp = t.jiffies;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRoundTrip {
            self.mode = Mode::ProbeRoundTrip;
            self.save_cwnd(t.cw.cwnd);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRoundTrip {
            *t.app_limited = t.delivered.wrapping_add(t.in_flight).max(1);
            if self.probe_rtt_done.is_none() && t.in_flight <= LEAST_CWND {
                self.probe_rtt_done = Some(t.jiffies + u64::from(t.hz) / 5);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = t.delivered;
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(t);
                }
            }
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, t: &mut Transport<'_>) {
        if self.probe_rtt_done.is_none_or(|done| t.jiffies <= done) {
            return;
        }
        self.min_rtt_stamp = t.jiffies;
        t.cw.cwnd = t.cw.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.begin_probe_bandwidth(t);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle_index], CWND_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
    }

    /// Packets that the path holds, times a gain.
    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return 10;
        }
        let product = bw * u64::from(self.min_rtt_us);
        ((product * gain) >> 8).div_ceil(BW_UNIT) as u32
    }

    /// Room for pieces of TSO and for delayed acknowledgments.
    fn quantize(&self, cwnd: u32, t: &Transport<'_>) -> u32 {
        let mut cwnd = cwnd + 3 * tso_goal(t);
        cwnd = (cwnd + 1) & !1;
        if self.mode == Mode::ProbeBandwidth && self.cycle_index == 0 { cwnd + 2 } else { cwnd }
    }

    fn inflight(&self, bw: u64, gain: u64, t: &Transport<'_>) -> u32 {
        self.quantize(self.bdp(bw, gain), t)
    }

    /// Packets in the network when the next one may leave.
    fn in_net_at_departure(&self, now_in_flight: u32, t: &Transport<'_>) -> u32 {
        let wait_us = t.wstamp_ns.saturating_sub(t.now_ns) / 1000;
        let delivered = ((self.bandwidth() * wait_us) >> BW_SHIFT) as u32;
        let more = if self.pacing_gain > UNIT { tso_goal(t) } else { 0 };
        (now_in_flight + more).saturating_sub(delivered)
    }

    fn aggregation_cwnd(&self) -> u32 {
        if !self.full_bw_reached {
            return 0;
        }
        let most = (self.bandwidth() * EXTRA_ACKED_MOST_US / BW_UNIT) as u32;
        self.extra_acked[0].max(self.extra_acked[1]).min(most)
    }

    /// In recovery packets are conserved for a round; afterwards the window is restored.
    fn recover_or_restore(&mut self, sample: &RateSample, t: &Transport<'_>) -> (u32, bool) {
        let acked = sample.acked_sacked;
        let mut cwnd = t.cw.cwnd;
        if sample.losses > 0 {
            cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if t.state == CaState::Recovery && self.prior_state != CaState::Recovery {
            self.conserves_packets = true;
            self.next_round_delivered = t.delivered;
            cwnd = t.in_flight + acked;
        } else if self.prior_state >= CaState::Recovery && t.state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserves_packets = false;
        }
        self.prior_state = t.state;
        if self.conserves_packets {
            cwnd = cwnd.max(t.in_flight + acked);
        }
        (cwnd, self.conserves_packets)
    }

    fn set_cwnd(&mut self, sample: &RateSample, bw: u64, t: &mut Transport<'_>) {
        let acked = sample.acked_sacked;
        let mut cwnd = t.cw.cwnd;
        if acked > 0 {
            let (kept, conserves) = self.recover_or_restore(sample, t);
            cwnd = kept;
            if !conserves {
                let wanted = self.bdp(bw, self.cwnd_gain) + self.aggregation_cwnd();
                let target = self.quantize(wanted, t);
                if self.full_bw_reached {
                    cwnd = (cwnd + acked).min(target);
                } else if cwnd < target || t.delivered < 10 {
                    cwnd += acked;
                }
                cwnd = cwnd.max(LEAST_CWND);
            }
        }
        t.cw.cwnd = cwnd.min(t.cw.clamp);
        if self.mode == Mode::ProbeRoundTrip {
            t.cw.cwnd = t.cw.cwnd.min(LEAST_CWND);
        }
    }
}

/// Bytes a second, a hundredth below what was measured (`bbr_bw_to_pacing_rate`).
fn pacing_rate(bw: u64, gain: u64, t: &Transport<'_>) -> u64 {
    let rate = (u128::from(bw) * u128::from(t.mss) * u128::from(gain)) >> 8;
    let rate = (rate * 990_000) >> BW_SHIFT;
    u64::try_from(rate).unwrap_or(u64::MAX).min(t.max_pacing_rate)
}

/// Least packets of a piece: one below 1.2 Mbit/s.
pub(super) const fn min_tso_segs(pacing_rate: u64) -> u32 {
    if pacing_rate < 1_200_000 >> 3 { 1 } else { 2 }
}

/// Packets of a usual piece (`bbr_tso_segs_goal`).
fn tso_goal(t: &Transport<'_>) -> u32 {
    let most = u64::from(65_536 - 1 - t.headers);
    let bytes = (*t.pacing_rate >> 10).min(most) as u32;
    (bytes / t.mss.max(1)).max(min_tso_segs(*t.pacing_rate)).min(0x7f)
}

/// `BBR_UNIT`.
const UNIT: u64 = 256;

/// `bbr_high_gain`: 2/ln(2), and its inverse for draining.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;

/// `bbr_cwnd_gain`.
const CWND_GAIN: u64 = UNIT * 2;

/// `bbr_pacing_gain`: a round above the rate, one below, six at it.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];

/// `bbr_cycle_rand`.
const CYCLE_CHANCES: u64 = 7;

/// `bbr_bw_rtts`: the cycle and two rounds.
const BW_ROUNDS: u64 = 10;

/// `bbr_full_bw_thresh`, `bbr_full_bw_cnt`.
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
const FULL_BW_ROUNDS: u32 = 3;

/// `bbr_min_rtt_win_sec`.
const MIN_RTT_SECONDS: u64 = 10;

/// `bbr_cwnd_min_target`.
const LEAST_CWND: u32 = 4;

/// `bbr_extra_acked_win_rtts`, `bbr_ack_epoch_acked_reset_thresh`, `bbr_extra_acked_max_us`.
const EXTRA_ACKED_ROUNDS: u32 = 5;
const ACK_EPOCH_MOST: u32 = 1 << 20;
const EXTRA_ACKED_MOST_US: u64 = 100_000;
