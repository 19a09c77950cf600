//! The report: plain data that every view reads, and the JSON contract.
//!
//! `docs/report.schema.json` is the contract these types follow; a test validates real output
//! against it. Names and meanings are documented there and here in the same words. All `_ns`
//! fields are integers relative to the connection's own first packet; sizes are bytes; what is
//! unknown is `None` (JSON `null`), never zero.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod active;
mod beside;
mod command;
mod connection;
mod direction;
mod ending;
mod failure;
mod finding;
mod gain;
mod held;
mod icmp;
mod interval;
mod lookup;
mod loss;
mod names;
mod severity;
pub mod state;
mod strip;
mod sure;
mod totals;
mod trail;
mod transfer;
mod waited;

pub use beside::{Beside, CallsIn, LongestCall, With};
pub use command::{Command, Spent};
pub use connection::{
    ClearError, Connection, End, NotTaken, Part, Reset, ScalingRefusedBy, SenderStack, Syn, Tls,
    TlsFlight, Untaken, Vantage, WindowScaling,
};
pub use direction::{
    Answer, Answers, CongestionControl, Direction, Events, FinPassed, IdleRestart, InitialWindow,
    Link, LinkRate, Passed, Rate, Retransmitted, Rtt, RttJump, ShutWithHole, SlowStartExit,
    StuckSegment, TakenBack,
};
pub use ending::{Ending, EndingKind};
pub use failure::{FailedPeer, Failure, FailureKind};
pub use finding::{Evidence, Finding, PredictedBy, Prediction, Remedy};
pub use gain::{Ceiling, CeilingKind, Gain};
pub use icmp::{IcmpErrors, QuotedPacket};
pub use interval::{Cwnd, Limit, LimitEvidence, Round};
pub use lookup::Lookup;
pub use loss::{InFlightAtLoss, LossPattern, LossToldBy, LostAt, RepeatCause, Retransmission};
pub use names::{Http, Names};
pub use severity::Severity;
pub use state::{State, TimeIn};
pub use strip::Strip;
pub use sure::Sure;
pub use totals::Totals;
pub use trail::{Answered, Joins, Marks, Sent, Trail, Trip};
pub use transfer::{Early, EarlyKind, Exchange, RoundRange, Transfer};
pub use waited::Waited;

/// The format number of the JSON; every change to it has a changelog entry.
pub const FORMAT: &str = "tcpwhy/2";

/// Everything that was found out about one or more captures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: String,
    /// The input was still being read: figures may change.
    pub provisional: bool,
    /// The captures read, in the order of their time.
    pub captures: Vec<Capture>,
    /// What was laid beside them, in the order given.
    pub with: Vec<With>,
    /// The command that was recorded with these packets; `None` for other captures.
    pub command: Option<Command>,
    /// Names that were asked for, in the order of the questions.
    pub lookups: Vec<Lookup>,
    /// What was found that belongs to no connection; times count from the first packet that it names.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What `tcpwhy record` attached to the packets, as it is, by the capture (an index into `captures`) and
    /// its name; no part of the JSON.
    #[serde(skip)]
    pub attachments: BTreeMap<(usize, String), Vec<u8>>,
    /// ICMP errors about packets of connections that are not in the capture.
    pub icmp: Vec<IcmpErrors>,
    /// What all connections that were asked for add up to.
    pub totals: Totals,
    /// The connections, in the order of their first packet; those asked for, if not all are.
    pub connections: Vec<Connection>,
}

/// One capture file, pipe or listing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// File name as given, `-` for standard input.
    pub source: String,
    /// Packets in it.
    pub packets: u64,
    /// TCP segments among them.
    pub tcp_segments: u64,
    /// ICMP errors about TCP among them.
    pub icmp_errors: u64,
    /// Packets that were passed over, by reason.
    pub skipped: Vec<Skipped>,
    /// What is to be said about the capture's quality.
    pub quality: Vec<Quality>,
    /// Where and why reading stopped early; `None` when it was read to its end.
    pub error: Option<String>,
    /// Where the damage is that stopped it; `None` where it has no place.
    #[serde(default)]
    pub damage: Option<Damage>,
}

/// A place in a capture, behind which nothing can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Damage {
    /// The packet that should begin there, from 1 in this capture.
    pub packet: u64,
    /// Bytes before it, of what is unpacked.
    pub offset: u64,
}

/// Packets that were passed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// A remark about a capture's quality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Kind, in `snake_case`.
    pub kind: String,
    /// How many packets (or lines) it concerns; 0 where a number makes no sense.
    pub count: u64,
    /// In words.
    pub note: String,
}

/// A range of frame numbers, both ends included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct FrameRange {
    /// First frame.
    pub first: u64,
    /// Last frame.
    pub last: u64,
}

/// An estimate with its bounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct LowHigh {
    /// Not less than this.
    pub low: i64,
    /// Not more than this.
    pub high: i64,
}

/// A word or sentence that is nearly always one of a few: a report of 100,000 connections does
/// not hold it 100,000 times.
pub type Text = Cow<'static, str>;
