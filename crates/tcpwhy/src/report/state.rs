//! What can hold a sender, with the names every view and the JSON use.
//!
//! `docs/reference/limits-method.md` section 6 defines each, in this order. Not yet decided by any rule:
//! `recovery.corrupt`, `bandwidth.policer`, `bandwidth.variable` and, but as an alternative,
//! `cwnd.clamp`.

use core::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use tcpwhy_words::units::Duration;

/// What held a sender at an instant.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[repr(u8)]
pub enum State {
    /// The capture lost packets here.
    #[serde(rename = "capture_gap")]
    CaptureGap,
    /// Opening the connection.
    #[serde(rename = "handshake")]
    Handshake,
    /// Waiting to repeat a lost SYN or SYN-ACK.
    #[serde(rename = "syn_retry")]
    SynRetry,
    /// Sent again and again, and never acknowledged.
    #[serde(rename = "silence.no_ack")]
    SilenceNoAck,
    /// Data is missing, and no repair of it came.
    #[serde(rename = "silence.hole")]
    SilenceHole,
    /// The request is acknowledged, and no answer came.
    #[serde(rename = "silence.no_answer")]
    SilenceNoAnswer,
    /// The answer stopped half-way.
    #[serde(rename = "silence.cut_short")]
    SilenceCutShort,
    /// Waiting for the retransmission timer.
    #[serde(rename = "rto_wait")]
    RtoWait,
    /// Waiting for the tail loss probe's timer.
    #[serde(rename = "tlp_wait")]
    TlpWait,
    /// The receiver's window is shut.
    #[serde(rename = "zero_window")]
    ZeroWindow,
    /// Everything is sent, its last ACK is on the way.
    #[serde(rename = "last_flight")]
    LastFlight,
    /// The peer's data flows.
    #[serde(rename = "receiving")]
    Receiving,
    /// Nothing in flight: this side's application is silent.
    #[serde(rename = "idle.app_think")]
    IdleAppThink,
    /// Nothing in flight: the peer's application is to speak next.
    #[serde(rename = "idle.peer_think")]
    IdlePeerThink,
    /// Kept open, and not used any more.
    #[serde(rename = "idle.kept_open")]
    IdleKeptOpen,
    /// Repairing lost segments.
    #[serde(rename = "recovery.loss")]
    RecoveryLoss,
    /// Repairing what was not lost: reordering taken for loss.
    #[serde(rename = "recovery.reorder_spurious")]
    RecoveryReorderSpurious,
    /// Repairing damaged segments.
    #[serde(rename = "recovery.corrupt")]
    RecoveryCorrupt,
    /// Slowing down for congestion marks.
    #[serde(rename = "recovery.ecn")]
    RecoveryEcn,
    /// The receiver's window is full and at its maximum.
    #[serde(rename = "rwnd.cap")]
    RwndCap,
    /// The receiver's window is full and still growing.
    #[serde(rename = "rwnd.autotune")]
    RwndAutotune,
    /// The receiver's window is full: its application reads too slowly.
    #[serde(rename = "rwnd.reader")]
    RwndReader,
    /// The sender's socket buffer is full.
    #[serde(rename = "sndbuf")]
    Sndbuf,
    /// The application protocol's own window is full.
    #[serde(rename = "app_window")]
    AppWindow,
    /// Nagle's algorithm waits for an ACK.
    #[serde(rename = "nagle_delack")]
    NagleDelack,
    /// The sending application has nothing to send.
    #[serde(rename = "app")]
    App,
    /// Packets stand in a queue of the sending host.
    #[serde(rename = "local_qdisc")]
    LocalQdisc,
    /// The sender spaces its packets.
    #[serde(rename = "pacing")]
    Pacing,
    /// The path is full, and the queue there is this transfer's own.
    #[serde(rename = "bandwidth.self_queue")]
    BandwidthSelfQueue,
    /// The path is full: others' traffic queues there, too.
    #[serde(rename = "bandwidth.external")]
    BandwidthExternal,
    /// A policer drops what exceeds its rate.
    #[serde(rename = "bandwidth.policer")]
    BandwidthPolicer,
    /// The path's rate varies.
    #[serde(rename = "bandwidth.variable")]
    BandwidthVariable,
    /// ACKs wait in a queue on their way back.
    #[serde(rename = "ack_path")]
    AckPath,
    /// The congestion window is full, in slow start.
    #[serde(rename = "cwnd.slow_start")]
    CwndSlowStart,
    /// The congestion window is full, in congestion avoidance.
    #[serde(rename = "cwnd.avoidance")]
    CwndAvoidance,
    /// The congestion window is full after an idle restart.
    #[serde(rename = "cwnd.after_idle")]
    CwndAfterIdle,
    /// The congestion window is full, cut down by an earlier loss.
    #[serde(rename = "cwnd.post_loss")]
    CwndPostLoss,
    /// The congestion window is full: slow start ended at a remembered threshold.
    #[serde(rename = "cwnd.cached_ssthresh")]
    CwndCachedSsthresh,
    /// The congestion window is full and never grows.
    #[serde(rename = "cwnd.clamp")]
    CwndClamp,
    /// Closing the connection.
    #[serde(rename = "closing")]
    Closing,
    /// Not decided.
    #[serde(rename = "unknown")]
    Unknown,
}

