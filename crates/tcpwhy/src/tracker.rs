//! All connections of a capture.
//!
//! Connections live in 64 shards by a hash of their addresses, so that workers can later share
//! them; each shard sees only its own packets, and what it does depends on nothing else, so the
//! result is the same on any number of threads. Closed connections linger for late packets, then
//! are settled and shrink to their report. Half-open ones are cheap, and the oldest are counted
//! and forgotten when there are too many: a flood fills no memory.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::analysis::{Analysis, CHUNK, summary};
use crate::flow::connection::Flow;
use crate::flow::event::Event;
use crate::limits::walker::emptied;
use crate::report::Connection;
use crate::wire::{Flags, Segment};

/// Fixed, whatever the number of threads (design: same input, same bytes out).
const SHARDS: usize = 64;
/// A closed connection takes packets this long, and then only while not too many linger. Ours: not
/// measured.
const LINGER_NS: i64 = 15_000_000_000;
const MAX_LINGERING: usize = 512;
/// Half-open connections kept per shard. Ours: a flood of 1,000,000 SYNs peaked at 322 MB.
const MAX_HALF_OPEN: usize = 2048;

/// Buffers kept for new connections, and the longest kept (in events).
const SPARE: usize = 64;
const SPARE_EVENTS: usize = 64;

/// So many connections keep their intervals anyhow: a capture of a few is shown in full.
const ALWAYS_DETAILED: u64 = 6;

/// What the caller wants kept beyond totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Keep rounds, intervals and retransmissions of every connection, not of the first few only.
    pub detail: bool,
}

/// Who talks to whom, in which network; the smaller endpoint first. Plain words, because a key is
/// made of each packet and compared or hashed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Key {
    /// Both hosts, in two words each.
    low: (u64, u64),
    high: (u64, u64),
    /// Both ports, and the network's number.
    ports: u64,
    is_v6: bool,
}

impl Key {
    fn of(segment: &Segment<'_>) -> Self {
        let (a, b) = (numbers(segment.source), numbers(segment.destination));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        Self {
            low: (low.0, low.1),
            high: (high.0, high.1),
            ports: u64::from(low.2) << 48 | u64::from(high.2) << 32 | u64::from(segment.network),
            is_v6: segment.source.is_ipv6(),
        }
    }
}

impl Key {
    /// The network's number.
    fn network(&self) -> u32 {
        self.ports as u32
    }
}

/// Both halves of the host's address, and the port.
fn numbers(end: SocketAddr) -> (u64, u64, u16) {
    match end.ip() {
        IpAddr::V4(host) => (0, u64::from(host.to_bits()), end.port()),
        IpAddr::V6(host) => ((host.to_bits() >> 64) as u64, host.to_bits() as u64, end.port()),
    }
}

/// A connection and its analysis.
#[derive(Debug)]
struct Tracked {
    key: Key,
    flow: Flow,
    analysis: Option<Box<Analysis>>,
}

#[derive(Debug, Default)]
struct Shard {
    /// Where in `slots` each live connection is.
    live: HashMap<Key, u32, FixedState>,
    slots: Vec<Option<Box<Tracked>>>,
    free: Vec<u32>,
    /// Closed connections by the time they may go.
    lingering: VecDeque<(i64, Key, u64)>,
    /// Young connections in order of birth, for forgetting half-open ones.
    young: VecDeque<(Key, u64)>,
    half_open_forgotten: u64,
}

/// What all shards use.
#[derive(Debug)]
struct Common {
    config: Config,
    /// How many connections began.
    connections: u64,
    /// The analysis of connections that are short enough to be seen whole.
    scratch: Analysis,
    /// Accounts of ended connections.
    done: Vec<Connection>,
    /// Room for events of new connections, from ended ones.
    spare: Vec<Vec<Event>>,
}

