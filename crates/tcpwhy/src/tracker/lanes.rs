//! A tracker taken apart into lanes, which several threads follow at once.
//!
//! A lane is a tracker with some of the shards. What becomes of a connection depends on its own shard's packets
//! alone, once those are known that are shown in detail because they come first ([`Tracker::may_part`]): so it does
//! not matter who follows which lane, or how far the others are. Whoever follows a lane analyses what it gathers at
//! once, while it is in the caches.

use core::mem;
use std::collections::VecDeque;

use hashbrown::HashMap;

use super::batch::{Batch, Follow};
use super::key::Key;
use super::{Analyst, Begun, DETAILED, Desk, Part, SHARDS, Shard, Tracker, WentOn, shard_of};
use crate::capture::Frame;
use crate::wire::{Segment, Usual};

/// Ours: lanes of four shards, which two threads share to within a sixteenth of the work.
pub const LANES: usize = 16;

/// The lane of connections whose ends are mixed to this.
const fn lane_of(mixed: u32) -> usize {
    shard_of(mixed) / (SHARDS / LANES)
}

/// Some of the connections, and what they gathered.
// Two that different threads follow share no pair of cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lane {
    number: usize,
    tracker: Tracker,
    /// What the parts so far left of connections that are analysed in several, by the frames that they began with.
    begun: HashMap<u64, Begun>,
    /// Room for connections in one part, between the tracker and the analyst.
    whole: Vec<Part>,
    /// Segments that it took.
    segments: u64,
}

/// A batch for each lane.
#[derive(Debug, Default)]
pub struct Batches([Batch; LANES]);

impl Lane {
    /// Which of the lanes it is.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Takes the segments of `batch`, which come next, and leaves it empty; lets `analyst` take what was gathered.
    pub fn follow(&mut self, batch: &mut Batch, analyst: &mut Analyst) {
        let Self { tracker, begun, whole, .. } = self;
        self.segments += batch.len() as u64;
        tracker.follow(batch);
        while let Some(mut part) = tracker.next_part() {
            if part.is_first() && part.is_last() {
                whole.push(part);
                continue;
            }
            let id = part.connection();
            if let Some(now) = analyst.take(&mut part, begun.remove(&id)) {
                begun.insert(id, now);
            }
            tracker.take_back(part);
        }
        analyst.take_all(whole);
        whole.drain(..).for_each(|part| tracker.take_back(part));
    }

    /// How many segments it took since this was asked last, and of how many the connection had to be looked for.
    pub fn taken(&mut self) -> (u64, u64) {
        (mem::take(&mut self.segments), mem::take(&mut self.tracker.looked_for))
    }
}

impl Batches {
    /// The batch of each lane, in their order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Batch> {
        self.0.iter_mut()
    }
}

impl Follow for Batches {
    #[inline]
    fn gather<'a>(
        &mut self,
        _: &mut (impl Iterator<Item = Frame<'a>> + Clone),
        _: u64,
    ) -> Option<WentOn> {
        None
    }

    #[inline]
    fn push_usual(&mut self, usual: &Usual<'_>, _: &Frame<'_>) {
        self.0[lane_of(usual.ends.mixed())].push_usual(usual);
    }

    fn push(&mut self, segment: &Segment<'_>) {
        self.0[lane_of(Key::of(segment).mixed())].push(segment);
    }

    fn gap(&mut self) {
        self.0.iter_mut().for_each(Batch::gap);
    }
}

impl Tracker {
    /// Whether the shards may be followed apart from now on.
    pub const fn may_part(&self) -> bool {
        let common = &self.common;
        common.connections > DETAILED && (common.config.detail || common.detailed >= DETAILED)
    }

    /// Divides the connections into lanes; `begun` tells what the parts so far left of one.
    pub fn part(&mut self, mut begun: impl FnMut(u64) -> Option<Begun>) -> Vec<Lane> {
        self.end_stream();
        let mut shards = mem::take(&mut self.shards).into_iter();
        let lane = |number| {
            let mut tracker = Self::with(self.common.config, Desk::Elsewhere(VecDeque::new()));
            tracker.common.connections = self.common.connections;
            tracker.common.first_until = self.common.first_until;
            tracker.common.detailed = self.common.detailed;
            let its_own = tracker.shards.chunks_exact_mut(SHARDS / LANES).nth(number);
            for (own, shard) in its_own.into_iter().flatten().zip(&mut shards) {
                *own = shard;
                own.make_room();
            }
            let live = tracker.shards.iter().flat_map(Shard::live).filter(|flow| flow.handed_on);
            let ids = live.map(|flow| flow.facts.first_frame);
            let begun = ids.filter_map(|id| Some((id, begun(id)?))).collect();
            Lane { number, tracker, begun, whole: Vec::new(), segments: 0 }
        };
        (0..LANES).map(lane).collect()
    }

    /// Goes on with the connections of all lanes, in their order; tells what the parts so far left. What room the
    /// lanes had stays in them.
    pub fn rejoin<'a>(
        &mut self,
        lanes: impl IntoIterator<Item = &'a mut Lane>,
    ) -> Vec<(u64, Begun)> {
        let mut all = Vec::new();
        for Lane { number, tracker, begun, .. } in lanes {
            let first = *number * (SHARDS / LANES);
            self.shards.extend(tracker.shards.drain(first..first + SHARDS / LANES));
            all.extend(begun.drain());
        }
        all
    }
}
