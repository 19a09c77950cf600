//! The headers of a frame, and what is noted of them while they are taken off.

use super::{IpInfo, LinkInfo, Skip};
use crate::frame::Frame;

/// A header that comes next in a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layer {
    /// What a capture of this link type puts before the first header.
    Link(u32),
    /// Ethernet II or 802.3, from the destination address on.
    Ethernet,
    /// An 802.1Q tag, after its Ethertype.
    Vlan,
    /// 802.2 LLC, from the DSAP on.
    Llc,
    /// `PPPoE` session header.
    Pppoe,
    /// PPP, from the address or the protocol field on.
    Ppp,
    /// A stack of MPLS labels.
    Mpls,
    /// IP of the version that its first nibble tells.
    Ip,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// An IPv6 extension header (or AH in IPv4) with this protocol number.
    Extension(u8),
    /// GRE.
    Gre,
    /// UDP, of interest for the tunnels in it only.
    Udp,
    /// TCP: the walk is over.
    Tcp,
    /// ICMP, of interest for the packets that its errors quote only.
    Icmp,
    /// ICMP for IPv6.
    Icmp6,
}

/// What the headers told so far, and the bytes behind them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    /// The bytes not looked at yet.
    pub(super) rest: Rest<'a>,
    /// Source and destination of the innermost IP header so far.
    pub(super) hosts: Hosts<'a>,
    /// Further fields of the innermost IP header so far.
    pub(super) ip: IpInfo,
    /// The innermost IP packet is a first fragment: more of it is in other frames.
    pub(super) fragment: bool,
    /// VLAN ids and tunnel keys, folded.
    pub(super) network: u32,
    /// What the link layer tells.
    pub(super) link: LinkInfo,
}

impl<'a> Walk<'a> {
    /// At the first byte of `frame`, where the capture's longest so far has `longest` bytes: what is shorter was
    /// not cut at one length.
    #[inline]
    pub(super) fn at_start_within(frame: &Frame<'a>, longest: usize) -> Self {
        let mut walk = Self::at_start_of(frame);
        walk.rest.may_be_cut &= frame.data.len() >= longest;
        walk
    }

    /// At the first byte of `frame`.
    #[inline]
    pub(super) fn at_start_of(frame: &Frame<'a>) -> Self {
        Self::at(Rest::of(frame), frame)
    }

    /// At the first byte of `data`, which `frame` quotes: that it ends early is no damage.
    pub(super) fn at_quoted(data: &'a [u8], frame: &Frame<'a>) -> Self {
        let rest = Rest { data, wire: u32::MAX, may_be_cut: true, excess: Excess::No };
        Self::at(rest, frame)
    }

    #[inline]
    fn at(rest: Rest<'a>, frame: &Frame<'a>) -> Self {
        Self {
            rest,
            hosts: Hosts::V4([&[0; 4]; 2]),
            ip: IpInfo::default(),
            fragment: false,
            network: 0,
            link: LinkInfo {
                direction: frame.direction,
                interface: frame.interface,
                checksum: None,
                seq_unshown: false,
            },
        }
    }

    /// Folds a VLAN id or tunnel key into the network's number.
    ///
    /// A single VLAN is its own number. Other stacks are hashed (the prime of FNV-1a, 32 bit):
    /// two networks that fall together by chance only matter where both also carry the same
    /// addresses and ports. Left out are MPLS labels, which differ by direction, and the
    /// priority tag (VLAN 0), which is no VLAN. Where the two directions of a connection run
    /// in different VLANs or under different keys, it shows as two one-way connections.
    pub(super) fn enter(&mut self, kind: Network, id: u32) {
        const FNV_PRIME: u32 = 0x0100_0193;
        let folded = self.network.wrapping_mul(FNV_PRIME) ^ ((kind as u32) << 24) ^ id;
        self.network = folded.max(1);
    }
}

