//! Who follows which connections, where several threads do?
//!
//! A lane stays with the thread that followed it last, in whose caches its connections are, until another has nothing
//! else to do. The reading thread follows some while more waits than the others have begun: so it keeps as many as
//! let all be done at the same time.

use std::collections::VecDeque;
use std::mem;

use tcpwhy::tracker::{Batch, Batches, Begun, LANES, Lane, Tracker};

/// Of this many segments at most one had to be looked for: then one thread had better read and
/// follow them. Ours: not measured.
const STEADY: u64 = 4;

/// The lanes.
#[derive(Default)]
pub(super) struct Lanes {
    places: [Place; LANES],
    /// Batches that nobody has begun.
    pub(super) waiting: usize,
    /// Batches that were followed, for their room.
    room: Vec<Batch>,
    /// Segments that were followed, and how many of them were looked for, since that was asked last.
    segments: u64,
    looked_for: u64,
}

/// A lane's place.
#[derive(Default)]
struct Place {
    /// `None` while somebody follows it, and while there are no lanes.
    lane: Option<Box<Lane>>,
    batches: VecDeque<Batch>,
    /// The thread that followed it last.
    keeper: usize,
}

impl Lanes {
    /// Divides the connections of `tracker`; `begun` tells what the parts so far left of one.
    pub(super) fn begin(&mut self, tracker: &mut Tracker, begun: impl FnMut(u64) -> Option<Begun>) {
        for (place, lane) in self.places.iter_mut().zip(tracker.part(begun)) {
            place.lane = Some(Box::new(lane));
        }
    }

    /// Lets `tracker` go on with all connections, once nothing waits and nobody follows any; tells what the parts so far left.
    pub(super) fn end(&mut self, tracker: &mut Tracker) -> Vec<(u64, Begun)> {
        let lanes = self.places.iter_mut().filter_map(|place| place.lane.take());
        tracker.rejoin(lanes.map(|lane| *lane))
    }

    /// Puts up what was read of each lane; how many batches these are.
    pub(super) fn put(&mut self, batches: &mut Batches) -> usize {
        let before = self.waiting;
        for (place, batch) in self.places.iter_mut().zip(batches.iter_mut()) {
            if !batch.is_empty() {
                let room = self.room.pop().unwrap_or_default();
                place.batches.push_back(mem::replace(batch, room));
                self.waiting += 1;
            }
        }
        self.waiting - before
    }

    /// Whether a batch waits that may be followed.
    pub(super) fn wait(&self) -> bool {
        self.places.iter().any(Place::is_ready)
    }

    /// The next batch of a lane that this thread followed last, or else of the lane where most batches wait.
    pub(super) fn next(&mut self, thread: usize) -> Option<(Box<Lane>, Batch)> {
        let ready = self.places.iter_mut().filter(|place| place.is_ready());
        let place = ready.max_by_key(|place| (place.keeper == thread, place.batches.len()))?;
        let next = (place.lane.take()?, place.batches.pop_front()?);
        place.keeper = thread;
        self.waiting -= 1;
        Some(next)
    }

    /// Takes back a lane, with the batch that was followed.
    pub(super) fn put_back(&mut self, mut lane: Box<Lane>, batch: Batch) {
        let (segments, looked_for) = lane.taken();
        self.segments += segments;
        self.looked_for += looked_for;
        self.room.push(batch);
        let number = lane.number();
        self.places[number].lane = Some(lane);
    }

    /// Whether what was followed since this was asked last could have been followed as quickly as it was read.
    pub(super) fn are_steady(&mut self) -> bool {
        let (segments, looked_for) =
            (mem::take(&mut self.segments), mem::take(&mut self.looked_for));
        segments > 0 && looked_for * STEADY < segments
    }
}

impl Place {
    fn is_ready(&self) -> bool {
        self.lane.is_some() && !self.batches.is_empty()
    }
}
