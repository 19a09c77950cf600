//! `TCP_INFO` of every TCP socket of a network namespace, again and again.
//!
//! Asked for by netlink (`SOCK_DIAG_BY_FAMILY`, `sock_diag(7)`), which needs no rights and touches
//! no socket. One JSON object a line: `t` (ns since 1970, before the kernel was asked), addresses,
//! `state`, `cookie`, queues, `congestion`, `mem` (`SK_MEMINFO`) and `info`.
//!
//! A look walks the kernel's table of connections, which all namespaces share: 0.5 ms where it has
//! 262,144 buckets (measured on a machine with 16 GiB; `dmesg` tells the size).
//!
//! The structure grows with the kernel, so it is read by the length that came back: a field that
//! this kernel has not is absent, not 0 (4.18: 200 bytes; 6.18: 280). Left out: sockets in
//! TIME-WAIT, which have none, and handshakes not yet accepted by TCP (`NEW_SYN_RECV`).

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::netlink::{Answer, Netlink, attributes, number, put};
use crate::sys::{Clock, Stop, fine_timers};

mod fields;

pub use fields::info_json;
pub(crate) use fields::{Field, of_socket};

/// Which sockets, and how often.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time from one look to the next.
    pub every_ns: u64,
    /// Only sockets with one of these ports at either end; empty is all.
    pub ports: Vec<u16>,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sampled {
    /// Looks taken.
    pub looks: u64,
    /// Looks left out because the one before took too long.
    pub missed: u64,
    /// Lines written.
    pub lines: u64,
}

/// Why nothing more is recorded.
#[derive(Debug, thiserror::Error)]
pub enum TcpInfoError {
    /// The kernel does not answer.
    #[error("cannot ask the kernel for its TCP sockets (sock_diag): {0}; is INET_DIAG built in?")]
    Ask(io::Error),
    /// The file cannot be written.
    #[error("cannot write the file after {lines} lines: {source}")]
    Write {
        /// Lines written before.
        lines: u64,
        /// Why not.
        source: io::Error,
    },
}

/// Looks until `stop`; `ready` is called after the first look.
///
/// # Errors
/// The kernel refuses, or the file cannot be written.
pub fn run(
    output: &Path,
    options: &Options,
    stop: &Stop,
    ready: impl FnOnce(),
) -> Result<Sampled, TcpInfoError> {
    let mut sampled = Sampled::default();
    let mut out =
        File::create(output).map(BufWriter::new).map_err(|source| write_error(0, source))?;
    let mut diag = Diag::open().map_err(TcpInfoError::Ask)?;
    // Where the kernel refuses, timers fire a little later.
    let _ = fine_timers();
    let every = options.every_ns.max(1);
    let mut ready = Some(ready);
    let mut due = Clock::Monotonic.now();
    loop {
        let t = Clock::Real.now();
        let mut lines = String::new();
        let mut count = 0;
        for family in [libc::AF_INET, libc::AF_INET6] {
            diag.each(family as u8, |message| {
                if let Some(line) = line(t, message, &options.ports) {
                    lines.push_str(&line);
                    count += 1;
                }
            })
            .map_err(TcpInfoError::Ask)?;
        }
        out.write_all(lines.as_bytes()).map_err(|e| write_error(sampled.lines, e))?;
        sampled.lines += count;
        sampled.looks += 1;
        if let Some(ready) = ready.take() {
            ready();
        }
        due += every;
        let now = Clock::Monotonic.now();
        if now > due {
            let missed = (now - due).div_ceil(every);
            sampled.missed += missed;
            due += missed * every;
        }
        if stop.within(Some(due.saturating_sub(now))).map_err(TcpInfoError::Ask)? {
            break;
        }
    }
    out.flush().map_err(|e| write_error(sampled.lines, e))?;
    Ok(sampled)
}

const fn write_error(lines: u64, source: io::Error) -> TcpInfoError {
    TcpInfoError::Write { lines, source }
}

