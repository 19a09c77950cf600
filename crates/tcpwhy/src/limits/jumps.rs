//! Round trips that are suddenly far longer than the one before: something stood still.
//!
//! A queue that fills makes each round trip a little longer than the last. One that is three times as long at
//! once waited for a host or a link that did nothing; what was late tells which (`analysis::summary` asks the
//! clocks). Left out are ACKs that the receiver may have held back by itself.

use crate::flow::event::Event;

/// No receiver may delay an ACK longer, nor that of every second full segment (RFC 9293 section 3.8.6.3).
pub(crate) const LONGEST_DELAYED_ACK_NS: i64 = 500_000_000;

/// A round trip is a jump if it is this much, and this many times, longer than the one before it. Ours:
/// two segments more in a queue make a round trip longer by 24 ms at 1 Mbit/s, but hardly twice as long
/// again at once; not measured.
const JUMP_NS: i64 = 5_000_000;
const JUMP_TIMES: i64 = 2;
/// Jumps kept of one direction. Ours.
const MOST_JUMPS: usize = 64;

/// A round trip that was suddenly far longer than the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    /// When its ACK came.
    pub(crate) at: i64,
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
    pub(crate) found: Vec<Jump>,
}

impl Jumps {
    /// What was sent passed the tap so late.
    #[inline]
    pub(crate) fn note_lag(&mut self, lag: i64) {
        self.most_lag = self.most_lag.max(lag);
    }

    /// Takes a round trip that no receiver made longer by itself, and its ACK.
    pub(crate) fn push(&mut self, rtt: i64, at: i64, ack: &Event) {
        let before = self.last.replace(rtt);
        let lag_of_data = core::mem::take(&mut self.most_lag);
        if let Some(before) = before
            && rtt - before >= JUMP_NS.max(JUMP_TIMES * before)
            && self.found.len() < MOST_JUMPS
        {
            self.found.push(Jump { at, rtt, before, lag_of_data, ack: *ack });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sudden_round_trip_is_a_jump_and_a_growing_queue_is_none() {
        let found = |samples: &[i64]| {
            let mut jumps = Jumps::default();
            for ms in samples {
                jumps.push(ms * 1_000_000, 0, &Event::default());
            }
            jumps.found.len()
        };
        assert_eq!(found(&[20, 60, 20]), 1, "twice as long again");
        assert_eq!(found(&[20, 59, 20]), 0);
        assert_eq!([found(&[1, 6]), found(&[1, 5])], [1, 0], "5 ms");
        assert_eq!(found(&[20, 40, 60, 80, 100, 120]), 0);
    }

    #[test]
    fn the_lag_is_that_of_what_was_sent_since_the_last() {
        let mut jumps = Jumps::default();
        jumps.note_lag(9);
        jumps.push(20_000_000, 0, &Event::default());
        jumps.note_lag(7);
        jumps.note_lag(3);
        jumps.push(90_000_000, 0, &Event::default());
        assert_eq!(jumps.found[0].lag_of_data, 7);
    }
}
