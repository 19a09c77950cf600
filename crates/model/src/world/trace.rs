//! What a run leaves behind: segments at taps, what sockets handed down, states.

use super::Side;
use crate::segment::Segment;
use crate::socket::{CaState, Info, Wait};

/// What is kept of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent kinds of records")]
pub struct Keep {
    /// Wire segments at both hosts' taps.
    pub segments: bool,
    /// What sockets hand down, before it is cut.
    pub handed_down: bool,
    /// State of a socket after each segment that reaches it.
    pub states: bool,
    /// What each sender waits for, whenever that changes.
    pub limits: bool,
    /// Each sender's congestion window, whenever it changes.
    pub windows: bool,
}

/// Where a segment was seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tap {
    /// At the client's host.
    Client,
    /// At the server's.
    Server,
}

/// A segment as a tap sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When.
    pub at_ns: u64,
    /// Where.
    pub tap: Tap,
    /// Of which connection, counted from 0 as they were opened.
    pub connection: u32,
    /// Who sent it.
    pub from: Side,
    /// The segment.
    pub segment: Segment,
}

/// A socket's state at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub at_ns: u64,
    /// Of which connection.
    pub connection: u32,
    /// Whose.
    pub side: Side,
    /// State.
    pub info: Info,
    /// Why its sender stands still.
    pub wait: Wait,
}

/// What a sender waits for from an instant on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitSince {
    /// From when.
    pub at_ns: u64,
    /// Of which connection.
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
    /// Of which connection.
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
    /// Congestion windows, in order of time.
    pub windows: Vec<WindowSince>,
}

impl From<Side> for Tap {
    fn from(side: Side) -> Self {
        match side {
            Side::Client => Self::Client,
            Side::Server => Self::Server,
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
        if self.keep.segments {
            self.segments.push(Seen { at_ns, tap, connection, from, segment: *segment });
        }
    }

    pub(super) fn hand_down(&mut self, at_ns: u64, connection: u32, from: Side, segment: &Segment) {
        if self.keep.handed_down {
            let tap = Tap::from(from);
            self.handed_down.push(Seen { at_ns, tap, connection, from, segment: *segment });
        }
    }
}
