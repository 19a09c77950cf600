//! Packet filters in the kernel's classic language: which packets a capture gets, and how much
//! of each.
//!
//! Loads are relative to the network header (`SKF_NET_OFF`), so that one program serves every
//! kind of interface and packets with or without a VLAN tag. Left out: TCP behind IPv6 extension
//! headers, later fragments, and ICMP errors about a connection.

use std::net::IpAddr;

use super::sys::Instruction;

/// Passes every packet, cut to `snap_length` bytes.
pub(super) fn everything(snap_length: u32) -> Vec<Instruction> {
    assemble(&[plain(libc::BPF_RET | libc::BPF_K, snap_length)])
}

/// Passes nothing.
pub(super) fn nothing() -> Vec<Instruction> {
    assemble(&[plain(libc::BPF_RET | libc::BPF_K, 0)])
}

/// Passes TCP from or to one of `ports`, cut to `snap_length` bytes.
///
/// At most [`MOST_PORTS`] of them, because jumps of this language are short.
pub(super) fn tcp_ports(ports: &[u16], snap_length: u32) -> Vec<Instruction> {
    let mut lines = vec![
        load(libc::BPF_W | libc::BPF_ABS, PROTOCOL),
        equal(ETH_P_IP, To::Next, To::Ipv6),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + 9),
        equal(TCP, To::Next, To::Drop),
        load(libc::BPF_H | libc::BPF_ABS, NETWORK + 6),
        any_bit(FRAGMENT_OFFSET, To::Drop, To::Next),
        load_index(libc::BPF_B | libc::BPF_MSH, NETWORK),
        equal(0, To::Ports, To::Ports),
        Line { label: Some(To::Ipv6), ..equal(ETH_P_IPV6, To::Next, To::Drop) },
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + 6),
        equal(TCP, To::Next, To::Drop),
        load_index(libc::BPF_W | libc::BPF_IMM, IPV6_HEADER),
        Line { label: Some(To::Ports), ..load(libc::BPF_H | libc::BPF_IND, NETWORK) },
    ];
    let either = ports.iter().take(MOST_PORTS).map(|&port| u32::from(port));
    lines.extend(either.clone().map(|port| equal(port, To::Pass, To::Next)));
    lines.push(load(libc::BPF_H | libc::BPF_IND, NETWORK + 2));
    lines.extend(either.map(|port| equal(port, To::Pass, To::Next)));
    lines.push(Line { label: Some(To::Drop), ..plain(libc::BPF_RET | libc::BPF_K, 0) });
    lines.push(Line { label: Some(To::Pass), ..plain(libc::BPF_RET | libc::BPF_K, snap_length) });
    assemble(&lines)
}

/// Ports that one filter can name.
pub(super) const MOST_PORTS: usize = 100;

/// What a recording wants of TCP, and how much of each packet, counted from its link-layer header.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wanted {
    /// Only TCP from or to one of these ports; empty is every port.
    pub ports: Vec<u16>,
    /// Only TCP from or to one of these addresses; empty is every address.
    pub hosts: Vec<IpAddr>,
    /// DNS as well (port 53, more of each packet), and UDP on port 443, which may be QUIC.
    pub names: bool,
}

impl Wanted {
    /// Whether a filter can hold it: jumps of its language are short.
    pub(super) fn fits(&self) -> bool {
        // Two comparisons a port, two of one word or of four with their loads a host.
        2 * self.ports.len() + 18 * self.hosts.len() < MOST_PORTS
    }
}

/// Passes what a recording wants, cut to `snap_length` bytes and DNS to `names_length`.
pub(super) fn recording(wanted: &Wanted, snap_length: u32, names_length: u32) -> Vec<Instruction> {
    let names = wanted.names;
    let other = if names { To::Names } else { To::Drop };
    let mut lines = vec![
        load(libc::BPF_W | libc::BPF_ABS, PROTOCOL),
        equal(ETH_P_IP, To::Next, To::Ipv6),
        load(libc::BPF_H | libc::BPF_ABS, NETWORK + 6),
        any_bit(FRAGMENT_OFFSET, To::Drop, To::Next),
        load_index(libc::BPF_B | libc::BPF_MSH, NETWORK),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + 9),
        equal(TCP, To::Next, other),
    ];
    if names {
        lines.extend(either_port(&[DNS], To::Name));
    }
    lines.extend(hosts_v4(&wanted.hosts));
    lines.extend([
        Line { label: Some(To::Ipv6), ..equal(ETH_P_IPV6, To::Next, To::Drop) },
        load_index(libc::BPF_W | libc::BPF_IMM, IPV6_HEADER),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + 6),
        equal(TCP, To::Next, other),
    ]);
    if names {
        lines.extend(either_port(&[DNS], To::Name));
    }
    lines.extend(hosts_v6(&wanted.hosts));
    let mut at_ports = either_port(&wanted.ports, To::Pass);
    if wanted.ports.is_empty() {
        at_ports = vec![plain(libc::BPF_RET | libc::BPF_K, snap_length)];
    }
    at_ports[0].label = Some(To::Ports);
    lines.extend(at_ports);
    lines.push(plain(libc::BPF_RET | libc::BPF_K, 0));
    if names {
        let mut at_names = vec![Line { label: Some(To::Names), ..equal(UDP, To::Next, To::Drop) }];
        at_names.extend(either_port(&[DNS], To::Name));
        at_names.extend(either_port(&[QUIC], To::Pass));
        lines.extend(at_names);
        lines.push(plain(libc::BPF_RET | libc::BPF_K, 0));
        lines.push(Line {
            label: Some(To::Name),
            ..plain(libc::BPF_RET | libc::BPF_K, names_length)
        });
    }
    lines.push(Line { label: Some(To::Drop), ..plain(libc::BPF_RET | libc::BPF_K, 0) });
    lines.push(Line { label: Some(To::Pass), ..plain(libc::BPF_RET | libc::BPF_K, snap_length) });
    assemble(&lines)
}

