//! What holds a connection that is open now, by what its kernel tells of it: the states of a capture, from counters.
//!
//! ```text
//! sockets of a look -> moment: what holds each at this instant
//!                   -> account: what held it since it was opened
//!                   -> reader: what the receiver's socket says, if it was seen, too
//! looks, in order -> Course -> Connection: what holds it, since when; between two looks where the time went (between, growth)
//! ```
//!
//! A kernel keeps an account of its senders (`tcp_chrono_start`, since 4.10): how long something was in flight, and how much of
//! that the peer's window and the send buffer held. It is whole from one look. What it does not keep is judged by the instant:
//! bytes in flight against the windows and the buffer. Of a socket that only receives nothing is said of its sender.

mod account;
mod between;
mod course;
mod growth;
mod key;
mod line;
mod link;
mod moment;
mod pace;
mod pause;
mod reader;
mod recorded;
mod remedy;

use serde::Serialize;

use crate::host::snapshot::{Snapshot, Socket};
use crate::report::{State, Sure};

pub use account::Account;
pub use course::{Cell, Connection, Course};
pub use key::Key;
pub use line::{Figures, Line};
pub use reader::Reader;
pub use recorded::{Recorded, recorded};
pub use remedy::remedy;

/// What holds a sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// As in the report of a capture.
    pub state: State,
    /// How sure.
    pub sure: Sure,
    /// What shows it: figures of `ss`, in words.
    pub by: String,
}

/// The connections that were open at the last look of a host, each with what it did since it was first seen.
///
/// Looks without a date are in order all the same: then the time between two is what the kernel's account grew by.
pub fn over(snapshot: &Snapshot) -> Course {
    let mut course = Course::new(usize::MAX);
    let mut last_ns = 0;
    for look in &snapshot.looks {
        let Some(sockets) = &look.sockets else { continue };
        last_ns = look.t_ns.unwrap_or(last_ns).max(last_ns);
        course.take(last_ns, sockets.clone());
    }
    course
}

/// How much there is to say: what stands still first, then what holds a sender, then readers that lag.
fn rank(socket: &Socket, held: Option<&Held>, reader: Option<Reader>) -> (u8, u64) {
    let bytes = socket.info.as_deref().and_then(|info| info.bytes_acked).unwrap_or(0);
    let rank = match held {
        Some(held) if is_standstill(held.state) => 3,
        Some(_) => 2,
        None if reader.is_some_and(Reader::is_full) => 1,
        None => 0,
    };
    (rank, bytes)
}

/// Whether nothing but a program at rest, the way of its last ACK or its end is waited for, or that is not known.
pub const fn is_rest(state: State) -> bool {
    use State as S;
    matches!(
        state,
        S::App
            | S::IdleAppThink
            | S::IdlePeerThink
            | S::IdleKeptOpen
            | S::Receiving
            | S::LastFlight
            | S::Closing
            | S::Unknown
    )
}

/// Whether nothing moves in it.
const fn is_standstill(state: State) -> bool {
    matches!(state, State::SynRetry | State::SilenceNoAck | State::RtoWait | State::ZeroWindow)
}

#[cfg(test)]
mod tests;
