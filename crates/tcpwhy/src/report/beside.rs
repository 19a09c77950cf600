//! What lay beside the capture (`--with`), and what it says of a connection.

use serde::{Deserialize, Serialize};

use super::Text;

/// A file of evidence that was laid beside the capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct With {
    /// Its name as given.
    pub source: String,
    /// What it is, in words: `ss`, `strace`, `nstat`, ...; empty if that is not known.
    pub kind: Text,
    /// Samples, calls or counters in it.
    pub items: u64,
    /// Connections of the capture that it says something of.
    pub connections: u64,
    /// What it says by itself, why it fits no connection, and what of it was passed over.
    pub notes: Vec<String>,
    /// Why it tells nothing; `None` if it was read.
    pub error: Option<String>,
}

/// What one file says of one connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The file: an index into the report's `with`.
    pub source: u64,
    /// Whose host it speaks of: `client`, `server`, or `path`.
    pub side: Text,
    /// Of what: `cwnd`, `ssthresh`, `rwnd_limited`, `min_rtt`, `calls`, `path_rate`, ...
    pub quantity: Text,
    /// `measured` (nothing to compare it with), `agrees`, `contradicts`, or of system calls `explains`,
    /// `waits_for_tcp`, `no_call` and `unclear`.
    pub verdict: Text,
    /// `segments`, `bytes`, `ns`, `bps`, or empty.
    pub unit: Text,
    /// The value it gives.
    pub measured: Option<i64>,
    /// What the packets gave.
    pub estimated: Option<i64>,
    /// Start of the time it speaks of; `None` where it is of the whole connection.
    pub from_ns: Option<i64>,
    /// End of it.
    pub to_ns: Option<i64>,
    /// In words.
    pub text: String,
    /// The system calls of that time.
    pub calls: Option<Box<CallsIn>>,
}

/// System calls between two instants, by the thread that used the connection's socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsIn {
    /// How many.
    pub count: u64,
    /// Time in calls that wait for this socket.
    pub waiting_ns: i64,
    /// Time in other calls.
    pub working_ns: i64,
    /// Time outside of any call.
    pub outside_ns: i64,
    /// Time in which the file leaves calls out.
    pub left_out_ns: i64,
    /// The longest that waits for nothing of this socket.
    pub longest: Option<LongestCall>,
}

/// A system call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongestCall {
    /// Its name.
    pub name: String,
    /// The file or socket it was about, where the trace tells.
    pub target: Option<String>,
    /// How much of that time it took.
    pub took_ns: i64,
    /// How long it took in all: it may have begun before that time, and ended after it.
    pub whole_ns: i64,
}
