//! `TCP_INFO` of the sockets that are recorded, and whose sockets there are.
//!
//! To walk the kernel's table of all sockets takes milliseconds on a large machine, so it is walked
//! only when a process holds a socket that was not seen yet (or, where ports or hosts choose, a few
//! times a second). The sockets found are then asked for one by one, which is a look into the table.
//! A socket on which nothing happened gets a line a second; when nothing happens on any, looks are a
//! tenth as frequent. Looks and walks have a share of a processor each ([`Allowance`]), together 0.75 %.
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
use crate::record::tcp_info::{self, Diag};
use crate::sys::{Clock, NS_PER_S, Stop, fine_timers, taken_by_this_thread};

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
    /// Processor time of the walks in this look.
    walked_ns: u64,
    walks: Allowance,
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
            walks: Allowance::default(),
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
            sampler.tree = Some(Tree::of_children());
        }
        if let Scope::Process(process) = sampler.scope {
            sampler.tree = Some(Tree::of(process));
            sampler.name_holders()?;
        }
        Ok(sampler)
    }

    /// Looks until `stop`; `live` tells how many sockets there were at the last look.
    pub(super) fn run(mut self, stop: &Stop, live: &AtomicUsize) -> Sampled {
        // Where the kernel refuses, timers fire a little later.
        let _ = fine_timers();
        // That of the walk before the beginning is no part of a look.
        self.walked_ns = 0;
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
        let mut looks = Allowance::default();
        loop {
            let (began, taken) = (Clock::Monotonic.now(), taken_by_this_thread());
            if self.look(began)? {
                last_change = began;
            }
            live.store(self.live.len(), Ordering::Relaxed);
            let usual = if began - last_change < IDLE_NS { EVERY_NS } else { EVERY_IDLE_NS };
            let taken = taken_by_this_thread() - taken;
            let walked = std::mem::take(&mut self.walked_ns);
            let earned = looks.spend(began, taken.saturating_sub(walked) * LOOK_SHARE);
            let next = earned.max(began + usual);
            if stop.within(Some(next.saturating_sub(Clock::Monotonic.now())))? {
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
            let earned = self.walks.spend(now, self.walked_ns * WALK_SHARE);
            self.next_walk = earned.max(now + WALK_NS);
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
        self.next_walk = self.walks.spend(now, self.walked_ns * WALK_SHARE);
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
            let program = sampler.tree.as_ref().and_then(|tree| tree.program(socket));
            if let Some(program) = program.filter(|_| !listens) {
                sampler.owners.name(ends, program);
            }
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
        self.walked_ns += taken_by_this_thread() - before;
        Ok(())
    }
}

/// Processor time that may be taken: a share of the time that passes, and a little ahead.
#[derive(Debug, Default)]
struct Allowance {
    /// When all that was taken is earned, but for what may be ahead.
    earned: u64,
}

impl Allowance {
    /// Spends what took `costs` to earn; says when there may be more.
    fn spend(&mut self, now: u64, costs: u64) -> u64 {
        self.earned = self.earned.max(now.saturating_sub(AHEAD_NS)) + costs;
        self.earned
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
/// Between two walks over the table where ports or hosts choose. Ours.
const WALK_NS: u64 = NS_PER_S / 10;
/// This many times as long as a look takes of a processor has to pass. Ours: at most half a per cent goes into looks,
/// however much there is to look at: of two connections at 1 Gbit/s, one each 16 ms once the first seconds are over.
const LOOK_SHARE: u64 = 200;
/// The same for walks: at most a quarter of a per cent.
const WALK_SHARE: u64 = 400;
/// What may be spent before it is earned, or a short command is over until the next look: 20 ms of looks, 10 ms of
/// walks. Ours: a walk takes up to 4 ms of a busy machine with 262,144 buckets, and a command that connects twice,
/// by IPv6 and by IPv4, asks for two.
const AHEAD_NS: u64 = 4 * NS_PER_S;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_S / 1000;

    #[test]
    fn a_little_may_be_spent_before_it_is_earned_and_no_more() {
        let mut walks = Allowance::default();
        let began = 100 * NS_PER_S;
        let walk = |walks: &mut Allowance, now, ms| walks.spend(now, ms * MS * WALK_SHARE);
        // Two walks of 4 ms at once, and a third that overdraws: 12 ms are earned in 4.8 s.
        assert!(walk(&mut walks, began, 4) <= began);
        assert!(walk(&mut walks, began + MS, 4) <= began + MS);
        assert_eq!(walk(&mut walks, began + 2 * MS, 4), began + 800 * MS);
    }

    #[test]
    fn what_was_not_spent_for_long_is_not_saved_up() {
        let mut looks = Allowance::default();
        let began = 100 * NS_PER_S;
        looks.spend(began, LOOK_SHARE * MS);
        let later = began + 3600 * NS_PER_S;
        assert_eq!(
            looks.spend(later, 31 * LOOK_SHARE * MS),
            later + 31 * LOOK_SHARE * MS - AHEAD_NS
        );
    }
}