/// Name, letter and meaning of each state, in the order of [`State`].
const TABLE: [(State, &str, char, &str); 41] = [
    (State::CaptureGap, "capture_gap", '?', "the capture lost packets here"),
    (State::Handshake, "handshake", 'h', "opening the connection"),
    (State::SynRetry, "syn_retry", 'H', "waiting to repeat a lost SYN or SYN-ACK"),
    (State::SilenceNoAck, "silence.no_ack", 'G', "sent again and again, and never acknowledged"),
    (State::SilenceHole, "silence.hole", 'O', "data is missing, and no repair of it came"),
    (
        State::SilenceNoAnswer,
        "silence.no_answer",
        'N',
        "the request is acknowledged, and no answer came",
    ),
    (State::SilenceCutShort, "silence.cut_short", 'U', "the answer stopped half-way"),
    (State::RtoWait, "rto_wait", 'T', "waiting for the retransmission timer"),
    (State::TlpWait, "tlp_wait", 't', "waiting for the tail loss probe's timer"),
    (State::ZeroWindow, "zero_window", '0', "the receiver's window is shut"),
    (State::LastFlight, "last_flight", 'l', "everything is sent, its last ACK is on the way"),
    (State::Receiving, "receiving", '<', "the peer's data flows"),
    (
        State::IdleAppThink,
        "idle.app_think",
        'a',
        "nothing in flight: this side's application is silent",
    ),
    (
        State::IdlePeerThink,
        "idle.peer_think",
        'p',
        "nothing in flight: the peer's application is to speak next",
    ),
    (State::IdleKeptOpen, "idle.kept_open", 'K', "kept open, and not used any more"),
    (State::RecoveryLoss, "recovery.loss", 'x', "repairing lost segments"),
    (
        State::RecoveryReorderSpurious,
        "recovery.reorder_spurious",
        'X',
        "repairing what was not lost: reordering taken for loss",
    ),
    (State::RecoveryCorrupt, "recovery.corrupt", 'c', "repairing damaged segments"),
    (State::RecoveryEcn, "recovery.ecn", 'e', "slowing down for congestion marks"),
    (State::RwndCap, "rwnd.cap", 'R', "the receiver's window is full and at its maximum"),
    (State::RwndAutotune, "rwnd.autotune", 'r', "the receiver's window is full and still growing"),
    (
        State::RwndReader,
        "rwnd.reader",
        'q',
        "the receiver's window is full: its application reads too slowly",
    ),
    (State::Sndbuf, "sndbuf", 'b', "the sender's socket buffer is full"),
    (State::AppWindow, "app_window", 'w', "the application protocol's own window is full"),
    (State::NagleDelack, "nagle_delack", 'n', "Nagle's algorithm waits for an ACK"),
    (State::App, "app", 'A', "the sending application has nothing to send"),
    (State::LocalQdisc, "local_qdisc", 'Q', "packets stand in a queue of the sending host"),
    (State::Pacing, "pacing", 'P', "the sender spaces its packets"),
    (
        State::BandwidthSelfQueue,
        "bandwidth.self_queue",
        'B',
        "the path is full, behind a queue of this transfer's own",
    ),
    (
        State::BandwidthExternal,
        "bandwidth.external",
        'E',
        "the path is full: others' traffic queues there, too",
    ),
    (State::BandwidthPolicer, "bandwidth.policer", 'L', "a policer drops what exceeds its rate"),
    (State::BandwidthVariable, "bandwidth.variable", 'V', "the path's rate varies"),
    (State::AckPath, "ack_path", 'y', "its ACKs wait in a queue on their way back"),
    (State::CwndSlowStart, "cwnd.slow_start", 's', "the congestion window is full, in slow start"),
    (
        State::CwndAvoidance,
        "cwnd.avoidance",
        'v',
        "the congestion window is full, in congestion avoidance",
    ),
    (
        State::CwndAfterIdle,
        "cwnd.after_idle",
        'i',
        "the congestion window is full after an idle restart",
    ),
    (
        State::CwndPostLoss,
        "cwnd.post_loss",
        'g',
        "the congestion window is full, cut down by an earlier loss",
    ),
    (
        State::CwndCachedSsthresh,
        "cwnd.cached_ssthresh",
        'k',
        "the congestion window is full: slow start ended at a remembered threshold",
    ),
    (State::CwndClamp, "cwnd.clamp", 'C', "the congestion window is full and never grows"),
    (State::Closing, "closing", '.', "after the last data, up to the last packet"),
    (State::Unknown, "unknown", '-', "not decided"),
];

