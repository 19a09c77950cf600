//! CUBIC on the kernel's clocks: ticks for the curve, microseconds for `HyStart`
//! (`net/ipv4/tcp_cubic.c`, v4.18 to v6.18).
//!
//! The cube root is exact; the kernel's comes within 0.2 % by a table and one Newton step.

use tcpwhy::cc::cubic::{begins, curve, reno_step};

use super::Surroundings;
use super::hystart::Train;
use super::transport::CwndState;

/// State of one connection (`struct bictcp`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    per: u32,
    last_max: u32,
    last_cwnd: u32,
    last_time: u64,
    delay_min_us: u32,
    epoch: Option<Epoch>,
    train: Train,
}

/// Since the last loss, or since growth began.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    /// Time to the origin, in 1/1024 s.
    k: u64,
    origin: u32,
    acked: u32,
    /// Reno's window in the same circumstances.
    reno: u32,
}

impl Cubic {
    pub(super) fn begin(&mut self, at: &Surroundings) {
        *self = Self::default();
        self.train.begin_round(at);
    }

    /// After an idle time the curve goes on where it was.
    pub(super) const fn on_start(&mut self, now: u64, last_sent: u64) {
        if let Some(epoch) = &mut self.epoch
            && now > last_sent
        {
            let shifted = epoch.start + (now - last_sent);
            epoch.start = if shifted > now { now } else { shifted };
        }
    }

    pub(super) fn ssthresh(&mut self, cw: &CwndState) -> u32 {
        use tcpwhy::cc::cubic::Cubic;
        self.epoch = None;
        let cwnd = u64::from(cw.cwnd);
        self.last_max = Cubic::last_max_after(cwnd, u64::from(self.last_max)) as u32;
        Cubic::ssthresh(cwnd) as u32
    }

    pub(super) fn on_loss_state(&mut self, at: &Surroundings) {
        self.begin(at);
    }

    pub(super) fn on_packets_acked(
        &mut self,
        rtt_us: Option<u32>,
        cw: &mut CwndState,
        at: &Surroundings,
    ) {
        let Some(delay) = rtt_us.map(|us| clock_delay(us, at)) else { return };
        // Samples right after a recovery are discarded.
        if self.epoch.is_some_and(|epoch| at.jiffies.saturating_sub(epoch.start) < u64::from(at.hz))
        {
            return;
        }
        if self.delay_min_us == 0 || delay < self.delay_min_us {
            self.delay_min_us = delay;
        }
        if cw.cwnd < cw.ssthresh && self.train.is_over(delay, self.delay_min_us, cw.cwnd, at) {
            cw.ssthresh = cw.cwnd;
        }
    }

    /// The window grows in slow start.
    pub(super) fn on_slow_start(&mut self, at: &Surroundings) {
        self.train.on_growth(at);
    }

    /// How many acknowledged packets make the window larger by one (`bictcp_update`).
    pub(super) fn update(&mut self, acked: u32, cwnd: u32, at: &Surroundings) -> u32 {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        let now = at.jiffies;
        let stands = self.last_cwnd == cwnd && self.last_time > 0;
        if stands && now.saturating_sub(self.last_time) <= u64::from(at.hz / 32) {
            return self.per.max(1);
        }
        if self.epoch.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            let (last_max, delay_min_us) = (self.last_max, self.delay_min_us);
            let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(now, cwnd, last_max, acked));
            let target = epoch.target(now, at.hz, delay_min_us);
            self.per = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
            if last_max == 0 {
                // Until the first loss at least a twentieth a round trip.
                self.per = self.per.min(20);
            }
        }
        if let Some(epoch) = &mut self.epoch {
            let reno = epoch.reno_window(cwnd);
            if reno > cwnd {
                self.per = self.per.min(cwnd / (reno - cwnd));
            }
        }
        self.per = self.per.max(2);
        self.per
    }
}

impl Epoch {
    fn begin(start: u64, cwnd: u32, last_max: u32, acked: u32) -> Self {
        let (k, origin) = begins(cwnd.into(), last_max.into());
        let origin = origin as u32;
        Self { start, k, origin, acked, reno: cwnd }
    }

    /// The curve's window one least round trip from now.
    fn target(&self, now: u64, hz: u32, delay_min_us: u32) -> u32 {
        let hz = u64::from(hz);
        let delay = (u64::from(delay_min_us) * hz).div_ceil(1_000_000);
        let t = ((now.saturating_sub(self.start) + delay) << 10) / hz;
        u32::try_from(curve(t, self.k, self.origin.into())).unwrap_or(u32::MAX)
    }

    fn reno_window(&mut self, cwnd: u32) -> u32 {
        let per = reno_step(cwnd.into()) as u32;
        while self.acked > per {
            self.acked -= per;
            self.reno += 1;
        }
        self.reno
    }
}

/// A round trip as the controller's clock has it: before v5.6 in eighths of a millisecond
/// (`bictcp_acked`).
fn clock_delay(us: u32, at: &Surroundings) -> u32 {
    if at.hystart.microseconds { us.max(1) } else { (us / 125).max(1) * 125 }
}
