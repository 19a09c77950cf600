//! The time between two departures of packets from a link, and what was sent and delivered in it.

use crate::offsets::Offset;

/// A gap between two departures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gap {
    /// When the tap learnt of the departures.
    pub(super) from: i64,
    pub(super) to: i64,
    /// By how much these may lie later than it was.
    pub(super) coarse: i64,
    /// When the first and the last of the packets that left was sent.
    pub(super) first: i64,
    pub(super) last: i64,
    /// Bytes on the wire that were delivered, and that were sent meanwhile: more, if some were lost.
    pub(super) work: u32,
    pub(super) sent: u32,
    /// Packets that were delivered, and that were sent.
    pub(super) packets: u32,
    pub(super) chain: u32,
    /// The number of the first that was sent.
    pub(super) number: u64,
}

/// A packet that did not arrive, for a later copy did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lost {
    pub(super) number: u64,
    /// Offset of its data.
    pub(super) seq: Offset,
    /// When it was sent, at the earliest.
    pub(super) sent: i64,
}

/// How far the times in gaps can be relied on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Terms {
    /// From a departure until the tap learns of it.
    pub(super) late: f64,
    /// The least round trip.
    pub(super) trip: f64,
    /// Bytes on the wire of a packet whose own turn on the link is a part of both.
    pub(super) own: u32,
    /// The resolution of the send times; `None` where there are no send times.
    pub(super) tick: Option<i64>,
}
