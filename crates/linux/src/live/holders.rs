//! Who holds the sockets. Each is looked for once, when it is new, and the looking is kept to a small share of a processor.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;

use tcpwhy::host::snapshot::Socket;

use super::Sample;
use crate::collect::blind::{Blind, name};
use crate::collect::processes::{Holder, Owners};
use crate::sys::{Clock, taken_by_this_thread};

/// After a search there is none for this many times its length. Ours: a hundredth of a processor.
const PAUSE: u64 = 100;

/// What is known of sockets that have gone is kept until there are this many of them for one that is there. Ours.
const STALE: usize = 2;

/// Names of processes are read again after this time: a program may start another in its place (`execve`). Ours.
const NAMES_NS: u64 = 5_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Holders {
    owners: Owners,
    names: BTreeMap<u32, String>,
    /// When the names are read again.
    names_ns: u64,
    next_ns: u64,
    /// Sources whose absence was said.
    said: HashSet<String>,
    /// Sockets of this look whose holders were not looked for yet.
    unknown: Vec<Socket>,
    /// Processes of this look, and the last of them.
    pids: BTreeSet<u32>,
    last: Option<u32>,
    /// Sockets of this look.
    count: usize,
    /// What is there, where what has gone is to be forgotten.
    inodes: Option<HashSet<u64>>,
}

impl Holders {
    /// Hands a socket on with its holder; one whose holder was not looked for yet at the end of the look.
    pub(super) fn hold(&mut self, mut socket: Socket, take: &mut dyn FnMut(Socket)) {
        self.count += 1;
        match self.holder(socket.inode) {
            Holder::NotAsked => self.unknown.push(socket),
            Holder::Nobody => take(socket),
            Holder::Is(owner) => {
                socket.owner = Some(owner);
                take(socket);
            }
        }
    }

    /// Ends a look: hands the others on, and puts the names in; what could not be seen, if that was not said before.
    pub(super) fn end(&mut self, sample: &mut Sample, take: &mut dyn FnMut(Socket)) -> Vec<String> {
        let mut said = Vec::new();
        let unknown = core::mem::take(&mut self.unknown);
        let listeners = sample.listeners.iter().map(|listener| listener.inode);
        let wanted = unknown.iter().map(|socket| socket.inode).chain(listeners);
        let is_new = |inode: &u64| *inode != 0 && self.owners.holder(*inode) == Holder::NotAsked;
        let wanted: HashSet<u64> = wanted.filter(is_new).collect();
        if !wanted.is_empty() && Clock::Monotonic.now() >= self.next_ns {
            let began = taken_by_this_thread();
            let mut blind = Blind::default();
            self.owners.look_for(wanted, &mut blind);
            said = self.new_words(blind);
            let took = taken_by_this_thread() - began;
            self.next_ns = Clock::Monotonic.now() + took * PAUSE;
        }
        for mut socket in unknown {
            if let Holder::Is(owner) = self.holder(socket.inode) {
                socket.owner = Some(owner);
            }
            take(socket);
        }
        for listener in &mut sample.listeners {
            self.count += 1;
            if let Holder::Is(owner) = self.holder(listener.inode) {
                listener.owner = Some(owner);
            }
        }
        self.name(sample);
        if let Some(inodes) = self.inodes.take() {
            self.owners.keep(&inodes);
        } else if self.owners.count() > (self.count + 1) * STALE {
            self.inodes = Some(HashSet::with_capacity(self.count));
        }
        self.count = 0;
        said
    }

    /// Who holds the socket of this inode, as far as that is known.
    fn holder(&mut self, inode: u64) -> Holder {
        if inode == 0 {
            return Holder::Nobody;
        }
        if let Some(inodes) = &mut self.inodes {
            inodes.insert(inode);
        }
        let holder = self.owners.holder(inode);
        if let Holder::Is(owner) = holder
            // Sockets of one process come together.
            && self.last.replace(owner.pid) != Some(owner.pid)
        {
            self.pids.insert(owner.pid);
        }
        holder
    }

    fn name(&mut self, sample: &mut Sample) {
        let now = Clock::Monotonic.now();
        if now >= self.names_ns {
            self.names.clear();
            self.names_ns = now + NAMES_NS;
        }
        // A number that nobody has any more may be given to another program.
        self.names.retain(|pid, _| self.pids.contains(pid));
        for pid in core::mem::take(&mut self.pids) {
            let own = self.names.entry(pid).or_insert_with(|| {
                let own = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
                name(own.strip_suffix(b"\n").unwrap_or(&own))
            });
            sample.processes.insert(pid, own.clone());
        }
        self.last = None;
    }

    fn new_words(&mut self, blind: Blind) -> Vec<String> {
        let mut words = Vec::new();
        for unseen in blind.into_unseen() {
            let grant = unseen.grant.unwrap_or_default();
            if self.said.insert(format!("{} {grant}", unseen.source)) {
                let of = unseen.of.unwrap_or_else(|| "some processes".to_owned());
                let then = if grant.is_empty() { String::new() } else { format!("; {grant}") };
                words.push(format!(
                    "which processes hold the sockets is not known of all: {of}: {}{then}",
                    unseen.why
                ));
            }
        }
        words
    }
}
