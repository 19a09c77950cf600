//! `/proc/net/tcp` and `/proc/net/tcp6`: what is left to look at where neither `ss` nor `netstat` is there, as in
//! many containers.
//!
//! v6.12 `net/ipv4/tcp_ipv4.c`, `get_tcp4_sock`: addresses are words of 32 bits as the processor has them, so on all
//! common ones their bytes stand in reverse; the timer counts hundredths of a second. Of a listener the queue is
//! shown and not its limit, so it tells no more than which end of a connection is the server.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::ss;
use crate::snapshot::{Socket, State, Timer};

/// The head of a table of this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Of TCP over IPv4, with which a reading begins.
    Four,
    /// Of TCP over IPv6, which mostly follows the other.
    Six,
    /// Of UDP or of raw sockets.
    Other,
}

/// `sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode`
pub(super) fn head(text: &str) -> Option<Head> {
    let behind = text.strip_prefix("sl ")?.trim_start().strip_prefix("local_address")?;
    Some(match () {
        () if text.ends_with("drops") => Head::Other,
        () if behind.contains("remote_address") => Head::Six,
        () => Head::Four,
    })
}

/// A row of it.
#[derive(Debug)]
pub(super) enum Row {
    Socket(Socket),
    Listens(SocketAddr),
    TimeWait(SocketAddr, SocketAddr),
}

impl Row {
    /// `0: 0A00020A:9A2C 1400020A:1538 01 0010C000:00000000 01:00000014 00000000   0   0 12345 ..`
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        words.next()?.strip_suffix(':')?.parse::<u32>().ok()?;
        let (local, remote) = (end(words.next()?)?, end(words.next()?)?);
        let state = u8::from_str_radix(words.next()?, 16).ok()?;
        let [sent, received] = pair(words.next()?)?;
        let [kind, hundredths] = pair(words.next()?)?;
        let retransmits = u32::from_str_radix(words.next()?, 16).ok()?;
        let uid = words.next()?.parse().ok()?;
        let probes: u32 = words.next()?.parse().ok()?;
        let inode = words.next()?.parse().ok()?;
        let state = match state {
            0x0a => return Some(Self::Listens(local)),
            0x06 => return Some(Self::TimeWait(local, remote)),
            state => STATES.iter().find(|(number, _)| *number == state)?.1,
        };
        let mut socket = ss::bare(state, [local, remote], [received, sent]);
        (socket.uid, socket.inode, socket.inode_unseen) = (uid, inode, false);
        socket.timer = (kind > 0).then(|| Timer {
            kind: kind as u8,
            retransmits: u8::try_from(if kind == PROBES { probes } else { retransmits })
                .unwrap_or(u8::MAX),
            expires_ms: hundredths.saturating_mul(10),
        });
        Some(Self::Socket(socket))
    }
}

/// The timer of zero window probes, whose number is in the column `timeout` (`icsk_probes_out`).
const PROBES: u32 = 4;

/// Linux `include/net/tcp_states.h`; the last is a SYN that was answered.
const STATES: [(u8, State); 10] = [
    (0x01, State::Established),
    (0x02, State::SynSent),
    (0x03, State::SynRecv),
    (0x04, State::FinWait1),
    (0x05, State::FinWait2),
    (0x07, State::Close),
    (0x08, State::CloseWait),
    (0x09, State::LastAck),
    (0x0b, State::Closing),
    (0x0c, State::SynRecv),
];

/// `0A00020A:9A2C`, or with 32 digits.
fn end(word: &str) -> Option<SocketAddr> {
    let (address, port) = word.split_once(':')?;
    let port = (port.len() == 4).then(|| u16::from_str_radix(port, 16).ok()).flatten()?;
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::swap_bytes);
    let ip: IpAddr = match address.len() {
        8 => Ipv4Addr::from_bits(word(address)?).into(),
        32 => {
            let mut bits = 0;
            for at in [0, 8, 16, 24] {
                bits = bits << 32 | u128::from(word(address.get(at..at + 8)?)?);
            }
            IpAddr::from(Ipv6Addr::from_bits(bits)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Two hexadecimal numbers.
fn pair(word: &str) -> Option<[u32; 2]> {
    let (one, other) = word.split_once(':')?;
    Some([u32::from_str_radix(one, 16).ok()?, u32::from_str_radix(other, 16).ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_with_its_queues_and_its_timer() {
        let text = "   3: 0A0200C0:9A2C 140200C0:1538 01 0010C440:00000000 04:000003D4 00000000     0        6 12345 2 0000000000000000 464 4 0 10 7";
        let Some(Row::Socket(socket)) = Row::of(text) else { panic!("a socket") };
        assert_eq!(socket.local.to_string(), "192.0.2.10:39468");
        assert_eq!(socket.remote.to_string(), "192.0.2.20:5432");
        assert_eq!((socket.send_queue, socket.receive_queue), (1_098_816, 0));
        let timer = Timer { kind: 4, retransmits: 6, expires_ms: 9800 };
        assert_eq!((socket.timer, socket.inode), (Some(timer), 12_345));
    }

    #[test]
    fn ipv6_listeners_and_time_wait() {
        let six = "   0: B80D0120000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0";
        let Some(Row::Listens(end)) = Row::of(six) else { panic!("a listener") };
        assert_eq!(end.to_string(), "[2001:db8::1]:443");
        let mapped = "   1: 0000000000000000FFFF00000A0200C0:01BB 0000000000000000FFFF0000140200C0:9C40 06 00000000:00000000 03:00000F2A 00000000     0        0 0 3 0000000000000000";
        let Some(Row::TimeWait(local, _)) = Row::of(mapped) else { panic!("TIME_WAIT") };
        assert_eq!(local.to_string(), "192.0.2.10:443");
    }

    #[test]
    fn other_lines_are_none() {
        for text in ["0: eth0", "1: 0A0200C0:1 140200C0:1538 01", "2: eth0: <UP> mtu 1500", ""] {
            assert!(Row::of(text).is_none(), "{text}");
        }
        assert_eq!(head("sl  local_address rem_address   st tx_queue drops"), Some(Head::Other));
        assert_eq!(head("slow local_address"), None);
    }
}
