//! A program's system calls, as `strace` or `perf trace` saw them: when, how long, on which socket or file.
//!
//! [`strace`] and [`perf`] read the lines; here is what both give. Calls are kept in the order of their
//! starts, with the bytes that they moved, for these align the trace with the capture (`evidence::align`).

pub mod perf;
mod sockets;
pub mod strace;

use std::collections::BTreeMap;

use super::error::{EvidenceError, PassedOver};
pub use sockets::Socket;

/// What the times of a trace count from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// 1970 (`strace -ttt`).
    Unix,
    /// Midnight of some day in some zone (`-tt`).
    OfDay,
    /// Some start (`-r`, `perf trace`).
    Since,
}

/// What a call did to a socket's stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Moved {
    /// Nothing, or it is no such call.
    #[default]
    Nothing,
    /// Took bytes out; all that was there if it asked for more.
    Read {
        /// Bytes it got; 0 at the end of the stream or if nothing was there.
        got: u64,
        /// It got less than it asked for: there was no more.
        drained: bool,
    },
    /// Put bytes in.
    Wrote(u64),
}

/// One system call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Where it is in the file, from 1.
    pub line: usize,
    /// Whose it is.
    pub thread: u32,
    /// When it began, in nanoseconds of the trace's clock.
    pub start: i64,
    /// How long it took.
    pub took: i64,
    /// An index into [`Calls::words`].
    pub name: u32,
    /// The file it was about, likewise.
    pub target: Option<u32>,
    /// The socket it was about, an index into [`Calls::sockets`].
    pub socket: Option<u32>,
    /// What it did to the socket's stream.
    pub moved: Moved,
    /// The sockets it waits for; empty if the trace does not tell which, `None` if it is no such call.
    pub waits_for: Option<Box<[u32]>>,
}

impl Call {
    /// When it returned.
    pub const fn end(&self) -> i64 {
        self.start.saturating_add(self.took)
    }

    /// Whether it waits for what TCP does with `socket`.
    pub fn waits_for(&self, socket: u32) -> bool {
        let polls = self.waits_for.as_ref();
        self.socket == Some(socket) || polls.is_some_and(|all| all.contains(&socket))
    }

    /// Whether it waits, and nothing tells for which socket.
    pub fn waits_for_some(&self) -> bool {
        self.socket.is_none() && self.waits_for.as_ref().is_some_and(|all| all.is_empty())
    }
}

/// A trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Calls {
    /// Who wrote it.
    pub tool: &'static str,
    /// Its clock.
    pub clock: Clock,
    /// By start.
    pub calls: Vec<Call>,
    /// The sockets it names.
    pub sockets: Vec<Socket>,
    /// Names of calls and files.
    pub words: Vec<String>,
    /// The calls on each socket, as indices into [`Calls::calls`].
    pub uses: Vec<Vec<u32>>,
    /// Spans in which whoever cut the file left lines out.
    pub left_out: Vec<(i64, i64)>,
}

impl Calls {
    /// A word by its index.
    pub fn word(&self, at: u32) -> &str {
        self.words.get(at as usize).map_or("", String::as_str)
    }

    /// The calls on a socket, by start.
    pub fn of(&self, socket: u32) -> impl Iterator<Item = &Call> {
        let uses = self.uses.get(socket as usize).into_iter().flatten();
        uses.filter_map(|at| self.calls.get(*at as usize))
    }

    /// Bytes that the calls put into a socket, and took out.
    pub fn moved(&self, socket: u32) -> (u64, u64) {
        self.of(socket).fold((0, 0), |(put, got): (u64, u64), call| match call.moved {
            Moved::Wrote(bytes) => (put.saturating_add(bytes), got),
            Moved::Read { got: bytes, .. } => (put, got.saturating_add(bytes)),
            Moved::Nothing => (put, got),
        })
    }

    /// Whether nothing but calls on sockets was traced, or left in the file.
    pub fn only_sockets(&self) -> bool {
        let of_socket = |call: &Call| {
            call.socket.is_some() || call.waits_for.is_some() || is_of_sockets(self.word(call.name))
        };
        self.calls.iter().all(of_socket)
    }
}

/// Calls that take bytes out of a socket, and put them in.
pub const READS: [&str; 5] = ["read", "readv", "recv", "recvfrom", "recvmsg"];
/// Calls that write to a socket.
pub const WRITES: [&str; 6] = ["write", "writev", "send", "sendto", "sendmsg", "sendfile"];
/// Calls that wait for several files or sockets.
pub const WAITS: [&str; 8] = [
    "poll",
    "ppoll",
    "select",
    "_newselect",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];

fn is_of_sockets(name: &str) -> bool {
    let others = ["socket", "connect", "bind", "listen", "shutdown", "getsockopt", "setsockopt"];
    let names = ["getsockname", "getpeername", "accept", "accept4"];
    others.contains(&name)
        || names.contains(&name)
        || (READS[2..].contains(&name))
        || WRITES[2..5].contains(&name)
}

/// What the readers of both formats fill.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// In the order of their starts.
    pub(crate) calls: Vec<Call>,
    /// The sockets that were told of.
    pub(crate) known: sockets::Known,
    words: Vec<String>,
    places: BTreeMap<String, u32>,
    /// Spans that the file leaves out.
    pub(crate) left_out: Vec<(i64, i64)>,
    /// Lines that were passed over.
    pub(crate) odd: PassedOver,
    /// Calls without a duration.
    pub(crate) untimed: usize,
    /// A call without a duration is taken to last until the next of its thread.
    pub(crate) fills: bool,
    /// The last call of a thread, where it waits for that.
    pub(crate) open: BTreeMap<u32, usize>,
}

impl Gathered {
    /// The index of a word.
    pub(crate) fn word(&mut self, text: &str) -> u32 {
        if let Some(at) = self.places.get(text) {
            return *at;
        }
        let at = self.words.len() as u32;
        self.words.push(text.to_owned());
        self.places.insert(text.to_owned(), at);
        at
    }

    /// The trace.
    pub(crate) fn finish(
        mut self,
        tool: &'static str,
        clock: Clock,
        untimed: &str,
    ) -> Result<(Calls, PassedOver), EvidenceError> {
        if self.calls.is_empty() {
            let why = if self.untimed > 0 { untimed } else { "no system call can be read" };
            return Err(self.odd.into_error(why));
        }
        self.calls.sort_by_key(|call| call.start);
        let Self { calls, known, words, left_out, odd, .. } = self;
        let mut uses = vec![Vec::new(); known.sockets.len()];
        for (at, call) in calls.iter().enumerate() {
            if let Some(of) = call.socket.and_then(|socket| uses.get_mut(socket as usize)) {
                of.push(at as u32);
            }
        }
        Ok((Calls { tool, clock, calls, sockets: known.sockets, words, uses, left_out }, odd))
    }
}
