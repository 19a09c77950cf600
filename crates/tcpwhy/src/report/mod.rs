//! The report: plain data that every view reads, and the JSON contract.
//!
//! `docs/report.schema.json` is the contract these types follow; a test validates real output
//! against it. Names and meanings are documented there and here in the same words. All `_ns`
//! fields are integers relative to the connection's own first packet; sizes are bytes; what is
//! unknown is `None` (JSON `null`), never zero; confidence runs from 0 to 100.

use core::net::SocketAddr;
use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub mod state;

pub use state::{State, TimeIn};

/// The format number of the JSON; every change to it has a changelog entry.
pub const FORMAT: &str = "tcpwhy/1";

/// Everything that was found out about one or more captures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: String,
    /// The input was still being read: figures may change.
    pub provisional: bool,
    /// The captures read, in the order of their time.
    pub captures: Vec<Capture>,
    /// The connections, in the order of their first packet.
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
    /// Packets that were passed over, by reason.
    pub skipped: Vec<Skipped>,
    /// What is to be said about the capture's quality.
    pub quality: Vec<Quality>,
    /// Where and why reading stopped early; `None` when it was read to its end.
    pub error: Option<String>,
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

/// One TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Number in this report, from 0, in the order of first packets.
    pub id: u64,
    /// Wireshark's `tcp.stream` of the same file; `None` where that is not defined (listings,
    /// several files, tunnels Wireshark would number otherwise).
    pub stream: Option<u64>,
    /// Who opened the connection (or seems to have: see `handshake_seen`).
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Capture time of the first packet: RFC 3339 with nine decimals, without date for listings.
    pub start: String,
    /// First to last captured packet: the lifetime all intervals add up to.
    pub duration_ns: i64,
    /// Packets captured of it, duplicates not counted.
    pub packets: u64,
    /// Number of its first and last packet in the input.
    pub frames: FrameRange,
    /// Whose host the capture was taken on.
    pub vantage: Vantage,
    /// Why we think so.
    pub vantage_evidence: String,
    /// Round trip between the tap and the client.
    pub tap_to_client_rtt_ns: Option<i64>,
    /// Round trip between the tap and the server.
    pub tap_to_server_rtt_ns: Option<i64>,
    /// Constant delay between the captured host's stack and the tap; `None` if not on a host or unknown.
    pub egress_delay_ns: Option<LowHigh>,
    /// Last SYN to the ACK of the SYN-ACK.
    pub handshake_rtt_ns: Option<i64>,
    /// Effective payload per segment: both MSS options less the options every segment carries.
    pub mss: Option<u32>,
    /// Whether windows are scaled.
    pub window_scaling: WindowScaling,
    /// Who refused scaling and how we know, when it was offered and refused.
    pub window_scaling_note: Option<String>,
    /// Operating system family of client and server, guessed from the packets.
    pub sender_stack: [SenderStack; 2],
    /// How it ended.
    pub end: End,
    /// Client to server, then server to client; `None` where no data flowed.
    pub directions: [Option<Box<Direction>>; 2],
    /// Runs of application data of one direction.
    pub transfers: Vec<Transfer>,
    /// Requests and their responses.
    pub exchanges: Vec<Exchange>,
    /// TLS handshake flights, from the clear headers of records.
    pub tls: Option<Tls>,
    /// What was found (filled by the `find` room).
    pub findings: Vec<Finding>,
    /// Packets that were captured twice and left out.
    pub duplicates: u64,
    /// Some lists were cut short to bound memory.
    pub truncated: bool,
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

/// The host a capture was taken on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vantage {
    /// The client's host.
    Client,
    /// The server's host.
    Server,
    /// Neither: a device between them.
    Middle,
    /// Not proven.
    #[default]
    Unknown,
}

/// Whether the connection scales its windows (RFC 7323 §2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowScaling {
    /// Both sides offered it.
    Used,
    /// At least one side did not offer it: windows stay below 64 KiB.
    NotNegotiated,
    /// The capture lacks the handshake; the shift is an estimate.
    #[default]
    HandshakeNotSeen,
}

