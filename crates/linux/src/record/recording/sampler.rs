//! `TCP_INFO` of the sockets that are recorded, and whose sockets there are.
//!
//! To walk the kernel's table of all sockets takes half a millisecond on a large machine, so it is
//! walked only when a process holds a socket that was not seen yet (or, where ports or hosts choose,
//! a few times a second). The sockets found are then asked for one by one, which is a look into the
//! table. A socket on which nothing happened gets a line a second; when nothing happens on any, looks
//! are a tenth as frequent. Whatever a look takes of a processor, 67 times as long passes before the
//! next, and 200 times as long from one walk to the next: together 2 % at most.
//!
//! Lines are those of [`tcp_info`](super::super::tcp_info).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Scope;
use super::owners::{Owners, Whose};
use super::processes::{Tree, holders};
use super::told::Life;
use crate::netlink::number;
use crate::record::sys::{Clock, NS_PER_S, Stop, fine_timers, taken_by_this_thread};
use crate::record::tcp_info::{self, Diag};

/// Samples sockets.
#[derive(Debug)]
pub(super) struct Sampler {
    diag: Diag,
    scope: Scope,
    /// Whose sockets are wanted, where processes choose.
    tree: Option<Tree>,
    live: BTreeMap<u64, Live>,
    /// Sockets that the processes hold and the table of TCP does not: other kinds, mostly. With the
    /// time of the next look, and the wait after that.
    unresolved: BTreeMap<u64, (u64, u64)>,
    resolved: BTreeSet<u64>,
    next_walk: u64,
    /// Processor time of the walks in this look, and of all since the looks `began`.
    walked_ns: u64,
    all_walked_ns: u64,
    began: u64,
    owners: Owners,
    ended: Vec<Life>,
    out: BufWriter<File>,
    lines: u64,
    most_bytes: u64,
    bytes: u64,
}

/// A socket that is recorded.
#[derive(Debug)]
struct Live {
    message: Vec<u8>,
    /// Time of its last line; 0 before the first.
    written: u64,
    life: Life,
}

/// What a sampler leaves behind.
#[derive(Debug)]
pub(super) struct Sampled {
    pub(super) owners: Owners,
    pub(super) lines: u64,
    /// What is known of each socket, some of them.
    pub(super) lives: Vec<Life>,
    /// The file was full: later samples are left out.
    pub(super) full: bool,
    /// Why it ended early.
    pub(super) failure: Option<io::Error>,
}

impl Sampler {
    /// Learns what sockets there are before anything begins.
    pub(super) fn begin(
        scope: Scope,
        owners: Owners,
        output: File,
        most_bytes: u64,
    ) -> io::Result<Self> {
        let mut sampler = Self {
            diag: Diag::open()?,
            scope,
            tree: None,
            live: BTreeMap::new(),
            unresolved: BTreeMap::new(),
            resolved: BTreeSet::new(),
            next_walk: 0,
            walked_ns: 0,
            all_walked_ns: 0,
            began: 0,
            owners,
            ended: Vec::new(),
            out: BufWriter::new(output),
            lines: 0,
            most_bytes,
            bytes: 0,
        };
        if sampler.scope == Scope::Command {
            // What is there before the command began is not the command's.
            sampler.walk(|sampler, ends, _, listens| {
                sampler.owners.learn(ends, Whose::Theirs, listens);
            })?;
        }
        if let Scope::Process(process) = sampler.scope {
            sampler.watch(process);
            sampler.name_holders()?;
        }
        Ok(sampler)
    }

    /// Watches this process and its descendants.
    pub(super) fn watch(&mut self, process: u32) {
        self.tree = Some(Tree::of(process));
    }

