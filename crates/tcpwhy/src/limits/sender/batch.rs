//! The ACKs that came and the frames sent since the replay last ran.
//!
//! ACKs that come together make one batch: which of them released which packet is within the
//! noise of the capture, so [`super::replay::Replay`] deals the frames out again.

use super::replay::{Ack, FrameEnd};
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::BATCHED;

/// A batch that grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) acks: Vec<Ack>,
    pub(crate) frames: Vec<FrameEnd>,
    /// Something was sent since the replay last ran.
    pub(crate) has_sends: bool,
    /// When its first ACK arrived.
    pub(crate) start: Option<StackTime>,
}

impl Batch {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.acks = super::emptied(&mut old.acks);
        self.frames = super::emptied(&mut old.frames);
    }

    /// Adds an ACK; a full batch keeps the newest.
    pub(crate) fn add_ack(&mut self, ack: Ack) {
        if self.acks.len() < BATCHED {
            self.acks.push(ack);
        } else if let Some(last) = self.acks.last_mut() {
            *last = ack;
        }
    }

    /// Adds a frame of new data, if there is room.
    pub(crate) fn add_frame(&mut self, frame: FrameEnd) {
        if self.frames.len() < BATCHED {
            self.frames.push(frame);
        }
    }

    /// Adds `frames` of new data that begin with `first`, with `before` segments before them and `each` in each.
    pub(crate) fn add_frames(&mut self, first: &Event, frames: usize, before: u64, each: u64) {
        let room = BATCHED - self.frames.len().min(BATCHED);
        let numbers = 1..=frames.min(room) as u64;
        self.frames.extend(numbers.map(|number| FrameEnd {
            segments: before + number * each,
            byte: first.seq + number as i64 * i64::from(first.len),
        }));
    }

    /// The replay took it.
    pub(crate) fn clear(&mut self) {
        self.acks.clear();
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offsets::Offset;

    #[test]
    fn a_full_batch_keeps_the_first_frames_and_the_newest_ack() {
        let mut batch = Batch::default();
        for una in 0..5000 {
            batch.add_ack(Ack { una, window_end: Offset::FIRST });
            batch.add_frame(FrameEnd { segments: una, byte: Offset::FIRST });
        }
        assert_eq!((batch.acks.len(), batch.acks[BATCHED - 1].una), (BATCHED, 4999));
        assert_eq!((batch.frames.len(), batch.frames[BATCHED - 1].segments), (BATCHED, 4095));
    }
}