/// A conversation with the kernel about TCP sockets.
#[derive(Debug)]
pub(crate) struct Diag(Netlink);

impl Diag {
    pub(crate) fn open() -> io::Result<Self> {
        Netlink::open(libc::NETLINK_SOCK_DIAG).map(Self)
    }

    /// Calls `with` for each `inet_diag_msg`, its attributes behind it, of an address family.
    pub(super) fn each(&mut self, family: u8, with: impl FnMut(&[u8])) -> io::Result<()> {
        self.each_in(family, STATES, with).map(drop)
    }

    /// The same for those in these states: a bit for each.
    pub(crate) fn each_in(
        &mut self,
        family: u8,
        states: u32,
        with: impl FnMut(&[u8]),
    ) -> io::Result<Answer> {
        self.0.list(SOCK_DIAG_BY_FAMILY, &request(family, states, &[0; IDENTITY_LENGTH]), with)
    }

    /// The same with what a controller tells of itself (`INET_DIAG_BBRINFO`), of those that a program of the kernel's lets
    /// pass (`INET_DIAG_REQ_BYTECODE`); an empty one lets all pass.
    pub(crate) fn each_that(
        &mut self,
        family: u8,
        states: u32,
        program: &[u8],
        with: impl FnMut(&[u8]),
    ) -> io::Result<Answer> {
        let mut request = request(family, states, &[0; IDENTITY_LENGTH]);
        request[2] |= 1 << (ATTR_VEGASINFO - 1);
        if !program.is_empty() {
            put(&mut request, REQ_BYTECODE, program);
        }
        self.0.list(SOCK_DIAG_BY_FAMILY, &request, with)
    }

    /// The same for the connection with these ends; `None` if there is none.
    pub(crate) fn of(&mut self, [local, remote]: [SocketAddr; 2]) -> io::Result<Option<Vec<u8>>> {
        let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut identity = [local.port().to_be_bytes(), remote.port().to_be_bytes()].concat();
        for end in [local, remote] {
            let octets = match end.ip() {
                IpAddr::V4(ip) => [&ip.octets()[..], &[0; 12]].concat(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            identity.extend(octets);
        }
        // By any interface, whatever its cookie (`INET_DIAG_NOCOOKIE`).
        identity.extend([0; 4]);
        identity.extend([0xff; 8]);
        self.0.one(SOCK_DIAG_BY_FAMILY, &request(family as u8, u32::MAX, &identity))
    }

    /// The same for the socket that an earlier message was about; `None` if it has gone. This is a
    /// look into a table, not a walk over it.
    pub(super) fn again(&mut self, message: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let Some(identity) = message.get(IDENTITY..IDENTITY + IDENTITY_LENGTH) else {
            return Ok(None);
        };
        match self.0.one(SOCK_DIAG_BY_FAMILY, &request(message[0], u32::MAX, identity)) {
            // The place was taken by another one (`sock_diag_check_cookie`).
            Err(error) if error.raw_os_error() == Some(libc::ESTALE) => Ok(None),
            other => other,
        }
    }
}

/// `inet_diag_req_v2` (Linux `include/uapi/linux/inet_diag.h`).
fn request(family: u8, states: u32, identity: &[u8]) -> Vec<u8> {
    let mut request = Vec::with_capacity(8 + IDENTITY_LENGTH);
    let wanted = (1 << (ATTR_INFO - 1)) | (1 << (ATTR_CONG - 1)) | (1 << (ATTR_SKMEMINFO - 1));
    request.extend([family, libc::IPPROTO_TCP as u8, wanted, 0]);
    request.extend(states.to_ne_bytes());
    request.extend(identity);
    request
}

/// A line for a socket (`inet_diag_msg` with attributes); `None` if it has none of `ports`.
pub(super) fn line(t: u64, message: &[u8], ports: &[u16]) -> Option<String> {
    let head = message.get(..HEAD)?;
    let [local, peer] = ends(message)?;
    if !ports.is_empty() && !ports.contains(&local.port()) && !ports.contains(&peer.port()) {
        return None;
    }
    let state = STATE_NAMES.get(usize::from(head[1])).copied().unwrap_or("unknown");
    let (cookie, rqueue) = (number(head, 44, 8)?, number(head, 56, 4)?);
    let (wqueue, inode) = (number(head, 60, 4)?, number(head, 68, 4)?);
    let mut text = format!(
        "{{\"t\":{t},\"local\":\"{local}\",\"peer\":\"{peer}\",\"state\":\"{state}\",\
         \"cookie\":{cookie},\"inode\":{inode},\"timer\":{},\"retransmits\":{},\
         \"rqueue\":{rqueue},\"wqueue\":{wqueue}",
        head[2], head[3]
    );
    for (kind, value) in attributes(&message[HEAD..]) {
        let _ = match kind as u8 {
            ATTR_CONG => {
                let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                let name = String::from_utf8_lossy(&value[..end]);
                write!(text, ",\"congestion\":{}", serde_json::json!(name))
            }
            ATTR_SKMEMINFO => write!(text, ",\"mem\":{}", memory_json(value)),
            ATTR_INFO => write!(text, ",\"info\":{}", info_json(value)),
            _ => Ok(()),
        };
    }
    text.push_str("}\n");
    Some(text)
}

/// Local and other end of the socket that a message is about.
pub(crate) fn ends(message: &[u8]) -> Option<[SocketAddr; 2]> {
    let head = message.get(..HEAD)?;
    Some([(4, 8), (6, 24)].map(|(port, address)| {
        let port = u16::from_be_bytes([head[port], head[port + 1]]);
        SocketAddr::new(ip(head[0], &head[address..address + 16]), port)
    }))
}

/// The `tcp_info` in a message.
pub(super) fn info(message: &[u8]) -> Option<&[u8]> {
    let mut all = attributes(message.get(HEAD..)?);
    all.find(|(kind, _)| *kind == u16::from(ATTR_INFO)).map(|(_, value)| value)
}

/// IPv4 that a socket of IPv6 uses is IPv4, as it is in the packets.
fn ip(family: u8, bytes: &[u8]) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[..16]);
    if i32::from(family) == libc::AF_INET {
        Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()
    } else {
        Ipv6Addr::from(octets).to_canonical()
    }
}

