//! A tracker taken apart into lanes, which several threads follow at once.
//!
//! A lane is a tracker with some of the shards. What becomes of a connection depends on its own shard's packets
//! alone, once those are known that are shown in detail because they come first ([`Tracker::may_part`]): so it does
//! not matter who follows which lane, or how far the others are. Whoever follows a lane analyses at his own bench what
//! it gathers, at once, while it is in the caches.

use core::mem;

use super::batch::{Batch, Follow};
use super::key::Key;
use super::{Begun, Bench, DETAILED, SHARDS, Shard, Tracker, shard_of};
use crate::capture::Frame;
use crate::wire::{IcmpError, Segment, Usual};

/// Ours: two cores took 0.116 s for 100,000 connections of ten packets in 8 lanes, 0.119 s in 16, 0.128 s in 32; in 4 as long as
/// in 8.
pub const LANES: usize = 8;

/// The lane of connections whose ends are mixed to this.
const fn lane_of(mixed: u32) -> usize {
    shard_of(mixed) / (SHARDS / LANES)
}

/// Some of the connections, and what they gathered.
#[derive(Debug)]
pub struct Lane {
    number: usize,
    /// Its bench is that of who follows the lane, meanwhile.
    tracker: Tracker,
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

    /// Takes the segments of `batch`, which come next, at `bench`, and leaves it empty.
    pub fn follow(&mut self, batch: &mut Batch, bench: &mut Bench) {
        self.segments += batch.len() as u64;
        mem::swap(&mut self.tracker.common.bench, bench);
        self.tracker.follow(batch);
        mem::swap(&mut self.tracker.common.bench, bench);
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
    fn push_usual(&mut self, usual: &Usual<'_>, _: &Frame<'_>) {
        self.0[lane_of(usual.ends.mixed())].push_usual(usual);
    }

    fn push(&mut self, segment: &Segment<'_>) {
        self.0[lane_of(Key::of(segment).mixed())].push(segment);
    }

    fn gap(&mut self) {
        self.0.iter_mut().for_each(Batch::gap);
    }

    fn too_big(&mut self, error: &IcmpError) {
        if let Some(ends) = error.quoted.ends() {
            self.0[lane_of(Key::between(ends).mixed())].too_big(error);
        }
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
            let mut tracker = Self::with(self.common.config.clone(), Bench::default());
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
            tracker.common.begun = ids.filter_map(|id| Some((id, begun(id)?))).collect();
            Lane { number, tracker, segments: 0 }
        };
        (0..LANES).map(lane).collect()
    }

    /// Goes on with the connections of all lanes, in their order; tells what the parts so far left.
    pub fn rejoin(&mut self, lanes: impl IntoIterator<Item = Lane>) -> Vec<(u64, Begun)> {
        let mut all = Vec::new();
        for Lane { number, mut tracker, .. } in lanes {
            let first = number * (SHARDS / LANES);
            self.shards.extend(tracker.shards.drain(first..first + SHARDS / LANES));
            all.extend(tracker.common.begun);
        }
        all
    }
}
