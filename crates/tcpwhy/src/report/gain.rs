//! What a cause costs, and what a transfer could not be faster than.

use serde::{Deserialize, Serialize};

use super::PredictedBy;

/// What would be saved if a cause were gone. Nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// At least.
    pub low_ns: i64,
    /// Most likely.
    pub best_ns: i64,
    /// At most.
    pub high_ns: i64,
    /// Of this time: from the handshake to the last acknowledgment, silence between requests left out.
    /// With the handshake where the opening is what gains.
    pub now_ns: i64,
    /// How it was found.
    pub by: PredictedBy,
}

/// A rate that a direction could not exceed, and for how long it ran at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// What sets it.
    pub kind: CeilingKind,
    /// Payload, in bits per second.
    pub rate_bps: u64,
    /// For how long it was what held the sender.
    pub met_ns: i64,
    /// The packets show it; else it is computed from what they show.
    pub proven: bool,
}

/// What sets a ceiling.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CeilingKind {
    /// The narrowest link.
    Link,
    /// The largest receive window, once each round trip.
    ReceiveWindow,
    /// The largest congestion window, once each round trip.
    CongestionWindow,
    /// The send buffer, once each round trip.
    SendBuffer,
    /// The rate that the losses leave to the congestion control.
    Loss,
    /// The pace of the program that reads or writes.
    Application,
    /// The climb from the initial window with every later window open.
    InitialWindow,
}
