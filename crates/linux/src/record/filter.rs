//! Packet filters in the kernel's classic language: which packets a capture gets, and how much
//! of each.
//!
//! Loads are relative to the network header (`SKF_NET_OFF`), so that one program serves every
//! kind of interface and packets with or without a VLAN tag. A recording takes ICMP errors as well: all of
//! them, or those that quote TCP of the ends that it wants. Left out: TCP behind IPv6 extension headers, later
//! fragments, and what is quoted of either.

use std::net::IpAddr;

use crate::sys::Instruction;

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

    /// Whether every end is wanted.
    const fn is_any(&self) -> bool {
        self.ports.is_empty() && self.hosts.is_empty()
    }

    /// Where packets go that are neither TCP nor ICMP.
    const fn others(&self) -> To {
        if self.names { To::Names } else { To::Drop }
    }
}

/// How much of each packet a recording keeps, counted from its link-layer header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) others: u32,
    pub(super) names: u32,
    pub(super) errors: u32,
}

/// Passes what a recording wants, cut to these lengths.
pub(super) fn recording(wanted: &Wanted, lengths: Lengths) -> Vec<Instruction> {
    let mut lines = vec![
        load(libc::BPF_IMM, lengths.others),
        keep_length(),
        load(libc::BPF_W | libc::BPF_ABS, PROTOCOL),
        equal(ETH_P_IP, To::Next, To::Ipv6),
    ];
    lines.extend(of_v4(wanted, lengths.errors));
    lines.extend(hosts_v4(&wanted.hosts));
    // Behind the header that begins where the index says: this many words of four bytes (RFC 791 section 3.1).
    lines.extend([
        Line { label: Some(To::Behind4), ..load(libc::BPF_B | libc::BPF_IND, NETWORK) },
        count(libc::BPF_AND, 0xf),
        count(libc::BPF_LSH, 2),
        plain(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0),
        plain(libc::BPF_MISC | libc::BPF_TAX, 0),
        always(To::Ports),
    ]);
    lines.extend(of_v6(wanted, lengths.errors));
    lines.extend(hosts_v6(&wanted.hosts));
    lines.extend([
        Line { label: Some(To::Behind6), ..plain(libc::BPF_MISC | libc::BPF_TXA, 0) },
        count(libc::BPF_ADD, IPV6_HEADER),
        plain(libc::BPF_MISC | libc::BPF_TAX, 0),
    ]);
    lines.extend(at_ports(wanted));
    lines.extend([
        Line { label: Some(To::Drop), ..plain(libc::BPF_RET | libc::BPF_K, 0) },
        Line { label: Some(To::Name), ..plain(libc::BPF_RET | libc::BPF_K, lengths.names) },
        Line { label: Some(To::Error), ..plain(libc::BPF_RET | libc::BPF_K, lengths.errors) },
        Line { label: Some(To::Pass), ..load(libc::BPF_MEM, KEPT_LENGTH) },
        plain(libc::BPF_RET | libc::BPF_A, 0),
    ]);
    assemble(&lines)
}

/// Packets of IPv4. Goes on to the hosts with the index at the header that tells them: that of the packet, or the one
/// that an ICMP error quotes (RFC 792: behind eight bytes).
fn of_v4(wanted: &Wanted, length: u32) -> Vec<Line> {
    let found = if wanted.is_any() { To::Error } else { To::Quoted4 };
    let mut lines = vec![
        load(libc::BPF_H | libc::BPF_ABS, NETWORK + 6),
        any_bit(FRAGMENT_OFFSET, To::Drop, To::Next),
        load_index(libc::BPF_B | libc::BPF_MSH, NETWORK),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + 9),
        equal(TCP, if wanted.hosts.is_empty() { To::Ports } else { To::Packet4 }, To::Next),
        equal(ICMP, To::Next, wanted.others()),
        load(libc::BPF_B | libc::BPF_IND, NETWORK),
    ];
    lines.extend(ICMP_ERRORS.map(|kind| equal(kind, found, To::Next)));
    lines.extend([
        always(To::Drop),
        Line {
            label: Some(To::Quoted4),
            ..load(libc::BPF_B | libc::BPF_IND, NETWORK + ICMP_HEADER + 9)
        },
        equal(TCP, To::Next, To::Drop),
        load(libc::BPF_H | libc::BPF_IND, NETWORK + ICMP_HEADER + 6),
        any_bit(FRAGMENT_OFFSET, To::Drop, To::Next),
        load(libc::BPF_IMM, length),
        keep_length(),
        plain(libc::BPF_MISC | libc::BPF_TXA, 0),
        count(libc::BPF_ADD, ICMP_HEADER),
        plain(libc::BPF_MISC | libc::BPF_TAX, 0),
        always(To::Hosts4),
        Line { label: Some(To::Packet4), ..load_index(libc::BPF_IMM, 0) },
    ]);
    lines
}

