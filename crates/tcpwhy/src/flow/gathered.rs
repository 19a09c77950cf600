//! Events of a connection on their way to the analysis, with their followers and SACK blocks.
//!
//! Both are numbered through the connection, so that an event finds its own in any part of the lists
//! that holds them.

use super::event::{Block, Event};
use super::run::{Follower, Place, Run};

/// Consecutive events of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// Those that begin a run, and those without followers.
    pub(crate) events: Vec<Event>,
    /// How many there are, with all followers.
    frames: usize,
    followers: Numbered<Follower>,
    sacks: Numbered<Block>,
}

/// What belongs to some events: each knows the number of its first and how many it has.
#[derive(Clone, Debug)]
struct Numbered<T> {
    list: Vec<T>,
    /// Number of the first.
    first: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), first: 0 }
    }
}

impl<T: Copy> Numbered<T> {
    fn clear(&mut self) {
        self.list.clear();
        self.first = 0;
    }

    /// The number of the next.
    fn next(&self) -> u32 {
        self.first.wrapping_add(self.list.len() as u32)
    }

    #[inline]
    fn get(&self, at: u32, count: usize) -> &[T] {
        if count == 0 {
            return &[];
        }
        let from = at.wrapping_sub(self.first) as usize;
        self.list.get(from..).and_then(|rest| rest.get(..count)).unwrap_or_default()
    }

    /// Puts what is left of `before` in front.
    fn follow(&mut self, before: &mut Self) {
        self.list.splice(..0, before.list.drain(..));
        self.first = before.first;
    }

    /// Takes those of `from` with number `at` and up.
    fn take_rest(&mut self, from: &Self, at: u32) {
        let gone = (at.wrapping_sub(from.first) as usize).min(from.list.len());
        self.list.extend(&from.list[gone..]);
        self.first = at;
    }
}

impl Gathered {
    /// Forgets all, and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.frames = 0;
        self.followers.clear();
        self.sacks.clear();
    }

    /// How many events there are, with all followers.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// How many there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.events.capacity() + self.followers.list.capacity()
    }

    /// Begins, empty, behind what `earlier` ends with.
    pub(super) fn go_on_from(&mut self, earlier: &Self) {
        self.clear();
        self.followers.first = earlier.followers.next();
        self.sacks.first = earlier.sacks.next();
    }

    /// Adds `event`, which has no followers yet.
    #[inline]
    pub(super) fn push(&mut self, mut event: Event) {
        (event.run_at, event.run) = (self.followers.next(), 0);
        self.frames += 1;
        self.events.push(event);
    }

    /// Adds followers of the last event; without one there is nothing to follow.
    #[inline]
    pub(super) fn go_on(&mut self, followers: &[Follower]) {
        if let Some(last) = self.events.last_mut() {
            last.run += followers.len() as u32;
            self.frames += followers.len();
            self.followers.list.extend_from_slice(followers);
        }
    }

    /// Adds `event` behind those that passed the tap no later.
    pub(super) fn insert(&mut self, mut event: Event) {
        let at = self.events.partition_point(|head| head.tap <= event.tap);
        (event.run_at, event.run) = (self.followers.next(), 0);
        self.frames += 1;
        self.events.insert(at, event);
        let Some(before) = at.checked_sub(1) else { return };
        let run = self.run(&self.events[before]);
        let earlier = run.rest().partition_point(|follower| follower.tap <= event.tap);
        // What followed across it begins a run of its own.
        if let Some(later) = run.behind(earlier + 1) {
            let later = later.as_head();
            self.events[before].run = earlier as u32;
            self.events.insert(at + 1, later);
        }
    }

    /// Keeps the SACK blocks of `event`, which is still to be stored.
    pub(super) fn keep_blocks(&mut self, event: &mut Event, blocks: &[Block]) {
        (event.sack_at, event.sack_count) = (self.sacks.next(), blocks.len() as u8);
        self.sacks.list.extend(blocks);
    }

    /// The SACK blocks of `event`.
    pub(crate) fn blocks(&self, event: &Event) -> &[Block] {
        self.sacks.get(event.sack_at, usize::from(event.sack_count))
    }

    /// `event`, which is one of these, with its followers.
    #[inline]
    pub(crate) fn run<'a>(&'a self, event: &'a Event) -> Run<'a> {
        Run::new(event, self.followers.get(event.run_at, event.run as usize))
    }

    /// The events that begin a run and those without followers, all with theirs.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = Run<'_>> + Clone {
        self.events.iter().map(|event| self.run(event))
    }

    /// When the last passed the tap.
    pub(crate) fn last_tap(&self) -> Option<i64> {
        self.events.last().map(|event| self.run(event).last_tap())
    }

    /// All events from the last to the first, with their SACK blocks.
    pub(super) fn backwards(&self) -> impl Iterator<Item = (Event, &[Block])> {
        let events = self.runs().rev().flat_map(|run| run.events().rev());
        events.map(|event| (event, self.blocks(&event)))
    }

    /// Keeps the last `number` of its events and of those of `later`, which go on from it, each as one
    /// without followers.
    pub(super) fn keep_last(&mut self, number: usize, later: &Self) {
        let mut kept = Self::default();
        let last = later.backwards().chain(self.backwards()).take(number);
        for (mut event, blocks) in last.collect::<Vec<_>>().into_iter().rev() {
            kept.keep_blocks(&mut event, blocks);
            kept.push(event);
        }
        *self = kept;
    }

    /// Puts what is left of `before`, from which this goes on, in front of it.
    pub(crate) fn follow(&mut self, before: &mut Self) {
        if before.events.is_empty() {
            return;
        }
        self.frames += core::mem::take(&mut before.frames);
        self.events.splice(..0, before.events.drain(..));
        self.followers.follow(&mut before.followers);
        self.sacks.follow(&mut before.sacks);
    }

    /// Takes all of `from` behind `done`.
    pub(crate) fn take_rest(&mut self, from: &Self, done: Place) {
        let Place { run: first, of_next } = done;
        let sacks = from.events[first..].iter().find(|event| event.sack_count > 0);
        self.sacks.take_rest(&from.sacks, sacks.map_or(from.sacks.next(), |event| event.sack_at));
        let head = from.events.get(first).and_then(|head| from.run(head).behind(of_next));
        let head = head.map(Run::as_head);
        let from_run = head.map_or(from.followers.next(), |head| head.run_at);
        self.followers.take_rest(&from.followers, from_run);
        self.events.extend(head);
        self.events.extend(from.events.get(first + 1..).unwrap_or_default());
        self.frames = self.runs().map(Run::len).sum();
    }
}
