//! Slow start as Linux does it: growth by the segments each ACK covers, gated by use.
//!
//! `tcp_slow_start` adds the newly acknowledged segments (no limit per ACK, so stretched ACKs lose
//! nothing), but only while the window is used: `tcp_is_cwnd_limited` asks in slow start whether
//! `cwnd < 2 * max_packets_out`. What `max_packets_out` remembers, and how the flag that bypasses
//! the test is kept, changed between kernels; both rules are here, and a capture tells them apart.

/// `TCP_INFINITE_SSTHRESH` (`include/net/tcp.h`).
pub const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

/// How `tcp_cwnd_validate` samples the use of the window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SampleRule {
    /// Linux 4.18 to 5.15 as first released: a new maximum, or a new window of data, takes the
    /// sample; in slow start only `2 * max_packets_out` counts.
    Old,
    /// Linux 6.1 and later, and long-term back-ports: being limited takes the sample at once, and
    /// the flag alone opens the gate.
    New,
}

/// One sender's congestion window in slow start, in segments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SlowStart {
    /// Sampling rule.
    pub rule: SampleRule,
    /// Congestion window.
    pub cwnd: u64,
    /// Threshold; slow start while `cwnd` is below it.
    pub ssthresh: u64,
    max_packets_out: u64,
    /// Position (in segments) that ends the window of the sample.
    sample_end: u64,
    limited: bool,
}

impl SlowStart {
    /// A window of `cwnd` segments that nothing has used yet.
    pub const fn new(rule: SampleRule, cwnd: u64) -> Self {
        Self {
            rule,
            cwnd,
            ssthresh: INFINITE_SSTHRESH,
            max_packets_out: 0,
            sample_end: 0,
            limited: false,
        }
    }

    /// Whether an ACK may grow the window (`tcp_is_cwnd_limited` in slow start).
    pub const fn may_grow(&self) -> bool {
        let used = self.cwnd < 2 * self.max_packets_out;
        match self.rule {
            SampleRule::Old => used,
            SampleRule::New => self.limited || used,
        }
    }

    /// An ACK covers `acked` more segments (`tcp_slow_start`).
    pub fn on_ack(&mut self, acked: u64) {
        if self.cwnd < self.ssthresh && self.may_grow() {
            self.cwnd = (self.cwnd + acked).min(self.ssthresh);
        }
    }

    /// The send loop ended with everything up to position `snd_nxt` sent, `snd_una` acknowledged
    /// (`tcp_cwnd_validate`).
    pub fn on_sent(&mut self, snd_una: u64, snd_nxt: u64) {
        let packets_out = snd_nxt.saturating_sub(snd_una);
        let limited = packets_out >= self.cwnd;
        let window_over = snd_una >= self.sample_end;
        let sample = match self.rule {
            SampleRule::Old => window_over || packets_out > self.max_packets_out,
            SampleRule::New => {
                window_over || limited || (!self.limited && packets_out > self.max_packets_out)
            }
        };
        if sample {
            self.limited = limited;
            self.max_packets_out = packets_out;
            self.sample_end = snd_nxt;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends up to the window, is acknowledged in full; the window after that.
    fn after_round(rule: SampleRule, initial: u64, sent: u64) -> u64 {
        let mut window = SlowStart::new(rule, initial);
        window.on_sent(0, sent);
        window.on_ack(sent);
        window.cwnd
    }

    #[test]
    fn growth_is_gated_by_use() {
        // linux-tcp-behaviour section 1: IW10, 9 sent -> 18; 10 -> 20; 5 -> 10 (gate); 6 -> 12 is
        // what one ACK of six gives: 16, clipped to what two packets out allow in later ACKs.
        for rule in [SampleRule::Old, SampleRule::New] {
            assert_eq!(after_round(rule, 10, 10), 20);
            assert_eq!(after_round(rule, 10, 5), 10);
        }
    }

    #[test]
    fn per_segment_acks_stop_at_twice_the_use() {
        let mut window = SlowStart::new(SampleRule::Old, 10);
        window.on_sent(0, 6);
        for _ in 0..6 {
            window.on_ack(1);
        }
        assert_eq!(window.cwnd, 12);
    }

    #[test]
    fn the_threshold_clips() {
        let mut window = SlowStart::new(SampleRule::New, 10);
        window.ssthresh = 14;
        window.on_sent(0, 10);
        window.on_ack(10);
        assert_eq!(window.cwnd, 14);
    }
}
