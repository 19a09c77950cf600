//! The numbers behind a verdict, small enough to keep with every interval; words come at the end.

use crate::report::{FrameRange, State};
use crate::segments::Segments;

/// What was measured where the sender stopped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// Bytes and segments in flight after the last send.
    pub(crate) in_flight: i64,
    pub(crate) segments: Segments,
    /// What was left of the receiver's window then, and the window itself.
    pub(crate) room: i64,
    pub(crate) window: i64,
    /// Congestion window by replay, 0 where unknown.
    pub(crate) cwnd: u64,
    /// Queueing delay above the least round trip; of the sender's own queue, what its packets stood there.
    pub(crate) queue_ns: i64,
    /// First and last frame that bound the interval; 0 where none.
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
}

impl Evidence {
    /// Widens the frames by a neighbour's and keeps the larger flight.
    pub(crate) fn join(&mut self, other: &Self) {
        if other.in_flight > self.in_flight {
            let frames = (self.first_frame, self.last_frame);
            *self = *other;
            (self.first_frame, self.last_frame) = frames;
        }
        if self.first_frame == 0 {
            self.first_frame = other.first_frame;
        }
        self.last_frame = self.last_frame.max(other.last_frame);
    }

    /// The frames, as the report names them.
    pub(crate) fn frames(&self) -> FrameRange {
        FrameRange { first: self.first_frame, last: self.last_frame.max(self.first_frame) }
    }

    /// The verdict's evidence in words; `at_least` if windows may be larger than they are taken for.
    pub(crate) fn words(&self, state: State, at_least: bool) -> String {
        let flight =
            format_args!("{} bytes ({} segments) in flight", self.in_flight, self.segments.get());
        let least = if at_least { "at least " } else { "" };
        match state {
            State::RwndCap | State::RwndAutotune | State::RwndReader => format!(
                "{flight}, {least}{} bytes left of the receiver's window of {}",
                self.room.max(0),
                self.window
            ),
            State::ZeroWindow => {
                format!("the receiver announced a window of {} bytes", self.window)
            }
            State::CwndSlowStart
            | State::CwndAvoidance
            | State::CwndAfterIdle
            | State::CwndPostLoss
            | State::CwndCachedSsthresh
            | State::CwndClamp => {
                let cwnd = match self.cwnd {
                    0 => String::new(),
                    cwnd => format!(", congestion window {cwnd}"),
                };
                format!(
                    "{flight}{cwnd}, {least}{} bytes left of the receiver's window; the next send follows an ACK",
                    self.room.max(0)
                )
            }
            State::BandwidthSelfQueue
            | State::BandwidthExternal
            | State::BandwidthPolicer
            | State::BandwidthVariable
                if self.queue_ns > 0 =>
            {
                format!(
                    "{flight}, {:.2} ms of queue above the least round trip",
                    self.queue_ns as f64 / 1e6
                )
            }
            State::BandwidthSelfQueue => {
                format!("{flight}; packets left the link one behind the other, without a pause")
            }
            State::LocalQdisc => {
                format!("{flight}, {:.2} ms between TCP and the tap", self.queue_ns as f64 / 1e6)
            }
            State::Sndbuf | State::AppWindow => {
                format!(
                    "{flight}, {least}{} bytes left of the receiver's window; the next send follows an ACK",
                    self.room.max(0)
                )
            }
            State::App | State::Pacing => {
                format!("{flight}, window open, no ACK released the next send")
            }
            State::LastFlight => format!("{flight}, nothing more was sent before its last ACK"),
            _ => String::new(),
        }
    }
}
