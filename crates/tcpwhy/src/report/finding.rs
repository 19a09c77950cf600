//! What was found, where it shows, and what would help.

use serde::{Deserialize, Serialize};

use super::{FrameRange, Gain, Severity, State, Sure, Text};

/// A finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable code; `tcpwhy doc CODE` explains it.
    pub code: String,
    /// Whether something is wrong.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// Why we say so.
    pub why: String,
    /// What it is not.
    pub not: String,
    /// Where it shows.
    pub evidence: Vec<Evidence>,
    /// Time of the intervals named; findings may share intervals.
    pub cost_ns: i64,
    /// The time that the cost is a share of: the active time, in which somebody waited; for silence
    /// between requests, which is not in that, the lifetime.
    pub of_ns: i64,
    /// What would be saved if its cause were gone; `None` where nothing tells.
    #[serde(default)]
    pub gain: Option<Gain>,
    /// For how long it was seen: the time of the intervals named.
    #[serde(default)]
    pub seen_in_ns: i64,
    /// What to do, best first.
    pub remedies: Vec<Remedy>,
    /// Whose data it speaks of: `client` or `server`; `None` where it is of the connection as a whole.
    #[serde(default)]
    pub from: Option<Text>,
    /// How sure the intervals are that it rests on; `None` where it rests on none.
    #[serde(default)]
    pub sure: Option<Sure>,
    /// States that the packets allow for a good part of them, too.
    #[serde(default)]
    pub alternative: Vec<State>,
    /// The code of another finding that explains the same time better. This one comes behind it.
    #[serde(default)]
    pub explained_by: Option<Text>,
}

/// Where a finding shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Start.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
    /// Frames.
    pub frames: FrameRange,
    /// Wireshark display filter.
    pub filter: String,
    /// In words.
    pub text: String,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// `sender` or `receiver` (of the data that the finding speaks of), `client` or `server` (where it
    /// speaks of no data), `application` or `path`.
    pub who: String,
    /// Whose host it is done on: `client` or `server`; `None` where it is neither's.
    pub on: Option<String>,
    /// What to change.
    pub what: String,
    /// Command that does it, where there is one.
    pub command: Option<String>,
    /// Command that takes it back.
    pub rollback: Option<String>,
    /// The setting's name.
    pub knob: Option<String>,
    /// What has it predicted: `KEY=VALUE` for `tcpwhy whatif --set`, or `again` for the same
    /// conversation on the connection that it left open.
    pub set: Option<String>,
    /// New duration of the same transfer.
    pub predicted_ns: Option<Prediction>,
}

/// A predicted duration.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// At best.
    pub low: i64,
    /// Most likely.
    pub best: i64,
    /// At worst: no less than `now` where perhaps nothing is gained.
    pub high: i64,
    /// As it was.
    pub now: i64,
    /// How it was found.
    pub by: PredictedBy,
}

/// How a prediction was found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictedBy {
    /// From the capture's own round trips and flights; durations are the transfer's.
    #[default]
    Arithmetic,
    /// By a model that repeats the connection unchanged; durations run from the handshake to the
    /// last acknowledgment.
    Model,
}
