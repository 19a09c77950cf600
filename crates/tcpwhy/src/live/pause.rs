//! What a silence was, which shows when it ends.
//!
//! A program that waits for room in its send buffer writes as soon as there is some (Linux `sk_stream_write_space` wakes it): a buffer
//! that runs empty was waited for by nobody. A sender that goes on though its peer said nothing has only paused.

use tcpwhy_words::units::Duration;

use crate::host::snapshot::Socket;
use crate::report::{State, TimeIn};

/// Times since data was last sent or received.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pause {
    /// Booked on the last ACK's way.
    flight: Duration,
    /// Booked on the peer's program.
    peer: Duration,
    /// Booked on the send buffer though its kernel did not count it.
    buffer: Duration,
}

impl Pause {
    /// A look: whether data was sent and received since the one before. Corrects what was booked up to then.
    pub(super) fn see(&mut self, now: &Socket, sends: bool, hears: bool, times: &mut TimeIn) {
        if !sends && now.send_queue == 0 && self.buffer > Duration::ZERO {
            times.rename(State::Sndbuf, State::LastFlight, self.buffer);
            self.flight += self.buffer;
            self.buffer = Duration::ZERO;
        }
        if sends && !hears {
            times.rename(State::LastFlight, State::App, self.flight);
            times.rename(State::IdlePeerThink, State::IdleAppThink, self.peer);
        }
        if sends || hears {
            *self = Self::default();
        }
    }

    /// What the time between the last two looks was booked on, and what its kernel counted for the send buffer.
    pub(super) fn add(&mut self, times: &TimeIn, counted_ns: u64) {
        self.flight += times.get(State::LastFlight);
        self.peer += times.get(State::IdlePeerThink);
        if counted_ns == 0 {
            self.buffer += times.get(State::Sndbuf);
        }
    }
}
