//! Which socket is file descriptor 5? What a trace tells of the sockets it uses.
//!
//! With `-yy` each call names both ends. Else they come from `connect`, `accept` and `getsockname`, and
//! descriptors are followed through `close`, `dup` and clones. A descriptor that none of these tells of
//! is a socket without ends if data calls of sockets use it.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::super::address::{self, Ends};

/// A socket, as far as the trace tells.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Socket {
    /// Its own end.
    pub local: Option<SocketAddr>,
    /// The other.
    pub peer: Option<SocketAddr>,
    /// The trace saw it begin, so its bytes are counted from the first.
    pub is_whole: bool,
    /// It connected (0, the client's side) or was accepted (1).
    pub side: Option<usize>,
}

impl Socket {
    /// Both ends, if both are known.
    pub fn ends(&self) -> Option<Ends> {
        Some(Ends { local: self.local?, peer: self.peer? })
    }
}

/// The sockets met so far, and who holds them by which descriptor.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) sockets: Vec<Socket>,
    /// By the table of descriptors and the descriptor in it.
    held: BTreeMap<(u32, i64), u32>,
    by_ends: BTreeMap<Ends, u32>,
    /// Which table a thread uses.
    tables: BTreeMap<u32, u32>,
}

impl Known {
    fn table(&self, thread: u32) -> u32 {
        // A trace that was attached shows no clone; its threads mostly share.
        self.tables.get(&thread).copied().unwrap_or(0)
    }

    /// The socket that a call names: by its ends if the trace prints them, else by its descriptor.
    pub(crate) fn named(&mut self, thread: u32, fd: i64, note: Option<&str>) -> Option<u32> {
        let key = (self.table(thread), fd);
        let held = self.held.get(&key).copied();
        let Some(ends) = note.and_then(ends_of) else { return held };
        if let Some(at) = self.by_ends.get(&ends) {
            let at = *at;
            self.held.insert(key, at);
            return Some(at);
        }
        let at = match held.filter(|at| self.sockets[*at as usize].local.is_none()) {
            Some(at) => at,
            None => self.add(Socket::default()),
        };
        let socket = &mut self.sockets[at as usize];
        (socket.local, socket.peer) = (Some(ends.local), Some(ends.peer));
        self.by_ends.insert(ends, at);
        self.held.insert(key, at);
        Some(at)
    }

    /// A socket that a call of sockets uses although nothing told of it before.
    pub(crate) fn met(&mut self, thread: u32, fd: i64) -> u32 {
        let key = (self.table(thread), fd);
        if let Some(at) = self.held.get(&key) {
            return *at;
        }
        let at = self.add(Socket::default());
        self.held.insert(key, at);
        at
    }

    /// `fd` has begun to connect to `peer`.
    pub(crate) fn connects(&mut self, thread: u32, fd: i64, peer: SocketAddr) -> u32 {
        let socket =
            Socket { peer: Some(peer), is_whole: true, side: Some(0), ..Socket::default() };
        let at = self.add(socket);
        self.held.insert((self.table(thread), fd), at);
        at
    }

    /// `fd` was accepted.
    pub(crate) fn accepted(
        &mut self,
        thread: u32,
        fd: i64,
        note: Option<&str>,
        peer: Option<SocketAddr>,
    ) -> u32 {
        let ends = note.and_then(ends_of);
        let at = self.add(Socket {
            local: ends.map(|ends| ends.local),
            peer: ends.map(|ends| ends.peer).or(peer),
            is_whole: true,
            side: Some(1),
        });
        if let Some(ends) = ends {
            self.by_ends.insert(ends, at);
        }
        self.held.insert((self.table(thread), fd), at);
        at
    }

    /// `fd` has this end of its own.
    pub(crate) fn is_at(&mut self, thread: u32, fd: i64, local: SocketAddr) {
        if let Some(at) = self.held.get(&(self.table(thread), fd)) {
            let socket = &mut self.sockets[*at as usize];
            socket.local.get_or_insert(local);
        }
    }

    pub(crate) fn closes(&mut self, thread: u32, fd: i64) {
        self.held.remove(&(self.table(thread), fd));
    }

    pub(crate) fn doubles(&mut self, thread: u32, fd: i64, new: i64) {
        let table = self.table(thread);
        if let Some(at) = self.held.get(&(table, fd)).copied() {
            self.held.insert((table, new), at);
        }
    }

    /// `thread` has made `child`, which shares its descriptors or has copies of them.
    pub(crate) fn clones(&mut self, thread: u32, child: u32, shares: bool) {
        let table = self.table(thread);
        if shares {
            self.tables.insert(child, table);
            return;
        }
        self.tables.insert(child, child);
        let copies: Vec<(i64, u32)> = self
            .held
            .range((table, i64::MIN)..=(table, i64::MAX))
            .map(|(k, v)| (k.1, *v))
            .collect();
        self.held.extend(copies.into_iter().map(|(fd, at)| ((child, fd), at)));
    }

    fn add(&mut self, socket: Socket) -> u32 {
        self.sockets.push(socket);
        self.sockets.len() as u32 - 1
    }
}

/// `TCP:[10.0.0.1:5000->10.0.0.2:80]`, `TCPv6:[[::1]:5000->[::1]:80]`
fn ends_of(note: &str) -> Option<Ends> {
    let inner = note.strip_prefix("TCP:[").or_else(|| note.strip_prefix("TCPv6:["))?;
    let (local, peer) = inner.strip_suffix(']')?.split_once("->")?;
    Some(Ends { local: address::read(local)?, peer: address::read(peer)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "TCP:[10.0.0.1:5000->10.0.0.2:80]";

    #[test]
    fn a_descriptor_is_followed_until_it_is_closed() {
        let mut known = Known::default();
        let peer = "10.0.0.2:80".parse().expect("an address");
        let at = known.connects(1, 5, peer);
        assert_eq!(known.named(1, 5, None), Some(at));
        assert_eq!(known.named(1, 5, Some(NOTE)), Some(at), "its ends are known now");
        assert_eq!(known.sockets[at as usize].local, "10.0.0.1:5000".parse().ok());
        known.doubles(1, 5, 9);
        known.closes(1, 5);
        assert_eq!((known.named(1, 5, None), known.named(1, 9, None)), (None, Some(at)));
    }

    #[test]
    fn threads_share_descriptors_and_processes_do_not() {
        let mut known = Known::default();
        known.clones(1, 2, true);
        known.clones(1, 3, false);
        let at = known.met(1, 5);
        assert_eq!(known.named(2, 5, None), Some(at));
        assert_eq!(known.named(3, 5, None), None);
    }
}
