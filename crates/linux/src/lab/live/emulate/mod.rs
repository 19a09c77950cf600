//! One way of a path as arithmetic: a packet comes in at an instant, its fate comes out.
//!
//! ```text
//!  stack --near--> tap ==> [queue | link] ==> loss ==> delay, jitter, reordering ==> tap --far--> stack
//!                   ^                     ^                                           ^
//!              `arrived_ns`           `left_ns`                                   `due_ns`
//! ```
//!
//! Nothing here reads a clock or touches a packet's bytes: the caller says what time it is, holds
//! the bytes and acts on the [`Decision`]s. The instants in them are exact whenever the caller
//! asks, so an emulator that wakes late does not hand its lateness on to later packets. The same
//! packets at the same instants under the same seed have the same fates.
//!
//! Left out: what the kernel does better before the tap (`fq`, `fq_codel`), and rates that differ
//! by flow.

mod chance;
mod link;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tapes;

use std::collections::VecDeque;

use tcpwhy_model::scenario::plan::Way;

pub use link::Backlog;

use chance::{Losses, Stream};
use link::{Link, Shut};

/// What a path knows of a packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Packet {
    /// Its number on this way, counted by the caller.
    pub number: u64,
    /// Its length on layer 2.
    pub bytes: u32,
    /// Its TCP payload.
    pub data: u32,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// Which.
    pub packet: Packet,
    /// When it came to the tap, behind the distance from its stack.
    pub arrived_ns: u64,
    /// What it found waiting before the link then.
    pub found: Backlog,
    /// The one thing that happens to it.
    pub fate: Fate,
}

/// The one thing that happens to a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// The queue had no room.
    QueueFull,
    /// A bucket without a queue had no credit.
    Policed,
    /// It is longer than the bucket holds credit for.
    TooLong,
    /// Lost behind the link.
    Lost {
        /// When it left the link.
        left_ns: u64,
    },
    /// It gets there.
    Delivered {
        /// When it left the link.
        left_ns: u64,
        /// When it comes to the tap at the other end.
        due_ns: u64,
        /// When it comes to the stack behind that tap.
        stack_ns: u64,
        /// It was held back, so that later ones overtake it.
        held_back: bool,
        /// It comes twice.
        twice: bool,
        /// This bit of its payload is flipped.
        flipped: Option<u32>,
    },
}

impl Fate {
    /// When it left the link, if it got that far.
    pub fn left_ns(&self) -> Option<u64> {
        match *self {
            Self::Lost { left_ns } | Self::Delivered { left_ns, .. } => Some(left_ns),
            Self::QueueFull | Self::Policed | Self::TooLong => None,
        }
    }
}

/// One way.
#[derive(Clone, Debug)]
pub struct Direction {
    way: Way,
    near_ns: u64,
    far_ns: u64,
    /// On their way from the stack to the tap, with when they get there.
    coming: VecDeque<(u64, Packet)>,
    link: Link<Entered>,
    choices: Choices,
    /// What changes, at which instant.
    changes: VecDeque<(u64, Way)>,
    now: u64,
    decisions: VecDeque<Decision>,
}

/// What is remembered of a packet while it waits.
#[derive(Clone, Copy, Debug)]
struct Entered {
    arrived_ns: u64,
    found: Backlog,
}

impl Direction {
    /// A way whose near tap lies `near_ns` behind the sending stack, and its far tap `far_ns`
    /// before the receiving one.
    pub fn new(way: &Way, seed: u64, near_ns: u64, far_ns: u64) -> Self {
        Self {
            way: way.clone(),
            near_ns,
            far_ns,
            coming: VecDeque::new(),
            link: Link::new(way),
            choices: Choices::new(seed),
            changes: VecDeque::new(),
            now: 0,
            decisions: VecDeque::new(),
        }
    }

    /// Lays down what changes and when, in order; an instant that has passed counts as now.
    pub fn schedule(&mut self, changes: impl IntoIterator<Item = (u64, Way)>) {
        self.changes.extend(changes);
    }

    /// A packet leaves the sending stack at `now`.
    pub fn offer(&mut self, now: u64, packet: Packet) {
        self.advance(now);
        let arrives = self.now.saturating_add(self.near_ns);
        self.coming.push_back((arrives, packet));
        self.advance(now);
    }