/// A word or sentence that is nearly always one of a few: a report of 100,000 connections does
/// not hold it 100,000 times.
pub type Text = Cow<'static, str>;

/// A guess at one side's TCP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderStack {
    /// `linux`, `windows`, `apple`, `bsd` or `unknown`.
    pub name: Text,
    /// What speaks for it.
    pub evidence: Text,
    /// Length of one tick of its timestamp clock, where it could be fitted.
    pub timestamp_tick_ns: Option<i64>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With FIN.
    Fin,
    /// With RST.
    Rst,
    /// The capture ended first.
    #[default]
    Open,
}

/// One direction that carried data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Unique payload bytes.
    pub bytes: u64,
    /// Payload bytes with repeats.
    pub bytes_sent: u64,
    /// Segments on the wire (a captured super-segment counts for all it was split into).
    pub segments: u64,
    /// Data frames as captured.
    pub frames: u64,
    /// Retransmitted segments by cause.
    pub retransmitted: Retransmitted,
    /// What Wireshark's users look for, in its sense.
    pub events: Events,
    /// Round-trip time as this sender saw it.
    pub rtt: Rtt,
    /// Payload bytes in flight, at most.
    pub max_in_flight_bytes: u64,
    /// Delivery rate over rounds.
    pub delivery_rate_bps: Option<Rate>,
    /// Estimate of the narrowest link's rate (payload), where the packets show one.
    pub bottleneck_rate_bps: Option<u64>,
    /// `bottleneck_rate_bps` times the least round trip.
    pub bdp_bytes: Option<u64>,
    /// Rounds (only when asked for).
    pub rounds: Vec<Round>,
    /// What held this direction at each instant (only when asked for, or when few).
    pub limits: Vec<Limit>,
    /// Time in each state; adds up to the connection's lifetime.
    pub time_in: TimeIn,
    /// The state that held the most time of each of equal slices of the lifetime, as letters of
    /// [`State::letter`].
    pub strip: String,
    /// The first flight.
    pub initial_window: Option<InitialWindow>,
    /// How slow start ended.
    pub slow_start_exit: Option<Box<SlowStartExit>>,
    /// Idle times after which the congestion window may have been cut down.
    pub idle_restarts: Vec<IdleRestart>,
    /// Bytes in flight when the original of each loss episode's first loss was sent.
    pub in_flight_at_loss: Vec<InFlightAtLoss>,
    /// Whether losses depend on the flight, and how they cluster; `None` without loss.
    pub loss_pattern: Option<Box<LossPattern>>,
    /// Each retransmission with the frames it repeats (capped).
    pub retransmissions: Vec<Retransmission>,
    /// Largest burst that passed without loss or queue.
    pub burst_proven_bytes: Option<u64>,
}

/// Retransmitted segments by cause.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Retransmitted {
    /// After SACK or duplicate ACKs.
    pub fast: u64,
    /// After a retransmission timeout.
    pub rto: u64,
    /// Tail loss probes that repeat data.
    pub tlp: u64,
    /// Shown needless by D-SACK or by the original's timestamp echo.
    pub spurious: u64,
    /// Data the tap had already seen acknowledged.
    pub unnecessary: u64,
    /// Repeated SYN or SYN-ACK.
    pub syn: u64,
}

/// Counts in the sense of Wireshark's analysis flags.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Zero-window advertisements by the receiver.
    pub zero_window: u64,
    /// Probes of a zero window by the sender.
    pub zero_window_probe: u64,
    /// Segments that filled the receiver's window to the byte.
    pub window_full: u64,
    /// Window updates by the receiver.
    pub window_update: u64,
    /// Keep-alives by the sender.
    pub keep_alive: u64,
    /// Duplicate ACKs by the receiver.
    pub duplicate_ack: u64,
    /// ACKs during recovery that advance without ending it.
    pub partial_ack: u64,
    /// Data that arrived out of order and was no retransmission.
    pub out_of_order: u64,
    /// ACKs of the receiver with ECN echo.
    pub ecn_echo: u64,
    /// Segments lost in the network, as far as retransmissions tell.
    pub lost: u64,
    /// Segments missing in the capture although they were acknowledged.
    pub not_captured: u64,
}

