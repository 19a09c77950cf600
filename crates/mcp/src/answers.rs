//! What is asked of whoever has the answers, and the facts that an answer has beside its text.

use std::sync::atomic::AtomicBool;

use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;

use crate::folders::Opened;

/// Whoever has the answers. Each question is asked in a thread of its own. When `stop` becomes true, nobody wants the answer
/// any more.
pub trait Answers: Send + Sync + 'static {
    /// What the transfers of a capture waited for, and what would make them faster.
    ///
    /// # Errors
    /// Nothing can be read, or no connection matches the filter.
    fn explain(&self, file: &Opened, filter: Option<&str>, stop: &AtomicBool) -> Said<Explained>;

    /// One connection's account; without a number, that of the one with most data.
    ///
    /// # Errors
    /// There is no such connection.
    fn connection(&self, file: &Opened, number: Option<u64>, stop: &AtomicBool) -> Said<Account>;

    /// One finding of a connection, with its evidence.
    ///
    /// # Errors
    /// Nothing of that code was found there.
    fn finding(
        &self,
        file: &Opened,
        number: Option<u64>,
        code: &str,
        stop: &AtomicBool,
    ) -> Said<Found>;

    /// Frames of a connection from frame number `from` on, `most` of them at most.
    ///
    /// # Errors
    /// There is no such connection.
    fn frames(
        &self,
        file: &Opened,
        number: Option<u64>,
        from: u64,
        most: usize,
        stop: &AtomicBool,
    ) -> Said<Frames>;

    /// What a connection would have taken with these settings, each `KEY=VALUE`.
    ///
    /// # Errors
    /// A setting makes no sense, or the connection cannot be run otherwise.
    fn whatif(
        &self,
        file: &Opened,
        number: Option<u64>,
        set: &[String],
        stop: &AtomicBool,
    ) -> Said<Changes>;

    /// What is wrong with the hosts whose tools printed this text, or with this host, looked at twice, `seconds` apart.
    ///
    /// # Errors
    /// Nothing in the text can be used.
    fn check(&self, text: Option<&str>, seconds: u64) -> Said<Checked>;

    /// What a word means.
    ///
    /// # Errors
    /// Nothing is known of it.
    fn doc(&self, word: &str) -> Said<Page>;
}

/// An answer, or why there is none, in words.
pub type Said<T> = Result<Answer<T>, Refused>;

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T> {
    /// For people.
    pub text: String,
    /// For programs.
    pub facts: T,
    /// Such as that a capture was read only in part.
    pub remarks: Vec<String>,
}

/// Facts of an answer, and what was left out of them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Facts<T> {
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
    /// Such as that a capture was read only in part.
    pub remarks: Vec<String>,
    /// Items that were left out of lists to keep the answer short.
    pub left_out: u64,
    /// What to ask to see what is not here.
    pub next: String,
}

/// A range of frame numbers, both ends included, as Wireshark counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct FrameRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// What a capture shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Explained {
    /// The capture.
    pub file: String,
    /// How many connections it holds, or match the filter.
    pub connections: u64,
    /// Those that failed, then those that waited longest.
    pub worst: Vec<Summary>,
}

/// One connection in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Summary {
    /// Its number, which the other tools take.
    pub connection: u64,
    /// Who opened it: address and port.
    pub client: String,
    /// The other end.
    pub server: String,
    /// The server's name, as packets tell it.
    pub name: Option<String>,
    /// From its first packet to its last, in nanoseconds.
    pub duration_ns: i64,
    /// Payload of both directions.
    pub bytes: u64,
    /// Its first and last frame.
    pub frames: FrameRange,
    /// On whose host the capture was taken: `client`, `server`, `middle` or `unknown`.
    pub taken_at: String,
    /// What took the time, or what did not work, in a few sentences.
    pub answer: String,
    /// Causes, the costliest first.
    pub causes: Vec<Cause>,
}

/// A finding in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Cause {
    /// Its code, which `finding` and `doc` take.
    pub code: String,
    /// `broken`, `wrong`, `limit` or `note`.
    pub severity: String,
    /// In one line.
    pub title: String,
    /// The time that it took, in nanoseconds.
    pub cost_ns: i64,
    /// What would be saved without it; null where nothing tells.
    pub gain: Option<Gain>,
}

