//! From captured bytes to the strict TCP value that all later stages read.
//!
//! A [`Segment`] has shed the nonsense of the wire once, so nobody re-checks: cut or odd
//! packets keep what was seen, and a reason is counted for what was not. Sequence numbers
//! are raw here; the tracker unwraps them.

//!
//! ```text
//! Frame -> usual ----------------------------> Head, Segment
//!       -> walk (link, ip, tunnel) -> tcp -> Segment
//!                                  -> checksum
//! ```
//!
//! Read `walk.rs` first: it says how one header leads to the next.

mod alike;
mod checksum;
mod datagram;
mod icmp;
mod ip;
mod layer;
mod link;
mod tcp;
mod tunnel;
mod usual;
mod walk;

use core::net::{IpAddr, SocketAddr};

pub(crate) use self::alike::{Alike, Mould};
pub use self::checksum::{Checksum, checksum};
pub(crate) use self::datagram::{Datagram, name_datagram};
pub use self::icmp::{IcmpError, IcmpKind, Quoted, icmp_error};
use self::layer::Walk;
pub(crate) use self::usual::{Ends, Head, Usual, mix};
pub use crate::frame::Direction;
use crate::frame::Frame;
use tcpwhy_words::units::{Seq, Time};

/// One TCP segment as captured: headers in full, application bytes only as a view.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Capture time.
    pub time: Time,
    /// Number of the packet in its file (or line record in a listing), from 1, as Wireshark counts.
    pub frame: u64,
    /// Which network the packet was seen in: VLAN tags and tunnel keys folded into one number,
    /// 0 for none. Equal addresses in different networks are different connections.
    pub network: u32,
    /// Who sent it.
    pub source: SocketAddr,
    /// Who is to receive it.
    pub destination: SocketAddr,
    /// Sequence number of the first payload byte (of the SYN itself on a SYN).
    pub seq: Seq,
    /// Acknowledgement number; meaningful only with [`Flags::ACK`].
    pub ack: Seq,
    /// Flags of the TCP header.
    pub flags: Flags,
    /// Window field, unscaled.
    pub window: u16,
    /// Payload bytes on the wire, whatever the snap length kept of them.
    pub payload_len: u32,
    /// The part of the payload that was captured (may be empty).
    pub payload: &'a [u8],
    /// TCP options.
    pub options: Options,
    /// What the IP header adds.
    pub ip: IpInfo,
    /// What the link layer adds.
    pub link: LinkInfo,
}

impl Segment<'_> {
    /// Whether `end` sent it.
    #[inline]
    pub(crate) fn is_from(&self, end: &SocketAddr) -> bool {
        is_same(&self.source, end)
    }
}

/// Whether both are one end. Asked for each packet: of IPv4 these are two numbers.
#[inline]
fn is_same(a: &SocketAddr, b: &SocketAddr) -> bool {
    match (a, b) {
        (SocketAddr::V4(a), SocketAddr::V4(b)) => {
            a.ip().to_bits() == b.ip().to_bits() && a.port() == b.port()
        }
        (a, b) => a == b,
    }
}

/// TCP header flags, in the bits of the header (RFC 9293 §3.1, RFC 3168, AE: RFC 9768).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags(pub u16);

