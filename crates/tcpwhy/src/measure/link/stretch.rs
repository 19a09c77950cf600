//! A gap on the departures' own clock, and the scale that it is held against.

use super::gap::{Gap, Terms};

/// A gap may be longer than its work by this many packets: an ACK answers every second segment (RFC 5681
/// section 4.2), and a token bucket's credit is about as much.
pub(super) const SLACK_PACKETS: f64 = 2.0;

/// A gap on the departures' own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) first: f64,
    pub(super) last: f64,
    /// Its first packet stood in the queue when the one before it left.
    pub(super) is_causal: bool,
    pub(super) gap: Gap,
}

impl Stretch {
    pub(super) fn time(&self) -> f64 {
        self.to - self.from
    }

    /// For how long its last packet was on the link and in its queue.
    pub(super) fn delay(&self) -> f64 {
        self.to - self.last
    }
}

/// A link's rate, and on what terms gaps are held against it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Nanoseconds for a byte.
    pub(super) per: f64,
    /// Nanoseconds for the largest packet.
    pub(super) packet: f64,
    pub(super) terms: Terms,
}
