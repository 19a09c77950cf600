//! Filters by port and address, for the kernel and for us.
//!
//! The kernel runs a little program over each socket before it tells it (`INET_DIAG_REQ_BYTECODE`,
//! `inet_diag_bc_run`, Linux `net/ipv4/inet_diag.c`): conditions that go on or jump, to the end (it passes) or beyond (it does not).

use std::net::{IpAddr, SocketAddr};

/// What one end has to have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ends {
    /// A port from the first to the last.
    Ports(u16, u16),
    /// An address that agrees with this one in its first bits.
    Net(IpAddr, u8),
}

impl Ends {
    fn has(self, end: SocketAddr) -> bool {
        match self {
            Self::Ports(first, last) => (first..=last).contains(&end.port()),
            Self::Net(net, length) => match (end.ip(), net) {
                (IpAddr::V4(a), IpAddr::V4(b)) => {
                    (a.to_bits() ^ b.to_bits())
                        .checked_shr(32_u32.saturating_sub(length.into()))
                        .unwrap_or(0)
                        == 0
                }
                (IpAddr::V6(a), IpAddr::V6(b)) => {
                    (a.to_bits() ^ b.to_bits())
                        .checked_shr(128_u32.saturating_sub(length.into()))
                        .unwrap_or(0)
                        == 0
                }
                _ => false,
            },
        }
    }
}

/// Whether one of `ends` has one of `wanted`, or nothing is.
pub(super) fn any(wanted: &[Ends], ends: &[SocketAddr]) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| ends.iter().any(|end| wanted.has(*end)))
}

/// A condition on one end: its words, in whose place for jumps the program puts them.
struct Condition {
    code: u8,
    behind: Vec<u8>,
}

/// The same as [`any`] in the kernel's language; empty where nothing is wanted, or too much for a program.
pub(super) fn program(wanted: &[Ends]) -> Vec<u8> {
    if wanted.len() > MOST {
        return Vec::new();
    }
    let mut alternatives: Vec<Vec<Condition>> = Vec::new();
    for wanted in wanted {
        for source in [true, false] {
            alternatives.push(match *wanted {
                Ends::Ports(first, last) => {
                    let [ge, le] = if source { [SOURCE_GE, SOURCE_LE] } else { [PEER_GE, PEER_LE] };
                    vec![port(ge, first), port(le, last)]
                }
                Ends::Net(net, length) => {
                    vec![host(if source { SOURCE_HOST } else { PEER_HOST }, net, length)]
                }
            });
        }
    }
    assembled(&alternatives)
}

fn assembled(alternatives: &[Vec<Condition>]) -> Vec<u8> {
    let size = |each: &Vec<Condition>| each.iter().map(|one| OP + one.behind.len()).sum::<usize>();
    let jumps = alternatives.len().saturating_sub(1) * OP;
    let length = alternatives.iter().map(size).sum::<usize>() + jumps;
    let mut program = Vec::with_capacity(length);
    for (at, alternative) in alternatives.iter().enumerate() {
        let is_last = at + 1 == alternatives.len();
        let next = program.len() + size(alternative) + OP;
        // Behind the last one is the place that says no.
        debug_assert!(!is_last || next == length + OP, "the end");
        for one in alternative {
            let here = program.len();
            program.extend([one.code, (OP + one.behind.len()) as u8]);
            program.extend(((next - here) as u16).to_ne_bytes());
            program.extend(&one.behind);
        }
        if !is_last {
            let here = program.len();
            program.extend([JUMP, OP as u8]);
            program.extend(((length - here) as u16).to_ne_bytes());
        }
    }
    program
}

/// Its number is where the next operation would have its second jump.
fn port(code: u8, port: u16) -> Condition {
    let number = port.to_ne_bytes();
    Condition { code, behind: vec![0, 0, number[0], number[1]] }
}

/// `inet_diag_hostcond`: family, length of the prefix, any port, address.
fn host(code: u8, net: IpAddr, length: u8) -> Condition {
    let (family, octets) = match net {
        IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
    };
    let mut behind = vec![family as u8, length, 0, 0];
    behind.extend((-1_i32).to_ne_bytes());
    behind.extend(octets);
    Condition { code, behind }
}

/// Ours: a program of this many is 4 KiB at most.
const MOST: usize = 64;
/// Length of an operation (`inet_diag_bc_op`).
const OP: usize = 4;
/// `INET_DIAG_BC_*` (Linux `include/uapi/linux/inet_diag.h`).
const JUMP: u8 = 1;
const SOURCE_GE: u8 = 2;
const SOURCE_LE: u8 = 3;
const PEER_GE: u8 = 4;
const PEER_LE: u8 = 5;
const SOURCE_HOST: u8 = 7;
const PEER_HOST: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_port_at_either_end() {
        let program = program(&[Ends::Ports(80, 81)]);
        let [eighty, next] = [80_u16, 81].map(u16::to_ne_bytes);
        let jump = |to: u16| to.to_ne_bytes();
        let expected: Vec<u8> = [
            &[SOURCE_GE, 8][..],
            &jump(20),
            &[0, 0],
            &eighty,
            &[SOURCE_LE, 8],
            &jump(12),
            &[0, 0],
            &next,
            &[JUMP, 4],
            &jump(20),
            &[PEER_GE, 8],
            &jump(20),
            &[0, 0],
            &eighty,
            &[PEER_LE, 8],
            &jump(12),
            &[0, 0],
            &next,
        ]
        .concat();
        assert_eq!(program, expected);
    }

    #[test]
    fn nothing_or_too_much_is_no_program() {
        assert!(program(&[]).is_empty());
        assert!(program(&[Ends::Ports(1, 1); MOST + 1]).is_empty());
    }

    #[test]
    fn ends_are_told_apart_by_their_first_bits() {
        let has = |net: &str, length, end: &str| {
            Ends::Net(net.parse().expect("an address"), length).has(end.parse().expect("an end"))
        };
        assert!(has("10.0.0.0", 8, "10.255.0.1:80") && !has("10.0.0.0", 8, "11.0.0.1:80"));
        assert!(has("0.0.0.0", 0, "11.0.0.1:80") && !has("0.0.0.0", 0, "[::1]:80"));
        assert!(
            has("2001:db8::", 32, "[2001:db8:1::1]:80")
                && !has("2001:db8::", 128, "[2001:db8::1]:80")
        );
    }
}