/// Round-trip time figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rtt {
    /// Least.
    pub min_ns: Option<i64>,
    /// Median.
    pub median_ns: Option<i64>,
    /// 95th percentile.
    pub p95_ns: Option<i64>,
    /// How it was measured at this vantage, in words.
    pub method: Text,
    /// How many samples.
    pub samples: u64,
}

/// A rate, over rounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Median.
    pub median: u64,
    /// Maximum.
    pub max: u64,
}

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
    /// State of the wait after its last send.
    pub limited_by: State,
    /// Bytes in flight after its last send.
    pub in_flight_bytes: u64,
    /// Bytes acknowledged in it by its length.
    pub delivery_rate_bps: Option<u64>,
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
    /// 0 to 100.
    pub confidence: u8,
    /// States that these packets cannot be told apart from, or the runner-up.
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

/// The first flight of a direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct InitialWindow {
    /// In segments.
    pub segments: u64,
    /// In bytes.
    pub bytes: u64,
    /// The application had more to send: this was the limit, not the data.
    pub full: bool,
}

/// The end of slow start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowStartExit {
    /// When.
    pub at_ns: i64,
    /// `loss`, `hystart_delay`, `hystart_train`, `cached_ssthresh`, `rwnd`, `app` or `unknown`.
    pub cause: String,
    /// In segments.
    pub ssthresh: Option<u64>,
}

/// A pause after which Linux may restart from the initial window (RFC 5681 §4.1, Linux `tcp_cwnd_restart`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleRestart {
    /// When sending went on.
    pub at_ns: i64,
    /// How long nothing was in flight.
    pub idle_ns: i64,
    /// `on`, `off`, `not_applicable` or `unknown`.
    pub verdict: String,
    /// Why.
    pub reason: String,
    /// Segments of the first burst after the pause.
    pub segments: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Congestion window before the pause, at least, in segments.
    pub cwnd_before: Option<u64>,
}

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
    /// `congestion` (depends on the flight), `random` or `unknown`.
    pub kind: String,
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
    /// `fast`, `rto`, `tlp`, `syn` or `unnecessary`.
    pub cause: String,
    /// Shown needless later.
    pub spurious: bool,
    /// Frames whose bytes it repeats.
    pub originals: Vec<u64>,
}

/// Application data of one direction until an idle state, or data of the peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// `client` or `server`.
    pub from: Text,
    /// First byte sent.
    pub start_ns: i64,
    /// Its last ACK.
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
}

/// TLS as its clear record headers show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// First handshake record.
    pub start_ns: i64,
    /// First application data record, or `None`.
    pub end_ns: Option<i64>,
    /// Changes of direction before application data: a round trip is two.
    pub flights: Vec<TlsFlight>,
}

/// One flight of a TLS handshake.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsFlight {
    /// `client` or `server`.
    pub from: String,
    /// First record.
    pub start_ns: i64,
    /// Payload bytes.
    pub bytes: u64,
    /// Record types in order.
    pub records: Vec<String>,
}

/// A finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable code; `tcpwhy doc CODE` explains it.
    pub code: String,
    /// `info`, `warning` or `error`.
    pub severity: String,
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
    /// What to do, best first.
    pub remedies: Vec<Remedy>,
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
    /// `sender`, `receiver`, `application` or `path`.
    pub who: String,
    /// What to change.
    pub what: String,
    /// Command that does it, where there is one.
    pub command: Option<String>,
    /// Command that takes it back.
    pub rollback: Option<String>,
    /// The setting's name.
    pub knob: Option<String>,
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
    /// At worst.
    pub high: i64,
}
