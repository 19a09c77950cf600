//! Pieces of a direction's time: rounds, and intervals with what held the sender in them.

use serde::{Deserialize, Serialize};

use super::{FrameRange, State, Sure};

/// One round: from the first send to the ACK of the first data sent after that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Start.
    pub start_ns: i64,
    /// New payload first sent in it.
    pub bytes: u64,
    /// The same in segments.
    pub segments: u64,
    /// Round-trip time measured in it.
    pub rtt_ns: Option<i64>,
    /// What was left of the receiver's window after its last send.
    pub window_room_bytes: Option<i64>,
    /// Congestion window in segments.
    pub cwnd: Cwnd,
    /// The evidence that it was measured by, an index into the report's `with`; `None`: it is replayed.
    pub cwnd_measured_by: Option<u32>,
    /// State of the wait after its last send.
    pub limited_by: State,
    /// Bytes in flight after its last send.
    pub in_flight_bytes: u64,
    /// Bytes acknowledged in it by its length.
    pub delivery_rate_bps: Option<u64>,
    /// That rate times the least round trip of the connection: what keeps the path just full.
    pub bdp_bytes: Option<u64>,
    /// Frames of its sends.
    pub frames: FrameRange,
}

/// Congestion window in segments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Cwnd {
    /// Not less than this.
    pub low: Option<u64>,
    /// Not more than this.
    pub high: Option<u64>,
    /// Best estimate.
    pub best: Option<u64>,
}

/// An interval and what held the sender in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Start.
    pub start_ns: i64,
    /// End; the next interval starts here.
    pub end_ns: i64,
    /// What held the sender.
    pub state: State,
    /// How sure that is.
    pub confidence: Sure,
    /// States that these packets cannot be told apart from it.
    pub alternative: Vec<State>,
    /// What shows it.
    pub evidence: LimitEvidence,
}

/// What shows a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitEvidence {
    /// In words, with numbers.
    pub text: String,
    /// The frames that bound it.
    pub frames: FrameRange,
    /// A Wireshark display filter that shows them.
    pub filter: String,
}
