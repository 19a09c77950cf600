//! CUBIC's congestion avoidance as Linux does it (`net/ipv4/tcp_cubic.c`, v4.18 to v6.18; RFC
//! 9438), in its fixed-point arithmetic, with the constants of an unchanged module.
//!
//! Left out: `HyStart`, which is about leaving slow start.

use super::Increase;

/// `BICTCP_BETA_SCALE`, and `beta`: the window shrinks to 717/1024 at a loss.
const BETA_SCALE: u64 = 1024;
const BETA: u64 = 717;
/// `BICTCP_HZ`: time runs in 1/1024 s.
const SECOND: u64 = 1024;
/// `cube_rtt_scale` is `bic_scale * 10`: 0.4 in 1/1024.
const CUBE_SCALE: u64 = 410;
/// `cube_factor`, 2^(10 + 3 * `BICTCP_HZ`'s bits) / `cube_rtt_scale`.
const CUBE_FACTOR: u64 = (1 << 40) / CUBE_SCALE;
/// `beta_scale`, 8 * (1024 + beta) / 3 / (1024 - beta): how much slower Reno with this beta grows.
const RENO_SCALE: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// A window is not computed again within HZ/32 while it stays what it was.
const RECOMPUTE_NS: i64 = 1_000_000_000 / 32;

/// One sender's window in congestion avoidance, in segments; times in nanoseconds of any clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cubic {
    /// Congestion window.
    pub cwnd: u64,
    /// Where the last loss happened, 0 if none did (`last_max_cwnd`).
    last_max: u64,
    epoch: Option<Epoch>,
    increase: Increase,
    /// Segments to acknowledge for one more in the window (`cnt`).
    per: u64,
    computed: Option<(i64, u64)>,
}

/// Since the last loss, or since growth began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Epoch {
    start: i64,
    /// Time to the origin, in 1/1024 s (`bic_K`).
    k: u64,
    /// Window there (`bic_origin_point`).
    origin: u64,
    /// Reno's window in the same circumstances (`tcp_cwnd`), and ACKs towards its next step.
    reno: u64,
    acked: u64,
}

impl Cubic {
    /// Goes on from a window of `cwnd`; the last loss happened at a window of `last_max`, if any.
    pub fn new(cwnd: u64, last_max: Option<u64>) -> Self {
        let last_max = last_max.unwrap_or(0);
        Self { cwnd, last_max, epoch: None, increase: Increase::default(), per: 1, computed: None }
    }

    /// The threshold after a loss with a window of `cwnd` (`cubictcp_recalc_ssthresh`).
    pub fn ssthresh(cwnd: u64) -> u64 {
        (cwnd * BETA / BETA_SCALE).max(2)
    }

    /// The maximum remembered after a loss with a window of `cwnd`: less than that if the last one
    /// came later, to make room for others (fast convergence).
    pub fn last_max_after(cwnd: u64, last_max: u64) -> u64 {
        if cwnd < last_max { cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE) } else { cwnd }
    }

    /// A loss: what [`Cubic::ssthresh`] and [`Cubic::last_max_after`] say, and a new epoch.
    pub fn on_loss(&mut self) {
        let last_max = Self::last_max_after(self.cwnd, self.last_max);
        *self = Self::new(Self::ssthresh(self.cwnd), Some(last_max));
    }

    /// An ACK at `now` covers `acked` more segments, and the window was used to the full;
    /// `rtt_min` is the least round trip (`cubictcp_cong_avoid`).
    pub fn on_ack(&mut self, now: i64, acked: u64, rtt_min: i64) {
        self.update(now, acked, rtt_min);
        self.cwnd = self.increase.grow(self.cwnd, self.per, acked);
    }

    /// `bictcp_update`.
    fn update(&mut self, now: i64, acked: u64, rtt_min: i64) {
        let (cwnd, last_max) = (self.cwnd, self.last_max);
        let epoch = self.epoch.get_or_insert_with(|| {
            let (k, origin) = begins(cwnd, last_max);
            Epoch { start: now, k, origin, reno: cwnd, acked: 0 }
        });
        epoch.acked += acked;
        let is_fresh = |(at, window): (i64, u64)| window == cwnd && now - at <= RECOMPUTE_NS;
        if self.computed.is_some_and(is_fresh) {
            return;
        }
        self.computed = Some((now, cwnd));
        let target = epoch.target(now, rtt_min);
        let mut per = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if last_max == 0 {
            // Until the first loss, at least a twentieth a round trip.
            per = per.min(20);
        }
        let reno = epoch.reno_window(cwnd);
        if reno > cwnd {
            per = per.min(cwnd / (reno - cwnd));
        }
        // At most one for every two acknowledged.
        self.per = per.max(2);
    }
}

