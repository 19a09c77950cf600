//! Link layers: where the walk begins, and what lies between there and IP.
//!
//! Layouts are those of the tcpdump group's list of link-layer header types
//! (`LINKTYPE_` values), IEEE 802.3/802.1Q, RFC 1661/1662 (PPP) and RFC 2516 (`PPPoE`).
//! Anything that is known not to carry IP is [`Skip::NotTcp`], not an error.
//!
//! Left out: radio links, ATM, Frame Relay, and PPP with compressed headers or data.

use super::layer::{Layer, Network, Walk, be16, be32};
use super::{Direction, Skip};

/// Link types, as numbered by the tcpdump group.
mod link_type {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const PPP: u32 = 9;
    /// `DLT_RAW` as most systems number it; some programs write it to files unmapped.
    pub(super) const DLT_RAW: u32 = 12;
    /// `DLT_RAW` of OpenBSD.
    pub(super) const DLT_RAW_OPENBSD: u32 = 14;
    pub(super) const PPP_HDLC: u32 = 50;
    pub(super) const PPP_ETHER: u32 = 51;
    pub(super) const RAW: u32 = 101;
    pub(super) const CISCO_HDLC: u32 = 104;
    pub(super) const LOOP: u32 = 108;
    pub(super) const LINUX_SLL: u32 = 113;
    pub(super) const PPP_PPPD: u32 = 166;
    pub(super) const PPP_WITH_DIR: u32 = 204;
    pub(super) const IPV4: u32 = 228;
    pub(super) const IPV6: u32 = 229;
    pub(super) const LINUX_SLL2: u32 = 276;
}

/// Where the walk begins in a frame of this link type.
#[inline]
pub(super) const fn first(link_type: u32) -> Layer {
    match link_type {
        link_type::ETHERNET => Layer::Ethernet,
        other => Layer::Link(other),
    }
}

/// Whether frames of this link type begin with an Ethernet header.
#[inline]
pub(super) const fn is_ethernet(link_type: u32) -> bool {
    link_type == link_type::ETHERNET
}

/// Takes off what the link type puts before the first header, if anything.
pub(super) fn pseudo_header(walk: &mut Walk<'_>, link_type: u32) -> Result<Layer, Skip> {
    match link_type {
        link_type::ETHERNET => Ok(Layer::Ethernet),
        link_type::DLT_RAW | link_type::DLT_RAW_OPENBSD | link_type::RAW => Ok(Layer::Ip),
        link_type::IPV4 => Ok(Layer::Ipv4),
        link_type::IPV6 => Ok(Layer::Ipv6),
        link_type::LINUX_SLL => linux_cooked(walk),
        link_type::LINUX_SLL2 => linux_cooked_v2(walk),
        link_type::NULL | link_type::LOOP => bsd_loopback(walk),
        link_type::PPP => Ok(Layer::Ppp),
        link_type::PPP_HDLC | link_type::PPP_PPPD => hdlc(walk),
        link_type::CISCO_HDLC => cisco_hdlc(walk),
        link_type::PPP_WITH_DIR => {
            let [sent] = *walk.rest.take()?;
            from_link(walk, if sent == 0 { Direction::Incoming } else { Direction::Outgoing });
            Ok(Layer::Ppp)
        }
        link_type::PPP_ETHER => Ok(Layer::Pppoe),
        _ => Err(Skip::UnknownLinkType),
    }
}

/// The direction as the link header tells it; the packet's own metadata goes before it.
fn from_link(walk: &mut Walk<'_>, direction: Direction) {
    walk.link.direction = walk.link.direction.or(Some(direction));
}

/// `SLL`: packet type, ARPHRD type, address length, address (8), protocol.
fn linux_cooked(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 16] = walk.rest.take()?;
    packet_type(walk, be16(header, 0));
    ether_type(be16(header, 14))
}

/// `SLL2`: protocol, reserved, interface index, ARPHRD type, packet type, address.
fn linux_cooked_v2(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 20] = walk.rest.take()?;
    walk.link.interface = be32(header, 4);
    packet_type(walk, u16::from(header[10]));
    ether_type(be16(header, 0))
}

/// Linux `include/uapi/linux/if_packet.h`: `PACKET_HOST`, `_BROADCAST`, `_MULTICAST`,
/// `_OTHERHOST` (neither for nor from this host: no direction), `_OUTGOING`.
fn packet_type(walk: &mut Walk<'_>, packet_type: u16) {
    match packet_type {
        0..=2 => from_link(walk, Direction::Incoming),
        4 => from_link(walk, Direction::Outgoing),
        _ => {}
    }
}

