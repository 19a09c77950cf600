//! Congestion-control arithmetic, the only place that holds any: `limits` replays it against a
//! capture, the model runs it.

pub mod cubic;
pub mod reno;
pub mod slow_start;

/// The least retransmission timeout: Linux `TCP_RTO_MIN` = HZ/5 (`include/net/tcp.h`); RFC 6298 section 2.4 asks
/// for 1 s.
pub const RTO_MIN_NS: i64 = 200_000_000;

/// Growth by one segment for every `per` acknowledged (`tcp_cong_avoid_ai`, Linux 3.18 to 6.18).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Increase {
    /// Segments acknowledged towards the next step (`snd_cwnd_cnt`).
    count: u64,
}

impl Increase {
    /// The window after `acked` more segments; every `per` (at least one) of them add one.
    pub fn grow(&mut self, cwnd: u64, per: u64, acked: u64) -> u64 {
        let (per, mut cwnd) = (per.max(1), cwnd);
        // A credit left from a time when a step took more is paid out at once, in one step.
        if self.count >= per {
            self.count = 0;
            cwnd += 1;
        }
        self.count += acked;
        cwnd += self.count / per;
        self.count %= per;
        cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_for_every_so_many_acknowledged() {
        let mut increase = Increase::default();
        assert_eq!(increase.grow(10, 10, 9), 10);
        assert_eq!(increase.grow(10, 10, 1), 11);
        assert_eq!(increase.grow(11, 11, 25), 13);
        // Three are left; where a step now takes two, the credit gives one and is gone.
        assert_eq!(increase.grow(13, 2, 1), 14);
        assert_eq!(increase.grow(14, 2, 1), 15);
    }
}
