//! The TCP sockets of a network namespace, look after look, as `sock_diag(7)` tells them.
//!
//! ```text
//! Options -> Sampler -> Sample: sockets with their holders, those that ended, listeners, what could not be seen
//! ```
//!
//! One line to the kernel and one buffer serve all looks. The kernel leaves out whatever its own filters can; the caller leaves
//! out the rest. The kernel itself tells of ended sockets where that is allowed. Who holds a socket is looked for once.
//! What could not be seen is said once, and ends nothing.

mod archived;
mod catch;
mod confine;
mod ends;
mod groups;
mod holders;

use std::collections::{BTreeMap, HashSet};
use std::io;

use serde::{Deserialize, Serialize};
use tcpwhy::host::snapshot::{Listener, Socket};

use crate::collect::namespace::within;
use crate::collect::sockets::{LISTEN, TIME_WAIT, connection, listener};
pub use crate::collect::{Netns, NetnsError};
use crate::netlink::{Answer, Netlink};
use crate::record::tcp_info::{Diag, HEAD, ends as ends_of};
use crate::sys::Clock;

pub use archived::archived;
pub use catch::{Catch, CatchError, may_capture};
pub use confine::confine;
pub use ends::Ends;
pub use groups::GroupError;
use holders::Holders;

/// Which sockets.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Of another network namespace than that of the caller.
    pub netns: Option<Netns>,
    /// Of a container: a part of the name of its control group, such as the first letters of its id.
    pub container: Option<String>,
    /// Of a pod, by its UID.
    pub pod: Option<String>,
    /// With one of these at either end; empty is all. The kernel leaves out the others, as far as it can.
    pub ends: Vec<Ends>,
    /// Find out which processes hold them.
    pub processes: bool,
}

/// A look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// When, in nanoseconds since 1970; it never goes back.
    pub t_ns: u64,
    /// Those that are open, or opening, or closing.
    pub sockets: Vec<Socket>,
    /// Those that were destroyed since the look before, with their last figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Socket>,
    /// Those that listen.
    pub listeners: Vec<Listener>,
    /// How many are in `TIME_WAIT`.
    pub time_wait: u64,
    /// Names of the processes that hold them, by number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<u32, String>,
    /// What could not be seen; each thing is said at one look only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
}

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The container or pod.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The kernel does not answer.
    #[error("cannot ask the kernel for its TCP sockets (sock_diag): {0}; is INET_DIAG built in?")]
    Ask(io::Error),
}

/// What takes looks.
#[derive(Debug)]
pub struct Sampler {
    netns: Option<Netns>,
    diag: Diag,
    /// The kernel's own word of those that are destroyed, where that is allowed.
    destroyed: Option<Netlink>,
    ends: Vec<Ends>,
    program: Vec<u8>,
    /// Control groups whose sockets are wanted.
    groups: Option<HashSet<u64>>,
    holders: Option<Holders>,
    /// From the monotonic clock to that of captures.
    since_1970_ns: u64,
    to_say: Vec<String>,
    /// What was said already.
    said: Vec<&'static str>,
}

impl Sampler {
    /// Gets ready to look.
    ///
    /// # Errors
    /// The namespace, container or pod is not there or may not be entered, or the kernel tells no sockets.
    pub fn open(options: &Options) -> Result<Self, LiveError> {
        let mut netns = options.netns.clone();
        let mut groups = None;
        if let Some(wanted) = options.container.as_deref().or(options.pod.as_deref()) {
            let found = groups::find(wanted, options.container.is_none())?;
            netns = netns.or(found.process.map(Netns::Pid));
            groups = Some(found.ids);
        }
        let lines = || {
            Ok::<_, io::Error>((Diag::open()?, Netlink::listen(libc::NETLINK_SOCK_DIAG, DESTROYED)))
        };
        let (diag, destroyed) = match &netns {
            Some(netns) => within(netns, lines)?,
            None => lines(),
        }
        .map_err(LiveError::Ask)?;
        let mut to_say = Vec::new();
        let destroyed = destroyed
            .map_err(|error| {
                to_say.push(format!(
                    "connections that end between two looks are not told with their last figures: {error}; run as root, or grant \
                     CAP_NET_ADMIN"
                ));
            })
            .ok();
        Ok(Self {
            netns,
            diag,
            destroyed,
            program: ends::program(&options.ends),
            ends: options.ends.clone(),
            groups,
            holders: options.processes.then(Holders::default),
            since_1970_ns: Clock::Real.now().saturating_sub(Clock::Monotonic.now()),
            to_say,
            said: Vec::new(),
        })
    }

    /// The namespace that is looked at, where it is not that of the caller.
    pub const fn netns(&self) -> Option<&Netns> {
        self.netns.as_ref()
    }

    /// Looks, and gathers all sockets.
    ///
    /// # Errors
    /// The kernel does not answer any more.
    pub fn sample(&mut self) -> Result<Sample, LiveError> {
        let mut sockets = Vec::new();
        let mut sample = self.look(&mut |_, socket| sockets.push(socket))?;
        if !sample.ended.is_empty() {
            // What ended while they were listed is not open any more.
            let gone: HashSet<u64> = sample.ended.iter().map(|socket| socket.cookie).collect();
            sockets.retain(|socket| !gone.contains(&socket.cookie));
        }
        sample.sockets = sockets;
        Ok(sample)
    }

