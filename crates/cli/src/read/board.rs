//! What is to be done of a capture's analysis, and in which order?
//!
//! ```text
//! batches of segments --follower, one at a time--> parts of connections --> analysts
//! ```
//!
//! Any thread may take what comes next: a connection that came in one part with others like it, one in
//! several parts a part at a time and in order, with what the part before it left; and, while the reading
//! thread does not follow the connections itself, the next batch of segments with the [`Follower`], of
//! which there is one.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::mem;

use tcpwhy::tracker::{Analyst, Batch, Begun, Part, Tracker};

/// Jobs that wait before nobody makes more of them. Ours: 1.8 MB of events that wait.
pub(super) const WAITING: usize = 8;
/// Short connections of one job, and packets after which it is enough. Ours: for 100,000 of ten packets on two
/// cores, 256 at a time wake threads a quarter as often as 32, and take 0.23 s instead of 0.24 s.
const SHORT: usize = 256;
const SHORT_PACKETS: usize = 4096;
/// Of this many segments of a batch at most one had to be looked for: then one thread had better read and
/// follow them. Ours: not measured.
const STEADY: u64 = 4;

/// What is to be done.
#[derive(Default)]
pub(super) struct Board {
    pub(super) ready: VecDeque<Job>,
    /// Connections in several parts.
    pub(super) long: HashMap<u64, Long>,
    /// Parts of those and other jobs that nobody has begun.
    pub(super) waiting: usize,
    pub(super) running: usize,
    /// Parts that were analysed, for their room.
    spent: Vec<Part>,
    /// Who follows the batches; `None` while somebody does, or the reading thread has it.
    pub(super) follower: Option<Box<Follower>>,
    /// Segments to be followed, and room for more.
    pub(super) batches: VecDeque<Batch>,
    pub(super) room: Vec<Batch>,
    /// Threads that have nothing to do, and whether the reading thread awaits the end of a task.
    pub(super) idle: usize,
    pub(super) is_awaited: bool,
    /// The last batch could have been followed as quickly as it was read.
    pub(super) is_steady: bool,
    pub(super) is_over: bool,
    /// What a panic carried.
    pub(super) mistake: Option<Box<dyn Any + Send>>,
}

/// A connection in several parts, of which one is analysed at a time.
#[derive(Default)]
pub(super) struct Long {
    parts: VecDeque<Part>,
    pub(super) begun: Option<Begun>,
    is_taken: bool,
}

pub(super) enum Job {
    /// Connections in one part each.
    Whole(Vec<Part>),
    /// The next part of this connection.
    Next(u64),
}

/// A job with all that it takes.
pub(super) enum Task {
    Whole(Vec<Part>),
    Next(Part, Option<Begun>),
    Follow(Box<Follower>, Batch),
}

/// Follows connections, and sorts what they gathered.
pub(super) struct Follower {
    pub(super) tracker: Tracker,
    /// Short connections of the next job.
    short: Vec<Part>,
    short_packets: usize,
    /// What is to be put up: short connections together, and parts of others.
    whole: Vec<Vec<Part>>,
    pieces: Vec<Part>,
    /// Parts that were analysed.
    spent: Vec<Part>,
    /// Whether the last batch was a steady one.
    is_steady: bool,
}

impl Board {
    /// Puts up what `follower` has sorted, and gives it what was analysed; how many jobs these are.
    pub(super) fn exchange(&mut self, follower: &mut Follower) -> usize {
        let jobs = follower.whole.len() + follower.pieces.len();
        self.waiting += follower.whole.len();
        self.ready.extend(follower.whole.drain(..).map(Job::Whole));
        follower.pieces.drain(..).for_each(|part| self.put(part));
        follower.spent.append(&mut self.spent);
        jobs
    }

    /// Puts up a part of a connection in several.
    fn put(&mut self, part: Part) {
        let number = part.connection();
        let long = self.long.entry(number).or_default();
        if long.parts.is_empty() && !long.is_taken {
            self.ready.push_back(Job::Next(number));
        }
        long.parts.push_back(part);
        self.waiting += 1;
    }

