//! One captured segment in the shape the analysis works on: 64 bytes, times and sequence
//! numbers unwrapped and relative to the connection. Data that just goes on from it is kept in
//! 16 bytes a segment ([`super::run`]).

use crate::clocks::TapTime;
use crate::offsets::Offset;
use crate::wire::Flags;

/// Index of a side: the client is 0, the server 1.
pub(crate) type Side = usize;

/// A SACK block in unwrapped offsets of the data it acknowledges.
pub(crate) type Block = (Offset, Offset);

/// The block from `from` up to `to`.
#[cfg(test)]
pub(crate) const fn block(from: i64, to: i64) -> Block {
    (Offset::at(from), Offset::at(to))
}

/// One captured segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event {
    /// Capture time since the connection's first packet.
    pub(crate) tap: TapTime,
    /// Frame number.
    pub(crate) frame: u64,
    /// Offset of the first payload byte in its direction; the first byte after the SYN is 0.
    pub(crate) seq: Offset,
    /// Offset acknowledged in the other direction; only with [`ACK`].
    pub(crate) ack: Offset,
    /// Timestamp value; only with [`TS`].
    pub(crate) tsval: u32,
    /// Timestamp echo reply; only with [`TS`].
    pub(crate) tsecr: u32,
    /// Payload bytes.
    pub(crate) len: u32,
    /// Where its SACK blocks start in the connection's list; only with `sack_count`.
    pub(crate) sack_at: u32,
    /// Where its followers start in the connection's list, and how many there are.
    pub(crate) run_at: u32,
    pub(crate) run: u32,
    /// How many SACK blocks.
    pub(crate) sack_count: u8,
    /// The last eight bits of the number of the interface that it was met on.
    pub(crate) interface: u8,
    /// Window field, unscaled.
    pub(crate) window: u16,
    /// IP identification; only with [`ID`].
    pub(crate) id: u16,
    /// Flag bits below.
    pub(crate) bits: u16,
}

const _: () = assert!(size_of::<Event>() == 64);

/// FIN flag. The flags have the bits of the TCP header ([`crate::wire::Flags`]).
pub(crate) const FIN: u16 = Flags::FIN.0;
/// SYN flag.
pub(crate) const SYN: u16 = Flags::SYN.0;
/// RST flag.
pub(crate) const RST: u16 = Flags::RST.0;
/// PSH flag.
pub(crate) const PSH: u16 = Flags::PSH.0;
/// ACK flag.
pub(crate) const ACK: u16 = Flags::ACK.0;
/// ECN echo.
pub(crate) const ECE: u16 = Flags::ECE.0;
/// All flags of the header that are looked at.
pub(crate) const FLAGS: u16 = FIN | SYN | RST | PSH | ACK | ECE;
/// Sent by the server.
pub(crate) const FROM_SERVER: u16 = 1 << 9;
/// Timestamps are present.
pub(crate) const TS: u16 = 1 << 10;
/// The IP identification is known.
pub(crate) const ID: u16 = 1 << 11;
/// A listing's dots, or a drop of the capture, stand before this event.
pub(crate) const AFTER_GAP: u16 = 1 << 12;
/// The payload is a keep-alive or a window probe, no application data.
pub(crate) const PROBE: u16 = 1 << 13;
/// Its checksum does not fit its bytes, though this side's others do.
pub(crate) const CORRUPT: u16 = 1 << 14;
/// Data that echoes a packet of the peer which arrived just before it, and which the capture lacks.
pub(crate) const UNSEEN_CAUSE: u16 = 1 << 15;

impl Event {
    /// Who sent it.
    pub(crate) fn side(&self) -> Side {
        Side::from(self.bits & FROM_SERVER != 0)
    }

    /// Whether all bits of `mask` are set.
    pub(crate) fn has(&self, mask: u16) -> bool {
        self.bits & mask == mask
    }

    /// Offset after its payload.
    pub(crate) fn end(&self) -> Offset {
        self.seq + i64::from(self.len)
    }

    /// Whether it carries application data.
    pub(crate) fn is_data(&self) -> bool {
        self.len > 0 && !self.has(PROBE)
    }
}
