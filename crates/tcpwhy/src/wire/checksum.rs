//! Does the TCP checksum fit the bytes?
//!
//! A wrong checksum is nearly always no damage: the capture took an outgoing packet before
//! the network card filled the field in. Stacks then leave the sum of the pseudo header in
//! it for the card to go on from (Linux `CHECKSUM_PARTIAL`, `include/linux/skbuff.h`), which
//! tells offload from damage, and tells that the capture ran on the sending host.

use super::layer::{Hosts, Walk, be16};
use crate::frame::Frame;

/// What the checksum field of a segment holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Checksum {
    /// The sum over the whole segment: it arrived, or left, undamaged.
    Good,
    /// Only the sum of the pseudo header: the sending host left the rest to its network card.
    Offloaded,
    /// Neither: damage, or an offload that leaves something else in the field.
    Bad,
}

/// Checks the TCP checksum of a frame (RFC 9293 §3.1); `None` without a whole TCP segment.
///
/// Costs a pass over the payload, so [`parse`](super::parse) does not do it.
pub fn checksum(frame: &Frame<'_>) -> Option<Checksum> {
    let mut walk = Walk::at_start_of(frame);
    walk.reach_tcp(frame.link_type).ok()?;
    let (segment, wire) = (walk.rest.data, walk.rest.wire);
    if walk.fragment || segment.len() as u64 != u64::from(wire) {
        return None;
    }
    let field = be16(segment.first_chunk::<20>()?, 16);
    let addresses = match walk.hosts {
        Hosts::V4([from, to]) => sum(from) + sum(to),
        Hosts::V6([from, to]) => sum(from) + sum(to),
    };
    // Protocol number 6; the length is 32 bits wide in IPv6, and in IPv4 never needs more.
    let pseudo = addresses + 6 + u64::from(wire >> 16) + u64::from(wire & 0xffff);
    Some(match field {
        _ if fold(pseudo + sum(segment)) == 0xffff => Checksum::Good,
        field if field == fold(pseudo) => Checksum::Offloaded,
        // Large send offload as Windows asks for it: the card adds each segment's length.
        field if field == fold(addresses + 6) => Checksum::Offloaded,
        _ => Checksum::Bad,
    })
}

/// Sum of the big-endian 16-bit words, an odd last byte padded with zero (RFC 1071 §1).
fn sum(bytes: &[u8]) -> u64 {
    let (words, last) = bytes.as_chunks::<2>();
    let whole: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    whole + last.first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// The one's complement sum: carries are added at the low end until none is left.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
