//! What was lost and retransmitted, and how losses fall.

use serde::{Deserialize, Serialize};

/// Flight at a loss.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct InFlightAtLoss {
    /// When the lost original was sent.
    pub at_ns: i64,
    /// Bytes in flight then.
    pub bytes: u64,
    /// Frame of the original, `None` if it was lost before the tap.
    pub frame: Option<u64>,
}

/// How losses fall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossPattern {
    /// `congestion` (depends on the flight, or found a full queue), `random` or `unknown`.
    pub kind: String,
    /// What tells the kind.
    #[serde(default)]
    pub told_by: LossToldBy,
    /// Probability that losses this independent of the flight arise by chance (Wilcoxon).
    pub p_value: Option<f64>,
    /// Loss episodes.
    pub episodes: u64,
    /// Lost segments by burst length: 1, 2, 3 to 5, 6 to 10, more.
    pub bursts: [u64; 5],
    /// Period of the episodes in time, where significant.
    pub period_ns: Option<i64>,
    /// Period in segments, where significant.
    pub period_segments: Option<u64>,
}

impl LossPattern {
    /// Less probable by chance than this, losses depend on the flight (limits-method section 8).
    pub(crate) const SIGNIFICANT: f64 = 0.05;

    /// Whether losses come with larger flights than other sends.
    pub(crate) fn depends_on_flight(&self) -> bool {
        self.p_value.is_some_and(|p| p <= Self::SIGNIFICANT)
    }
}

/// What tells congestion from chance.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossToldBy {
    /// The flights at losses, beside those of all sends.
    #[default]
    Flights,
    /// The narrowest link: whether lost packets found its queue full.
    Link,
}

/// What made a sender repeat something.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatCause {
    /// Signs of a hole, by duplicate ACKs, SACK blocks or RACK.
    #[default]
    Fast,
    /// The retransmission timeout.
    Rto,
    /// The probe of the tail.
    Tlp,
    /// The timer of the handshake.
    Syn,
    /// All of it had been acknowledged.
    Unnecessary,
}

impl RepeatCause {
    /// As the report has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Rto => "rto",
            Self::Tlp => "tlp",
            Self::Syn => "syn",
            Self::Unnecessary => "unnecessary",
        }
    }
}

/// One retransmission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retransmission {
    /// When it was sent.
    pub at_ns: i64,
    /// Its frame.
    pub frame: u64,
    /// Relative sequence number.
    pub seq: i64,
    /// Payload bytes.
    pub bytes: u64,
    /// What made its sender repeat it.
    pub cause: RepeatCause,
    /// Shown needless later.
    pub spurious: bool,
    /// Frames whose bytes it repeats.
    pub originals: Vec<u64>,
    /// Where what it repeats was lost, if the narrowest link tells.
    pub lost: Option<LostAt>,
}

/// Where a packet was lost, seen from the narrowest link that its direction passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostAt {
    /// It took no turn on the link: the queue had no room, or it never came to it.
    BeforeLink,
    /// It took its turn on the link.
    BehindLink,
    /// The link's queue was empty, and did not overflow.
    EmptyQueue,
}
