//! What is to be done of a capture's analysis, and in which order?
//!
//! ```text
//! follower --parts of connections--> analysts
//! batches of segments, each of a lane --> whoever follows the lane, and analyses what it gathers
//! ```
//!
//! Any thread may take what comes next: a connection that came in one part with others like it; one in
//! several parts a part at a time and in order, with what the part before it left; a lane that nobody follows with
//! the next of its segments.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::mem;

use tcpwhy::tracker::{Batch, Begun, Bench, Lane, Part, Tracker};

use super::lanes::Lanes;

/// Jobs that wait before nobody makes more of them. Ours: 1.8 MB of events that wait.
pub(super) const WAITING: usize = 8;
/// Short connections of one job, and packets after which it is enough. Ours: for 100,000 of ten packets on two
/// cores, 256 at a time wake threads a quarter as often as 32, and take 0.23 s instead of 0.24 s.
const SHORT: usize = 256;
const SHORT_PACKETS: usize = 4096;

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
    /// Where others follow the connections than who reads.
    pub(super) lanes: Lanes,
    /// Threads that have nothing to do, and whether the reading thread awaits the end of a task.
    pub(super) idle: usize,
    pub(super) is_awaited: bool,
    pub(super) is_over: bool,
    /// What a panic carried.
    pub(super) mistake: Option<Box<dyn Any + Send>>,
}

/// A connection in several parts. One part is analysed at a time.
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
    Follow(Box<Lane>, Batch),
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
        !self.ready.is_empty() || self.lanes.wait()
    }

    /// The next task of this thread, which is begun.
    pub(super) fn next(&mut self, thread: usize) -> Option<Task> {
        let task = self
            .next_job()
            .or_else(|| self.lanes.next(thread).map(|(lane, batch)| Task::Follow(lane, batch)));
        self.running += usize::from(task.is_some());
        task
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
            Task::Follow(lane, batch) => self.lanes.put_back(lane, batch),
        }
    }
}

impl Long {
    /// What the parts so far left. None of them waits.
    pub(super) fn of(begun: Begun) -> Self {
        Self { begun: Some(begun), ..Self::default() }
    }
}

impl Task {
    /// Does it at `bench`; what is left for the next part of the connection is in it then.
    pub(super) fn carry_out(&mut self, bench: &mut Bench) {
        match self {
            Self::Whole(parts) => bench.take_all(parts),
            Self::Next(part, begun) => *begun = bench.take(part, begun.take()),
            Self::Follow(lane, batch) => lane.follow(batch, bench),
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
        }
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
