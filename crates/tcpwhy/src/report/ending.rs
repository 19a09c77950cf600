//! A connection that stood still to its end: what was waited for and never came.

use serde::{Deserialize, Serialize};

use super::{FrameRange, Text};

/// What a connection waited for to its end, or to the end of the capture.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// What did not come.
    pub kind: EndingKind,
    /// Whose data it is: `client` or `server`.
    pub from: Text,
    /// Since when it was waited for.
    pub since_ns: i64,
    /// Until when: the first FIN or RST behind that, else the last packet.
    pub until_ns: i64,
    /// Bytes that were not acknowledged, that are missing, or of the request; of an answer that stopped, those that
    /// came.
    pub bytes: u64,
    /// How many bytes the answer announced, with its head.
    pub announced_bytes: Option<u64>,
    /// How often the oldest of them was sent; 0 where that does not show here.
    pub sent: u64,
    /// When it was sent last.
    pub last_sent_ns: Option<i64>,
    /// When the other side last said something meanwhile.
    pub heard_ns: Option<i64>,
    /// The largest segment of this direction that came through, 0 if none did.
    pub arrived_bytes: u64,
    /// Later data came through.
    pub later_came: bool,
    /// The capture ended first.
    pub open: bool,
    /// The server's host has shown since that it sent nothing that is missing here: by its numbers, or in its own capture.
    pub nothing_missing: bool,
    /// How often the client's FIN was sent to the end while nothing at all came back.
    pub unheard_fins: u64,
    /// Segments that the server retransmitted though ACKs of them had passed here.
    pub repeated: u64,
    /// Frames from the first sign to the last.
    pub frames: FrameRange,
}

/// What did not come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndingKind {
    /// An ACK of data that was sent again and again.
    #[default]
    NeverAcknowledged,
    /// Data that was sent, as later packets of its sender prove.
    NeverArrived,
    /// The answer to a request.
    NoAnswer,
    /// The rest of an answer.
    CutShort,
}