    /// Looks, and hands each socket out as the kernel tells it, with the time of the look; the sample has all but them. One that
    /// ended while they were listed may be among them.
    ///
    /// # Errors
    /// The kernel does not answer any more.
    pub fn look(&mut self, take: &mut dyn FnMut(u64, Socket)) -> Result<Sample, LiveError> {
        let t_ns = self.since_1970_ns + Clock::Monotonic.now();
        let mut sample = Sample { t_ns, ..Sample::default() };
        let mut odd = false;
        let take = &mut |socket| take(t_ns, socket);
        for family in [libc::AF_INET, libc::AF_INET6] {
            match self.family(family, &mut sample, &mut odd, take) {
                Ok(Answer::Whole) => {}
                Ok(Answer::Interrupted) => self.say_once(INTERRUPTED),
                Ok(Answer::Cut) => self.say_once(CUT),
                // A kernel without IPv6.
                Err(error)
                    if family == libc::AF_INET6 && error.raw_os_error() == Some(libc::ENOENT) => {}
                // A kernel that does not know a word of the program: nothing was told yet.
                Err(error)
                    if !self.program.is_empty() && error.raw_os_error() == Some(libc::EINVAL) =>
                {
                    self.program.clear();
                    return self.look(&mut |_, socket| take(socket));
                }
                Err(error) => return Err(LiveError::Ask(error)),
            }
        }
        self.hear(&mut sample);
        if odd {
            self.say_once("some of the kernel's answers make no sense, and are left out");
        }
        if let Some(holders) = &mut self.holders {
            self.to_say.extend(holders.end(&mut sample, take));
        }
        sample.said = core::mem::take(&mut self.to_say);
        Ok(sample)
    }

    fn family(
        &mut self,
        family: i32,
        sample: &mut Sample,
        odd: &mut bool,
        take: &mut dyn FnMut(Socket),
    ) -> io::Result<Answer> {
        let (ends, groups, holders) = (&self.ends, &self.groups, &mut self.holders);
        let mut without_group = false;
        let answer = self.diag.each_that(family as u8, STATES, &self.program, |message| {
            let Some(both) = ends_of(message).filter(|_| message.len() >= HEAD) else {
                *odd = true;
                return;
            };
            match message[1] {
                LISTEN => match listener(message, both[0]) {
                    Some(listener) if groups.is_none() && ends::any(ends, &both[..1]) => {
                        sample.listeners.push(listener);
                    }
                    Some(_) => {}
                    None => *odd = true,
                },
                _ if !ends::any(ends, &both) => {}
                TIME_WAIT => sample.time_wait += 1,
                _ => match connection(message) {
                    Some(socket) => {
                        let is_wanted = groups.as_ref().is_none_or(|groups| {
                            without_group |= socket.cgroup.is_none();
                            socket.cgroup.is_none_or(|id| groups.contains(&id))
                        });
                        match holders {
                            _ if !is_wanted => {}
                            Some(holders) => holders.hold(socket, take),
                            None => take(socket),
                        }
                    }
                    None => *odd = true,
                },
            }
        });
        if without_group {
            self.say_once(NO_GROUPS);
        }
        answer
    }

    /// Takes in what the kernel told of destroyed sockets.
    fn hear(&mut self, sample: &mut Sample) {
        let Some(line) = &mut self.destroyed else { return };
        let (ends, groups) = (&self.ends, &self.groups);
        let answer = line.heard(|message| {
            let Some(socket) = connection(message) else { return };
            let is_wanted = socket.remote.port() != 0
                && ends::any(ends, &[socket.local, socket.remote])
                && groups
                    .as_ref()
                    .is_none_or(|groups| socket.cgroup.is_none_or(|id| groups.contains(&id)));
            if is_wanted {
                sample.ended.push(socket);
            }
        });
        if !matches!(answer, Ok(Answer::Whole)) {
            self.say_once("more connections ended at once than the kernel could tell");
        }
    }

    /// There are a few such words only.
    fn say_once(&mut self, words: &'static str) {
        if !self.said.contains(&words) {
            self.said.push(words);
            self.to_say.push(words.to_owned());
        }
    }
}

const INTERRUPTED: &str = "the kernel's list changed while it was told: connections may be missing at a look, or there twice";
const CUT: &str = "the kernel's list was cut: connections are missing at a look";
const NO_GROUPS: &str = "this kernel does not tell the control groups of all sockets (it takes Linux 5.9): those of others may be among them";

/// All states but `CLOSE` (7), in which a socket has no peer; half-open ones come with `SYN_RECV`.
const STATES: u32 = 0xfff & !(1 << 7) & !1;

/// `SKNLGRP_INET_TCP_DESTROY` (1) and `SKNLGRP_INET6_TCP_DESTROY` (3) (Linux `include/uapi/linux/sock_diag.h`).
const DESTROYED: u32 = 1 << 0 | 1 << 2;

#[cfg(test)]
mod tests;
