//! ICMP errors about TCP: what a device on the way said of a packet, and which packet it quotes.
//!
//! An error carries the IP header of the packet that it is about and at least eight bytes behind it (RFC 792; as
//! much as fits: RFC 1812 section 4.3.2.3, RFC 4443 section 2.4): of TCP both ports and the sequence number. Errors
//! about another protocol, and messages that are none (echo, neighbours), are not read.
//!
//! Left out: errors about a tunnel's packet, which go to the tunnel and not to the sender of the TCP inside; those
//! about later fragments, which have no ports; and the redirects of IPv6, which quote in another way.

use core::net::{IpAddr, SocketAddr};

use super::Skip;
use super::layer::{Hosts, Layer, Walk, be16, be32};
use crate::frame::Frame;
use tcpwhy_words::units::{Seq, Time};

/// An ICMP error about a packet of TCP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IcmpError {
    /// Capture time.
    pub time: Time,
    /// Number of the packet in its file, or line record in a listing, from 1.
    pub frame: u64,
    /// Which network it was seen in, as a segment's: VLAN tags and tunnel keys, 0 for none.
    pub network: u32,
    /// Who says it.
    pub from: IpAddr,
    /// To whom: who sent the packet that it is about.
    pub to: IpAddr,
    /// What is said.
    pub kind: IcmpKind,
    /// What the next hop takes, of a packet that was too large; `None` where it is not said (before RFC 1191).
    pub mtu: Option<u32>,
    /// The packet that it is about.
    pub quoted: Quoted,
}

/// The packet that an ICMP error is about, as far as it is quoted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quoted {
    /// Who sent it.
    pub source: IpAddr,
    /// Who was to receive it; `None` in listings that do not say it.
    pub destination: Option<IpAddr>,
    /// Ports of both; `None` in listings that do not say them.
    pub ports: Option<[u16; 2]>,
    /// Its sequence number.
    pub seq: Option<Seq>,
    /// Its length, from the IP header on.
    pub bytes: Option<u32>,
}

impl Quoted {
    /// Who sent it to whom, where both and their ports are known.
    pub fn ends(&self) -> Option<[SocketAddr; 2]> {
        let [from, to] = self.ports?;
        Some([SocketAddr::new(self.source, from), SocketAddr::new(self.destination?, to)])
    }
}

/// What an ICMP error says.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum IcmpKind {
    /// Too large for the next hop (fragmentation needed, packet too big).
    TooBig,
    /// No way to the network.
    NetUnreachable,
    /// No way to the host, or no answer from it on its link.
    HostUnreachable,
    /// The host does not speak the protocol.
    ProtocolUnreachable,
    /// Nobody at that port.
    PortUnreachable,
    /// The source's route cannot be taken.
    SourceRouteFailed,
    /// Forbidden by an administrator.
    Prohibited,
    /// It passed more hops than it may.
    TimeExceeded,
    /// Fragments of it never came.
    ReassemblyTimeExceeded,
    /// Slow down (deprecated by RFC 6633).
    SourceQuench,
    /// A field of its header cannot be understood.
    ParameterProblem,
    /// There is a better first hop.
    Redirect,
    /// Unreachable by a code that this version does not know.
    Unreachable,
}

impl IcmpKind {
    /// The name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooBig => "too_big",
            Self::NetUnreachable => "net_unreachable",
            Self::HostUnreachable => "host_unreachable",
            Self::ProtocolUnreachable => "protocol_unreachable",
            Self::PortUnreachable => "port_unreachable",
            Self::SourceRouteFailed => "source_route_failed",
            Self::Prohibited => "prohibited",
            Self::TimeExceeded => "time_exceeded",
            Self::ReassemblyTimeExceeded => "reassembly_time_exceeded",
            Self::SourceQuench => "source_quench",
            Self::ParameterProblem => "parameter_problem",
            Self::Redirect => "redirect",
            Self::Unreachable => "unreachable",
        }
    }

    /// By type and code of ICMP: RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1.
    const fn of_v4(kind: u8, code: u8) -> Option<Self> {
        Some(match (kind, code) {
            (3, 0 | 6 | 11) => Self::NetUnreachable,
            (3, 1 | 7 | 8 | 12) => Self::HostUnreachable,
            (3, 2) => Self::ProtocolUnreachable,
            (3, 3) => Self::PortUnreachable,
            (3, 4) => Self::TooBig,
            (3, 5) => Self::SourceRouteFailed,
            (3, 9 | 10 | 13..=15) => Self::Prohibited,
            (3, _) => Self::Unreachable,
            (4, _) => Self::SourceQuench,
            (5, _) => Self::Redirect,
            (11, 1) => Self::ReassemblyTimeExceeded,
            (11, _) => Self::TimeExceeded,
            (12, _) => Self::ParameterProblem,
            _ => return None,
        })
    }

    /// By type and code of `ICMPv6`: RFC 4443 section 3.
    const fn of_v6(kind: u8, code: u8) -> Option<Self> {
        Some(match (kind, code) {
            (1, 0) => Self::NetUnreachable,
            (1, 1 | 5 | 6) => Self::Prohibited,
            (1, 2 | 3) => Self::HostUnreachable,
            (1, 4) => Self::PortUnreachable,
            (1, _) => Self::Unreachable,
            (2, _) => Self::TooBig,
            (3, 1) => Self::ReassemblyTimeExceeded,
            (3, _) => Self::TimeExceeded,
            (4, _) => Self::ParameterProblem,
            _ => return None,
        })
    }
}

