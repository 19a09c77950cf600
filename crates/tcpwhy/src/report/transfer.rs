//! Runs of application data, and the requests and responses they make up.

use serde::{Deserialize, Serialize};

use super::{Http, Text, TimeIn};

/// Application data of one direction until an idle state, or data of the peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// `client` or `server`.
    pub from: Text,
    /// First byte sent.
    pub start_ns: i64,
    /// Its last send or the last ACK of its data, or where the next begins with data of it in flight.
    pub end_ns: i64,
    /// Payload bytes.
    pub bytes: u64,
    /// Time in each state between start and end.
    pub time_in: TimeIn,
    /// Its rounds, as indices into the direction's rounds.
    pub rounds: Option<RoundRange>,
}

/// A range of round numbers, both ends included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RoundRange {
    /// First round.
    pub first: u64,
    /// Last round.
    pub last: u64,
}

/// A request and its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Index of the request in `transfers`.
    pub request: u64,
    /// Index of the response; `None` if none came.
    pub response: Option<u64>,
    /// Last request byte to first response byte, as seen at the tap.
    pub think_ns: Option<i64>,
    /// The same less the round trip from the tap to the server.
    pub server_think_ns: Option<i64>,
    /// First request byte to first response byte.
    pub first_byte_ns: Option<i64>,
    /// First request byte to the last ACK of the response.
    pub total_ns: Option<i64>,
    /// What a TLS server sent before the answer, so that the answer began later than the server's data.
    #[serde(default)]
    pub early: Option<Early>,
    /// What was asked for, where that is HTTP/1 in clear.
    #[serde(default)]
    pub http: Option<Box<Http>>,
}

/// What a TLS server sends directly behind the handshake, and which answers no request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Early {
    /// What it looks like.
    pub kind: EarlyKind,
    /// Its first byte.
    pub start_ns: i64,
    /// Its records.
    pub records: u64,
    /// Their bytes with headers.
    pub bytes: u64,
    /// First request byte to the first byte behind it.
    pub first_byte_ns: i64,
    /// Last request byte to the first byte behind it, less the round trip from the tap to the server.
    pub server_think_ns: i64,
    /// Where it may be the beginning of the answer: last request byte to the first byte that may be, less the
    /// same round trip.
    pub or_server_think_ns: Option<i64>,
}

/// What early records of a server look like, by their lengths and places.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyKind {
    /// Session tickets of TLS 1.3 (RFC 8446 section 4.6.1).
    Tickets,
    /// HTTP/2's SETTINGS (RFC 9113 section 3.4).
    Settings,
    /// Sent before the request was there.
    Unasked,
    /// They may be any of these or the beginning of the answer.
    #[default]
    Undecided,
}