/// Source and destination address, as they stand in the frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hosts<'a> {
    /// Of IPv4.
    V4([&'a [u8; 4]; 2]),
    /// Of IPv6.
    V6([&'a [u8; 16]; 2]),
}

/// Kinds of networks inside a network; the number keeps VLAN 5 apart from VNI 5.
#[derive(Clone, Copy, Debug)]
pub(super) enum Network {
    /// 802.1Q VLAN id.
    Vlan = 0,
    /// VXLAN network identifier.
    Vxlan = 1,
    /// Geneve network identifier.
    Geneve = 2,
    /// GRE key.
    Gre = 3,
    /// `PPPoE` session.
    Pppoe = 4,
}

/// The part of a frame that is not looked at yet.
///
/// `wire` never is less than `data.len()`, so a header that is missing from `data` was either
/// cut by the snap length or never there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a> {
    /// What was captured of it.
    pub(super) data: &'a [u8],
    /// How many bytes it had on the wire.
    pub(super) wire: u32,
    /// A tool may have cut the frame and forgotten its length.
    may_be_cut: bool,
    /// What IP says of the frame's length, if that is more than it has.
    pub(super) excess: Excess,
}

/// Bytes that IP speaks of and the frame does not have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Excess {
    /// None.
    No,
    /// They are believed: a tool cut them off, and wrote the cut length as that on the wire.
    Believed,
    /// They never were on the wire: a tool has rewritten the packet, and left its length.
    Denied,
}

impl<'a> Rest<'a> {
    fn of(frame: &Frame<'a>) -> Self {
        let captured = u32::try_from(frame.data.len()).unwrap_or(u32::MAX);
        // A cut that was recorded leaves the length on the wire as it was.
        let may_be_cut = captured >= frame.wire_len;
        let wire = frame.wire_len.max(captured);
        Self { data: frame.data, wire, may_be_cut, excess: Excess::No }
    }

    /// The next `N` bytes, left in place.
    #[inline]
    pub(super) fn peek<const N: usize>(&self) -> Result<&'a [u8; N], Skip> {
        self.data.first_chunk().ok_or_else(|| self.missing(N))
    }

    /// Takes the next `N` bytes.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Skip> {
        let head = self.peek()?;
        self.skip(N)?;
        Ok(head)
    }

    /// Drops the next `n` bytes.
    #[inline]
    pub(super) fn skip(&mut self, n: usize) -> Result<(), Skip> {
        self.data = self.data.get(n..).ok_or_else(|| self.missing(n))?;
        self.wire -= n as u32;
        Ok(())
    }

    /// Ends the rest after `len` bytes: what follows in the frame is padding or a trailer.
    ///
    /// What lies beyond the frame's end was never sent (RFC 791 section 3.1: the total length is that of the
    /// datagram, and the frame carries all of it), unless a program cut the frame and wrote the cut length
    /// as the length on the wire. Inside a tunnel a mirror may have cut what it sends on.
    #[inline]
    pub(super) fn limit(&mut self, len: u32) {
        if len > self.wire {
            return self.exceed(len);
        }
        self.data = self.data.get(..len as usize).unwrap_or(self.data);
        self.wire = len;
        self.may_be_cut = true;
    }

    /// Ends the rest where IP says, `len` bytes on, if they may have been there.
    #[cold]
    fn exceed(&mut self, len: u32) {
        if self.may_be_cut {
            (self.wire, self.excess) = (len, Excess::Believed);
        } else {
            self.excess = Excess::Denied;
        }
        self.may_be_cut = true;
    }

    /// Why `n` bytes are not there.
    #[cold]
    fn missing(&self, n: usize) -> Skip {
        if (self.wire as usize) < n { Skip::Malformed } else { Skip::HeaderCut }
    }
}

/// The big-endian number at `at`, for places known to be inside the array.
#[inline]
pub(super) const fn be16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian number at `at`, for places known to be inside the array.
#[inline]
pub(super) const fn be64<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    (be32(bytes, at) as u64) << 32 | be32(bytes, at + 4) as u64
}

/// The big-endian number at `at`, for places known to be inside the array.
#[inline]
pub(super) const fn be32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