impl State {
    /// How many states there are.
    pub const COUNT: usize = TABLE.len();

    /// All states, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The dotted name, as in the JSON.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// One character, for strips.
    pub const fn letter(self) -> char {
        TABLE[self as usize].2
    }

    /// In words, to follow "waited because".
    pub const fn meaning(self) -> &'static str {
        TABLE[self as usize].3
    }

    /// Whether the path is full, or a queue on the sender's host, which few captures can tell apart.
    pub(crate) const fn is_path(self) -> bool {
        matches!(
            self,
            Self::BandwidthSelfQueue
                | Self::BandwidthExternal
                | Self::BandwidthVariable
                | Self::LocalQdisc
        )
    }

    /// Whether an application, and not TCP or the network, is what held the sender.
    pub const fn is_silence(self) -> bool {
        matches!(self, Self::IdleAppThink | Self::IdlePeerThink | Self::App)
    }

    /// Whether it is the congestion window that holds the sender.
    pub(crate) const fn is_congestion_window(self) -> bool {
        matches!(
            self,
            Self::CwndSlowStart
                | Self::CwndAvoidance
                | Self::CwndAfterIdle
                | Self::CwndPostLoss
                | Self::CwndCachedSsthresh
                | Self::CwndClamp
        )
    }

    /// The state of a strip's letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == letter).map(|row| row.0)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Time spent in each state; in JSON an object of nanoseconds by state name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TimeIn(Vec<(State, Duration)>);

impl TimeIn {
    /// Adds `span` to `state`; nothing is stored for an empty span.
    pub fn add(&mut self, state: State, span: Duration) {
        if span == Duration::ZERO {
            return;
        }
        match self.0.binary_search_by_key(&state, |row| row.0) {
            Ok(at) => self.0[at].1 += span,
            Err(at) => self.0.insert(at, (state, span)),
        }
    }

    /// Adds each of `parts`.
    pub fn add_all(&mut self, parts: impl Iterator<Item = (State, Duration)>) {
        parts.for_each(|(state, span)| self.add(state, span));
    }

    /// Books what `from` has, at most `most` of it, on `to`.
    pub(crate) fn rename(&mut self, from: State, to: State, most: Duration) {
        let span = self.get(from).min(most);
        if span > Duration::ZERO {
            self.add(from, Duration::ZERO - span);
            self.0.retain(|row| row.1 != Duration::ZERO);
            self.add(to, span);
        }
    }

    /// Forgets all times, and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Time in `state`.
    pub fn get(&self, state: State) -> Duration {
        self.0.binary_search_by_key(&state, |row| row.0).map_or(Duration::ZERO, |at| self.0[at].1)
    }

    /// All states with their times, in the order of [`State`].
    pub fn iter(&self) -> impl Iterator<Item = (State, Duration)> + '_ {
        self.0.iter().copied()
    }

    /// The sum of all.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, row| sum + row.1)
    }

    /// States by time, longest first; equal times in the order of [`State`].
    pub fn ranked(&self) -> Vec<(State, Duration)> {
        let mut rows = self.0.clone();
        rows.sort_by_key(|row| (core::cmp::Reverse(row.1), row.0));
        rows
    }
}

impl Serialize for TimeIn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (state, span) in &self.0 {
            map.serialize_entry(state.name(), &span.0)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TimeIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = TimeIn;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of nanoseconds by state name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TimeIn, A::Error> {
                let mut time_in = TimeIn::default();
                while let Some((state, ns)) = map.next_entry::<State, i64>()? {
                    time_in.add(state, Duration(ns));
                }
                Ok(time_in)
            }
        }
        deserializer.deserialize_map(Rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_states() {
        for (at, state) in State::all().enumerate() {
            assert_eq!(state as usize, at);
            assert_eq!(State::from_letter(state.letter()), Some(state), "letters are unique");
            let json = serde_json::to_string(&state).expect("a state is a string");
            assert_eq!(json, format!("\"{}\"", state.name()));
        }
    }

    #[test]
    fn times_add_up_and_survive_json() {
        let mut time_in = TimeIn::default();
        time_in.add(State::Closing, Duration(5));
        time_in.add(State::Handshake, Duration(7));
        time_in.add(State::Closing, Duration(1));
        assert_eq!(time_in.total(), Duration(13));
        assert_eq!(time_in.ranked()[0], (State::Handshake, Duration(7)));
        let json = serde_json::to_string(&time_in).expect("serialises");
        assert_eq!(json, r#"{"handshake":7,"closing":6}"#);
        assert_eq!(serde_json::from_str::<TimeIn>(&json).expect("parses"), time_in);
    }
}
