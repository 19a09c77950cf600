//! Who holds the sockets. Each is looked for once, when it is new, and the looking is kept to a small share of a processor.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use tcpwhy::host::snapshot::Owner;

use super::Sample;
use crate::collect::blind::{Blind, name};
use crate::collect::processes::{Holder, Owners};
use crate::sys::{Clock, taken_by_this_thread};

/// After a search there is none for this many times its length. Ours: a hundredth of a processor.
const PAUSE: u64 = 100;

/// What is known of sockets that have gone is kept until there are this many of them for one that is there. Ours.
const STALE: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Holders {
    owners: Owners,
    names: BTreeMap<u32, String>,
    next_ns: u64,
    /// Sources whose absence was said.
    said: HashSet<String>,
}

impl Holders {
    /// Puts holders and their names into a look; what could not be seen, if that was not said before.
    pub(super) fn join(&mut self, sample: &mut Sample) -> Vec<String> {
        let mut wanted = self.known(sample);
        let mut said = Vec::new();
        if !wanted.is_empty() && Clock::Monotonic.now() >= self.next_ns {
            let began = taken_by_this_thread();
            let mut blind = Blind::default();
            self.owners.look_for(core::mem::take(&mut wanted), &mut blind);
            said = self.new_words(blind);
            self.known(sample);
            let took = taken_by_this_thread() - began;
            self.next_ns = Clock::Monotonic.now() + took * PAUSE;
        }
        let all = sample.sockets.len() + sample.listeners.len();
        if self.owners.count() > (all + 1) * STALE {
            self.owners.keep(&inodes(sample).collect());
        }
        self.name(sample);
        said
    }

    /// Puts in what is known; the inodes of the others.
    fn known(&self, sample: &mut Sample) -> HashSet<u64> {
        let mut unknown = HashSet::new();
        let mut holder = |inode: u64| -> Option<Owner> {
            if inode == 0 {
                return None;
            }
            match self.owners.holder(inode) {
                Holder::Is(owner) => return Some(owner),
                Holder::Nobody => {}
                Holder::NotAsked => drop(unknown.insert(inode)),
            }
            None
        };
        for socket in &mut sample.sockets {
            socket.owner = holder(socket.inode);
        }
        for listener in &mut sample.listeners {
            listener.owner = holder(listener.inode);
        }
        unknown
    }

    fn name(&mut self, sample: &mut Sample) {
        let owners = sample.sockets.iter().map(|socket| socket.owner);
        let owners = owners.chain(sample.listeners.iter().map(|listener| listener.owner));
        let mut last = None;
        for owner in owners.flatten() {
            // Sockets of one process come together.
            if last.replace(owner.pid) == Some(owner.pid)
                || sample.processes.contains_key(&owner.pid)
            {
                continue;
            }
            let own = self.names.entry(owner.pid).or_insert_with(|| {
                let own = fs::read(format!("/proc/{}/comm", owner.pid)).unwrap_or_default();
                name(own.strip_suffix(b"\n").unwrap_or(&own))
            });
            sample.processes.insert(owner.pid, own.clone());
        }
        // A number that nobody has any more may be given to another program.
        if self.names.len() > sample.processes.len() {
            self.names.retain(|pid, _| sample.processes.contains_key(pid));
        }
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

fn inodes(sample: &Sample) -> impl Iterator<Item = u64> {
    let sockets = sample.sockets.iter().map(|socket| socket.inode);
    sockets.chain(sample.listeners.iter().map(|listener| listener.inode))
}