/// What would be saved, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Gain {
    /// At least.
    pub low_ns: i64,
    /// Most likely.
    pub best_ns: i64,
    /// At most.
    pub high_ns: i64,
    /// Of this time.
    pub now_ns: i64,
}

/// One connection's account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Account {
    /// The connection.
    #[serde(flatten)]
    pub connection: Summary,
    /// What held each sender. The times of a direction add up to the connection's duration.
    pub directions: Vec<Time>,
}

/// Where the time of a direction went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Time {
    /// Whose data: `client` or `server`.
    pub from: String,
    /// Its payload bytes.
    pub bytes: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// The longest first.
    pub states: Vec<State>,
}

/// Time in a state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct State {
    /// Its name, which `doc` takes.
    pub state: String,
    /// Nanoseconds.
    pub ns: i64,
    /// The longest interval of it; null where intervals were not kept.
    pub longest: Option<FrameRange>,
}

/// What was found under one code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Found {
    /// The connection; null where it is of the capture as a whole.
    pub connection: Option<u64>,
    /// The findings of that code.
    pub findings: Vec<Opinion>,
}

/// A finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Opinion {
    /// In short.
    #[serde(flatten)]
    pub cause: Cause,
    /// Why it is said.
    pub why: String,
    /// What it is not.
    pub not: String,
    /// Where it shows.
    pub evidence: Vec<Evidence>,
    /// What to do, best first.
    pub remedies: Vec<Remedy>,
}

/// Where a finding shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Evidence {
    /// Frames.
    pub frames: FrameRange,
    /// Nanoseconds since the connection's first packet.
    pub from_ns: i64,
    /// The same of the end.
    pub to_ns: i64,
    /// In words.
    pub text: String,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Remedy {
    /// Who does it, and on whose host.
    pub who: String,
    /// What.
    pub what: String,
    /// The command that does it, where there is one. It changes a host: nobody runs it but a person who decided so.
    pub command: Option<String>,
    /// The command that takes it back.
    pub rollback: Option<String>,
    /// `KEY=VALUE` for `whatif`.
    pub set: Option<String>,
}

/// Frames of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Frames {
    /// The connection.
    pub connection: u64,
    /// In the order of the capture.
    pub frames: Vec<Frame>,
    /// The number of the next frame, to ask from there; null at the end.
    pub next_frame: Option<u64>,
}

/// A frame's TCP header.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Frame {
    /// Number in the capture.
    pub frame: u64,
    /// Nanoseconds since the connection's first packet.
    pub time_ns: i64,
    /// Who sent it: `client` or `server`.
    pub from: String,
    /// Its flags.
    pub flags: String,
    /// First byte, counted from the sender's first packet: a SYN has 0, data begins with 1.
    pub seq: i64,
    /// Payload bytes.
    pub len: u32,
    /// The next byte that its sender expects; null without an acknowledgment.
    pub ack: Option<i64>,
}

/// What changes would have given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Changes {
    /// The connection.
    pub connection: u64,
    /// Whether the model repeats the connection as it was. If not, it says nothing of changes.
    pub repeats: bool,
    /// Why it says nothing.
    pub doubt: Option<String>,
    /// The time as it was, from the handshake to the last acknowledgment, in nanoseconds.
    pub now_ns: Option<i64>,
    /// What was tried.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Change {
    /// In words.
    pub what: String,
    /// What it then takes, in nanoseconds: most likely.
    pub best_ns: Option<i64>,
    /// At best.
    pub low_ns: Option<i64>,
    /// At worst.
    pub high_ns: Option<i64>,
    /// Why there is no answer.
    pub refused: Option<String>,
}

/// What was found about hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Checked {
    /// Each as `tcpwhy check --json` prints it (docs/check.schema.json): `findings` with evidence and fixes, `connections`
    /// that something holds, `unseen` checks, and those that found nothing in `well`.
    pub hosts: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// What a word means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Page {
    /// Titles of the pages that the text has.
    pub titles: Vec<String>,
}