/// The same of IPv6 (RFC 4443 section 3), whose header has one length.
fn of_v6(wanted: &Wanted, length: u32) -> Vec<Line> {
    let found = if wanted.is_any() { To::Error } else { To::Next };
    vec![
        Line { label: Some(To::Ipv6), ..equal(ETH_P_IPV6, To::Next, To::Drop) },
        load_index(libc::BPF_IMM, IPV6_HEADER),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + 6),
        equal(TCP, if wanted.hosts.is_empty() { To::Ports } else { To::Packet6 }, To::Next),
        equal(ICMPV6, To::Next, wanted.others()),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + IPV6_HEADER),
        equal(0, To::Drop, To::Next),
        at_least(ICMPV6_ERRORS_END, To::Drop, found),
        load(libc::BPF_B | libc::BPF_ABS, NETWORK + QUOTED6 + 6),
        equal(TCP, To::Next, To::Drop),
        load(libc::BPF_IMM, length),
        keep_length(),
        load_index(libc::BPF_IMM, QUOTED6),
        always(To::Host(0)),
        Line { label: Some(To::Packet6), ..load_index(libc::BPF_IMM, 0) },
    ]
}

/// With the index behind the header: are the ports wanted, or is it DNS?
fn at_ports(wanted: &Wanted) -> Vec<Line> {
    let mut lines = Vec::new();
    if wanted.names {
        lines.extend(either_port(&[DNS], To::Name));
    }
    if wanted.ports.is_empty() {
        lines.push(always(To::Pass));
    } else {
        lines.extend(either_port(&wanted.ports, To::Pass));
        lines.push(always(To::Drop));
    }
    lines[0].label = Some(To::Ports);
    if wanted.names {
        lines.push(Line { label: Some(To::Names), ..equal(UDP, To::Next, To::Drop) });
        lines.extend(either_port(&[DNS], To::Name));
        lines.extend(either_port(&[QUIC], To::Pass));
    }
    lines
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

/// Goes on if an address of the IPv4 header that the index points at is among `hosts`, or these are none; else the
/// packet is dropped.
fn hosts_v4(hosts: &[IpAddr]) -> Vec<Line> {
    let mut lines = Vec::new();
    for place in [12, 16] {
        lines.push(load(libc::BPF_W | libc::BPF_IND, NETWORK + place));
        for host in hosts {
            if let IpAddr::V4(host) = host {
                lines.push(equal(u32::from(*host), To::Behind4, To::Next));
            }
        }
    }
    lines[0].label = Some(To::Hosts4);
    lines.push(always(if hosts.is_empty() { To::Behind4 } else { To::Drop }));
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
            let yes = if word == 3 { To::Behind6 } else { To::Next };
            lines.push(load(libc::BPF_W | libc::BPF_IND, NETWORK + place + 4 * word as u32));
            lines.push(equal(u32::from_be_bytes(*value), yes, To::Host(number + 1)));
        }
        lines[start].label = Some(To::Host(number));
        number += 1;
    }
    let end = if hosts.is_empty() { To::Behind6 } else { To::Drop };
    lines.push(Line { label: Some(To::Host(number)), ..always(end) });
    lines
}

/// Where a line goes on; also its own name, for others to come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum To {
    Next,
    Ipv6,
    /// The header that an ICMP error quotes, and that of the packet itself.
    Quoted4,
    Packet4,
    Packet6,
    Hosts4,
    /// The next IPv6 host to compare with.
    Host(u8),
    /// What follows the header.
    Behind4,
    Behind6,
    Ports,
    /// UDP, which may carry DNS.
    Names,
    /// DNS: more of it is kept.
    Name,
    /// An ICMP error that is kept whatever it quotes.
    Error,
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

const fn at_least(value: u32, yes: To, no: To) -> Line {
    Line { yes, no, ..plain(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, value) }
}

/// A comparison that always goes the same way: this language's long jump has no name here.
const fn always(to: To) -> Line {
    equal(0, to, to)
}

const fn count(how: u32, with: u32) -> Line {
    plain(libc::BPF_ALU | how | libc::BPF_K, with)
}

/// Remembers the accumulator as the length to keep of a packet.
const fn keep_length() -> Line {
    plain(libc::BPF_ST, KEPT_LENGTH)
}

const fn any_bit(mask: u32, yes: To, no: To) -> Line {
    Line { yes, no, ..plain(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, mask) }
}

/// The place in this language's memory of the length to keep.
const KEPT_LENGTH: u32 = 0;
const ICMP: u32 = 1;
const TCP: u32 = 6;
const UDP: u32 = 17;
const ICMPV6: u32 = 58;
/// Unreachable, time exceeded, parameter problem (RFC 792). Quench and redirect are not acted on by TCP (RFC 6633).
const ICMP_ERRORS: [u32; 3] = [3, 11, 12];
/// Errors are the types from 1 to 4 (RFC 4443 section 2.1).
const ICMPV6_ERRORS_END: u32 = 5;
/// What is before the quotation in both.
const ICMP_HEADER: u32 = 8;
/// Where an error of `ICMPv6` quotes.
const QUOTED6: u32 = IPV6_HEADER + ICMP_HEADER;
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

#[cfg(test)]
mod tests;
