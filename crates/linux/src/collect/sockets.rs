//! Every TCP socket of the namespace, as `sock_diag(7)` tells it.
//!
//! Listeners are asked for first, for they tell which connections in `TIME_WAIT` were accepted here.
//! Those in `TIME_WAIT` are counted and not kept. A list is no picture of one instant: the kernel walks
//! its tables while connections come and go.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use tcpwhy::host::snapshot::{Bbr, Listener, Memory, Occupied, Socket, Source, State, Timer};

use super::blind::{Blind, name, read};
use super::info::info;
use crate::netlink::{Answer, attributes, number};
use crate::record::tcp_info::{Diag, HEAD, ends};

/// The sockets of an instant.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    pub(super) connections: Vec<Socket>,
    pub(super) listeners: Vec<Listener>,
    pub(super) time_wait: Vec<Occupied>,
}

/// Those of the namespace of this thread.
pub(super) fn sockets(blind: &mut Blind) -> Option<Sockets> {
    let mut gathered = Gathered { range: port_range(), ..Gathered::default() };
    match gathered.all() {
        Ok(answer) => blind.unless_whole(Source::Sockets, answer),
        Err(error) => {
            blind.say(
                Source::Sockets,
                None,
                format!(
                    "the kernel tells no TCP sockets (sock_diag): {error}; is INET_DIAG built in?"
                ),
            );
            return None;
        }
    }
    if gathered.left_out > 0 {
        let left = gathered.left_out;
        blind.say(
            Source::Sockets,
            Some(&format!("{left} sockets")),
            format!("there are more than {MOST_SOCKETS}, which are kept"),
        );
    }
    if gathered.odd > 0 {
        blind.say(Source::Sockets, None, format!("{} answers make no sense", gathered.odd));
    }
    Some(gathered.done())
}

fn port_range() -> Option<[u16; 2]> {
    let text = read(Path::new("/proc/sys/net/ipv4/ip_local_port_range")).ok()?;
    let mut ports = text.split_whitespace().map(str::parse);
    Some([ports.next()?.ok()?, ports.next()?.ok()?])
}

#[derive(Debug, Default)]
struct Gathered {
    sockets: Vec<Socket>,
    listeners: Vec<Listener>,
    listening: HashSet<SocketAddr>,
    /// The ports from which the kernel chooses.
    range: Option<[u16; 2]>,
    time_wait: BTreeMap<(IpAddr, Option<u16>, SocketAddr), u32>,
    left_out: u64,
    odd: u64,
}

