//! Segments to connections.

use crate::report::Connection;
use crate::wire::Segment;

/// What the caller wants kept beyond totals.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Keep rounds, intervals and retransmissions of each direction.
    pub detail: bool,
}

/// Follows all connections of a capture.
#[derive(Debug)]
pub struct Tracker {}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new(_config: Config) -> Self {
        Self {}
    }

    /// Takes the next segment in capture order.
    pub fn push(&mut self, _segment: &Segment<'_>) {}

    /// Packets are missing here that the capture saw (a listing's dots).
    pub fn gap(&mut self) {}

    /// What is known so far of every connection.
    pub fn provisional(&self) -> Vec<Connection> {
        Vec::new()
    }

    /// The account of every connection, in the order of their first packets.
    pub fn finish(self) -> Vec<Connection> {
        Vec::new()
    }
}
