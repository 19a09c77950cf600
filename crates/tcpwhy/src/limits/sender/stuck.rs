//! Segments of one size that never arrive: the head of the flight, sent again and again.
//!
//! A device that drops what is longer than its next link carries, and tells nobody, is a black hole for
//! full segments only (RFC 2923 section 2.1): what is smaller arrives. So what is kept is the head that
//! was sent most often without being acknowledged, the largest segment that ever was, and whether the
//! head got through once it was cut into smaller ones. If any segment of that size does arrive, the way loses
//! segments of all sizes instead.

use super::Sender;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::offsets::Offset;

/// A head that does not get through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stuck {
    pub(crate) seq: Offset,
    /// Payload of each of its sends.
    pub(crate) size: i64,
    /// How often it was sent, the original included.
    pub(crate) sent: u64,
    pub(crate) from: StackTime,
    pub(crate) to: StackTime,
    pub(crate) frames: (u64, u64),
    /// It was sent in smaller pieces at last, of this size, ...
    pub(crate) smaller: Option<i64>,
    /// ... and those were acknowledged.
    pub(crate) passed: bool,
    /// Something that was sent after it is known to have arrived meanwhile.
    pub(crate) peer_heard: bool,
}

/// What of this is known of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heads {
    now: Option<Stuck>,
    done: Option<Stuck>,
    /// The largest segment that is known to have arrived.
    pub(crate) largest_arrived: i64,
}

impl Heads {
    /// The head that was sent most often, if nothing of its size ever arrived.
    pub(crate) fn worst(&self) -> Option<Stuck> {
        let worst = [self.now, self.done].into_iter().flatten().max_by_key(|head| head.sent)?;
        (worst.size > self.largest_arrived).then_some(worst)
    }

    /// Everything before `una` is acknowledged, the largest segment of it being `largest`.
    pub(crate) fn on_advance(&mut self, una: Offset, largest: i64) {
        self.largest_arrived = self.largest_arrived.max(largest);
        if let Some(mut head) = self.now.filter(|head| una > head.seq) {
            self.now = None;
            head.passed = head.smaller.is_some();
            if !head.passed {
                // Whole, though which of its sends arrived is not known.
                self.largest_arrived = self.largest_arrived.max(head.size);
            }
            if self.done.is_none_or(|done| done.sent < head.sent) {
                self.done = Some(head);
            }
        }
    }

    /// Something behind the head arrived.
    pub(crate) fn on_arrival(&mut self) {
        if let Some(head) = &mut self.now {
            head.peer_heard = true;
        }
    }
}

impl Sender {
    /// `event` repeats data at `at`; `original` is when and in which frame that was sent before.
    pub(crate) fn note_head(
        &mut self,
        event: &Event,
        at: StackTime,
        original: Option<(StackTime, u64)>,
    ) {
        if event.seq > self.flight.una {
            return;
        }
        // A later segment of that size that was reported tells that the size is not what stops it.
        let reported = self.flight.largest_sacked().min(self.terms.mss);
        let size = i64::from(event.len).min(self.terms.mss);
        let heads = &mut self.repairs.heads;
        heads.largest_arrived = heads.largest_arrived.max(reported);
        match &mut heads.now {
            Some(head) if head.seq == event.seq && size < head.size => {
                head.smaller.get_or_insert(size);
            }
            Some(head) if head.seq == event.seq => {
                head.sent += 1;
                (head.to, head.frames.1) = (at, event.frame);
            }
            _ => {
                let (from, frame) = original.unwrap_or((at, event.frame));
                heads.now = Some(Stuck {
                    seq: event.seq,
                    size,
                    sent: 2,
                    from,
                    to: at,
                    frames: (frame, event.frame),
                    peer_heard: reported > 0,
                    ..Stuck::default()
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(size: i64, sent: u64) -> Heads {
        let now = Some(Stuck { seq: Offset::at(100), size, sent, ..Stuck::default() });
        Heads { now, done: None, largest_arrived: 200 }
    }

    #[test]
    fn a_head_larger_than_all_that_arrived_is_stuck() {
        assert_eq!(head(1448, 4).worst().map(|head| head.sent), Some(4));
        assert!(head(200, 4).worst().is_none(), "that size arrives");
    }

    #[test]
    fn what_arrives_whole_at_last_was_lost_by_chance() {
        let mut heads = head(1448, 4);
        heads.on_advance(Offset::at(1_548), 0);
        assert!(heads.worst().is_none());
    }

    #[test]
    fn what_passes_in_pieces_was_too_long() {
        let mut heads = head(1448, 4);
        heads.now.as_mut().expect("a head").smaller = Some(1024);
        heads.on_advance(Offset::at(1_124), 1024);
        let worst = heads.worst().expect("stuck");
        assert!(worst.passed && worst.smaller == Some(1024), "{worst:?}");
    }
}
