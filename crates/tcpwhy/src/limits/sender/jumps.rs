//! Round trips that are suddenly far longer than the one before: something stood still.
//!
//! A queue that fills makes each round trip a little longer than the last. One that is three times as long at
//! once waited for a host or a link that did nothing; what was late tells which (`analysis::directions` asks the
//! clocks). Left out are ACKs that the receiver may have held back by itself. And it passes: what was sent
//! after that ACK comes back as before. Where ACKs are few, a round trip grows at once by what a burst takes
//! on the slowest link, and stays so long.

use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::{JUMP_NS, JUMP_PASSED, JUMP_TIMES, JUMPS};

/// A round trip that was suddenly far longer than the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    /// When its ACK came.
    pub(crate) at: StackTime,
    pub(crate) rtt: i64,
    pub(crate) before: i64,
    /// How late what was sent since the one before passed the tap at most, beyond the constant part.
    pub(crate) lag_of_data: i64,
    pub(crate) ack: Event,
}

/// The jumps of a direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jumps {
    last: Option<i64>,
    most_lag: i64,
    /// It is not known yet whether it passed.
    open: Option<Jump>,
    pub(crate) found: Vec<Jump>,
}

impl Jumps {
    /// What was sent passed the tap so late.
    #[inline]
    pub(crate) fn note_lag(&mut self, lag: i64) {
        self.most_lag = self.most_lag.max(lag);
    }

    /// Takes a round trip that no receiver made longer by itself, and its ACK.
    pub(crate) fn push(&mut self, rtt: i64, at: StackTime, ack: &Event) {
        let before = self.last.replace(rtt);
        let lag_of_data = core::mem::take(&mut self.most_lag);
        // What was under way with it was late as well and tells nothing.
        if let Some(jump) = self.open.filter(|jump| at - rtt >= jump.at) {
            self.open = None;
            if JUMP_PASSED.is_kept(rtt - jump.before, jump.rtt - jump.before)
                && self.found.len() < JUMPS
            {
                self.found.push(jump);
            }
        }
        if let Some(before) = before
            && self.open.is_none()
            && rtt - before >= JUMP_NS.max(JUMP_TIMES * before)
        {
            self.open = Some(Jump { at, rtt, before, lag_of_data, ack: *ack });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jumps where each of these round trips, in ms, begins as the one before it ends.
    fn found(samples: &[i64]) -> usize {
        let (mut jumps, mut now) = (Jumps::default(), 0);
        for ms in samples {
            now += ms * 1_000_000;
            jumps.push(ms * 1_000_000, StackTime(now), &Event::default());
        }
        jumps.found.len()
    }

    #[test]
    fn a_sudden_round_trip_is_a_jump_and_a_growing_queue_is_none() {
        assert_eq!(found(&[20, 60, 20]), 1, "twice as long again");
        assert_eq!(found(&[20, 59, 20]), 0);
        assert_eq!([found(&[1, 6, 1]), found(&[1, 5, 1])], [1, 0], "5 ms");
        assert_eq!(found(&[20, 40, 60, 80, 100, 120]), 0);
    }

    #[test]
    fn what_stays_longer_did_not_stand_still() {
        assert_eq!([found(&[20, 80, 50]), found(&[20, 80, 51])], [1, 0], "half of it");
        assert_eq!(found(&[20, 80]), 0, "nothing was sent after it");
    }

    #[test]
    fn what_was_under_way_with_it_tells_nothing() {
        let mut jumps = Jumps::default();
        for (rtt, at) in [(20, 20), (80, 100), (79, 101), (20, 121)] {
            jumps.push(rtt * 1_000_000, StackTime(at * 1_000_000), &Event::default());
        }
        assert_eq!(jumps.found.len(), 1);
    }

    #[test]
    fn the_lag_is_that_of_what_was_sent_since_the_last() {
        let mut jumps = Jumps::default();
        jumps.note_lag(9);
        jumps.push(20_000_000, StackTime(0), &Event::default());
        jumps.note_lag(7);
        jumps.note_lag(3);
        jumps.push(90_000_000, StackTime(110_000_000), &Event::default());
        jumps.push(20_000_000, StackTime(130_000_000), &Event::default());
        assert_eq!(jumps.found[0].lag_of_data, 7);
    }
}
