//! Events of a connection on their way to the analysis, with their followers and SACK blocks.
//!
//! Both are numbered through the connection, so that an event finds its own in any part of the lists
//! that holds them.

use super::event::{Block, Event};
use super::run::{Follower, Place, Run};
use crate::clocks::TapTime;

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

    /// Makes room for this many more events.
    pub(crate) fn reserve(&mut self, events: usize) {
        self.events.reserve(events);
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
        if let Some(before) = at.checked_sub(1) {
            let run = self.run(&self.events[before]);
            let earlier = run.within(event.tap);
            // What followed across it begins a run of its own.
            if let Some(later) = run.behind(earlier + 1) {
                let later = later.as_head();
                self.events[before].run = earlier as u32;
                self.events.insert(at, later);
            }
        }
        // Where the followers of what comes behind it start: what is taken from here on has them all.
        let next = self.events.get(at).map_or(self.followers.next(), |next| next.run_at);
        (event.run_at, event.run) = (next, 0);
        self.frames += 1;
        self.events.insert(at, event);
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
    pub(crate) fn last_tap(&self) -> Option<TapTime> {
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
        // Of those that were inserted the blocks stand behind those of later ones.
        let with_sacks = from.events[first..].iter().filter(|event| event.sack_count > 0);
        let sacks = with_sacks.min_by_key(|event| event.sack_at.wrapping_sub(from.sacks.first));
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

#[cfg(test)]
mod tests {
    use super::super::event::{ACK, block};
    use super::*;
    use crate::offsets::Offset;

    /// Data of 100 bytes at 0 that passed at time 10 in frame 1, and what followed it at `taps`.
    fn run(taps: &[i64]) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.push(Event {
            tap: TapTime(10),
            frame: 1,
            len: 100,
            id: 7,
            bits: ACK,
            ..Event::default()
        });
        let follower = |(at, tap): (usize, &i64)| {
            let (frame, id) = (2 + at as u32, 8 + at as u16);
            Follower { tap: TapTime(*tap), frame, id, is_pushed: false }
        };
        gathered.go_on(&taps.iter().enumerate().map(follower).collect::<Vec<_>>());
        gathered
    }

    /// An ACK that passed at `tap`, stored behind all of these.
    fn late(tap: i64) -> Event {
        Event { tap: TapTime(tap), frame: 99, seq: Offset::at(55), bits: ACK, ..Event::default() }
    }

    /// Time, offset and identification of each event, run by run.
    fn told(gathered: &Gathered) -> Vec<Vec<(i64, i64, u16)>> {
        let event = |event: Event| (event.tap.0, event.seq.get(), event.id);
        gathered.runs().map(|run| run.events().map(event).collect()).collect()
    }

    #[test]
    fn what_comes_late_parts_the_run_that_it_belongs_into() {
        let mut gathered = run(&[20, 30, 40]);
        gathered.insert(late(25));
        let (first, rest) = (vec![(10, 0, 7), (20, 100, 8)], vec![(30, 200, 9), (40, 300, 10)]);
        assert_eq!(told(&gathered), [first, vec![(25, 55, 0)], rest]);
        assert_eq!((gathered.frames(), gathered.last_tap()), (5, Some(TapTime(40))));
        let frames = gathered.runs().flat_map(Run::events).map(|event| event.frame);
        assert_eq!(frames.collect::<Vec<_>>(), [1, 2, 99, 3, 4]);
    }

    #[test]
    fn what_comes_late_stands_behind_what_passed_at_the_same_time() {
        let mut gathered = run(&[20, 30]);
        gathered.insert(late(30));
        assert_eq!(told(&gathered)[1..], [[(30, 55, 0)]], "behind all of the run");
        let mut gathered = run(&[20]);
        gathered.insert(late(10));
        assert_eq!(told(&gathered), [[(10, 0, 7)], [(10, 55, 0)], [(20, 100, 8)]]);
        let mut gathered = run(&[20]);
        gathered.insert(late(9));
        assert_eq!(told(&gathered)[0], [(9, 55, 0)], "before all of it");
    }

    #[test]
    fn a_run_that_was_parted_is_taken_on_from_any_place() {
        let mut gathered = run(&[20, 30, 40]);
        gathered.insert(late(25));
        for (run, of_next, frames) in [(0, 1, 4), (1, 0, 3), (2, 1, 1), (3, 0, 0)] {
            let mut rest = Gathered::default();
            rest.take_rest(&gathered, Place { run, of_next });
            let whole = told(&gathered).concat();
            assert_eq!(told(&rest).concat(), whole[5 - frames..], "from {run}, {of_next}");
            assert_eq!(rest.frames(), frames);
        }
    }

    #[test]
    fn the_blocks_of_what_comes_late_are_no_border_for_those_of_later_ones() {
        let mut gathered = Gathered::default();
        for (tap, told) in [(10, block(0, 1)), (30, block(2, 3)), (20, block(4, 5))] {
            let mut event = late(tap);
            gathered.keep_blocks(&mut event, &[told]);
            gathered.insert(event);
        }
        let mut rest = Gathered::default();
        rest.take_rest(&gathered, Place { run: 1, of_next: 0 });
        let blocks: Vec<_> = rest.events.iter().map(|event| rest.blocks(event)).collect();
        assert_eq!(blocks, [[block(4, 5)], [block(2, 3)]]);
    }
}
