//! What one TCP endpoint hands to another: a header and a number of payload bytes, no content.
//!
//! A sender hands down super-segments of many times its segment size; [`Segment::pieces`] cuts
//! them as the network device does (TSO, or GSO in software).

use std::fmt;

/// A segment, or a super-segment that a device will cut into pieces of `piece` bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Segment {
    /// Sequence number of the first byte (of the SYN if there is one).
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub len: u32,
    /// Largest payload of one piece; 0 if it is not to be cut.
    pub piece: u16,
    /// Options.
    pub options: Options,
    /// What the IP header says of congestion (RFC 3168 section 5).
    pub ecn: Ecn,
    /// What it is charged with in its sender's memory until it has left the host.
    pub truesize: u32,
    /// Where its payload begins in a block of [`PAGE_BLOCK`] bytes of the sender's memory.
    pub page_offset: u16,
    /// Which of its sender's packets it is (the identification of an IPv4 header), once it has left.
    pub id: u16,
    /// Earliest departure that its sender asks for; 0 is at once (`skb->tstamp` since v4.20).
    pub departs_ns: u64,
}

/// Flags of a TCP header (RFC 9293 section 3.1), as on the wire.
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct Flags(pub u8);

/// Codepoints of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Ecn {
    /// The transport does not understand it.
    #[default]
    NotEct,
    /// It does.
    Ect0,
    /// It does, and a queue was congested.
    Ce,
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Options {
    /// Maximum segment size (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Shift of window fields (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// Selective acknowledgments are understood (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 section 3).
    pub stamps: Option<Stamps>,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// Fast Open.
    pub cookie: Option<Cookie>,
}

/// A cookie of Fast Open (RFC 7413 section 4.1.1), or the request for one.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Cookie {
    /// Which bytes it has: those of equal names are equal.
    pub name: u32,
    /// How many bytes; none asks for a cookie.
    pub length: u8,
    /// In the shared option that was used before there was one of its own (kind 254; RFC 6994).
    pub experimental: bool,
}

/// Timestamps of a segment.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Stamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's clock, as last seen.
    pub echo: u32,
}

/// Up to four selectively acknowledged ranges, the first being the newest or a duplicate
/// (RFC 2883).
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MOST],
    count: u8,
}

impl Flags {
    /// No more data.
    pub const FIN: Self = Self(1);
    /// The first segment.
    pub const SYN: Self = Self(2);
    /// The connection is refused or given up.
    pub const RST: Self = Self(4);
    /// The end of what was written.
    pub const PSH: Self = Self(8);
    /// The acknowledgment number counts.
    pub const ACK: Self = Self(16);
    /// Congestion was experienced.
    pub const ECE: Self = Self(64);
    /// The congestion window was reduced.
    pub const CWR: Self = Self(128);

    /// Whether any of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These but for `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(2, 'S'), (1, 'F'), (4, 'R'), (8, 'P'), (16, '.'), (64, 'E'), (128, 'W')];
        letters.iter().filter(|(bit, _)| self.0 & bit != 0).try_for_each(|(_, c)| write!(f, "{c}"))
    }
}

impl SackBlocks {
    /// As many as fit the option space without timestamps (RFC 2018 section 3).
    pub const MOST: usize = 4;

    /// Appends a range; what is more than [`Self::MOST`] is left out.
    pub fn push(&mut self, from: u32, to: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (from, to);
            self.count += 1;
        }
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// There is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl Options {
    /// Bytes in the header, padded to words as Linux lays them out (`tcp_options_write`).
    pub fn bytes(&self) -> u32 {
        let mut bytes = 0;
        if self.mss.is_some() {
            bytes += 4;
        }
        // SACK permitted takes the padding of the timestamps.
        bytes += match (self.stamps.is_some(), self.sack_permitted) {
            (true, _) => 12,
            (false, true) => 4,
            (false, false) => 0,
        };
        if self.window_scale.is_some() {
            bytes += 4;
        }
        if !self.sack.is_empty() {
            bytes += 4 + 8 * self.sack.as_slice().len() as u32;
        }
        bytes += self.cookie.map_or(0, Cookie::option_bytes);
        bytes
    }
}

impl Cookie {
    /// How long the ones are that Linux gives (`TCP_FASTOPEN_COOKIE_SIZE` of include/net/tcp.h).
    pub const LENGTH: u8 = 8;

    /// Asks for a cookie.
    pub const fn request(experimental: bool) -> Self {
        Self { name: 0, length: 0, experimental }
    }

    /// Whether its length is one that a cookie may have (RFC 7413 section 4.1.1).
    pub const fn is_valid(self) -> bool {
        self.length >= 4 && self.length <= 16 && self.length.is_multiple_of(2)
    }

    /// Bytes of its option, padded to words.
    const fn option_bytes(self) -> u32 {
        let kind_and_length = if self.experimental { 4 } else { 2 };
        (kind_and_length + self.length as u32).next_multiple_of(4)
    }
}

impl Segment {
    /// Sequence number behind its last byte, SYN and FIN counted.
    pub const fn end_seq(&self) -> u32 {
        let control = self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32;
        self.seq.wrapping_add(self.len + control)
    }

