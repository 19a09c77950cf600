//! An event and the data that goes on from it.
//!
//! A sender that streams says the same in each segment but for the sequence number, which is the next,
//! and PSH. Of such a follower only what is its own is kept; the rest is in the event in front.

use super::event::{Event, PSH, UNSEEN_CAUSE};
use crate::clocks::TapTime;
use crate::offsets::Offset;

/// A segment that goes on from the one before it: data right behind, which says nothing else but this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    /// Capture time since the connection's first packet.
    pub(crate) tap: TapTime,
    /// The last 32 bits of its frame number.
    pub(crate) frame: u32,
    /// IP identification.
    pub(crate) id: u16,
    pub(crate) is_pushed: bool,
}

impl Follower {
    /// What is `event`'s own.
    #[inline]
    pub(crate) fn of(event: &Event) -> Self {
        let (tap, frame, id) = (event.tap, event.frame as u32, event.id);
        Self { tap, frame, id, is_pushed: event.has(PSH) }
    }

    /// Its frame number; it comes behind frame `first`, by less than 2^32.
    #[inline]
    pub(crate) fn frame_behind(self, first: u64) -> u64 {
        first + u64::from(self.frame.wrapping_sub(first as u32))
    }
}

impl Event {
    /// Its follower `number`, counted from 1, as an event of its own.
    #[inline]
    pub(crate) fn follower(&self, number: usize, own: Follower) -> Self {
        let pushed = if own.is_pushed { PSH } else { 0 };
        Self {
            tap: own.tap,
            frame: self.frame_of(own),
            seq: self.seq + number as i64 * i64::from(self.len),
            id: own.id,
            bits: self.bits & !(PSH | UNSEEN_CAUSE) | pushed,
            sack_count: 0,
            run: 0,
            ..*self
        }
    }

    /// The frame number of its follower.
    #[inline]
    pub(crate) fn frame_of(&self, own: Follower) -> u64 {
        own.frame_behind(self.frame)
    }

    /// Offset after the payload of its last follower, or its own without one.
    #[inline]
    pub(crate) fn run_end(&self) -> Offset {
        self.seq + (i64::from(self.run) + 1) * i64::from(self.len)
    }

    /// What `event` is if it is data that goes on from this event and its followers.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    pub(super) fn followed_by(&self, event: &Self) -> Option<Follower> {
        let goes_on = (self.bits ^ event.bits) & !PSH == 0
            && (self.tsval, self.tsecr) == (event.tsval, event.tsecr)
            && (self.ack, self.window) == (event.ack, event.window)
            && event.seq == self.run_end()
            && event.len == self.len
            && self.len > 0;
        let is_near = u32::try_from(event.frame.wrapping_sub(self.frame)).is_ok();
        (goes_on && is_near).then(|| Follower::of(event))
    }
}

/// A place among runs: this many of them are done, and this many events of the next.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place {
    pub(crate) run: usize,
    pub(crate) of_next: usize,
}

/// An event and its followers. The first of them are done. None passed the tap before the one in front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) head: &'a Event,
    followers: &'a [Follower],
    /// How many are done, `head` among them: not all.
    done: usize,
}

impl<'a> Run<'a> {
    /// `head` and all its followers.
    #[inline]
    pub(crate) fn new(head: &'a Event, followers: &'a [Follower]) -> Self {
        Self { head, followers, done: 0 }
    }

    /// What is left behind the first `events` of it; `None` if nothing is.
    #[inline]
    pub(crate) fn behind(self, events: usize) -> Option<Self> {
        (events < self.len()).then_some(Self { done: self.done + events, ..self })
    }

    /// The event that all of it is left of, if it is.
    #[inline]
    pub(crate) fn untouched(self) -> Option<&'a Event> {
        (self.done == 0).then_some(self.head)
    }

    /// How many are left.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.followers.len() + 1 - self.done
    }

    /// The first of those that are left.
    #[inline]
    pub(crate) fn first(self) -> Event {
        self.get(0)
    }

    /// The one behind the first `events` of it.
    #[inline]
    pub(crate) fn get(self, events: usize) -> Event {
        let number = self.done + events;
        match number.checked_sub(1) {
            None => *self.head,
            Some(at) => self.head.follower(number, self.followers[at]),
        }
    }

    /// When the one behind the first `events` of it passed the tap.
    #[inline]
    pub(crate) fn tap(self, events: usize) -> TapTime {
        let at = (self.done + events).checked_sub(1);
        at.map_or(self.head.tap, |at| self.followers[at].tap)
    }

    /// The others that are left.
    #[inline]
    pub(crate) fn rest(self) -> &'a [Follower] {
        &self.followers[self.done..]
    }

    /// How many of the others passed the tap by `time`: mostly all, for they follow each other closely.
    #[inline]
    pub(crate) fn within(self, time: TapTime) -> usize {
        let rest = self.rest();
        match rest.last() {
            Some(last) if last.tap > time => rest.partition_point(|other| other.tap <= time),
            _ => rest.len(),
        }
    }

    /// All that are left.
    pub(crate) fn events(self) -> impl DoubleEndedIterator<Item = Event> {
        (0..self.len()).map(move |number| self.get(number))
    }

    /// The first of those that are left, with the others as its followers.
    pub(super) fn as_head(self) -> Event {
        let first = self.first();
        let (run_at, run) =
            (self.head.run_at.wrapping_add(self.done as u32), self.rest().len() as u32);
        Event { run_at, run, ..first }
    }

    /// The last.
    #[inline]
    pub(crate) fn last(self) -> Event {
        self.get(self.rest().len())
    }

    /// When that passed the tap.
    #[inline]
    pub(crate) fn last_tap(self) -> TapTime {
        self.followers.last().map_or(self.head.tap, |last| last.tap)
    }
}