/// Goes to `to` if one of the ports behind the header that the index register spans is among
/// `ports`.
fn either_port(ports: &[u16], to: To) -> Vec<Line> {
    let mut lines = Vec::new();
    for place in [0, 2] {
        lines.push(load(libc::BPF_H | libc::BPF_IND, NETWORK + place));
        lines.extend(ports.iter().map(|&port| equal(u32::from(port), to, To::Next)));
    }
    lines
}

/// Goes to the ports if an address of an IPv4 packet is among `hosts`, or these are none; else the
/// packet is dropped.
fn hosts_v4(hosts: &[IpAddr]) -> Vec<Line> {
    let mut lines = Vec::new();
    for place in [12, 16] {
        lines.push(load(libc::BPF_W | libc::BPF_ABS, NETWORK + place));
        for host in hosts {
            if let IpAddr::V4(host) = host {
                lines.push(equal(u32::from(*host), To::Ports, To::Next));
            }
        }
    }
    // A comparison that always goes the same way: this language's long jump has no name here.
    let end = if hosts.is_empty() { To::Ports } else { To::Drop };
    lines.push(equal(0, end, end));
    lines
}

/// The same for IPv6, whose addresses are four words.
fn hosts_v6(hosts: &[IpAddr]) -> Vec<Line> {
    let v6 = hosts.iter().filter_map(|host| match host {
        IpAddr::V6(host) => Some(host.octets()),
        IpAddr::V4(_) => None,
    });
    let pairs = [8, 24].into_iter().flat_map(|place| v6.clone().map(move |host| (place, host)));
    let mut lines = Vec::new();
    let mut number = 0;
    for (place, host) in pairs {
        let start = lines.len();
        for (word, value) in host.as_chunks::<4>().0.iter().enumerate() {
            let yes = if word == 3 { To::Ports } else { To::Next };
            lines.push(load(libc::BPF_W | libc::BPF_ABS, NETWORK + place + 4 * word as u32));
            lines.push(equal(u32::from_be_bytes(*value), yes, To::Host(number + 1)));
        }
        lines[start].label = Some(To::Host(number));
        number += 1;
    }
    let end = if hosts.is_empty() { To::Ports } else { To::Drop };
    lines.push(Line { label: Some(To::Host(number)), ..equal(0, end, end) });
    lines
}

/// Where a line goes on; also its own name, for others to come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum To {
    Next,
    Ipv6,
    /// The next IPv6 host to compare with.
    Host(u8),
    Ports,
    /// UDP, which may carry DNS.
    Names,
    /// DNS, of which more is kept.
    Name,
    Drop,
    Pass,
}

/// An instruction whose jumps go to names.
#[derive(Clone, Copy, Debug)]
struct Line {
    label: Option<To>,
    code: u32,
    operand: u32,
    yes: To,
    no: To,
}

/// Counts how far each jump goes.
fn assemble(lines: &[Line]) -> Vec<Instruction> {
    let over = |at: usize, to: To| {
        let place = lines.iter().position(|line| line.label == Some(to)).unwrap_or(at + 1);
        (place - at - 1) as u8
    };
    lines
        .iter()
        .enumerate()
        .map(|(at, line)| Instruction {
            code: line.code as u16,
            jt: over(at, line.yes),
            jf: over(at, line.no),
            k: line.operand,
        })
        .collect()
}

const fn plain(code: u32, operand: u32) -> Line {
    Line { label: None, code, operand, yes: To::Next, no: To::Next }
}

const fn load(from: u32, at: u32) -> Line {
    plain(libc::BPF_LD | from, at)
}

const fn load_index(from: u32, at: u32) -> Line {
    plain(libc::BPF_LDX | from, at)
}

const fn equal(value: u32, yes: To, no: To) -> Line {
    Line { yes, no, ..plain(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value) }
}

const fn any_bit(mask: u32, yes: To, no: To) -> Line {
    Line { yes, no, ..plain(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, mask) }
}

const TCP: u32 = 6;
const UDP: u32 = 17;
/// RFC 1035 section 4.2.
const DNS: u16 = 53;
/// RFC 9114 section 3.1: where HTTP/3 is tried first.
const QUIC: u16 = 443;
const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
/// Low bits of IPv4's flags and fragment offset (RFC 791 section 3.1).
const FRAGMENT_OFFSET: u32 = 0x1fff;
/// Length of the fixed IPv6 header (RFC 8200 section 3).
const IPV6_HEADER: u32 = 40;

/// `SKF_NET_OFF`: offsets from here count from the network header (Linux `linux/filter.h`).
const NETWORK: u32 = (-0x10_0000_i32).cast_unsigned();
/// `SKF_AD_OFF` + `SKF_AD_PROTOCOL`: the packet's `EtherType`.
const PROTOCOL: u32 = (-0x1000_i32).cast_unsigned();
