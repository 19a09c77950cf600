//! What the receiver got twice though it was sent once.
//!
//! A D-SACK reports a range that came twice (RFC 2883 section 4). Where something in that range was retransmitted, that
//! came twice. Where nothing was, a device on the way made a copy. Of old retransmissions only the highest end is kept.
//! No copy is counted below that end. One byte is a keep-alive's or a probe's.

use std::collections::VecDeque;

use crate::flow::event::Block;
use crate::offsets::Offset;

/// Repeats remembered. Ours: as many as of those that may be needless.
const MOST: usize = 256;

/// The segments of a direction that the path doubled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubled {
    /// So many.
    pub(crate) segments: u64,
    /// What was retransmitted of late.
    again: VecDeque<Block>,
    /// Up to here nothing can be told.
    untold: Offset,
}

impl Doubled {
    /// `range` is retransmitted, or came late.
    pub(crate) fn on_repeat(&mut self, range: Block) {
        if self.again.len() == MOST
            && let Some(old) = self.again.pop_front()
        {
            self.forget(old.1);
        }
        self.again.push_back(range);
    }

    /// What was sent before `at` may have been retransmitted unseen.
    pub(crate) fn forget(&mut self, at: Offset) {
        self.untold = self.untold.max(at);
    }

    /// The receiver got `block` twice, of what was sent up to `nxt`; segments have `mss` bytes.
    pub(crate) fn on_dsack(&mut self, block: Block, nxt: Offset, mss: i64) {
        let is_known = block.0 >= self.untold && block.1 <= nxt && block.1 - block.0 > 1;
        let overlaps = |again: &Block| again.0 < block.1 && again.1 > block.0;
        if is_known && !self.again.iter().any(overlaps) {
            self.segments += (block.1 - block.0).div_euclid(mss.max(1)).max(1) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::block;

    /// As much was sent.
    const SENT: Offset = Offset::at(5000);

    fn told(tape: impl FnOnce(&mut Doubled)) -> u64 {
        let mut doubled = Doubled::default();
        tape(&mut doubled);
        doubled.segments
    }

    #[test]
    fn what_was_sent_once_and_came_twice_was_doubled() {
        assert_eq!(told(|d| d.on_dsack(block(1000, 2000), SENT, 1000)), 1);
        assert_eq!(told(|d| d.on_dsack(block(1000, 3000), SENT, 1000)), 2);
        assert_eq!(told(|d| d.on_dsack(block(1000, 1200), SENT, 1000)), 1, "a short one");
    }

    #[test]
    fn what_was_sent_again_was_not() {
        let again = |range: Block| {
            told(|d| {
                d.on_repeat(range);
                d.on_dsack(block(1000, 2000), SENT, 1000);
            })
        };
        assert_eq!(again(block(1000, 2000)), 0);
        assert_eq!(again(block(1999, 2100)), 0, "one byte of it");
        assert_eq!(again(block(2000, 3000)), 1, "its neighbour");
    }

    #[test]
    fn a_probe_and_what_was_never_seen_tell_nothing() {
        assert_eq!(told(|d| d.on_dsack(block(1000, 1001), SENT, 1000)), 0, "a keep-alive");
        assert_eq!(
            told(|d| d.on_dsack(block(4001, 5001), SENT, 1000)),
            0,
            "beyond all that was sent"
        );
        assert_eq!(told(|d| d.on_dsack(block(-10, 990), SENT, 1000)), 0, "before the capture");
        let after_hole = |hole: i64| {
            told(|d| {
                d.forget(Offset::at(hole));
                d.on_dsack(block(1000, 2000), SENT, 1000);
            })
        };
        assert_eq!((after_hole(1000), after_hole(1001)), (1, 0));
    }

    #[test]
    fn of_very_many_repeats_the_old_ones_tell_nothing_rather_than_wrong() {
        let doubled = told(|d| {
            (0..1000).for_each(|n| d.on_repeat(block(n * 10, n * 10 + 10)));
            (0..1000).for_each(|n| d.on_dsack(block(n * 10, n * 10 + 10), Offset::at(20_000), 10));
            assert!(d.again.len() <= MOST);
        });
        assert_eq!(doubled, 0);
    }
}
