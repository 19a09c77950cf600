//! What a run leaves behind: segments at taps, what sockets handed down, states.

use super::Note;
use super::Side;
use super::transfer::{Carried, Transfer};
use crate::path::Work;
use crate::segment::Segment;
use crate::socket::{CaState, Info, Purpose, Wait};
use serde::{Deserialize, Serialize};

/// What is kept of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent kinds of records")]
pub struct Keep {
    /// Wire segments at both hosts' taps.
    pub segments: bool,
    /// Of those only at this host's tap.
    pub only: Option<Tap>,
    /// What sockets hand down, before it is cut.
    pub handed_down: bool,
    /// State of a socket after each segment that reaches it.
    pub states: bool,
    /// What each sender waits for, whenever that changes.
    pub limits: bool,
    /// What each direction carried and waited for, in sums.
    pub transfers: bool,
    /// Each sender's own account.
    pub notes: bool,
    /// Each sender's congestion window, whenever it changes.
    pub windows: bool,
    /// What each way's link did with packets.
    pub links: bool,
}

/// Where a segment was seen.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum Tap {
    /// At the client's host.
    Client,
    /// At the server's.
    Server,
}

/// A segment as a tap sees it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Seen {
    /// When.
    pub at_ns: u64,
    /// Where.
    pub tap: Tap,
    /// Its connection, counted from 0 as they were opened.
    pub connection: u32,
    /// Who sent it.
    pub from: Side,
    /// The segment.
    pub segment: Segment,
}

/// A socket's state at an instant.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Sample {
    /// When.
    pub at_ns: u64,
    /// Its connection.
    pub connection: u32,
    /// Whose.
    pub side: Side,
    /// State.
    pub info: Info,
    /// Why its sender waits.
    pub wait: Wait,
}

/// What a sender waits for from an instant on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LimitSince {
    /// From when.
    pub at_ns: u64,
    /// Its connection.
    pub connection: u32,
    /// Whose sending.
    pub side: Side,
    /// What.
    pub limit: Limit,
}

/// A sender's congestion window from an instant on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowSince {
    /// From when.
    pub at_ns: u64,
    /// Its connection.
    pub connection: u32,
    /// Whose.
    pub side: Side,
    /// In segments.
    pub cwnd: u32,
    /// Threshold of slow start, in segments.
    pub ssthresh: u32,
    /// State of congestion control.
    pub ca_state: CaState,
    /// Timeouts in a row.
    pub timeouts: u32,
    /// How many segments were handed down before, of those that are kept.
    pub sends: usize,
}

/// What a sender waits for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Limit {
    /// The handshake is not done.
    Handshake,
    /// Nothing is written, and nothing under way.
    Application,
    /// All that was written is under way; the application has more to do, but not now.
    ApplicationInFlight,
    /// A writer waits for room in the send buffer, and all that it wrote is under way.
    SendBuffer,
    /// The congestion window, in slow start.
    SlowStart,
    /// The congestion window, beyond it.
    Avoidance,
    /// The congestion window, while losses are repaired.
    Recovery,
    /// The congestion window after a timeout.
    Timeout,
    /// The peer's window.
    ReceiveWindow,
    /// The peer's window, which is closed.
    ZeroWindow,
    /// A small segment waits for an acknowledgment, or is corked.
    Nagle,
    /// TSO waits for a larger piece.
    Deferral,
    /// It is not yet time.
    Pacing,
    /// Segments have not left the host.
    SmallQueue,
    /// The timer of a SYN or SYN-ACK that was lost.
    SynTimer,
    /// The tail loss probe's timer (RFC 8985 section 7).
    ProbeTimer,
    /// The retransmission timer.
    RetransmissionTimer,
    /// All is sent that ever will be; its acknowledgment is awaited.
    LastFlight,
    /// All is sent and acknowledged that ever will be.
    Closed,
}