impl Flags {
    /// The sender has finished sending.
    pub const FIN: Self = Self(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x002);
    /// Reset the connection.
    pub const RST: Self = Self(0x004);
    /// Push.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x020);
    /// ECN echo.
    pub const ECE: Self = Self(0x040);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN (formerly NS).
    pub const AE: Self = Self(0x100);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Names of the flags that are set, in the order in which they are usually said.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = [
            (Self::SYN, "SYN"),
            (Self::FIN, "FIN"),
            (Self::RST, "RST"),
            (Self::PSH, "PSH"),
            (Self::ACK, "ACK"),
            (Self::URG, "URG"),
            (Self::ECE, "ECE"),
            (Self::CWR, "CWR"),
            (Self::AE, "AE"),
        ];
        names.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }

    /// The union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// TCP options of one segment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Options {
    /// Maximum segment size (kind 2).
    pub mss: Option<u16>,
    /// Window scale shift (kind 3), as sent.
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4).
    pub sack_permitted: bool,
    /// `TSval` and `TSecr` (kind 8).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks (kind 5), left and right edge; only the first `sack_count` count.
    pub sack: [(Seq, Seq); 4],
    /// How many SACK blocks there are.
    pub sack_count: u8,
    /// Fast Open (kind 34, or 254 with the experiment's magic): cookie length, 0 for a request.
    pub fast_open: Option<u8>,
    /// Order of the option kinds as sent (NOP is 1), for naming the stack; first 8.
    pub order: [u8; 8],
    /// Length of the options in bytes as the header says.
    pub len: u8,
    /// The options were cut by the snap length, or malformed: what is absent here is unknown.
    pub incomplete: bool,
}

impl Options {
    /// The SACK blocks that were sent.
    pub fn sack_blocks(&self) -> &[(Seq, Seq)] {
        &self.sack[..usize::from(self.sack_count.min(4))]
    }
}

/// What the IP header tells.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct IpInfo {
    /// Identification field; `None` on IPv6 and in listings that do not show it.
    pub id: Option<u16>,
    /// Time to live or hop limit; `None` when not shown.
    pub ttl: Option<u8>,
    /// The two ECN bits (RFC 3168); `None` when not shown.
    pub ecn: Option<u8>,
}

/// What the link layer tells.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkInfo {
    /// Whether this host sent or received the packet, where the capture says so.
    pub direction: Option<Direction>,
    /// Interface number (SLL2 interface index, else pcapng interface), 0 when there is one only.
    pub interface: u32,
    /// What the TCP checksum says; `None` when it was not or could not be checked.
    ///
    /// [`parse`] leaves it `None`: [`checksum`] costs a pass over the payload.
    pub checksum: Option<Checksum>,
    /// A listing does not show the sequence number: that of a bare ACK is taken for the next.
    pub seq_unshown: bool,
}

/// Why a frame gave no [`Segment`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Skip {
    /// Another protocol than TCP over IP.
    NotTcp,
    /// A fragment other than the first: it has no TCP header.
    LaterFragment,
    /// The headers were cut before the TCP header ended.
    HeaderCut,
    /// A line of a listing shows none of TCP's numbers.
    WithoutNumbers,
    /// A header contradicts itself or the frame's length.
    Malformed,
    /// A link type this version does not know.
    UnknownLinkType,
}

impl Skip {
    /// The reason in words, as the report's `skipped[].reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotTcp => "not TCP over IP",
            Self::LaterFragment => "IP fragment without TCP header",
            Self::HeaderCut => "headers cut by the snap length",
            Self::WithoutNumbers => "TCP listed without its numbers",
            Self::Malformed => "malformed header",
            Self::UnknownLinkType => "unknown link type",
        }
    }
}

/// The unspecified address, for default values in tests.
pub const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 0);

/// The TCP segment in a captured frame, or why there is none.
///
/// Tunnels are opened: the segment is the innermost one. [`LinkInfo::checksum`] is left
/// `None`; ask [`checksum`] about the few packets where it matters.
///
/// # Errors
/// What the frame holds instead, or where its headers end or contradict themselves.
pub fn parse<'a>(frame: &Frame<'a>) -> Result<Segment<'a>, Skip> {
    Usual::read(frame).map_or_else(|| walked(frame, 0), |usual| Ok(usual.segment()))
}

/// The segment in a frame of any shape, header by header; the capture's longest frame so far has `longest` bytes.
#[inline(never)]
pub(crate) fn walked<'a>(frame: &Frame<'a>, longest: usize) -> Result<Segment<'a>, Skip> {
    let mut walk = Walk::at_start_within(frame, longest);
    walk.reach_tcp(frame.link_type)?;
    tcp::segment(frame, &walk)
}

#[cfg(test)]
mod tests;
