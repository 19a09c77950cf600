//! Tunnels: GRE, VXLAN, Geneve and MPLS, down to the packet that they carry.
//!
//! A UDP tunnel is known by its destination port (the source port only spreads flows) and by
//! the fixed bits of its header; anything else on that port is [`Skip::NotTcp`]. IP in IP
//! needs nothing here: it is just a further IP header.
//!
//! Left out: GRE version 1 (PPTP, whose PPP is nearly always encrypted), GRE source routes
//! (RFC 1701, dropped by RFC 2784), L2TP and GTP.

use super::Skip;
use super::layer::{Layer, Network, Walk, be16, be32};
use super::link::ether_type;

/// RFC 2784 §2 with the key and sequence number of RFC 2890 §2.
pub(super) fn gre(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;
    let header: &[u8; 4] = walk.rest.take()?;
    let flags = be16(header, 0);
    if flags & (VERSION | ROUTING) != 0 {
        return Err(Skip::NotTcp);
    }
    if flags & CHECKSUM != 0 {
        walk.rest.skip(4)?;
    }
    if flags & KEY != 0 {
        let key = be32(walk.rest.take::<4>()?, 0);
        walk.enter(Network::Gre, key);
    }
    if flags & SEQUENCE != 0 {
        walk.rest.skip(4)?;
    }
    match be16(header, 2) {
        0x88be | 0x22eb => erspan(walk, be16(header, 2), flags & SEQUENCE != 0),
        protocol => ether_type(protocol),
    }
}

/// A switch port mirrored over GRE: a header that depends on the type, then the mirrored frame.
///
/// draft-foschiano-erspan: type I has no header (and no sequence number), type II 8 bytes,
/// type III 12 and, when its last bit is set, 8 more. Session and VLAN in it name the mirror,
/// not the network.
fn erspan(walk: &mut Walk<'_>, protocol: u16, sequence: bool) -> Result<Layer, Skip> {
    if protocol == 0x22eb {
        let header: &[u8; 12] = walk.rest.take()?;
        if header[11] & 1 != 0 {
            walk.rest.skip(8)?;
        }
    } else if sequence {
        walk.rest.skip(8)?;
    }
    Ok(Layer::Ethernet)
}

/// UDP, for the tunnels that IANA's port register (and Linux) know.
pub(super) fn udp(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 8] = walk.rest.take()?;
    match be16(header, 2) {
        // 4789: RFC 7348. 8472: Linux before it, the default of `ip link add type vxlan`.
        4789 | 8472 => vxlan(walk),
        6081 => geneve(walk),
        // RFC 7510.
        6635 => Ok(Layer::Mpls),
        _ => Err(Skip::NotTcp),
    }
}

/// RFC 7348 §5: flags with the I bit, then the network identifier in bytes 4 to 6.
fn vxlan(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 8] = walk.rest.take()?;
    if header[0] & 0x08 == 0 {
        return Err(Skip::NotTcp);
    }
    walk.enter(Network::Vxlan, be32(header, 4) >> 8);
    Ok(Layer::Ethernet)
}

/// RFC 8926 §3.4: version 0, options length, control bit, Ethertype, network identifier.
fn geneve(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 8] = walk.rest.take()?;
    let [version_and_length, flags, ..] = *header;
    if version_and_length >> 6 != 0 || flags & 0x80 != 0 {
        return Err(Skip::NotTcp);
    }
    walk.rest.skip(usize::from(version_and_length & 0x3f) * 4)?;
    walk.enter(Network::Geneve, be32(header, 4) >> 8);
    ether_type(be16(header, 2))
}

/// A label stack to its bottom (RFC 3032 §2.1), and by what is there the payload.
///
/// Labels do not say what they carry. RFC 4928 §3: a first nibble of 4 or 6 is IP; 0 is the
/// control word of a pseudo-wire (RFC 4385), 1 its associated channel, which is no traffic.
/// Any other is Ethernet without control word. So is a 0 with the Ethertype in the right place.
pub(super) fn mpls(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    const BOTTOM: u32 = 0x100;
    while be32(walk.rest.take::<4>()?, 0) & BOTTOM == 0 {}
    match walk.rest.peek::<1>()?[0] >> 4 {
        4 => Ok(Layer::Ipv4),
        6 => Ok(Layer::Ipv6),
        1 => Err(Skip::NotTcp),
        0 => {
            let plain = walk.rest.peek::<14>().map(|frame| be16(frame, 12));
            if !matches!(plain, Ok(0x0800 | 0x86dd | 0x8100 | 0x88a8)) {
                walk.rest.skip(4)?;
            }
            Ok(Layer::Ethernet)
        }
        _ => Ok(Layer::Ethernet),
    }
}
