//! All connections of a capture.
//!
//! Connections live in 64 shards by a hash of their addresses, so that workers can later share
//! them; each shard sees only its own packets, and what it does depends on nothing else, so the
//! result is the same on any number of threads. Closed connections linger for late packets, then
//! are settled and shrink to their report. Half-open ones are cheap, and the oldest are counted
//! and forgotten when there are too many: a flood fills no memory.

use core::hash::BuildHasher;
use core::net::SocketAddr;
use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::analysis::{Analysis, CHUNK, summary};
use crate::flow::connection::Flow;
use crate::report::Connection;
use crate::wire::Segment;

/// Fixed, whatever the number of threads (design: same input, same bytes out).
const SHARDS: usize = 64;
/// A closed connection takes packets this long, and then only while not too many linger. Ours:
/// retransmitted FINs and RSTs of closed sockets come within seconds.
const LINGER_NS: i64 = 15_000_000_000;
const MAX_LINGERING: usize = 512;
/// Half-open connections kept per shard. Ours: 64 shards of 2,048 take under 200 MB.
const MAX_HALF_OPEN: usize = 2048;

/// What the caller wants kept beyond totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Keep rounds, intervals and retransmissions of each direction.
    pub detail: bool,
}

/// Who talks to whom, in which network; the smaller endpoint first.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Key {
    network: u32,
    ends: [SocketAddr; 2],
}

impl Key {
    fn of(segment: &Segment<'_>) -> Self {
        let (a, b) = (segment.source, segment.destination);
        Self { network: segment.network, ends: if a <= b { [a, b] } else { [b, a] } }
    }
}

/// A connection and its analysis.
#[derive(Debug)]
struct Tracked {
    flow: Flow,
    analysis: Option<Box<Analysis>>,
}

#[derive(Debug, Default)]
struct Shard {
    live: HashMap<Key, Tracked, FixedState>,
    /// Closed connections by the time they may go.
    lingering: VecDeque<(i64, Key, u64)>,
    /// Young connections in order of birth, for forgetting half-open ones.
    young: VecDeque<(Key, u64)>,
    done: Vec<Connection>,
    half_open_forgotten: u64,
}

/// Follows all connections of a capture.
#[derive(Debug)]
pub struct Tracker {
    config: Config,
    shards: Vec<Shard>,
    connections: u64,
}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new(config: Config) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { config, shards, connections: 0 }
    }

    /// Takes the next segment in capture order.
    pub fn push(&mut self, segment: &Segment<'_>) {
        let key = Key::of(segment);
        let hash = FixedState::default().hash_one(key);
        let shard = &mut self.shards[(hash >> 58) as usize];
        shard.push(key, segment, &mut self.connections, self.config);
    }

    /// Packets are missing here that the capture saw (a listing's dots).
    pub fn gap(&mut self) {
        for tracked in self.shards.iter_mut().flat_map(|s| s.live.values_mut()) {
            tracked.flow.gap();
        }
    }

    /// What is known so far: connections that ended.
    pub fn provisional(&self) -> Vec<Connection> {
        sorted(self.shards.iter().flat_map(|s| s.done.iter().cloned()).collect())
    }

    /// The account of every connection, in the order of their first packets, and how many
    /// half-open ones were forgotten.
    pub fn finish(mut self) -> (Vec<Connection>, u64) {
        let mut all = Vec::new();
        let mut forgotten = 0;
        for shard in &mut self.shards {
            let live = core::mem::take(&mut shard.live);
            for (_, tracked) in live {
                shard.done.push(settle(tracked, self.config));
            }
            all.append(&mut shard.done);
            forgotten += shard.half_open_forgotten;
        }
        (sorted(all), forgotten)
    }
}

impl Shard {
    fn push(&mut self, key: Key, segment: &Segment<'_>, connections: &mut u64, config: Config) {
        self.retire(segment.time.0, config);
        let mut begin = || {
            let ordinal = *connections;
            *connections += 1;
            Tracked { flow: Flow::new(ordinal, segment), analysis: None }
        };
        let tracked = match self.live.entry(key) {
            Entry::Occupied(mut entry) => {
                if entry.get().flow.is_reused_by(segment) {
                    let old = entry.insert(begin());
                    self.done.push(settle(old, config));
                    self.young.push_back((key, entry.get().flow.ordinal));
                }
                entry.into_mut()
            }
            Entry::Vacant(entry) => {
                let tracked = entry.insert(begin());
                self.young.push_back((key, tracked.flow.ordinal));
                tracked
            }
        };
        tracked.flow.push(segment);
        if tracked.flow.events.len() >= CHUNK * 2
            || (tracked.analysis.is_some() && tracked.flow.events.len() >= CHUNK)
        {
            let analysis =
                tracked.analysis.get_or_insert_with(|| Box::new(Analysis::new(config.detail)));
            analysis.process(&mut tracked.flow, false);
        }
        if !tracked.flow.lingering && tracked.flow.is_closed() {
            tracked.flow.lingering = true;
            self.lingering.push_back((
                segment.time.0.saturating_add(LINGER_NS),
                key,
                tracked.flow.ordinal,
            ));
        }
    }

    /// Settles closed connections whose time has come, and forgets half-open ones beyond the bound.
    fn retire(&mut self, now: i64, config: Config) {
        while let Some((deadline, key, ordinal)) = self.lingering.front().copied() {
            if deadline > now && self.lingering.len() <= MAX_LINGERING {
                break;
            }
            self.lingering.pop_front();
            if self.live.get(&key).is_some_and(|t| t.flow.ordinal == ordinal)
                && let Some(tracked) = self.live.remove(&key)
            {
                self.done.push(settle(tracked, config));
            }
        }
        while self.young.len() > MAX_HALF_OPEN {
            let Some((key, ordinal)) = self.young.pop_front() else { break };
            let half_open = |t: &Tracked| t.flow.ordinal == ordinal && t.flow.is_half_open();
            if self.live.get(&key).is_some_and(half_open) {
                self.live.remove(&key);
                self.half_open_forgotten += 1;
            }
        }
    }
}

fn settle(mut tracked: Tracked, config: Config) -> Connection {
    let mut analysis =
        tracked.analysis.take().unwrap_or_else(|| Box::new(Analysis::new(config.detail)));
    analysis.process(&mut tracked.flow, true);
    summary::connection(&tracked.flow, &analysis)
}

fn sorted(mut connections: Vec<Connection>) -> Vec<Connection> {
    connections.sort_by_key(|c| c.id);
    for (id, connection) in connections.iter_mut().enumerate() {
        connection.id = id as u64;
    }
    connections
}
