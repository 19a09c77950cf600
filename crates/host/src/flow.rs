//! A socket in the last look with itself in the first: what a connection moved between them.

use core::hash::BuildHasher as _;
use core::net::{IpAddr, SocketAddr};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::snapshot::{Glimpse, Info, Memory, Socket};

/// A connection as it is now and as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow<'a> {
    /// In the last look.
    pub now: &'a Socket,
    /// In the first; `None` where there is one look, or the connection is younger than it.
    pub before: Option<&'a Socket>,
}

impl<'a> Flow<'a> {
    /// `TCP_INFO` of the last look.
    pub fn info(&self) -> Option<&'a Info> {
        self.now.info.as_deref()
    }

    /// Its memory at the last look.
    pub fn memory(&self) -> Option<&'a Memory> {
        self.now.memory.as_ref()
    }

    /// How far one of its numbers went between the looks; `None` if it went back or was not there.
    pub fn grew(&self, of: impl Fn(&Info) -> Option<u64>) -> Option<u64> {
        of(self.info()?)?.checked_sub(of(self.before?.info.as_deref()?)?)
    }

    /// `holds` of it in every look that it was in.
    pub fn always(&self, holds: impl Fn(&Socket) -> bool) -> bool {
        holds(self.now) && self.before.is_none_or(holds)
    }

    /// How it was as a sender at each moment at which it was seen.
    pub fn glimpses(&self) -> impl Iterator<Item = Glimpse> {
        // It was asked for by its ends: where it is younger, another connection had them.
        let between = self.before.map_or(&[][..], |_| &self.now.between);
        let before = self.before.and_then(Socket::glimpse);
        before.into_iter().chain(between.iter().copied()).chain(self.now.glimpse())
    }

    /// The peer's address; one of IPv4 that an IPv6 socket talks to is written as such.
    pub const fn peer(&self) -> IpAddr {
        self.now.remote.ip().to_canonical()
    }

    /// Both ends are on this host: no path lies between them.
    pub fn is_within_host(&self) -> bool {
        let (local, peer) = (self.now.local.ip().to_canonical(), self.peer());
        local.is_loopback() || peer.is_loopback() || local == peer
    }
}

/// Pairs the sockets of two looks, in the order of the later one.
pub(super) fn paired<'a>(now: &'a [Socket], before: Option<&'a [Socket]>) -> Vec<Flow<'a>> {
    let before = before.unwrap_or_default();
    // Only looked up, never walked: the order of hashes reaches nothing.
    let hasher = FixedState::default();
    let hash = |socket: &Socket| hasher.hash_one(ends(socket));
    let mut table = HashTable::with_capacity(before.len());
    for socket in before {
        table.insert_unique(hash(socket), socket, |socket| hash(socket));
    }
    let earlier = |now: &Socket| {
        let same = |then: &&Socket| ends(then) == ends(now) && is_same(then, now);
        table.find(hash(now), |then| same(then)).copied()
    };
    now.iter().map(|now| Flow { now, before: earlier(now) }).collect()
}

const fn ends(socket: &Socket) -> (SocketAddr, SocketAddr) {
    (socket.local, socket.remote)
}

/// Not another connection between the same ports: a descriptor may be lost or won meanwhile, but not
/// exchanged, and what was counted does not go back.
fn is_same(then: &Socket, now: &Socket) -> bool {
    let inodes = then.inode == now.inode || then.inode == 0 || now.inode == 0;
    let counted = |socket: &Socket| {
        socket.info.as_ref().map_or((None, None), |info| (info.bytes_acked, info.bytes_received))
    };
    let forward =
        |then: Option<u64>, now: Option<u64>| then.zip(now).is_none_or(|(then, now)| then <= now);
    let ((acked, received), (acked_now, received_now)) = (counted(then), counted(now));
    inodes && forward(acked, acked_now) && forward(received, received_now)
}

/// An open connection about which nothing else is known.
#[cfg(test)]
pub(super) fn bare(remote: SocketAddr) -> Socket {
    let local = SocketAddr::new([10, 0, 0, 1].into(), 443);
    Socket { inode: 1, ..Socket::new(super::snapshot::State::Established, local, remote) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(port: u16, inode: u64, received: u64) -> Socket {
        let remote = SocketAddr::new([10, 0, 0, 7].into(), port);
        let info = Info { bytes_received: Some(received), ..Info::default() };
        Socket { inode, info: Some(Box::new(info)), ..bare(remote) }
    }

    #[test]
    fn a_socket_meets_itself_and_no_other_connection_between_the_same_ports() {
        let before = [socket(1, 5, 100), socket(2, 6, 100), socket(3, 7, 100), socket(4, 0, 9)];
        let now = [socket(4, 8, 10), socket(1, 5, 150), socket(2, 9, 100), socket(3, 7, 20)];
        let flows = paired(&now, Some(&before));
        let grown: Vec<_> =
            flows.iter().map(|flow| flow.grew(|info| info.bytes_received)).collect();
        assert_eq!(grown, [Some(1), Some(50), None, None]);
    }

    #[test]
    fn with_one_look_nothing_has_grown() {
        let now = [socket(1, 5, 100)];
        assert_eq!(paired(&now, None)[0].before, None);
    }
}