/// A run's records.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What is kept.
    pub keep: Keep,
    /// Segments in order of time.
    pub segments: Vec<Seen>,
    /// What sockets handed down, in order of time.
    pub handed_down: Vec<Seen>,
    /// States in order of time.
    pub samples: Vec<Sample>,
    /// What senders waited for, in order of time.
    pub limits: Vec<LimitSince>,
    /// Sums of each connection, in the order they were opened.
    pub transfers: Vec<Carried>,
    /// What senders say of themselves, in order of time.
    pub notes: Vec<Note>,
    /// Ports of servers, by connection.
    pub ports: Vec<u16>,
    /// Congestion windows, in order of time.
    pub windows: Vec<WindowSince>,
    /// What the link up (from the client) and the link down did.
    pub links: [Work; 2],
}

impl From<Side> for Tap {
    fn from(side: Side) -> Self {
        match side {
            Side::Client => Self::Client,
            Side::Server => Self::Server,
        }
    }
}

impl Limit {
    /// All of them, in their order.
    pub const ALL: [Self; 19] = [
        Self::Handshake,
        Self::Application,
        Self::ApplicationInFlight,
        Self::SendBuffer,
        Self::SlowStart,
        Self::Avoidance,
        Self::Recovery,
        Self::Timeout,
        Self::ReceiveWindow,
        Self::ZeroWindow,
        Self::Nagle,
        Self::Deferral,
        Self::Pacing,
        Self::SmallQueue,
        Self::SynTimer,
        Self::ProbeTimer,
        Self::RetransmissionTimer,
        Self::LastFlight,
        Self::Closed,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Application | Self::ApplicationInFlight => "application",
            Self::SendBuffer => "send buffer",
            Self::SlowStart => "slow start",
            Self::Avoidance => "congestion avoidance",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::ReceiveWindow => "receiver's window",
            Self::ZeroWindow => "zero window",
            Self::Nagle => "Nagle",
            Self::Deferral => "TSO deferral",
            Self::Pacing => "pacing",
            Self::SmallQueue => "own queue",
            Self::SynTimer => "SYN's timer",
            Self::ProbeTimer => "tail loss probe's timer",
            Self::RetransmissionTimer => "retransmission timer",
            Self::LastFlight => "last flight",
            Self::Closed => "closed",
        }
    }
}

impl Trace {
    pub(super) fn see(
        &mut self,
        tap: Tap,
        at_ns: u64,
        connection: u32,
        from: Side,
        segment: &Segment,
    ) {
        if self.keep.segments && self.keep.only.is_none_or(|only| only == tap) {
            self.segments.push(Seen { at_ns, tap, connection, from, segment: *segment });
        }
        if tap != Tap::from(from)
            && let Some(carried) = self.transfers.get_mut(connection as usize)
        {
            carried.on_arrival(at_ns, from, segment);
        }
    }

    pub(super) fn hand_down(&mut self, at_ns: u64, connection: u32, from: Side, segment: &Segment) {
        if self.keep.handed_down {
            let tap = Tap::from(from);
            self.handed_down.push(Seen { at_ns, tap, connection, from, segment: *segment });
        }
        if let Some(carried) = self.transfers.get_mut(connection as usize) {
            carried.on_sent(at_ns, from, segment);
        }
    }

    pub(super) fn open(&mut self, at_ns: u64, port: u16) {
        self.ports.push(port);
        if self.keep.transfers {
            self.transfers.push(Carried::opened(at_ns));
        }
    }

    pub(super) fn limit(&mut self, at_ns: u64, connection: u32, side: Side, limit: Limit) {
        if self.keep.limits {
            self.limits.push(LimitSince { at_ns, connection, side, limit });
        }
        if let Some(transfer) = self.transfer(connection, side) {
            transfer.on_limit(at_ns, limit);
        }
    }

    /// A sender's timer fires.
    pub(super) fn timer(&mut self, at_ns: u64, connection: u32, side: Side, purpose: Purpose) {
        if let Some(carried) = self.transfers.get_mut(connection as usize) {
            carried.on_timer(at_ns, side, purpose);
        }
    }

    /// An application of a connection is done.
    pub(super) fn done(&mut self, at_ns: u64, connection: u32) {
        if let Some(carried) = self.transfers.get_mut(connection as usize) {
            carried.directions.iter_mut().for_each(|transfer| transfer.on_done(at_ns));
        }
    }

    /// Sums of a direction, if they are kept.
    fn transfer(&mut self, connection: u32, from: Side) -> Option<&mut Transfer> {
        Some(&mut self.transfers.get_mut(connection as usize)?.directions[from.index()])
    }
}
