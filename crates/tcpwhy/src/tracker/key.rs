//! What tells connections apart, in plain words.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};

use foldhash::fast::FixedState;

use crate::wire::{self, Segment};

/// Who talks to whom, in which network; the smaller endpoint first. Plain words, because a key is
/// made of each packet and compared or hashed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
    /// Both hosts, in two words each.
    low: (u64, u64),
    high: (u64, u64),
    /// Both ports, and the network's number.
    ports: u64,
    is_v6: bool,
}

impl Key {
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        Self::between([segment.source, segment.destination]).within(segment.network)
    }

    /// The same ends in `network`.
    pub(crate) fn within(self, network: u32) -> Self {
        Self { ports: self.ports | u64::from(network), ..self }
    }

    /// Between these ends, in no network that has a number.
    pub(crate) fn between([source, destination]: [SocketAddr; 2]) -> Self {
        let (a, b) = (numbers(source), numbers(destination));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        Self {
            low: (low.0, low.1),
            high: (high.0, high.1),
            ports: u64::from(low.2) << 48 | u64::from(high.2) << 32,
            is_v6: source.is_ipv6(),
        }
    }
}

impl Key {
    /// A hash that is the same on any machine and any run.
    pub(crate) fn hash(&self) -> u64 {
        FixedState::default().hash_one(self)
    }

    /// What [`wire::Ends::mixed`] tells of the same ends.
    pub(crate) fn mixed(&self) -> u32 {
        let hosts = self.low.0 ^ self.low.1 ^ self.high.0 ^ self.high.1;
        let ports = self.ports >> 48 ^ self.ports >> 32;
        wire::mix((hosts >> 32 ^ hosts) as u32, ports as u16)
    }
}

/// Both halves of the host's address, and the port.
fn numbers(end: SocketAddr) -> (u64, u64, u16) {
    match end.ip() {
        IpAddr::V4(host) => (0, u64::from(host.to_bits()), end.port()),
        IpAddr::V6(host) => ((host.to_bits() >> 64) as u64, host.to_bits() as u64, end.port()),
    }
}