    /// When something is decided next, if nothing more is offered.
    pub fn next_at(&self) -> Option<u64> {
        let coming = self.coming.front().map(|(at, _)| *at);
        let change = self.changes.front().map(|(at, _)| *at);
        [self.link.next_at(), coming, change].into_iter().flatten().min().map(|at| at.max(self.now))
    }

    /// By when the next decision has to be fetched, so that no packet is late for it.
    pub fn needed_by(&self) -> Option<u64> {
        let least = self.way.delay_ns.saturating_sub(self.way.jitter_ns).min(LONGEST_LAG_NS);
        let change = self.changes.front().map_or(u64::MAX, |(at, _)| *at);
        let needed = self.next_at()?.saturating_add(least);
        // Behind a change the delay may be shorter.
        Some(needed.min(change.max(self.now)))
    }

    /// Lets time pass up to `now`; it never runs backwards.
    ///
    /// At one instant changes come first, then packets leave, then others arrive in their room.
    pub fn advance(&mut self, now: u64) {
        while let Some(at) = self.next_at().filter(|at| *at <= now) {
            self.now = at;
            if self.changes.front().is_some_and(|(change, _)| *change <= at) {
                if let Some((_, way)) = self.changes.pop_front() {
                    self.link.change(at, &way);
                    self.way = way;
                }
            } else if self.link.next_at().is_some_and(|leaves| leaves <= at) {
                if let Some((packet, entered)) = self.link.leave(at) {
                    let fate = self.choices.fate(&self.way, at, packet, self.far_ns);
                    self.decide(packet, entered, fate);
                }
            } else if let Some((_, packet)) = self.coming.pop_front() {
                self.enter(at, packet);
            }
        }
        self.now = self.now.max(now);
    }

    /// The next decision that was not yet fetched.
    pub fn poll(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    fn enter(&mut self, at: u64, packet: Packet) {
        let entered = Entered { arrived_ns: at, found: self.link.backlog() };
        if let Err((shut, entered)) = self.link.enter(at, packet, entered) {
            let fate = match shut {
                Shut::Full => Fate::QueueFull,
                Shut::Policed => Fate::Policed,
                Shut::TooLong => Fate::TooLong,
            };
            self.decide(packet, entered, fate);
        }
    }

    fn decide(&mut self, packet: Packet, entered: Entered, fate: Fate) {
        let Entered { arrived_ns, found } = entered;
        self.decisions.push_back(Decision { packet, arrived_ns, found, fate });
    }
}

/// Ours: decisions are put off for fewer wake-ups, but not so long that their records grow stale.
const LONGEST_LAG_NS: u64 = 50_000_000;

/// Every random choice of one way.
#[derive(Clone, Debug)]
struct Choices {
    losses: Losses,
    jitter: Stream,
    reorder: Stream,
    duplicate: Stream,
    corrupt: Stream,
    bit: Stream,
}

impl Choices {
    fn new(seed: u64) -> Self {
        Self {
            losses: Losses::new(Stream::new(seed, 1)),
            jitter: Stream::new(seed, 2),
            reorder: Stream::new(seed, 3),
            duplicate: Stream::new(seed, 4),
            corrupt: Stream::new(seed, 5),
            bit: Stream::new(seed, 6),
        }
    }

    /// What becomes of a packet that left the link.
    fn fate(&mut self, way: &Way, left_ns: u64, packet: Packet, far_ns: u64) -> Fate {
        let lost = self.losses.takes(&way.loss, packet.data > 0);
        let spread = self.jitter.below(way.jitter_ns.saturating_mul(2).saturating_add(1));
        let held_back = self.reorder.hits(way.reorder);
        let twice = self.duplicate.hits(way.duplicate);
        let corrupt = self.corrupt.hits(way.corrupt);
        let bit = self.bit.below(u64::from(packet.data) * 8) as u32;
        if lost {
            return Fate::Lost { left_ns };
        }
        let held_ns = if held_back { way.reorder_ns } else { 0 };
        let delay = way.delay_ns.saturating_add(spread).saturating_sub(way.jitter_ns);
        let due_ns = left_ns.saturating_add(delay).saturating_add(held_ns);
        Fate::Delivered {
            left_ns,
            due_ns,
            stack_ns: due_ns.saturating_add(far_ns),
            held_back,
            twice,
            flipped: (corrupt && packet.data > 0).then_some(bit),
        }
    }
}