    /// Looks until `stop`; `live` tells how many sockets there were at the last look.
    pub(super) fn run(mut self, stop: &Stop, live: &AtomicUsize) -> Sampled {
        fine_timers();
        // That of the walk before the beginning is no part of a look.
        (self.walked_ns, self.all_walked_ns) = (0, 0);
        self.began = Clock::Monotonic.now();
        let failure = self.look_until(stop, live).err();
        let flushed = self.out.flush().err();
        let full = self.bytes >= self.most_bytes;
        let named = self.name_holders().err();
        let failure = failure.or(named).or(flushed);
        let mut lives = self.ended;
        lives.extend(self.live.into_values().map(|live| live.life).take(MOST_LIVES));
        Sampled { owners: self.owners, lines: self.lines, lives, full, failure }
    }

    fn look_until(&mut self, stop: &Stop, live: &AtomicUsize) -> io::Result<()> {
        let mut last_change = Clock::Monotonic.now();
        loop {
            let (began, taken) = (Clock::Monotonic.now(), taken_by_this_thread());
            if self.look(began)? {
                last_change = began;
            }
            live.store(self.live.len(), Ordering::Relaxed);
            let usual = if began - last_change < IDLE_NS { EVERY_NS } else { EVERY_IDLE_NS };
            let taken = taken_by_this_thread() - taken;
            let walked = std::mem::take(&mut self.walked_ns);
            let pause = usual.max(taken.saturating_sub(walked) * COST_SHARE);
            if stop.within(Some((began + pause).saturating_sub(Clock::Monotonic.now())))? {
                return Ok(());
            }
        }
    }

    /// One look; whether anything changed since the last one.
    fn look(&mut self, now: u64) -> io::Result<bool> {
        let found = self.discover(now)?;
        let t = Clock::Real.now();
        let mut changed = found;
        let mut gone = Vec::new();
        let mut lines = Vec::new();
        for (&cookie, live) in &mut self.live {
            let Some(message) = self.diag.again(&live.message)? else {
                gone.push(cookie);
                continue;
            };
            // Of TIME-WAIT and its kind there is nothing to tell.
            if is_over(&message) {
                gone.push(cookie);
                continue;
            }
            let moved = facts(&message) != facts(&live.message);
            changed |= moved;
            if moved || live.written == 0 || t.saturating_sub(live.written) >= NS_PER_S {
                lines.extend(tcp_info::line(t, &message, &[]));
                live.life.go_on(t, &message);
                (live.message, live.written) = (message, t);
            }
        }
        changed |= !gone.is_empty();
        for live in gone.iter().filter_map(|cookie| self.live.remove(cookie)) {
            if self.ended.len() < MOST_LIVES {
                self.ended.push(live.life);
            }
        }
        for line in lines {
            self.write(&line)?;
        }
        Ok(changed)
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.bytes + line.len() as u64 > self.most_bytes {
            self.bytes = self.most_bytes;
            return Ok(());
        }
        self.bytes += line.len() as u64;
        self.lines += 1;
        self.out.write_all(line.as_bytes())
    }

    /// Finds new sockets; whether there were any.
    fn discover(&mut self, now: u64) -> io::Result<bool> {
        let Some(tree) = &mut self.tree else {
            if self.scope == Scope::Command || now < self.next_walk {
                return Ok(false);
            }
            let found = self.take_new(|sampler, ends, _| sampler.scope.chooses(ends));
            self.next_walk = now + WALK_NS.max(self.walked_ns * WALK_SHARE);
            return found;
        };
        tree.update();
        let held = tree.sockets();
        self.unresolved.retain(|socket, _| held.contains(socket));
        if now < self.next_walk {
            return Ok(false);
        }
        let mut due = false;
        for &socket in held.difference(&self.resolved) {
            let (next, wait) = self.unresolved.entry(socket).or_insert((now, EVERY_NS));
            if *next <= now {
                due = true;
                *next = now + *wait;
                *wait = (*wait * 2).min(IDLE_NS);
            }
        }
        if !due {
            return Ok(false);
        }
        let found = self.take_new(move |_, _, socket| held.contains(&socket));
        let earned = self.began + self.all_walked_ns * WALK_SHARE;
        self.next_walk = earned.saturating_sub(WALK_CREDIT_NS);
        found
    }