/// The ICMP error about TCP in a frame, if it holds one.
pub fn icmp_error(frame: &Frame<'_>) -> Option<IcmpError> {
    let mut walk = Walk::at_start_of(frame);
    let is_v6 = walk.reach_icmp(frame.link_type).ok()? == Layer::Icmp6;
    let [from, to] = hosts(&walk);
    let header: &[u8; 8] = walk.rest.take().ok()?;
    let (kind, mtu) = if is_v6 {
        let kind = IcmpKind::of_v6(header[0], header[1])?;
        (kind, be32(header, 4))
    } else {
        let kind = IcmpKind::of_v4(header[0], header[1])?;
        (kind, u32::from(be16(header, 6)))
    };
    let mtu = (kind == IcmpKind::TooBig && mtu > 0).then_some(mtu);
    // RFC 4884 sections 4 and 5: this many words of 32 or 64 bits are quoted, and extensions follow.
    let words = match (is_v6, header[0]) {
        (false, 3 | 11 | 12) => usize::from(header[5]) * 4,
        (true, 1 | 3) => usize::from(header[4]) * 8,
        _ => 0,
    };
    let data = walk.rest.data;
    let data = if words > 0 { data.get(..words).unwrap_or(data) } else { data };
    let quoted = quoted(data, frame).ok()?;
    let (time, network) = (frame.time, walk.network);
    Some(IcmpError { time, frame: frame.frame, network, from, to, kind, mtu, quoted })
}

/// Reads the packet that `data` is the start of.
fn quoted(data: &[u8], frame: &Frame<'_>) -> Result<Quoted, Skip> {
    let mut walk = Walk::at_quoted(data, frame);
    let bytes = match walk.rest.peek::<6>()? {
        header if header[0] >> 4 == 4 => u32::from(be16(header, 2)),
        // The length of what follows the header of 40 bytes (RFC 8200 section 3).
        header => u32::from(be16(header, 4)) + 40,
    };
    walk.reach_quoted_tcp()?;
    let [source, destination] = hosts(&walk);
    let ports: &[u8; 4] = walk.rest.peek()?;
    Ok(Quoted {
        source,
        destination: Some(destination),
        ports: Some([be16(ports, 0), be16(ports, 2)]),
        seq: walk.rest.peek::<8>().ok().map(|header| Seq(be32(header, 4))),
        bytes: Some(bytes),
    })
}