impl Gathered {
    fn all(&mut self) -> io::Result<Answer> {
        let mut diag = Diag::open()?;
        let mut whole = Answer::Whole;
        for states in [1 << LISTEN, !(1 << LISTEN) & EVERY_STATE] {
            for family in [libc::AF_INET, libc::AF_INET6] {
                let answer = diag.each_in(family as u8, states, |message| {
                    if self.take(message).is_none() {
                        self.odd += 1;
                    }
                });
                match answer {
                    Ok(Answer::Whole) => {}
                    Ok(other) => whole = other,
                    // A kernel without IPv6.
                    Err(error)
                        if family == libc::AF_INET6
                            && error.raw_os_error() == Some(libc::ENOENT) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(whole)
    }

    /// Takes in what a message tells (`inet_diag_msg`); `None` if it is none.
    fn take(&mut self, message: &[u8]) -> Option<()> {
        let head = message.get(..HEAD)?;
        let [local, remote] = ends(message)?;
        match head[1] {
            LISTEN => {
                self.listening.insert(local);
                self.listeners.push(listener(message, local)?);
            }
            TIME_WAIT => {
                let key = Occupied::by(local, remote, self.is_accepted(local), self.range);
                *self.time_wait.entry(key).or_default() += 1;
            }
            state => {
                let state = state_of(state)?;
                if self.sockets.len() < MOST_SOCKETS {
                    self.sockets.push(socket(message, state, local, remote)?);
                } else {
                    self.left_out += 1;
                }
            }
        }
        Some(())
    }

    fn is_accepted(&self, local: SocketAddr) -> bool {
        let any = |ip: IpAddr| self.listening.contains(&SocketAddr::new(ip, local.port()));
        self.listening.contains(&local)
            || any(Ipv4Addr::UNSPECIFIED.into())
            || any(Ipv6Addr::UNSPECIFIED.into())
    }

    fn done(self) -> Sockets {
        let occupied =
            |((local, local_port, remote), count)| Occupied { local, local_port, remote, count };
        Sockets {
            connections: self.sockets,
            listeners: self.listeners,
            time_wait: self.time_wait.into_iter().map(occupied).collect(),
        }
    }
}

/// The listener that a message is about.
pub(crate) fn listener(message: &[u8], local: SocketAddr) -> Option<Listener> {
    let memory = attributes(&message[HEAD..]).find(|(kind, _)| *kind == ATTR_SKMEMINFO);
    Some(Listener {
        local,
        accept_queue: number(message, 56, 4)? as u32,
        accept_max: number(message, 60, 4)? as u32,
        drops: memory.and_then(|(_, value)| number(value, 4 * DROPS, 4)).map(|n| n as u32),
        inode: number(message, 68, 4)?,
        inode_unseen: false,
        owner: None,
    })
}

/// The connection that a message is about.
pub(crate) fn connection(message: &[u8]) -> Option<Socket> {
    let [local, remote] = ends(message)?;
    socket(message, state_of(*message.get(1)?)?, local, remote)
}

fn socket(message: &[u8], state: State, local: SocketAddr, remote: SocketAddr) -> Option<Socket> {
    let field = |at| number(message, at, 4).map(|value| value as u32);
    let timer = Timer { kind: message[2], retransmits: message[3], expires_ms: field(52)? };
    let mut socket = Socket {
        receive_queue: field(56)?,
        send_queue: field(60)?,
        inode: u64::from(field(68)?),
        uid: field(64)?,
        cookie: number(message, 44, 8)?,
        timer: Some(timer).filter(|timer| timer.kind != 0),
        ..Socket::new(state, local, remote)
    };
    let mut told = None;
    for (kind, value) in attributes(&message[HEAD..]) {
        match kind {
            ATTR_BBRINFO => told = bbr(value),
            ATTR_INFO => socket.info = Some(Box::new(info(value))),
            ATTR_CONG => socket.congestion = Some(name(value)),
            ATTR_SKMEMINFO => socket.memory = Some(memory(value)),
            ATTR_SHUTDOWN => socket.shutdown = value.first().copied(),
            ATTR_CGROUP_ID => socket.cgroup = number(value, 0, 8),
            _ => {}
        }
    }
    if let Some(info) = &mut socket.info {
        info.bbr = told;
    }
    Some(socket)
}

/// `tcp_bbr_info`: the rate in two halves, the round trip in microseconds, gains in 256ths (`BBR_UNIT`).
fn bbr(value: &[u8]) -> Option<Bbr> {
    let at = |index: usize| number(value, 4 * index, 4);
    let percent = |gain: u64| u32::try_from((gain * 100).div_ceil(256)).unwrap_or(u32::MAX);
    Some(Bbr {
        bw: at(0)? | at(1)? << 32,
        min_rtt_ns: at(2)? * 1_000,
        pacing_percent: percent(at(3)?),
        cwnd_percent: percent(at(4)?),
    })
}

/// `SK_MEMINFO_*` in their order; kernels before Linux 4.7 have no count of drops.
fn memory(value: &[u8]) -> Memory {
    let at = |index: usize| number(value, 4 * index, 4).unwrap_or(0) as u32;
    Memory {
        rmem: at(0),
        rcvbuf: at(1),
        wmem: at(2),
        sndbuf: at(3),
        forward: at(4),
        wqueued: at(5),
        optmem: at(6),
        backlog: at(7),
        drops: at(DROPS),
    }
}

/// `TCP_ESTABLISHED` and so on (Linux `include/net/tcp_states.h`); a request that is not yet a socket
/// (`TCP_NEW_SYN_RECV`) is shown as `SYN_RECV`.
const fn state_of(state: u8) -> Option<State> {
    Some(match state {
        1 => State::Established,
        2 => State::SynSent,
        3 | 12 => State::SynRecv,
        4 => State::FinWait1,
        5 => State::FinWait2,
        7 => State::Close,
        8 => State::CloseWait,
        9 => State::LastAck,
        11 => State::Closing,
        _ => return None,
    })
}

pub(crate) const TIME_WAIT: u8 = 6;
pub(crate) const LISTEN: u8 = 10;
/// The bits of all of these. Half-open ones come with those of `SYN_RECV` (`inet_diag_dump_icsk`).
const EVERY_STATE: u32 = 0x1ffe;

/// `INET_DIAG_*` (Linux `include/uapi/linux/inet_diag.h`).
const ATTR_INFO: u16 = 2;
const ATTR_CONG: u16 = 4;
const ATTR_SKMEMINFO: u16 = 7;
const ATTR_SHUTDOWN: u16 = 8;
const ATTR_BBRINFO: u16 = 16;
const ATTR_CGROUP_ID: u16 = 21;
/// Which of `SK_MEMINFO_*` counts drops.
const DROPS: usize = 8;

/// Ours: 200,000 are 130 MB at about 650 bytes each.
const MOST_SOCKETS: usize = 200_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An `inet_diag_msg` of a socket at 127.0.0.1 with these ports.
    fn message(state: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        (bytes[0], bytes[1]) = (libc::AF_INET as u8, state);
        bytes[4..6].copy_from_slice(&ports[0].to_be_bytes());
        bytes[6..8].copy_from_slice(&ports[1].to_be_bytes());
        bytes[8..12].copy_from_slice(&[127, 0, 0, 1]);
        bytes[24..28].copy_from_slice(&[127, 0, 0, 1]);
        bytes
    }

    #[test]
    fn time_wait_is_counted_by_what_would_have_to_differ() {
        let mut gathered = Gathered::default();
        gathered.take(&message(LISTEN, [80, 0]));
        for port in [40_000, 40_001] {
            gathered.take(&message(TIME_WAIT, [80, port])).expect("well-formed");
            gathered.take(&message(TIME_WAIT, [port, 443])).expect("well-formed");
        }
        let found = gathered.done().time_wait;
        let told: Vec<_> = found.iter().map(|o| (o.local_port, o.remote.port(), o.count)).collect();
        assert_eq!(told, [(None, 443, 2), (Some(80), 0, 2)]);
    }

    #[test]
    fn a_port_that_the_kernel_does_not_choose_was_asked_for() {
        let mut gathered = Gathered { range: Some([32_768, 60_999]), ..Gathered::default() };
        for port in [32_767, 32_768, 60_999, 61_000] {
            gathered.take(&message(TIME_WAIT, [port, 443])).expect("well-formed");
        }
        let found = gathered.done().time_wait;
        let told: Vec<_> = found.iter().map(|o| (o.local_port, o.remote.port(), o.count)).collect();
        assert_eq!(told, [(None, 443, 2), (Some(32_767), 443, 1), (Some(61_000), 443, 1)]);
    }

    #[test]
    fn a_mapped_address_is_told_as_ipv4() {
        let mut mapped = message(1, [80, 5]);
        mapped[0] = libc::AF_INET6 as u8;
        mapped[8..24].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
        mapped[24..40].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 2).to_ipv6_mapped().octets());
        let mut gathered = Gathered::default();
        gathered.take(&mapped).expect("well-formed");
        assert_eq!(gathered.sockets[0].local.to_string(), "192.0.2.1:80");
    }

    #[test]
    fn a_listener_has_its_own_drops_where_the_kernel_counts_them() {
        let mut bytes = message(LISTEN, [80, 0]);
        bytes[56..60].copy_from_slice(&4_u32.to_ne_bytes());
        bytes[60..64].copy_from_slice(&3_u32.to_ne_bytes());
        let local = ends(&bytes).expect("whole")[0];
        let without = listener(&bytes, local).expect("whole");
        assert_eq!((without.accept_queue, without.accept_max, without.drops), (4, 3, None));
        let mut memory = [0; 36];
        memory[32..].copy_from_slice(&9_u32.to_ne_bytes());
        crate::netlink::put(&mut bytes, ATTR_SKMEMINFO, &memory);
        assert_eq!(listener(&bytes, local).expect("whole").drops, Some(9));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut gathered = Gathered::default();
            gathered.take(&bytes);
            gathered.done();
        }
    }
}