    /// Walks the table, and takes in what is `ours` by its ends and number.
    fn take_new(&mut self, ours: impl Fn(&Self, [SocketAddr; 2], u64) -> bool) -> io::Result<bool> {
        let before = self.live.len();
        let t = Clock::Real.now();
        self.walk(|sampler, ends, message, listens| {
            let socket = number(message, 68, 4).unwrap_or(0);
            if !ours(sampler, ends, socket) {
                return;
            }
            sampler.resolved.insert(socket);
            sampler.owners.learn(ends, Whose::Ours, listens);
            let cookie = number(message, 44, 8).unwrap_or(0);
            if !listens && !is_over(message) {
                sampler.live.entry(cookie).or_insert_with(|| Live {
                    message: message.to_vec(),
                    written: 0,
                    life: Life::begin(t, message),
                });
            }
        })?;
        let resolved = &self.resolved;
        self.unresolved.retain(|socket, _| !resolved.contains(socket));
        Ok(self.live.len() > before)
    }

    /// Learns which sockets other processes hold.
    fn name_holders(&mut self) -> io::Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        tree.update();
        let mut holders = holders();
        holders.retain(|_, holder| !tree.has(*holder));
        self.walk(|sampler, ends, message, listens| {
            let socket = number(message, 68, 4).unwrap_or(0);
            if holders.contains_key(&socket) && !sampler.owners.know(ends) {
                sampler.owners.learn(ends, Whose::Theirs, listens);
            }
        })
    }

    /// Calls `each` with every TCP socket's ends, message, and whether it listens.
    fn walk(
        &mut self,
        mut each: impl FnMut(&mut Self, [SocketAddr; 2], &[u8], bool),
    ) -> io::Result<()> {
        let before = taken_by_this_thread();
        let mut messages = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.diag.each(family as u8, |message| messages.push(message.to_vec()))?;
        }
        for message in messages {
            if let Some(ends) = tcp_info::ends(&message) {
                each(self, ends, &message, message[1] == LISTEN);
            }
        }
        let taken = taken_by_this_thread() - before;
        self.walked_ns += taken;
        self.all_walked_ns += taken;
        Ok(())
    }
}

/// What a message says of a socket's progress; its timers run even when nothing happens.
fn facts(message: &[u8]) -> (u8, [Option<u64>; 2], [Option<u64>; 5]) {
    let queues = [number(message, 56, 4), number(message, 60, 4)];
    let info = tcp_info::info(message).unwrap_or_default();
    // Segments out and in, retransmissions, cwnd, ssthresh (`struct tcp_info`).
    let counts = [136, 140, 100, 80, 76].map(|at| number(info, at, 4));
    (message[1], queues, counts)
}

fn is_over(message: &[u8]) -> bool {
    matches!(message.get(1), None | Some(&(TIME_WAIT | CLOSE)))
}

/// Ours: sentences about more sockets are read by nobody.
const MOST_LIVES: usize = 10;

/// States of TCP (Linux `include/net/tcp_states.h`).
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;

/// From one look to the next. Ours: ten looks in a transfer of 100 ms.
const EVERY_NS: u64 = NS_PER_S / 100;
/// The same when nothing has happened for [`IDLE_NS`].
const EVERY_IDLE_NS: u64 = NS_PER_S / 10;
/// Ours: longer than the pauses inside a busy connection.
const IDLE_NS: u64 = NS_PER_S;
/// Ours: at most 1.5 % of a processor go into looks, however much there is to look at.
const COST_SHARE: u64 = 67;
/// Between two walks over the table where ports or hosts choose. Ours.
const WALK_NS: u64 = NS_PER_S / 10;
/// Ours: at most half a per cent goes into walks.
const WALK_SHARE: u64 = 200;
/// Walks that need not be earned first, or a command that looks a name up before it connects is over until the next
/// one: each walk takes a millisecond or two where the kernel's table is large. Ours: the share of two seconds, 10 ms.
const WALK_CREDIT_NS: u64 = 2 * NS_PER_S;
