//! All connections of a capture.
//!
//! Connections live in 64 shards by a hash of their addresses, so that workers can later share
//! them; each shard sees only its own packets, and what it does depends on nothing else, so the
//! result is the same on any number of threads. [`shard`] says which connections are kept.

mod kept;
mod key;
mod shard;

use kept::Kept;
use key::Key;
use shard::{Shard, Tracked};

pub use kept::Keep;
pub use shard::Forgotten;

use crate::analysis::{Analysis, summary};
use crate::flow::connection::Flow;
use crate::flow::event::Event;
use crate::limits::walker::emptied;
use crate::report::{Connection, Totals};
use crate::wire::{Segment, Usual};

/// Fixed, whatever the number of threads (design: same input, same bytes out).
const SHARDS: usize = 64;

/// Buffers kept for new connections, and the longest kept (in events).
const SPARE: usize = 64;
const SPARE_EVENTS: usize = 64;

/// So many connections with data keep their intervals anyhow, and so many of the first: a capture of
/// a few is shown in full.
const ALWAYS_DETAILED: u64 = 6;

/// What the caller wants kept beyond totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Keep rounds, intervals and retransmissions of every connection, not of the first few only.
    pub detail: bool,
    /// Of which connections accounts are kept; `None`: of all.
    pub keep: Option<Keep>,
}

/// What all accounts add up to, counted as they are written, while they are in the cache.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Of the connections.
    pub totals: Totals,
    /// Packets that the capture holds twice.
    pub duplicates: u64,
    /// Segments that were acknowledged and that the capture does not hold.
    pub not_captured: u64,
}

impl Sums {
    fn add(&mut self, connection: &Connection) {
        self.totals.add(connection);
        let directions = connection.directions.iter().flatten();
        self.duplicates += connection.duplicates;
        self.not_captured += directions.map(|d| d.events.not_captured).sum::<u64>();
    }
}

/// What all shards use.
#[derive(Debug)]
struct Common {
    config: Config,
    /// How many connections began.
    connections: u64,
    /// How many with data keep their intervals because they are the first.
    detailed: u64,
    /// The analysis of connections that are short enough to be seen whole.
    scratch: Analysis,
    /// Accounts of ended connections, and what they add up to.
    done: Kept,
    sums: Sums,
    /// Room for events of new connections, from ended ones.
    spare: Vec<Vec<Event>>,
    /// Room for new connections, from ended ones.
    #[expect(clippy::vec_box, reason = "they move to their slots and back, and are large")]
    rooms: Vec<Box<Tracked>>,
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
        let common = Common::new(config);
        Self { shards, common, last: (0, 0) }
    }

    /// Takes the segment in a usual frame, next in capture order.
    #[inline]
    pub(crate) fn push_usual(&mut self, usual: &Usual<'_>) {
        let (at, slot) = self.last;
        if !self.shards[at].goes_on(slot, usual, &mut self.common) {
            self.push(&usual.segment());
        }
    }

    /// Takes the next segment in capture order.
    #[inline(never)]
    pub fn push(&mut self, segment: &Segment<'_>) {
        self.last = self.find(segment);
        let (at, slot) = self.last;
        self.shards[at].take(slot, segment, &mut self.common);
    }

    /// Shard and slot of the connection of `segment`, which may be new.
    fn find(&mut self, segment: &Segment<'_>) -> (usize, u32) {
        let key = Key::of(segment);
        let hash = key.hash();
        let at = (hash >> 40) as usize % SHARDS;
        (at, self.shards[at].find(&key, hash, segment, &mut self.common))
    }

    /// Packets are missing here that the capture saw (a listing's dots).
    pub fn gap(&mut self) {
        self.shards.iter_mut().for_each(Shard::gap);
    }

    /// What is known so far: connections that ended, and what they add up to.
    pub fn provisional(&self) -> (Vec<Connection>, Totals) {
        (self.common.done.so_far(), self.common.sums.totals.clone())
    }

    /// The account of every connection, in the order of their first packets, what they add up to,
    /// and how many were forgotten.
    pub fn finish(mut self) -> (Vec<Connection>, Sums, Forgotten) {
        let mut forgotten = Forgotten::default();
        for shard in &mut self.shards {
            shard.finish(&mut self.common);
            forgotten.half_open += shard.forgotten.half_open;
            forgotten.slight += shard.forgotten.slight;
        }
        (self.common.done.finish(), self.common.sums, forgotten)
    }
}

impl Common {
    fn new(config: Config) -> Self {
        Self {
            config,
            connections: 0,
            detailed: 0,
            scratch: Analysis::default(),
            done: Kept::new(config.keep),
            sums: Sums::default(),
            spare: Vec::new(),
            rooms: Vec::new(),
        }
    }

    /// The connection that `segment` begins.
    fn open(&mut self, segment: &Segment<'_>) -> Flow {
        let mut flow = Flow::new(self.connections, segment);
        flow.events = self.spare.pop().unwrap_or_default();
        self.connections += 1;
        flow
    }

    /// Whether the analysis that begins for `flow` is to keep its intervals.
    fn wants_detail(&mut self, flow: &Flow) -> bool {
        let carries_data = flow.sides.iter().any(|side| side.data_frames > 0);
        let first = carries_data && self.detailed < ALWAYS_DETAILED;
        self.detailed += u64::from(first);
        self.config.detail || first || flow.ordinal < ALWAYS_DETAILED
    }

    /// Ends a connection. Most are short and meet their analysis only here: they take turns.
    fn settle(&mut self, flow: &mut Flow, analysis: Option<Box<Analysis>>) {
        let account = if let Some(mut analysis) = analysis {
            analysis.process(flow, true);
            summary::connection(flow, &mut analysis)
        } else {
            let detail = self.wants_detail(flow);
            self.scratch.renew(detail);
            self.scratch.process(flow, true);
            summary::connection(flow, &mut self.scratch)
        };
        self.sums.add(&account);
        self.done.push(account);
        self.reuse(flow);
    }

    /// Keeps the room of a connection that ended for those to come.
    fn reuse(&mut self, flow: &mut Flow) {
        if self.spare.len() < SPARE && flow.events.capacity() <= SPARE_EVENTS {
            self.spare.push(emptied(&mut flow.events));
        }
    }
}