fn memory_json(values: &[u8]) -> String {
    let mut text = String::from("{");
    for (index, name) in MEMORY.iter().enumerate() {
        let Some(value) = number(values, 4 * index, 4) else { break };
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{name}\":{value}");
    }
    text.push('}');
    text
}

/// Linux `include/uapi/linux/sock_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Length of an `inet_diag_msg` (`include/uapi/linux/inet_diag.h`).
pub(crate) const HEAD: usize = 72;
/// Where its `inet_diag_sockid` is; a request has it there, too.
const IDENTITY: usize = 4;
const IDENTITY_LENGTH: usize = 48;
/// An attribute of a request.
const REQ_BYTECODE: u16 = 1;
/// Attributes behind it (`INET_DIAG_*`).
const ATTR_INFO: u8 = 2;
const ATTR_VEGASINFO: u8 = 3;
const ATTR_CONG: u8 = 4;
const ATTR_SKMEMINFO: u8 = 7;

/// All states but TIME-WAIT (6), CLOSE (7) and `NEW_SYN_RECV` (12).
const STATES: u32 = 0xfff & !(1 << 6) & !(1 << 7) & !1;

/// `TCP_ESTABLISHED` and so on (`include/net/tcp_states.h`), as ss(8) names them.
const STATE_NAMES: [&str; 13] = [
    "unknown",
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "NEW-SYN-RECV",
];

/// `SK_MEMINFO_*` (`include/uapi/linux/sock_diag.h`), in their order.
const MEMORY: [&str; 9] = [
    "rmem_alloc",
    "rcvbuf",
    "wmem_alloc",
    "sndbuf",
    "fwd_alloc",
    "wmem_queued",
    "optmem",
    "backlog",
    "drops",
];