/// Follows all connections of a capture.
#[derive(Debug)]
pub struct Tracker {
    shards: Vec<Shard>,
    common: Common,
    /// Shard and slot of the last packet's connection: the next one is often of the same.
    last: (usize, u32),
}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new(config: Config) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        let common = Common {
            config,
            connections: 0,
            scratch: Analysis::default(),
            done: Vec::new(),
            spare: Vec::new(),
        };
        Self { shards, common, last: (0, 0) }
    }

    /// Takes the next segment in capture order.
    pub fn push(&mut self, segment: &Segment<'_>) {
        let (at, hint) = self.last;
        let shard = &mut self.shards[at];
        // What retires connections of this shard comes first, as for any other segment.
        if shard.is_of(hint, segment) && !shard.retire(segment.time.0, &mut self.common) {
            shard.renew_if_reused(hint, segment, &mut self.common);
            shard.take(hint, segment, &mut self.common);
            return;
        }
        let key = Key::of(segment);
        let hash = FixedState::default().hash_one(key);
        let at = (hash >> 40) as usize % SHARDS;
        let slot = self.shards[at].push(&key, segment, &mut self.common);
        self.last = (at, slot);
    }

    /// Packets are missing here that the capture saw (a listing's dots).
    pub fn gap(&mut self) {
        for tracked in self.shards.iter_mut().flat_map(|s| s.slots.iter_mut().flatten()) {
            tracked.flow.gap();
        }
    }

    /// What is known so far: connections that ended.
    pub fn provisional(&self) -> Vec<Connection> {
        sorted(self.common.done.clone())
    }

    /// The account of every connection, in the order of their first packets, and how many
    /// half-open ones were forgotten.
    pub fn finish(mut self) -> (Vec<Connection>, u64) {
        let mut forgotten = 0;
        for shard in &mut self.shards {
            for mut tracked in core::mem::take(&mut shard.slots).into_iter().flatten() {
                self.common.settle(&mut tracked);
            }
            forgotten += shard.half_open_forgotten;
        }
        (sorted(self.common.done), forgotten)
    }
}

impl Shard {
    /// Whether `slot` holds the connection of `segment`.
    fn is_of(&self, slot: u32, segment: &Segment<'_>) -> bool {
        let Some(Some(tracked)) = self.slots.get(slot as usize) else { return false };
        let ends = &tracked.flow.endpoints;
        tracked.key.network() == segment.network
            && (*ends == [segment.source, segment.destination]
                || *ends == [segment.destination, segment.source])
    }

    /// Takes a segment of the connection of `key`, which may be new; where it is now.
    fn push(&mut self, key: &Key, segment: &Segment<'_>, common: &mut Common) -> u32 {
        self.retire(segment.time.0, common);
        let slot = match self.live.get(key).copied() {
            Some(slot) => {
                self.renew_if_reused(slot, segment, common);
                slot
            }
            None => self.begin(*key, segment, common),
        };
        self.take(slot, segment, common);
        slot
    }

    /// Takes a segment of the connection in `slot`.
    fn take(&mut self, slot: u32, segment: &Segment<'_>, common: &mut Common) {
        let Some(tracked) = &mut self.slots[slot as usize] else { return };
        tracked.flow.push(segment);
        let gathered = tracked.flow.events.len();
        if gathered >= CHUNK * 2 || (gathered >= CHUNK && tracked.analysis.is_some()) {
            let detail = common.wants_detail(&tracked.flow);
            let analysis = tracked.analysis.get_or_insert_with(|| Box::new(Analysis::new(detail)));
            analysis.process(&mut tracked.flow, false);
        }
        if !tracked.flow.lingering && tracked.flow.is_closed() {
            tracked.flow.lingering = true;
            let deadline = segment.time.0.saturating_add(LINGER_NS);
            self.lingering.push_back((deadline, tracked.key, tracked.flow.ordinal));
        }
    }

