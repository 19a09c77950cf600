//! `ss` with any of `-a -e -i -l -m -n -o -O -p -t`, a line at a time; `sockets` makes tables of them.
//!
//! A socket is a line with its state, its queues and its two ends; what the kernel says of it follows on the
//! same line or on those indented below.

mod info;
mod options;

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::snapshot::{Info, Listener, Socket, State};
use info::{figure, rate};
pub(super) use info::{finish, is_details, is_info};
use options::{memory, timer, users};
pub(super) use options::{netstat_timer, process};
use tcpwhy_words::printed::{address, controllers};

/// States as `ss` prints them (`misc/ss.c`, `sstate_name`).
pub(in crate::paste) const STATES: [(&str, Option<State>); 11] = [
    ("ESTAB", Some(State::Established)),
    ("SYN-SENT", Some(State::SynSent)),
    ("SYN-RECV", Some(State::SynRecv)),
    ("FIN-WAIT-1", Some(State::FinWait1)),
    ("FIN-WAIT-2", Some(State::FinWait2)),
    ("TIME-WAIT", None),
    ("UNCONN", None),
    ("CLOSE-WAIT", Some(State::CloseWait)),
    ("LAST-ACK", Some(State::LastAck)),
    ("LISTEN", None),
    ("CLOSING", Some(State::Closing)),
];

fn is_state(word: &str) -> bool {
    STATES.iter().any(|(name, _)| *name == word)
}

/// Whether the line is a socket's, or the head of a table of sockets.
pub fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("State" | "Netid") => line.contains("Recv-Q"),
        Some("tcp") => words.next().is_some_and(is_state),
        Some(word) => is_state(word),
        None => false,
    }
}

/// How it is said that a row lacks something.
pub(super) const TOO_SHORT: &str = "it ends before";

/// A socket's line in its parts.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(super) state: &'a str,
    receive_queue: u32,
    send_queue: u32,
    pub(super) local: &'a str,
    pub(super) remote: &'a str,
    /// What follows.
    pub(super) rest: &'a str,
}

impl<'a> Row<'a> {
    /// `ESTAB 0 17160 172.16.58.147:8000 172.16.58.146:41276 users:(...) ...`
    ///
    /// # Errors
    /// Why it is none.
    pub fn of(line: &'a str) -> Result<Self, String> {
        let (mut state, mut rest) = word(line).unwrap_or_default();
        if state == "tcp" {
            (state, rest) = word(rest).unwrap_or_default();
        }
        Self::behind_state(state, rest)
    }

    /// The row of a socket in `state`, from what follows it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn behind_state(state: &'a str, rest: &'a str) -> Result<Self, String> {
        let mut rest = rest;
        let mut field = |what: &str| {
            let (field, behind) = word(rest).ok_or_else(|| format!("{TOO_SHORT} {what}"))?;
            rest = behind;
            Ok::<_, String>(field)
        };
        let (receive, send) = (field("its queues")?, field("its queues")?);
        let (local, remote) = (field("its address")?, field("its peer")?);
        let queue = |word: &str| word.parse().map_err(|_| format!("{word:?} is no queue"));
        Ok(Self {
            state,
            receive_queue: queue(receive)?,
            send_queue: queue(send)?,
            local,
            remote,
            rest,
        })
    }

    /// The socket, with what its line says; its state is [`State::Established`] where it has none of a
    /// connection's.
    ///
    /// # Errors
    /// What of it cannot be read.
    pub fn socket(&self) -> Result<Socket, String> {
        self.socket_at(address::read)
    }

    /// The same, its ends read by `end`.
    pub(super) fn socket_at(
        &self,
        mut end: impl FnMut(&str) -> Option<SocketAddr>,
    ) -> Result<Socket, String> {
        let mut end = |word: &str| {
            end(word).ok_or_else(|| {
                format!("{word:?} is no address with a port; ss prints numbers with -n")
            })
        };
        let state =
            STATES.iter().find(|(name, _)| *name == self.state).and_then(|(_, state)| *state);
        let ends = [end(self.local)?, end(self.remote)?];
        let queues = [self.receive_queue, self.send_queue];
        let mut socket = bare(state.unwrap_or_default(), ends, queues);
        details(&mut socket, self.rest);
        Ok(socket)
    }

    pub(super) fn listener(&self, star_is_v4: bool) -> Option<Listener> {
        let mut listener = Listener {
            local: listening_at(self.local, star_is_v4)?,
            accept_queue: self.receive_queue,
            accept_max: self.send_queue,
            drops: None,
            inode: 0,
            inode_unseen: true,
            owner: None,
        };
        listener_details(&mut listener, self.rest);
        Some(listener)
    }
}

/// A socket with nothing known but its state, its ends and its queues: received, sent.
pub(super) fn bare(state: State, [local, remote]: [SocketAddr; 2], queues: [u32; 2]) -> Socket {
    let [receive_queue, send_queue] = queues;
    Socket { receive_queue, send_queue, inode_unseen: true, ..Socket::new(state, local, remote) }
}

/// Whether `*` is all of IPv4 in this text: old versions of `ss` print `:::80` for all of IPv6 beside it. Newer
/// ones print `0.0.0.0:80`, `[::]:80`, and `*:80` for both at once.
pub(super) fn star_is_v4(text: &str) -> bool {
    text.contains(" :::")
}

/// `*:80`, `[::]:80`, `0.0.0.0:80`, `:::80`.
pub(super) fn listening_at(text: &str, star_is_v4: bool) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    match host.split('%').next() {
        Some("*") if star_is_v4 => {
            Some(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), super::names::port(port)?))
        }
        Some("*") => Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), super::names::port(port)?)),
        _ => address::read(&format!("{host}:{}", super::names::port(port)?)),
    }
}

/// Takes down what words behind a socket's ends, or on the lines under them, say of it.
pub fn details(socket: &mut Socket, text: &str) {
    let (owner, rest) = users(text);
    socket.owner = owner.map(|(owner, _)| owner).or(socket.owner);
    let mut words = rest.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if let Some((name, value)) = word.split_once(':') {
            match name {
                "skmem" => socket.memory = memory(value),
                "timer" => socket.timer = timer(value),
                "ino" => {
                    socket.inode_unseen = false;
                    socket.inode = value.parse().unwrap_or_default();
                }
                "uid" => socket.uid = value.parse().unwrap_or_default(),
                _ => figure(socket.info.get_or_insert_default(), name, value),
            }
        } else if controllers::NAMES.contains(&word) {
            socket.congestion = Some(word.to_owned());
        } else {
            let next = words.peek().copied().unwrap_or_default();
            rate(socket.info.get_or_insert_default(), word, next);
        }
    }
    // Words of other options alone (`ino:7 <->`) are nothing of TCP's.
    socket.info = socket.info.take().filter(|info| **info != Info::default());
}

pub(super) fn listener_details(listener: &mut Listener, text: &str) {
    let (owner, rest) = users(text);
    listener.owner = owner.map(|(owner, _)| owner).or(listener.owner);
    for word in rest.split_whitespace() {
        if let Some(value) = word.strip_prefix("skmem:") {
            // Before iproute2 4.19 the drops were not among them.
            let drops = memory(value).filter(|_| value.contains(",d")).map(|memory| memory.drops);
            listener.drops = drops.or(listener.drops);
        } else if let Some(inode) = word.strip_prefix("ino:").and_then(|word| word.parse().ok()) {
            (listener.inode, listener.inode_unseen) = (inode, false);
        }
    }
}

/// The first word, and the rest.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}
