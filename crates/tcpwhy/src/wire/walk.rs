//! From the first byte of a frame to its innermost TCP header.
//!
//! A frame is a row of headers, each naming the next. The walk takes them one by one: a
//! [`Layer`] says which header comes next, its function takes the header off [`Rest`], notes
//! what it tells in [`Walk`] and answers with the layer after it.
//!
//! ```text
//! link::first -> Ethernet -> Vlan -> Ipv4 -> Udp (VXLAN) -> Ethernet -> Ipv6 -> Tcp
//!                 link.rs    link.rs  ip.rs   tunnel.rs      link.rs     ip.rs    tcp.rs
//! ```
//!
//! The inner connection wins: addresses and IP fields are overwritten by each further IP
//! header. The steps are counted, so no frame can nest without end. There is no recursion and
//! no allocation.
//!
//! Left out: what hides the TCP header (ESP, `MACsec`, compressed PPP), the TCP header quoted in
//! an ICMP error (it is not a segment; `icmp.rs` reads it), and reassembly of IP fragments.

use super::{IpInfo, LinkInfo, Skip, ip, link, tunnel};
use crate::capture::Frame;

/// Headers that are taken off before a frame counts as malformed.
///
/// Ours: the deepest stack built in earnest that we know (`QinQ`, MPLS, pseudo-wire, VLAN, IPv6
/// with three extension headers, VXLAN, Ethernet, VLAN, IP, TCP) has 14.
const MAX_HEADERS: u32 = 32;

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
            },
        }
    }

    /// Walks from the start of a frame of `link_type` to the TCP header; `rest` then begins with
    /// it.
    ///
    /// Ethernet, a VLAN tag and IP are walked without a loop; all else goes on in
    /// [`Walk::onward`]. Nothing is moved on the way: copying what was just written in small
    /// pieces took a tenth of the whole run.
    #[inline]
    pub(super) fn reach_tcp(&mut self, link_type: u32) -> Result<(), Skip> {
        let mut layer = link::first(link_type);
        if layer == Layer::Ethernet {
            layer = link::ethernet(self)?;
        }
        if layer == Layer::Vlan {
            layer = link::vlan(self)?;
        }
        match layer {
            Layer::Ipv4 => layer = ip::v4(self)?,
            Layer::Ipv6 => layer = ip::v6(self)?,
            _ => {}
        }
        if layer == Layer::Tcp { Ok(()) } else { self.onward(layer) }
    }

    /// Walks on from any layer.
    #[inline(never)]
    fn onward(&mut self, mut layer: Layer) -> Result<(), Skip> {
        for _ in 0..MAX_HEADERS {
            if layer == Layer::Tcp {
                return Ok(());
            }
            layer = self.take_off(layer)?;
        }
        Err(Skip::Malformed)
    }

    /// Walks from the start of a frame to a UDP header with the port of name servers; `rest` then
    /// begins with it.
    pub(super) fn reach_names(&mut self, link_type: u32) -> Result<(), Skip> {
        /// RFC 1035 section 4.2.1.
        const DNS: u16 = 53;
        let mut layer = link::first(link_type);
        for _ in 0..MAX_HEADERS {
            match layer {
                Layer::Tcp => return Err(Skip::NotTcp),
                Layer::Udp => {
                    let header: &[u8; 8] = self.rest.peek()?;
                    if be16(header, 0) == DNS || be16(header, 2) == DNS {
                        return Ok(());
                    }
                }
                _ => {}
            }
            layer = self.take_off(layer)?;
        }
        Err(Skip::Malformed)
    }

    /// Walks from the start of a frame to an ICMP message, which `rest` then begins with; of which kind.
    pub(super) fn reach_icmp(&mut self, link_type: u32) -> Result<Layer, Skip> {
        let mut layer = link::first(link_type);
        for _ in 0..MAX_HEADERS {
            match layer {
                Layer::Tcp => return Err(Skip::NotTcp),
                Layer::Icmp | Layer::Icmp6 => return Ok(layer),
                _ => layer = self.take_off(layer)?,
            }
        }
        Err(Skip::Malformed)
    }

    /// Walks from the start of a quoted packet to its TCP header, if that follows its IP header and
    /// extensions at once.
    pub(super) fn reach_quoted_tcp(&mut self) -> Result<(), Skip> {
        let mut layer = Layer::Ip;
        for _ in 0..MAX_HEADERS {
            layer = match layer {
                Layer::Tcp => return Ok(()),
                Layer::Ip => ip::any(self)?,
                Layer::Ipv4 => match ip::v4(self)? {
                    // A packet inside the quoted one was not sent by whom the error goes to.
                    Layer::Ipv4 | Layer::Ipv6 => return Err(Skip::NotTcp),
                    next => next,
                },
                Layer::Ipv6 => match ip::v6(self)? {
                    Layer::Ipv4 | Layer::Ipv6 => return Err(Skip::NotTcp),
                    next => next,
                },
                Layer::Extension(kind) => ip::extension(self, kind)?,
                _ => return Err(Skip::NotTcp),
            };
        }
        Err(Skip::Malformed)
    }

    /// Takes one header off; TCP's stays.
    #[inline]
    fn take_off(&mut self, layer: Layer) -> Result<Layer, Skip> {
        match layer {
            Layer::Link(link_type) => link::pseudo_header(self, link_type),
            Layer::Ethernet => link::ethernet(self),
            Layer::Vlan => link::vlan(self),
            Layer::Llc => link::llc(self),
            Layer::Pppoe => link::pppoe(self),
            Layer::Ppp => link::ppp(self),
            Layer::Mpls => tunnel::mpls(self),
            Layer::Ip => ip::any(self),
            Layer::Ipv4 => ip::v4(self),
            Layer::Ipv6 => ip::v6(self),
            Layer::Extension(kind) => ip::extension(self, kind),
            Layer::Gre => tunnel::gre(self),
            Layer::Udp => tunnel::udp(self),
            Layer::Tcp => Ok(Layer::Tcp),
            Layer::Icmp | Layer::Icmp6 => Err(Skip::NotTcp),
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
