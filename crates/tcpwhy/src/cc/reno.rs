//! Reno's congestion avoidance as Linux does it (`tcp_reno_cong_avoid`, `tcp_reno_ssthresh`,
//! `net/ipv4/tcp_cong.c`, v4.18 to v6.18; RFC 5681): one segment a round trip, half at a loss.

use super::Increase;

/// One sender's window in congestion avoidance, in segments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reno {
    /// Congestion window.
    pub cwnd: u64,
    increase: Increase,
}

impl Reno {
    /// Goes on from a window of `cwnd`.
    pub fn new(cwnd: u64) -> Self {
        Self { cwnd, increase: Increase::default() }
    }

    /// The threshold after a loss with a window of `cwnd`.
    pub fn ssthresh(cwnd: u64) -> u64 {
        (cwnd / 2).max(2)
    }

    /// An ACK covers `acked` more segments, and the window was used to the full.
    pub fn on_ack(&mut self, acked: u64) {
        self.cwnd = self.increase.grow(self.cwnd, self.cwnd, acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_acknowledged_adds_one() {
        let mut reno = Reno::new(20);
        for _ in 0..10 {
            reno.on_ack(2);
        }
        assert_eq!(reno.cwnd, 21);
        reno.on_ack(20);
        assert_eq!(reno.cwnd, 21);
        reno.on_ack(1);
        assert_eq!(reno.cwnd, 22);
    }

    #[test]
    fn a_loss_halves_down_to_two() {
        assert_eq!([1, 3, 5, 40].map(Reno::ssthresh), [2, 2, 2, 20]);
    }
}
