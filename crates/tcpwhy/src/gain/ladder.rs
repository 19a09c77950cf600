//! The climb of a transfer: flight by flight, each a round trip or as long as the link takes for it.

/// What a transfer climbs with. Sizes are bytes of payload.
#[derive(Clone, Debug, Default)]
pub(super) struct Climb<'a> {
    pub(super) bytes: u64,
    pub(super) rtt: i64,
    /// The first flight.
    pub(super) first: u64,
    /// Bits per second of payload; `None`: an endless link.
    pub(super) rate: Option<u64>,
    /// The receive window of each round; the last one stays. Empty: it is open.
    pub(super) windows: &'a [u64],
    /// No flight is larger: a send buffer, or a window above TCP.
    pub(super) most: Option<u64>,
    /// By how many thousandths a flight that was used grows.
    pub(super) growth: u64,
}

/// Rounds that are counted one by one. Ours: the slowest growth, a fifth each round, reaches any size sooner.
const MOST_ROUNDS: usize = 512;

impl Climb<'_> {
    /// From the first byte to the last ACK, in nanoseconds.
    pub(super) fn ns(&self) -> i64 {
        let (mut left, mut flight, mut time) = (self.bytes, self.first.max(1), 0_i64);
        for round in 0.. {
            let last = self.windows.len().saturating_sub(1);
            let window = self.windows.get(round.min(last)).copied().unwrap_or(u64::MAX);
            let most = window.min(self.most.unwrap_or(u64::MAX)).max(1);
            let sent = flight.min(most).min(left);
            if sent >= left {
                return time.saturating_add(self.rtt).saturating_add(self.on_link(sent));
            }
            let is_steady = round >= last && flight >= most;
            let rounds = if is_steady || round >= MOST_ROUNDS { (left - 1) / sent } else { 1 };
            let each = self.rtt.max(self.on_link(sent));
            time =
                time.saturating_add(each.saturating_mul(i64::try_from(rounds).unwrap_or(i64::MAX)));
            left -= sent * rounds;
            // A flight that half fills the window does not let it grow (Linux `tcp_is_cwnd_limited`).
            if sent.saturating_mul(2) > flight {
                let grown = u128::from(flight) * u128::from(self.growth) / 1000;
                flight = u64::try_from(grown).unwrap_or(u64::MAX).max(flight);
            }
        }
        time
    }

    /// How long the link takes for `bytes`.
    fn on_link(&self, bytes: u64) -> i64 {
        self.rate.map_or(0, |rate| wire_ns(bytes, rate))
    }
}

/// How long `bytes` take at a rate in bits per second.
pub(super) fn wire_ns(bytes: u64, rate_bps: u64) -> i64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1));
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The rate at which `bytes` take this long.
pub(super) fn rate_bps(bytes: u64, ns: i64) -> Option<u64> {
    let ns = u128::try_from(ns).ok().filter(|ns| *ns > 0)?;
    Some(u64::try_from(u128::from(bytes) * 8_000_000_000 / ns).unwrap_or(u64::MAX))
        .filter(|bps| *bps > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn open(bytes: u64, first: u64) -> Climb<'static> {
        Climb { bytes, rtt: 10 * MS, first, growth: 2000, ..Climb::default() }
    }

    #[test]
    fn flights_double_until_all_is_sent() {
        let rounds = |bytes| open(bytes, 10).ns() / (10 * MS);
        assert_eq!([rounds(10), rounds(11), rounds(70), rounds(71)], [1, 2, 3, 4]);
    }

    #[test]
    fn a_window_or_a_buffer_is_one_flight_each_round() {
        let capped = Climb { windows: &[10], ..open(1000, 10) };
        assert_eq!(capped.ns(), 1000 * MS);
        let buffered = Climb { most: Some(20), ..open(1010, 10) };
        assert_eq!(buffered.ns(), 510 * MS, "10, then 50 of 20");
    }

    #[test]
    fn a_full_link_takes_its_time_for_all() {
        let slow = Climb { rate: Some(8_000_000), ..open(1_000_000, 50_000) };
        assert_eq!(slow.ns(), 1010 * MS);
    }

    #[test]
    fn the_steps_of_a_window_hold_it_one_by_one() {
        let grown = Climb { windows: &[10, 15, 40], ..open(105, 10) };
        assert_eq!(grown.ns(), 40 * MS, "10, 15, 40, 40");
    }

    #[test]
    fn nothing_overflows() {
        for first in [0, 1, u64::MAX] {
            for growth in [0, 1000, u64::MAX] {
                let climb = Climb { bytes: u64::MAX, rtt: i64::MAX, growth, ..open(0, first) };
                assert!(climb.ns() >= 0);
                assert!(Climb { rate: Some(0), most: Some(0), ..climb }.ns() >= 0);
            }
        }
    }
}