fn hosts(walk: &Walk<'_>) -> [IpAddr; 2] {
    match walk.hosts {
        Hosts::V4(hosts) => hosts.map(|host| IpAddr::from(*host)),
        Hosts::V6(hosts) => hosts.map(|host| IpAddr::from(*host)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header of 20 bytes, for what follows.
    fn v4(protocol: u8, from: [u8; 4], to: [u8; 4], total: u16) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0];
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header.extend(from);
        header.extend(to);
        header
    }

    const TCP: &[u8] = &[0x23, 0xf1, 0xa9, 0x48, 0, 0, 0x12, 0x34];

    fn error(message: &[u8], about: &[u8]) -> Vec<u8> {
        let total = (20 + message.len() + about.len()) as u16;
        [&v4(1, [10, 9, 0, 254], [10, 9, 0, 1], total)[..], message, about].concat()
    }

    fn read(data: &[u8]) -> Option<IcmpError> {
        let frame = Frame {
            time: Time(5),
            frame: 3,
            link_type: 101,
            interface: 0,
            direction: None,
            wire_len: data.len() as u32,
            data,
        };
        icmp_error(&frame)
    }

    fn about_tcp() -> Vec<u8> {
        [&v4(6, [10, 9, 0, 1], [10, 8, 0, 1], 1500)[..], TCP].concat()
    }

    #[test]
    fn eight_bytes_of_tcp_tell_the_connection_and_the_place_in_it() {
        let told = read(&error(&[3, 4, 0, 0, 0, 0, 5, 40], &about_tcp())).expect("an error");
        assert_eq!((told.kind, told.mtu, told.frame), (IcmpKind::TooBig, Some(1320), 3));
        assert_eq!([told.from, told.to].map(|end| end.to_string()), ["10.9.0.254", "10.9.0.1"]);
        let ends = told.quoted.ends().expect("both ends").map(|end| end.to_string());
        assert_eq!(ends, ["10.9.0.1:9201", "10.8.0.1:43336"]);
        assert_eq!((told.quoted.seq, told.quoted.bytes), (Some(Seq(0x1234)), Some(1500)));
    }

    #[test]
    fn ports_alone_are_enough_and_less_is_not() {
        let cut = |kept: usize| read(&error(&[3, 1, 0, 0, 0, 0, 0, 0], &about_tcp()[..kept]));
        assert_eq!(cut(24).expect("an error").quoted.seq, None);
        assert!(cut(23).is_none());
    }

    #[test]
    fn a_router_before_rfc_1191_says_no_size() {
        let told = read(&error(&[3, 4, 0, 0, 0, 0, 0, 0], &about_tcp())).expect("an error");
        assert_eq!(told.mtu, None);
    }

    #[test]
    fn echo_and_errors_about_others_are_not_read() {
        assert!(read(&error(&[8, 0, 0, 0, 0, 1, 0, 1], &about_tcp())).is_none());
        let udp = [&v4(17, [10, 9, 0, 1], [10, 8, 0, 1], 60)[..], TCP].concat();
        assert!(read(&error(&[3, 3, 0, 0, 0, 0, 0, 0], &udp)).is_none());
        let inside = [&v4(4, [10, 9, 0, 1], [10, 8, 0, 1], 1500)[..], &about_tcp()].concat();
        assert!(read(&error(&[3, 4, 0, 0, 0, 0, 5, 40], &inside)).is_none(), "a tunnel's packet");
        let mut later = about_tcp();
        later[7] = 9;
        assert!(read(&error(&[11, 0, 0, 0, 0, 0, 0, 0], &later)).is_none(), "a later fragment");
    }

    #[test]
    fn what_follows_the_quotation_is_not_read_as_its_end() {
        // RFC 4884: 28 bytes are quoted in 7 words; the fifth byte says so.
        let message = [3, 13, 0, 0, 0, 7, 0, 0];
        let told = read(&error(&message, &[&about_tcp()[..], &[0xff; 12]].concat()));
        assert_eq!(told.expect("an error").kind, IcmpKind::Prohibited);
        let short = [3, 13, 0, 0, 0, 5, 0, 0];
        assert!(read(&error(&short, &about_tcp())).is_none(), "20 bytes have no ports");
    }

    #[test]
    fn a_packet_too_big_of_ipv6_is_read_behind_extension_headers() {
        let v6 = |next: u8, length: u16, from: u8, to: u8| {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, next, 64];
            header[4..6].copy_from_slice(&length.to_be_bytes());
            for end in [from, to] {
                header.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
            }
            header
        };
        let quoted = [&v6(60, 1460, 1, 2)[..], &[6, 0, 1, 4, 0, 0, 0, 0], TCP].concat();
        let message = [2, 0, 0, 0, 0, 0, 5, 40];
        let length = (message.len() + quoted.len()) as u16;
        let told =
            read(&[&v6(58, length, 9, 1)[..], &message, &quoted].concat()).expect("an error");
        assert_eq!((told.kind, told.mtu), (IcmpKind::TooBig, Some(1320)));
        assert_eq!(told.quoted.ends().expect("both")[1].to_string(), "[2001:db8::2]:43336");
        assert_eq!(told.quoted.bytes, Some(1500));
    }
}
