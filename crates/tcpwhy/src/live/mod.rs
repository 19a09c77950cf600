//! What holds a connection that is open now, by what its kernel tells of it: the states of a capture, from counters.
//!
//! ```text
//! Look (sockets) -> moment: what holds it at this instant      -> Told, the sender's state and what shows it
//!                -> account: what held it since it was opened
//!                -> reader: what the receiver's socket says, if it was seen, too
//! looks, in order -> Course -> Connection: between two looks what held it, and where the time went (between, growth)
//! ```
//!
//! A kernel keeps an account of its senders (`tcp_chrono_start`, since 4.10): how long something was in flight, and how much of
//! that the peer's window and the send buffer held. It is whole from one look. What it does not keep is judged by the instant:
//! bytes in flight against the windows and the buffer. Of a socket that only receives nothing is said of its sender.

mod account;
mod between;
mod course;
mod growth;
mod moment;
mod reader;

use core::net::SocketAddr;
use std::collections::BTreeMap;

use crate::host::snapshot::{Look, Socket};
use crate::report::{State, Sure};

pub use account::Account;
pub use course::{Connection, Course};
pub use reader::Reader;

/// What one socket tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Told<'a> {
    /// The socket.
    pub socket: &'a Socket,
    /// What holds its sender; `None` where it has nothing to send, or too little was seen.
    pub held: Option<Held>,
    /// What the kernel's account says of the time since it was opened.
    pub account: Option<Account>,
    /// What its own receiving side says: of its peer's sender.
    pub reader: Option<Reader>,
}

/// What holds a sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// As in the report of a capture.
    pub state: State,
    /// How sure.
    pub sure: Sure,
    /// What shows it: figures of `ss`, in words.
    pub by: String,
}

/// What the sockets of one look tell, those that something holds first, then by their ends.
pub fn judge(look: &Look) -> Vec<Told<'_>> {
    let sockets = look.sockets.as_deref().unwrap_or_default();
    let peers: BTreeMap<_, _> =
        sockets.iter().rev().map(|socket| ((socket.remote, socket.local), socket)).collect();
    let mut told: Vec<Told<'_>> = sockets
        .iter()
        .map(|socket| {
            let account = Account::of(socket);
            let peers = peers.get(&(socket.local, socket.remote)).copied().and_then(Reader::of);
            let held = moment::held(socket).map(|held| moment::with_peer(held, peers.as_ref()));
            let held = match &account {
                Some(account) => account.over(held, peers.as_ref()),
                None => held,
            };
            Told { socket, held, account, reader: Reader::of(socket) }
        })
        .collect();
    told.sort_by_key(|told| (core::cmp::Reverse(told.rank()), ends(told.socket)));
    told
}

const fn ends(socket: &Socket) -> (SocketAddr, SocketAddr) {
    (socket.remote, socket.local)
}

impl Told<'_> {
    /// Whether its own program lags, or cannot read.
    pub fn lags(&self) -> bool {
        self.reader.is_some_and(Reader::is_full)
    }

    fn rank(&self) -> (u8, u64) {
        rank(self.socket, self.held.as_ref(), self.reader)
    }
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

/// Whether nothing moves in it.
const fn is_standstill(state: State) -> bool {
    matches!(state, State::SynRetry | State::SilenceNoAck | State::RtoWait | State::ZeroWindow)
}

#[cfg(test)]
mod tests;