/// An address family of the capturing system in its byte order (`NULL`), or big-endian (`LOOP`).
///
/// Every family is below 256, so the order shows by where the non-zero byte is.
fn bsd_loopback(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    const AF_INET: u32 = 2;
    /// Linux, NetBSD and OpenBSD, FreeBSD, Darwin; Windows writes one of the others (Npcap: 24).
    const AF_INET6: [u32; 4] = [10, 24, 28, 30];
    let family = be32(walk.rest.take::<4>()?, 0);
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        AF_INET => Ok(Layer::Ipv4),
        family if AF_INET6.contains(&family) => Ok(Layer::Ipv6),
        _ => Err(Skip::NotTcp),
    }
}

/// HDLC framing: PPP after `ff 03`, or Cisco HDLC after its addresses `0f` and `8f`.
///
/// pppd writes the direction in place of the address: 0 received, 1 sent.
fn hdlc(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    match walk.rest.peek()? {
        [0x0f | 0x8f, 0] => cisco_hdlc(walk),
        [sent @ (0 | 1), 3] => {
            from_link(walk, if *sent == 0 { Direction::Incoming } else { Direction::Outgoing });
            walk.rest.skip(2)?;
            Ok(Layer::Ppp)
        }
        _ => Ok(Layer::Ppp),
    }
}

/// Address, control, Ethertype.
fn cisco_hdlc(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    ether_type(be16(walk.rest.take::<4>()?, 2))
}

/// Two addresses, then the Ethertype or (802.3) a length.
#[inline]
pub(super) fn ethernet(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    ether_type(be16(walk.rest.take::<14>()?, 12))
}

/// What an Ethertype announces; lengths (802.3) and the pseudo types of `SLL` announce LLC.
#[inline]
pub(super) fn ether_type(ether_type: u16) -> Result<Layer, Skip> {
    match ether_type {
        0x0800 => Ok(Layer::Ipv4),
        0x86dd => Ok(Layer::Ipv6),
        // 802.1Q, 802.1ad, and the number used for outer tags before 802.1ad.
        0x8100 | 0x88a8 | 0x9100 => Ok(Layer::Vlan),
        0x8847 | 0x8848 => Ok(Layer::Mpls),
        0x8864 => Ok(Layer::Pppoe),
        // Transparent Ethernet bridging: a whole Ethernet frame (RFC 1701, RFC 7637).
        0x6558 => Ok(Layer::Ethernet),
        // IEEE 802.3: Ethertypes begin at 1536.
        0..0x0600 => Ok(Layer::Llc),
        _ => Err(Skip::NotTcp),
    }
}

/// Priority and VLAN id, then the Ethertype of what is tagged.
#[inline]
pub(super) fn vlan(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let tag: &[u8; 4] = walk.rest.take()?;
    let vlan = be16(tag, 0) & 0x0fff;
    if vlan != 0 {
        walk.enter(Network::Vlan, u32::from(vlan));
    }
    ether_type(be16(tag, 2))
}

/// LLC with SNAP carries an Ethertype (RFC 1042); `00-00-f8` is the bridge tunnel's OUI.
pub(super) fn llc(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let [0xaa, 0xaa, 0x03] = walk.rest.take()? else { return Err(Skip::NotTcp) };
    let snap: &[u8; 5] = walk.rest.take()?;
    match (snap[..3] == [0, 0, 0] || snap[..3] == [0, 0, 0xf8], be16(snap, 3)) {
        (true, 0x0600..) => ether_type(be16(snap, 3)),
        _ => Err(Skip::NotTcp),
    }
}

/// Version and type (1, 1), code 0, session, length (RFC 2516 §4).
///
/// The length is not needed: the IP header inside has its own.
pub(super) fn pppoe(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 6] = walk.rest.take()?;
    if header[..2] != [0x11, 0] {
        return Err(Skip::NotTcp);
    }
    walk.enter(Network::Pppoe, u32::from(be16(header, 2)));
    Ok(Layer::Ppp)
}

/// The protocol field, one byte when compressed: only its last byte is odd (RFC 1661 §2).
pub(super) fn ppp(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    if let Ok([0xff, 0x03]) = walk.rest.peek() {
        walk.rest.skip(2)?;
    }
    let [first] = *walk.rest.take()?;
    let protocol = if first & 1 == 1 {
        u16::from(first)
    } else {
        let [second] = *walk.rest.take()?;
        u16::from_be_bytes([first, second])
    };
    match protocol {
        0x0021 => Ok(Layer::Ipv4),
        0x0057 => Ok(Layer::Ipv6),
        0x0281 | 0x0283 => Ok(Layer::Mpls),
        _ => Err(Skip::NotTcp),
    }
}
