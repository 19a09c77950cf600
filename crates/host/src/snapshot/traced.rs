//! Programs as traces show them, and tests of speed.

use serde::{Deserialize, Serialize};

/// What a program did, by its system calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traced {
    /// `strace`, `perf trace`, `strace -c`, `perf trace -s`.
    pub tool: String,
    /// From the first call to the end of the last; 0 where that was not told.
    pub over_ns: u64,
    /// How many calls.
    pub calls: u64,
    /// The calls have no durations: each is taken to last until the next of its thread.
    pub untimed: bool,
    /// The longest time in which nothing moved on a socket; all of an excerpt that moves nothing.
    pub gap: Option<Gap>,
    /// Calls that put bytes into sockets.
    pub sends: u64,
    /// Those of them that put in one byte.
    pub tiny_sends: u64,
    /// Calls that failed in a way that costs time or work, the most often first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// Of a summary: its rows, most time first.
    pub kinds: Vec<CallKind>,
}

/// Calls of one name that failed with one error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failed {
    /// `accept4`.
    pub name: String,
    /// `EMFILE`.
    pub error: String,
    /// The address that a `connect` named.
    pub to: Option<String>,
    /// How many.
    pub count: u64,
    /// The longest of them.
    pub longest_ns: u64,
}

/// A time in which nothing moved on a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// How long.
    pub ns: u64,
    /// It lies between two calls that moved something; else it is the whole trace.
    pub between: bool,
    /// What was called in it, most time first.
    pub kinds: Vec<CallKind>,
    /// Outside of any call, and not between two of one kind.
    pub outside_ns: u64,
}

/// Calls of one name about one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallKind {
    /// `write`.
    pub name: String,
    /// The file, or `fd 2`.
    pub target: Option<String>,
    /// How many.
    pub count: u64,
    /// Those of them that wrote one byte.
    pub tiny: u64,
    /// In the calls.
    pub inside_ns: u64,
    /// With the time between two that follow each other.
    pub span_ns: u64,
    /// They wait for a socket.
    pub waits: bool,
}

/// What `iperf3` printed of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeedTest {
    /// How long it ran.
    pub over_ns: u64,
    /// Bits a second that the sender sent.
    pub sent: Option<u64>,
    /// Bits a second that the receiver got.
    pub received: Option<u64>,
    /// Bytes that the sender sent.
    pub bytes: Option<u64>,
    /// Segments that the sender retransmitted; `None` where its side did not print it.
    pub retransmits: Option<u64>,
    /// Streams at once.
    pub streams: u64,
    /// Intervals, and those in which nothing moved.
    pub intervals: u64,
    /// See above.
    pub silent: u64,
    /// The least and the largest congestion window of its intervals, bytes; of one stream only.
    pub cwnd: Option<[u64; 2]>,
    /// The congestion window of the last interval equals that of the one before it.
    pub steady: bool,
}