impl Epoch {
    /// The curve's window one round trip from `now`.
    fn target(&self, now: i64, rtt_min: i64) -> u64 {
        let elapsed = u64::try_from(now - self.start + rtt_min).unwrap_or(0);
        let t = (u128::from(elapsed) * u128::from(SECOND) / 1_000_000_000) as u64;
        curve(t, self.k, self.origin)
    }

    /// Reno's window after what was acknowledged; a step takes `cwnd * beta_scale / 8`.
    fn reno_window(&mut self, cwnd: u64) -> u64 {
        let per = reno_step(cwnd);
        // The kernel takes steps while `ack_cnt > delta`.
        if self.acked > per {
            let steps = (self.acked - 1) / per;
            self.acked -= steps * per;
            self.reno += steps;
        }
        self.reno
    }
}

/// Where growth from a window of `cwnd` leads: the time to the origin, in 1/1024 s, and the window there.
pub fn begins(cwnd: u64, last_max: u64) -> (u64, u64) {
    if last_max <= cwnd {
        (0, cwnd)
    } else {
        (cube_root(CUBE_FACTOR * (last_max - cwnd)), last_max)
    }
}

/// The curve's window at `t`; at `k` it reaches the window `origin`.
pub fn curve(t: u64, k: u64, origin: u64) -> u64 {
    let distance = u128::from(t.abs_diff(k));
    let delta = (u128::from(CUBE_SCALE) * distance * distance * distance) >> 40;
    let delta = u64::try_from(delta).unwrap_or(u64::MAX);
    if t < k { origin.saturating_sub(delta) } else { origin.saturating_add(delta) }
}

/// Segments to acknowledge for one more in the window that Reno would have.
pub fn reno_step(cwnd: u64) -> u64 {
    (cwnd * RENO_SCALE / 8).max(1)
}

/// The integer part of the cube root (`cubic_root`, whose table and Newton step come within 0.2 %).
fn cube_root(of: u64) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 22);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if u128::from(middle).pow(3) <= u128::from(of) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: i64 = 100_000_000;

    /// Windows after this many round trips of full use, one ACK for two segments.
    fn rounds(cubic: &mut Cubic, count: i64) -> Vec<u64> {
        let window_after = |round: i64| {
            let acks = cubic.cwnd / 2;
            for ack in 0..acks {
                cubic.on_ack(round * RTT + ack as i64 * RTT / acks as i64, 2, RTT);
            }
            cubic.cwnd
        };
        (0..count).map(window_after).collect()
    }

    #[test]
    fn the_kernels_constants() {
        // tcp_cubic.c's comments: beta_scale 15, cube_factor 2^40/410.
        assert_eq!((RENO_SCALE, CUBE_FACTOR), (15, 2_681_735_677));
        assert_eq!([27, 1_000_000, 999_999].map(cube_root), [3, 100, 99]);
    }

    #[test]
    fn it_returns_to_the_last_maximum_after_k_and_then_leaves_it() {
        // RFC 9438 §4.2: K = cbrt(100 * 0.3 / 0.4) = 4.2 s.
        let mut cubic = Cubic::new(100, None);
        cubic.on_loss();
        assert_eq!(cubic.cwnd, 70);
        let windows = rounds(&mut cubic, 80);
        assert!((95..=100).contains(&windows[39]), "{windows:?}");
        assert!((99..=102).contains(&windows[45]), "{windows:?}");
        assert!(windows[79] > 115, "{windows:?}");
    }

    #[test]
    fn the_plateau_stands_still_longer_than_reno_would() {
        let mut cubic = Cubic::new(1000, None);
        cubic.on_loss();
        let windows = rounds(&mut cubic, 100);
        // K is 9.1 s: around it the window hardly moves.
        assert!(windows[95] - windows[85] <= 3, "{windows:?}");
    }

    #[test]
    fn a_loss_below_the_last_maximum_remembers_less() {
        assert_eq!(Cubic::last_max_after(100, 120), 85);
        assert_eq!(Cubic::last_max_after(120, 100), 120);
    }

    #[test]
    fn without_a_loss_it_grows_by_a_twentieth_a_round() {
        let mut cubic = Cubic::new(100, None);
        let windows = rounds(&mut cubic, 2);
        assert!((104..=106).contains(&windows[0]), "{windows:?}");
    }
}