    /// Whether there is something to begin.
    pub(super) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.batches.is_empty() && self.follower.is_some()
    }

    /// The next task, which is begun. Whoever reads had better not follow, which others are in the midst of.
    pub(super) fn next(&mut self, reads: bool) -> Option<Task> {
        let task = if reads || self.waiting > WAITING {
            self.next_job().or_else(|| self.next_batch())
        } else {
            self.next_batch().or_else(|| self.next_job())
        };
        self.running += usize::from(task.is_some());
        task
    }

    fn next_batch(&mut self) -> Option<Task> {
        if self.batches.is_empty() {
            return None;
        }
        let mut follower = self.follower.take()?;
        follower.spent.append(&mut self.spent);
        Some(Task::Follow(follower, self.batches.pop_front()?))
    }

    fn next_job(&mut self) -> Option<Task> {
        let task = match self.ready.pop_front()? {
            Job::Whole(parts) => Task::Whole(parts),
            Job::Next(number) => {
                let long = self.long.get_mut(&number)?;
                long.is_taken = true;
                Task::Next(long.parts.pop_front()?, long.begun.take())
            }
        };
        self.waiting -= 1;
        Some(task)
    }

    /// Takes back what a task was done with.
    pub(super) fn put_back(&mut self, task: Task) {
        match task {
            Task::Whole(parts) => self.spent.extend(parts),
            Task::Next(part, begun) => {
                let number = part.connection();
                self.spent.push(part);
                let Some(long) = self.long.get_mut(&number) else { return };
                (long.begun, long.is_taken) = (begun, false);
                if !long.parts.is_empty() {
                    self.ready.push_back(Job::Next(number));
                } else if long.begun.is_none() {
                    self.long.remove(&number);
                }
            }
            Task::Follow(mut follower, batch) => {
                self.exchange(&mut follower);
                self.is_steady = follower.is_steady;
                self.follower = Some(follower);
                self.room.push(batch);
            }
        }
    }
}

impl Task {
    /// Does it; what is left for the next part of the connection stands in it then.
    pub(super) fn carry_out(&mut self, analyst: &mut Analyst) {
        match self {
            Self::Whole(parts) => analyst.take_all(parts),
            Self::Next(part, begun) => *begun = analyst.take(part, begun.take()),
            Self::Follow(follower, batch) => follower.follow(batch),
        }
    }
}

impl Follower {
    pub(super) fn new(tracker: Tracker) -> Self {
        Self {
            tracker,
            short: Vec::new(),
            short_packets: 0,
            whole: Vec::new(),
            pieces: Vec::new(),
            spent: Vec::new(),
            is_steady: false,
        }
    }

    fn follow(&mut self, batch: &mut Batch) {
        self.reuse();
        let (segments, before) = (batch.len() as u64, self.tracker.looked_for());
        self.tracker.follow(batch);
        self.is_steady = (self.tracker.looked_for() - before) * STEADY < segments;
        self.sort();
    }

    /// Gives back the room of what was analysed.
    pub(super) fn reuse(&mut self) {
        self.spent.drain(..).for_each(|part| self.tracker.take_back(part));
    }

    /// Sorts what was gathered; whether something is to be put up.
    pub(super) fn sort(&mut self) -> bool {
        while let Some(part) = self.tracker.next_part() {
            if part.is_first() && part.is_last() {
                self.short_packets += part.packets();
                self.short.push(part);
                if self.short.len() >= SHORT || self.short_packets >= SHORT_PACKETS {
                    self.end_short();
                }
            } else {
                self.pieces.push(part);
            }
        }
        !self.whole.is_empty() || !self.pieces.is_empty()
    }

    /// Lets no more short connections come to those that are there.
    pub(super) fn end_short(&mut self) {
        self.short_packets = 0;
        if !self.short.is_empty() {
            self.whole.push(mem::take(&mut self.short));
        }
    }
}
