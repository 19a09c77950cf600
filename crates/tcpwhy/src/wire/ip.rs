//! IPv4, IPv6 and its extension headers: whose packet it is, and where it truly ends.
//!
//! The end of the TCP payload comes from the IP length, never from the frame: Ethernet pads
//! short frames, and some taps leave trailers. Only where the length field is 0 (the stack
//! hands offloaded packets of 64 KiB and more to the tap before they are cut) does the
//! frame's own length on the wire say it.
//!
//! Left out: reassembly (a first fragment counts with its own length), and the home address
//! option of Mobile IPv6, which renames the source.

use super::layer::{Hosts, Layer, Walk, be16};
use super::{IpInfo, Skip};

/// Protocol numbers of IANA's register.
mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ICMP: u8 = 1;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const ICMP6: u8 = 58;
    pub(super) const DESTINATION: u8 = 60;
    pub(super) const MOBILITY: u8 = 135;
    pub(super) const MPLS: u8 = 137;
    pub(super) const HIP: u8 = 139;
    pub(super) const SHIM6: u8 = 140;
}

/// IP of either version.
pub(super) fn any(walk: &Walk<'_>) -> Result<Layer, Skip> {
    match walk.rest.peek::<1>()?[0] >> 4 {
        4 => Ok(Layer::Ipv4),
        6 => Ok(Layer::Ipv6),
        _ => Err(Skip::NotTcp),
    }
}

/// RFC 791 §3.1.
#[inline]
pub(super) fn v4(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    const MORE_FRAGMENTS: u16 = 0x2000;
    const FRAGMENT_OFFSET: u16 = 0x1fff;
    let header: &[u8; 20] = walk.rest.peek()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total = match be16(header, 2) {
        0 => walk.rest.wire,
        total => u32::from(total),
    };
    if header[0] >> 4 != 4 || header_len < header.len() || (total as usize) < header_len {
        return Err(Skip::Malformed);
    }
    walk.rest.limit(total);
    walk.rest.skip(header_len)?;
    let (addresses, _) = header[12..].as_chunks::<4>();
    walk.hosts = Hosts::V4([&addresses[0], &addresses[1]]);
    walk.ip =
        IpInfo { id: Some(be16(header, 4)), ttl: Some(header[8]), ecn: Some(header[1] & 0b11) };
    let fragment = be16(header, 6);
    walk.fragment = fragment & MORE_FRAGMENTS != 0;
    carried(header[9], fragment & FRAGMENT_OFFSET != 0)
}

/// RFC 8200 §3; a payload length of 0 with a jumbo option: RFC 2675.
#[inline]
pub(super) fn v6(walk: &mut Walk<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 40] = walk.rest.take()?;
    if header[0] >> 4 != 6 {
        return Err(Skip::Malformed);
    }
    match be16(header, 4) {
        0 => {
            let jumbo = if header[6] == protocol::HOP_BY_HOP { jumbo_length(walk) } else { None };
            walk.rest.limit(jumbo.unwrap_or(walk.rest.wire));
        }
        payload_len => walk.rest.limit(u32::from(payload_len)),
    }
    let (addresses, _) = header[8..].as_chunks::<16>();
    walk.hosts = Hosts::V6([&addresses[0], &addresses[1]]);
    walk.ip = IpInfo { id: None, ttl: Some(header[7]), ecn: Some((header[1] >> 4) & 0b11) };
    walk.fragment = false;
    carried(header[6], false)
}

/// Length after the IPv6 header as the jumbo option of the hop-by-hop header says it.
///
/// RFC 2675 §2: option type 0xc2, four bytes, more than 65,535. Linux writes it first.
fn jumbo_length(walk: &Walk<'_>) -> Option<u32> {
    let data = walk.rest.data;
    let header_len = (usize::from(*data.get(1)?) + 1) * 8;
    let mut options = data.get(2..header_len)?;
    loop {
        options = match options {
            [0, rest @ ..] => rest,
            [0xc2, 4, a, b, c, d, ..] => {
                let length = u32::from_be_bytes([*a, *b, *c, *d]);
                return (length > 0xffff).then_some(length);
            }
            [_, len, rest @ ..] => rest.get(usize::from(*len)..)?,
            _ => return None,
        };
    }
}

/// What an IP protocol number announces, in the first or in a later fragment.
#[inline]
fn carried(protocol: u8, later_fragment: bool) -> Result<Layer, Skip> {
    let layer = match protocol {
        protocol::TCP => Layer::Tcp,
        protocol::UDP => Layer::Udp,
        protocol::IPV4 => Layer::Ipv4,
        protocol::IPV6 => Layer::Ipv6,
        protocol::GRE => Layer::Gre,
        protocol::MPLS => Layer::Mpls,
        protocol::ICMP => Layer::Icmp,
        protocol::ICMP6 => Layer::Icmp6,
        protocol::HOP_BY_HOP
        | protocol::ROUTING
        | protocol::FRAGMENT
        | protocol::AUTHENTICATION
        | protocol::DESTINATION
        | protocol::MOBILITY
        | protocol::HIP
        | protocol::SHIM6 => Layer::Extension(protocol),
        _ => return Err(Skip::NotTcp),
    };
    match (later_fragment, layer) {
        (false, layer) => Ok(layer),
        // A later piece of a UDP datagram cannot show that it is a tunnel; few are.
        (true, Layer::Udp | Layer::Icmp | Layer::Icmp6) => Err(Skip::NotTcp),
        (true, _) => Err(Skip::LaterFragment),
    }
}

/// RFC 8200 §4 (RFC 4302 §2.2 for AH): next header, length, and what the header is about.
pub(super) fn extension(walk: &mut Walk<'_>, kind: u8) -> Result<Layer, Skip> {
    let header: &[u8; 8] = walk.rest.peek()?;
    let units = usize::from(header[1]);
    let header_len = match kind {
        protocol::FRAGMENT => 8,
        protocol::AUTHENTICATION => (units + 2) * 4,
        _ => (units + 1) * 8,
    };
    if kind == protocol::ROUTING
        && let Hosts::V6([_, destination]) = &mut walk.hosts
        && let Some(last) = final_destination(walk.rest.data)
    {
        *destination = last;
    }
    walk.rest.skip(header_len)?;
    let mut later = false;
    if kind == protocol::FRAGMENT {
        let offset = be16(header, 2);
        walk.fragment = offset & 1 != 0;
        later = offset & 0xfff8 != 0;
    }
    carried(header[0], later)
}

/// Where a source-routed packet is finally to go: the connection's true end.
///
/// Until the last stop the IPv6 header names the next one only. Segment routing (type 4,
/// RFC 8754 §2) lists the stops backwards; types 0 and 2 (RFC 2460 §4.4, RFC 6275 §6.4)
/// forwards. `None` when the last stop is reached, or the list was cut or is of another type.
fn final_destination(header: &[u8]) -> Option<&[u8; 16]> {
    let [_, units, routing_type, segments_left, ..] = *header else { return None };
    let units = usize::from(units);
    let at = match routing_type {
        _ if segments_left == 0 || units < 2 => return None,
        4 => 8,
        0 | 2 => units / 2 * 16 - 8,
        _ => return None,
    };
    header.get(at..)?.first_chunk()
}