    /// A new connection.
    fn begin(&mut self, key: Key, segment: &Segment<'_>, common: &mut Common) -> u32 {
        let flow = common.open(segment);
        self.young.push_back((key, flow.ordinal));
        let tracked = Some(Box::new(Tracked { key, flow, analysis: None }));
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = tracked,
            None => self.slots.push(tracked),
        }
        self.live.insert(key, slot);
        slot
    }

    /// Ends the connection in `slot` if `segment` opens the next one between the same ends.
    fn renew_if_reused(&mut self, slot: u32, segment: &Segment<'_>, common: &mut Common) {
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        let Some(tracked) = &mut self.slots[slot as usize] else { return };
        if tracked.flow.is_reused_by(segment) {
            common.settle(tracked);
            (tracked.flow, tracked.analysis) = (common.open(segment), None);
            self.young.push_back((tracked.key, tracked.flow.ordinal));
        }
    }

    /// Settles closed connections whose time has come, and forgets half-open ones beyond the bound;
    /// whether there were any.
    fn retire(&mut self, now: i64, common: &mut Common) -> bool {
        let is_due = self.lingering.front().is_some_and(|(deadline, ..)| *deadline <= now);
        let is_full = self.lingering.len() > MAX_LINGERING || self.young.len() > MAX_HALF_OPEN;
        if is_due || is_full {
            self.retire_due(now, common);
        }
        is_due || is_full
    }

    #[cold]
    fn retire_due(&mut self, now: i64, common: &mut Common) {
        while let Some((deadline, key, ordinal)) = self.lingering.front().copied() {
            if deadline > now && self.lingering.len() <= MAX_LINGERING {
                break;
            }
            self.lingering.pop_front();
            if let Some(mut tracked) = self.remove_if(&key, |flow| flow.ordinal == ordinal) {
                common.settle(&mut tracked);
            }
        }
        while self.young.len() > MAX_HALF_OPEN {
            let Some((key, ordinal)) = self.young.pop_front() else { break };
            let half_open = |flow: &Flow| flow.ordinal == ordinal && flow.is_half_open();
            if self.remove_if(&key, half_open).is_some() {
                self.half_open_forgotten += 1;
            }
        }
    }

    /// Takes out the connection of `key`, if it is as asked for.
    fn remove_if(&mut self, key: &Key, wanted: impl Fn(&Flow) -> bool) -> Option<Box<Tracked>> {
        let slot = *self.live.get(key)?;
        let place = self.slots.get_mut(slot as usize)?;
        let tracked = place.take_if(|tracked| wanted(&tracked.flow))?;
        self.live.remove(key);
        self.free.push(slot);
        Some(tracked)
    }
}

impl Common {
    /// The connection that `segment` begins.
    fn open(&mut self, segment: &Segment<'_>) -> Flow {
        let mut flow = Flow::new(self.connections, segment);
        flow.events = self.spare.pop().unwrap_or_default();
        self.connections += 1;
        flow
    }

    fn wants_detail(&self, flow: &Flow) -> bool {
        self.config.detail || flow.ordinal < ALWAYS_DETAILED
    }

    /// Ends a connection. Most are short and meet their analysis only here: they take turns.
    fn settle(&mut self, tracked: &mut Tracked) {
        let detail = self.wants_detail(&tracked.flow);
        let Tracked { flow, analysis, .. } = tracked;
        let analysis = if let Some(analysis) = analysis {
            analysis
        } else {
            self.scratch.renew(detail);
            &mut self.scratch
        };
        analysis.process(flow, true);
        if self.spare.len() < SPARE && flow.events.capacity() <= SPARE_EVENTS {
            self.spare.push(emptied(&mut flow.events));
        }
        self.done.push(summary::connection(flow, analysis));
    }
}

fn sorted(mut connections: Vec<Connection>) -> Vec<Connection> {
    // Accounts are large: their numbers are sorted, and each is moved once.
    connections.sort_by_cached_key(|c| c.id);
    for (id, connection) in connections.iter_mut().enumerate() {
        connection.id = id as u64;
    }
    connections
}
