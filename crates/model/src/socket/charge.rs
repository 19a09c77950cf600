//! What arrived takes of the receive buffer: by how its driver lays it in memory.
//!
//! Follows `skb->truesize` as drivers and GRO (`skb_gro_receive`) make it.

use super::Socket;
use crate::profile::ReceiveCharge;
use crate::segment::Segment;

impl Socket {
    /// What a received packet is charged with.
    pub(super) fn charge(&self, segment: &Segment) -> u32 {
        let memory = self.config.kernel.memory;
        let head = match memory.receive {
            ReceiveCharge::Copied => memory.copied(self.packet_bytes(segment)).0,
            ReceiveCharge::Virtual => self.buffer_charge(),
            ReceiveCharge::Pages { .. } => {
                self.buffer_charge() * segment.piece_count().div_ceil(self.most_pieces())
            }
        };
        head + self.payload_charge(segment)
    }

    /// How many pieces of memory a buffer in the receive queue has room for.
    pub(super) const fn most_pieces(&self) -> u32 {
        match self.config.kernel.memory.receive {
            // The first packet's piece is the buffer's head.
            ReceiveCharge::Pages { .. } => MOST_PIECES + 1,
            ReceiveCharge::Virtual | ReceiveCharge::Copied => MOST_PIECES,
        }
    }

    /// Pieces of memory that a received segment lies in.
    pub(super) fn fragments(&self, segment: &Segment) -> u32 {
        match self.config.kernel.memory.receive {
            ReceiveCharge::Pages { .. } => segment.piece_count(),
            _ => segment.piece_count() + segment.page_blocks().saturating_sub(1),
        }
    }

    /// The part of that for its payload, as far as it is not in the head.
    pub(super) fn payload_charge(&self, segment: &Segment) -> u32 {
        let memory = self.config.kernel.memory;
        match memory.receive {
            ReceiveCharge::Virtual => segment.len,
            ReceiveCharge::Pages { packet, .. } => packet * segment.piece_count(),
            ReceiveCharge::Copied => memory.copied(self.packet_bytes(segment)).1,
        }
    }

    fn packet_bytes(&self, segment: &Segment) -> u32 {
        self.config.link.ip_header() + segment.header_bytes() + segment.len
    }

    /// What a buffer takes beside the payload, where it can be joined to another.
    pub(super) const fn buffer_charge(&self) -> u32 {
        match self.config.kernel.memory.receive {
            ReceiveCharge::Pages { buffer, .. } => buffer,
            ReceiveCharge::Virtual | ReceiveCharge::Copied => self.config.kernel.memory.empty(),
        }
    }
}

/// `MAX_SKB_FRAGS` of include/linux/skbuff.h: pieces of pages in one buffer.
const MOST_PIECES: u32 = 17;
