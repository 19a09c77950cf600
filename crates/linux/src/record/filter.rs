//! Packet filters in the kernel's classic language: which packets a capture gets, and how much
//! of each.
//!
//! Loads are relative to the network header (`SKF_NET_OFF`), so that one program serves every
//! kind of interface and packets with or without a VLAN tag. Left out: TCP behind IPv6 extension
//! headers, later fragments, and ICMP errors about a connection.

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

/// Where a line goes on; also its own name, for others to come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum To {
    Next,
    Ipv6,
    Ports,
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
