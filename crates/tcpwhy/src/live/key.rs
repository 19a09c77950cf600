//! By what a connection is known from look to look.

use core::net::SocketAddr;

use crate::host::snapshot::Socket;

/// What a connection is, as long as it lives.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Key {
    /// Its kernel's name of it.
    Cookie(u64),
    /// Its local and its remote end, where that name was not seen.
    Ends(SocketAddr, SocketAddr),
}

impl Key {
    /// That of a socket.
    pub const fn of(socket: &Socket) -> Self {
        match socket.cookie {
            0 => Self::Ends(socket.local, socket.remote),
            cookie => Self::Cookie(cookie),
        }
    }
}
