//! One direction of a connection: what was sent, what came back, and what was measured on the way.

use serde::{Deserialize, Serialize};

use super::{
    Ceiling, FrameRange, InFlightAtLoss, Limit, LossPattern, Retransmission, Round, Strip, Text,
    TimeIn, Trail,
};

/// One direction that carried data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Unique payload bytes.
    pub bytes: u64,
    /// Payload bytes with repeats; at least `bytes`, where some of them passed unseen.
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
    /// Rate (payload) of the narrowest link where others have a part of it (`bandwidth.external`): as its closest
    /// packets say, while `bottleneck_rate_bps` is what was left.
    pub shared_link_rate_bps: Option<u64>,
    /// `bottleneck_rate_bps` times the least round trip.
    pub bdp_bytes: Option<u64>,
    /// Rounds (only when asked for).
    pub rounds: Vec<Round>,
    /// What held this direction at each instant (only when asked for, or when few).
    pub limits: Vec<Limit>,
    /// Time in each state; adds up to the connection's lifetime.
    pub time_in: TimeIn,
    /// The state that held the most time of each of equal slices of the lifetime, as letters of
    /// [`State::letter`](super::State::letter).
    pub strip: Strip,
    /// The first flight.
    pub initial_window: Option<InitialWindow>,
    /// How slow start ended.
    pub slow_start_exit: Option<Box<SlowStartExit>>,
    /// Which congestion control explains what came after losses; `None` if that is not clear.
    pub congestion_control: Option<CongestionControl>,
    /// Idle times after which the congestion window may have been cut down.
    pub idle_restarts: Vec<IdleRestart>,
    /// Bytes in flight when the original of each loss episode's first loss was sent.
    pub in_flight_at_loss: Vec<InFlightAtLoss>,
    /// Whether losses depend on the flight, and how they cluster; `None` without a loss that anything but
    /// a timer told of.
    pub loss_pattern: Option<Box<LossPattern>>,
    /// Each retransmission with the frames it repeats (capped).
    pub retransmissions: Vec<Retransmission>,
    /// Largest burst that passed without loss or queue.
    pub burst_proven_bytes: Option<u64>,
    /// A segment that was sent again and again while nothing of its size ever arrived.
    pub stuck_segment: Option<Box<StuckSegment>>,
    /// The receiver took back what its window had allowed.
    pub window_taken_back: Option<TakenBack>,
    /// The receiver announced a window of 0 while data was missing before what it held.
    #[serde(default)]
    pub shut_with_hole: Option<ShutWithHole>,
    /// The narrowest link, where the packets show one.
    pub link: Option<Box<Link>>,
    /// What it could not be faster than, the lowest first.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
    /// Round trips that were suddenly far longer than the one before (capped).
    pub rtt_jumps: Vec<RttJump>,
    /// When which byte first passed the tap. Not in the JSON: only a trace of system calls needs it, to
    /// be laid beside the packets.
    #[serde(skip)]
    pub passed: Passed,
    /// What the receiver answered, and when that passed the tap. Not in the JSON: only a fit of a scenario
    /// needs it.
    #[serde(skip)]
    pub answers: Answers,
    /// What passed the tap, for pictures. Not in the JSON; only where it was asked for.
    #[serde(skip)]
    pub trail: Option<Box<Trail>>,
}

/// The narrowest link that a direction's packets passed, and for how long it was busy with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// It lies between the sender and the capture point, and not behind that.
    pub before_tap: bool,
    /// What came close together came out apart, or delays grew as this link's queue did. Where it is not, the sender has
    /// no time stamps: packets that come as evenly may be spaced by their sender.
    pub proven: bool,
    /// Its rate in bits per second, with the headers of TCP, IP and Ethernet: best, and the quartiles of what shows
    /// it.
    pub rate_bps: LinkRate,
    /// The rate varied by up to 30 %, or others had a part of the link: it is what the path gave.
    pub varies: bool,
    /// Nanoseconds that it was busy with this direction's packets.
    pub busy_ns: i64,
    /// Nanoseconds for which departures were followed or counted: of most transfers from the first to the last.
    pub whole_ns: i64,
    /// Nanoseconds that all that was delivered takes at its rate: no change to TCP makes the transfer shorter.
    pub floor_ns: i64,
    /// Nanoseconds in which it was full: busy for a round trip or more with less than a tenth of it idle.
    pub full_ns: i64,
    /// Lost packets that took no turn on it: its queue had no room, or they never came to it.
    pub lost_before: u64,
    /// Of those, the ones that found its queue at least half as long as it ever was.
    #[serde(default)]
    pub lost_full: u64,
    /// Lost packets that took their turn and were lost behind it.
    pub lost_behind: u64,
    /// Lost packets that found its queue empty.
    pub lost_elsewhere: u64,
    /// When it was busy, but for pauses of two packets at most. Not in the JSON.
    #[serde(skip)]
    pub busy: Vec<(i64, i64)>,
    /// When it was full, on the sender's own timeline. Not in the JSON.
    #[serde(skip)]
    pub full: Vec<(i64, i64)>,
}

/// Bounds and best value of a link's rate, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRate {
    /// A quarter of what shows it came at less.
    pub low: u64,
    /// What most of it came at.
    pub best: u64,
    /// A quarter of it came at more.
    pub high: u64,
}

/// A segment at the head of the flight that did not get through, while nothing of its size ever did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct StuckSegment {
    /// Its payload.
    pub bytes: u64,
    /// How often it was sent, the original included.
    pub sent: u64,
    /// First send.
    pub from_ns: i64,
    /// Last send of that size.
    pub to_ns: i64,
    /// The largest segment of this direction that is known to have arrived.
    pub arrived_bytes: u64,
    /// Size of the pieces in which its bytes were acknowledged at last.
    pub passed_bytes: Option<u64>,
    /// The peer reported meanwhile that something sent after it had arrived.
    pub peer_heard: bool,
    /// Frames from its first to its last send.
    pub frames: FrameRange,
}