    /// Bytes of its TCP header.
    pub fn header_bytes(&self) -> u32 {
        20 + self.options.bytes()
    }

    /// How many pieces a device cuts it into.
    pub const fn piece_count(&self) -> u32 {
        if self.piece == 0 || self.len <= self.piece as u32 {
            1
        } else {
            self.len.div_ceil(self.piece as u32)
        }
    }

    /// Blocks of memory that its payload lies in.
    pub const fn page_blocks(&self) -> u32 {
        (self.page_offset as u32 + self.len).div_ceil(PAGE_BLOCK)
    }

    /// Takes `next`, which arrived right behind it, as receivers do (`tcp_gro_receive`): it goes on in
    /// sequence and differs in nothing but its length and PSH; nothing follows a short piece, PSH
    /// or FIN. Whether it was taken.
    pub fn merge(&mut self, next: &Self, most: u32) -> bool {
        let size = if self.piece > 0 { u32::from(self.piece) } else { self.len };
        let ends = Flags::PSH.with(Flags::FIN);
        let takes_more = self.len > 0 && self.len.is_multiple_of(size) && !self.flags.has(ends);
        let fits = next.len > 0
            && next.len <= size
            && next.seq == self.end_seq()
            && self.len + next.len + self.header_bytes() <= most;
        let same = next.flags.without(ends) == self.flags
            && (next.ack, next.window, next.options, next.ecn)
                == (self.ack, self.window, self.options, self.ecn);
        if takes_more && fits && same {
            self.piece = size as u16;
            self.len += next.len;
            self.flags = next.flags;
            self.truesize += next.truesize;
        }
        takes_more && fits && same
    }

    /// The pieces that a device cuts it into: FIN and PSH stay with the last, CWR with the first
    /// (`tcp_gso_segment`).
    pub fn pieces(self) -> impl Iterator<Item = Self> {
        let (count, size) = (self.piece_count(), u32::from(self.piece));
        (0..count).map(move |index| {
            let (first, last) = (index == 0, index + 1 == count);
            let skipped = index * size;
            let mut flags = self.flags;
            if !last {
                flags = flags.without(Flags::FIN.with(Flags::PSH));
            }
            if !first {
                flags = flags.without(Flags::CWR);
            }
            let len = if last { self.len - skipped } else { size };
            Self {
                seq: self.seq.wrapping_add(skipped),
                id: self.id.wrapping_add(index as u16),
                len,
                flags,
                piece: 0,
                page_offset: ((u32::from(self.page_offset) + skipped) % PAGE_BLOCK) as u16,
                truesize: if last { self.truesize } else { 0 },
                ..self
            }
        })
    }
}

/// Writers fill blocks of this size (`SKB_FRAG_PAGE_ORDER` of net/core/sock.c: eight pages).
pub const PAGE_BLOCK: u32 = 32_768;

/// Whether `a` lies before `b` on the circle of sequence numbers (RFC 9293 section 3.4).
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b)).cast_signed() < 0
}

/// Whether `a` lies after `b`.
pub(crate) const fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// The later of two.
pub(crate) const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_super_segment_is_cut_and_its_end_keeps_the_push() {
        let whole = Segment {
            seq: u32::MAX,
            len: 3000,
            piece: 1448,
            flags: Flags::ACK.with(Flags::PSH),
            truesize: 4000,
            ..Segment::default()
        };
        let pieces: Vec<_> = whole.pieces().map(|p| (p.seq, p.len, p.flags, p.truesize)).collect();
        let ack = Flags::ACK;
        assert_eq!(
            pieces,
            [
                (u32::MAX, 1448, ack, 0),
                (1447, 1448, ack, 0),
                (2895, 104, ack.with(Flags::PSH), 4000)
            ]
        );
    }

    #[test]
    fn pieces_that_arrive_together_are_merged_up_to_a_push_or_a_short_one() {
        let whole =
            Segment { seq: 7, len: 3000, piece: 1448, flags: Flags::ACK, ..Segment::default() };
        let mut pieces = whole.pieces();
        let mut merged = pieces.next().expect("three");
        assert!(pieces.all(|piece| merged.merge(&piece, 65_536)));
        assert_eq!((merged.seq, merged.len, merged.piece), (7, 3000, 1448));
        let next = Segment { seq: 3007, len: 1448, ..whole };
        assert!(!merged.merge(&next, 65_536), "nothing follows a short one");
        let pushed = Segment { len: 1448, flags: Flags::ACK.with(Flags::PSH), ..whole };
        let behind = Segment { seq: 7 + 1448, len: 1448, ..whole };
        assert!(!pushed.clone().merge(&behind, 65_536));
        let open = Segment { flags: Flags::ACK, ..pushed };
        assert!(!open.clone().merge(&behind, 2000), "there is no room");
        assert!(!open.clone().merge(&Segment { window: 9, ..behind }, 65_536));
        assert!(!open.clone().merge(&Segment { seq: 8, ..behind }, 65_536));
        assert!(open.clone().merge(&behind, 65_536));
    }

    #[test]
    fn numbers_are_ordered_around_the_circle() {
        assert!(before(u32::MAX, 3));
        assert!(after(3, u32::MAX));
        assert!(!before(7, 7));
        assert_eq!(later(u32::MAX, 3), 3);
    }
}
