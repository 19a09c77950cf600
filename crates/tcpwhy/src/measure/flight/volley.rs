//! One entry of a flight: frames of one size that left behind each other.

use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{Block, CORRUPT, Event};
use crate::flow::run::Follower;
use crate::offsets::Offset;
use crate::segments::Segments;

/// Entry flags.
pub(crate) const RETRANSMITTED: u8 = 1;
/// The tap did not see these bytes first sent.
pub(crate) const UNSEEN: u8 = 2;
/// It passed the tap damaged: its receiver will drop it.
pub(crate) const DAMAGED: u8 = 4;

/// One captured frame's payload in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) start: Offset,
    pub(crate) end: Offset,
    /// When it left the stack; of the latest transmission.
    pub(crate) at: StackTime,
    /// Bytes in flight after it was first sent.
    pub(crate) flight_then: i64,
    pub(crate) frame: u64,
    /// Segments sent up to its end since the connection began.
    pub(crate) segments_to: u64,
    pub(crate) segments: u32,
    pub(crate) flags: u8,
}

impl Sent {
    /// The payload of `event`, as `segments` of the wire, which left the stack at `at`.
    #[inline]
    pub(crate) fn of(event: &Event, at: StackTime, segments: Segments) -> Self {
        Self {
            start: event.seq,
            end: event.end(),
            at,
            flight_then: 0,
            frame: event.frame,
            segments_to: 0,
            segments: segments.get() as u32,
            flags: if event.has(CORRUPT) { DAMAGED } else { 0 },
        }
    }

    /// Payload of one of its segments.
    pub(super) fn segment_bytes(&self) -> i64 {
        match self.segments {
            0 | 1 => self.end - self.start,
            several => (self.end - self.start) / i64::from(several),
        }
    }
}

/// When frames behind each other left the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Left {
    /// All at this time.
    At(StackTime),
    /// Each so long before it passed the tap.
    Ahead(i64),
}

impl Left {
    /// When the one that passed at `tap` did.
    #[inline]
    pub(crate) fn when(self, tap: TapTime) -> StackTime {
        match self {
            Self::At(at) => at,
            Self::Ahead(way) => tap.left(way),
        }
    }
}

/// Frames of one size behind each other: the first, and how many more. What is the others' own is in
/// [`super::Flight::others`], in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volley {
    pub(super) first: Sent,
    pub(super) more: usize,
    /// When the others left.
    pub(super) left: Left,
}

impl Volley {
    /// One frame alone.
    pub(super) fn of(first: Sent) -> Self {
        Self { first, more: 0, left: Left::At(first.at) }
    }

    /// The frame that is `own`'s, this many behind the first.
    pub(super) fn other(&self, frames: usize, own: Follower) -> Sent {
        let (at, frame) = (self.left.when(own.tap), own.frame_behind(self.first.frame));
        Sent { at, frame, ..self.behind(frames) }
    }

    pub(super) fn bytes_each(&self) -> i64 {
        self.first.end - self.first.start
    }

    pub(super) fn end(&self) -> Offset {
        self.first.end + self.more as i64 * self.bytes_each()
    }

    /// How many of its frames lie before `at` whole.
    pub(super) fn before(&self, at: Offset) -> usize {
        if at < self.first.end {
            0
        } else if at >= self.end() {
            1 + self.more
        } else {
            ((at - self.first.start) / self.bytes_each()) as usize
        }
    }

    /// Payload of its segments, if one of them lies whole within the range and was sent once.
    pub(super) fn segment_within(&self, (from, to): Block) -> Option<i64> {
        if self.first.flags & (UNSEEN | RETRANSMITTED) != 0 {
            return None;
        }
        let (start, bytes) = (self.first.start, self.first.segment_bytes().max(1));
        let (from, to) = (from.max(start) - start, to.min(self.end()) - start);
        // The first that begins in it, and the last that ends there.
        ((from + bytes - 1) / bytes < to / bytes).then_some(bytes)
    }

    /// The frame this many behind the first, without what is its own.
    pub(super) fn behind(&self, frames: usize) -> Sent {
        let bytes = frames as i64 * self.bytes_each();
        Sent {
            start: self.first.start + bytes,
            end: self.first.end + bytes,
            flight_then: self.first.flight_then + bytes,
            segments_to: self.first.segments_to + frames as u64 * u64::from(self.first.segments),
            ..self.first
        }
    }
}