/// A window whose right edge went back, which receivers do not do by themselves (RFC 9293 section 3.8.6).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct TakenBack {
    /// How far the edge went back, at most.
    pub bytes: u64,
    /// The largest window while the edge was back.
    pub window_bytes: u64,
    /// Bytes that were under way, at most, when a window of 0 was announced.
    #[serde(default)]
    pub over_bytes: u64,
}

/// A receive buffer that is full of data behind a hole: its program can read none of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ShutWithHole {
    /// ACKs that announced a window of 0.
    pub acks: u64,
    /// Those of them that reported data behind a hole.
    pub with_hole: u64,
    /// Bytes that were missing, when that was reported last.
    pub missing_bytes: u64,
    /// Bytes that were held behind them.
    pub held_bytes: u64,
}

/// A round trip that was suddenly far longer than the one before it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RttJump {
    /// When its ACK came.
    pub at_ns: i64,
    /// The round trip.
    pub rtt_ns: i64,
    /// The one before.
    pub before_ns: i64,
    /// The part of the round trip in which the data was between the sender's TCP and the capture point.
    pub data_late_ns: i64,
    /// The part of the round trip in which the ACK was between the receiver's TCP and the capture point; `None`
    /// where its timestamps do not tell.
    pub ack_late_ns: Option<i64>,
    /// Frame of the ACK.
    pub frame: u64,
}

/// When the bytes of a direction first passed the tap; empty unless it was asked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Passed {
    /// Time since the connection's first packet, and how many bytes had passed by then; both grow.
    pub points: Vec<(i64, u64)>,
    /// There were too many: of several neighbours only the last is kept.
    pub is_thinned: bool,
    /// The first FIN, if one passed.
    pub fin: Option<FinPassed>,
}

/// A direction's first FIN.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FinPassed {
    /// When it passed the tap, since the connection's first packet.
    pub at_ns: i64,
    /// The segment carried data too: its sender had closed before it could send that.
    pub with_data: bool,
}

impl Passed {
    /// Points kept. Ours: 1 MB a direction, and each packet of a transfer of 90 MB.
    const MOST: usize = 1 << 16;

    /// Up to byte `bytes` had passed at `at_ns`; what passed before stays.
    pub(crate) fn push(&mut self, at_ns: i64, bytes: u64) {
        if self.points.last().is_some_and(|last| last.1 >= bytes) || bytes == 0 {
            return;
        }
        if self.points.len() >= Self::MOST {
            keep_every_second(&mut self.points);
            self.is_thinned = true;
        }
        self.points.push((at_ns, bytes));
    }
}

/// What the receiver of a direction's data answered; empty unless it was asked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Answers {
    /// In the order in which they passed the tap.
    pub points: Vec<Answer>,
    /// There were too many: of several neighbours only the last is kept.
    pub is_thinned: bool,
}

/// One acknowledgment, or new window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Answer {
    /// When it passed the tap, since the connection's first packet.
    pub at_ns: i64,
    /// Bytes that were acknowledged by then.
    pub acked: u64,
    /// The byte up to which the window reached.
    pub edge: u64,
}

impl Answers {
    /// Answers kept. Ours: 1.5 MB a direction, as many as of [`Passed`].
    const MOST: usize = Passed::MOST;

    /// An answer passed; what tells nothing new is not kept.
    pub(crate) fn push(&mut self, answer: Answer) {
        let is_known = |last: &Answer| {
            last.acked > answer.acked || (last.acked, last.edge) == (answer.acked, answer.edge)
        };
        if self.points.last().is_some_and(is_known) {
            return;
        }
        if self.points.len() >= Self::MOST {
            keep_every_second(&mut self.points);
            self.is_thinned = true;
        }
        self.points.push(answer);
    }
}

/// Of two neighbours the last is kept.
fn keep_every_second<T>(points: &mut Vec<T>) {
    let mut kept = false;
    points.retain(|_| {
        kept = !kept;
        !kept
    });
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
    /// Not lost, as D-SACK, the echo of the original's timestamp, or the original behind its repeat shows.
    pub spurious: u64,
    /// Data the tap had already seen acknowledged.
    pub unnecessary: u64,
    /// Repeated SYN or SYN-ACK.
    pub syn: u64,
}

impl Retransmitted {
    /// Segments of all causes (`spurious` is a remark on some of them, not a cause).
    pub fn total(self) -> u64 {
        [self.fast, self.rto, self.tlp, self.unnecessary, self.syn]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
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
    /// Segments that arrived damaged, by their TCP checksum, and had to be retransmitted.
    pub damaged: u64,
    /// Segments that the receiver got twice (D-SACK) though they were sent once.
    pub doubled: u64,
    /// Segments missing in the capture although they were acknowledged, or never came though later
    /// ones did in a capture of one direction.
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

/// The first flight of a direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct InitialWindow {
    /// In segments.
    pub segments: u64,
    /// In bytes.
    pub bytes: u64,
    /// The application had more to send: this was the limit, not the data.
    pub full: bool,
    /// SYNs or SYN-ACKs that were repeated more than once cut the congestion window to one segment.
    pub cut_by_syns: bool,
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
    /// The evidence that the threshold was measured by, an index into the report's `with`; `None`: it
    /// is an estimate.
    pub measured_by: Option<u32>,
}

/// The congestion control whose replay explains a direction's flights after losses.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct CongestionControl {
    /// `reno` or `cubic`, as Linux names them.
    pub name: String,
    /// Rounds that it explains and the other does not.
    pub rounds: u64,
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
