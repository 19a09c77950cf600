//! What CUBIC's `HyStart` sees of a round, by which it ends slow start.
//!
//! Linux v6.1 `hystart_update` (`net/ipv4/tcp_cubic.c`) looks at each ACK of slow start once the window
//! holds 16 segments. Either sign ends slow start at once: ACKs that follow each other closely from the
//! begin of a round on for half of the least round trip, or a least round trip of a round that is above the path's. A
//! round of ours is one of its: it ends with the ACK of what was sent when it began.

use crate::clocks::StackTime;
use crate::limits::round::Round;
use crate::limits::sense::{
    HYSTART_DELAY, HYSTART_DELAY_NS, HYSTART_SAMPLES, HYSTART_SEGMENTS, TRAIN, TRAIN_GAP_NS,
};

/// Which of its signs were there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Signs {
    pub(crate) delay: bool,
    pub(crate) train: bool,
}

impl Signs {
    /// What `round` shows, where the path's round trip is `least_rtt`. What paces itself waits for a train twice
    /// as long; nothing of that is known here.
    pub(crate) fn of(round: &Round, least_rtt: i64) -> Self {
        if round.flight_segments < HYSTART_SEGMENTS {
            return Self::default();
        }
        let bound =
            least_rtt + HYSTART_DELAY.of(least_rtt).clamp(HYSTART_DELAY_NS.0, HYSTART_DELAY_NS.1);
        Self {
            delay: round.rtt_count >= HYSTART_SAMPLES
                && round.rtt_min.is_some_and(|rtt| rtt > bound),
            train: round.train_end - round.start > TRAIN.of(least_rtt),
        }
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self { delay: self.delay || other.delay, train: self.train || other.train }
    }
}

/// Where the train ends that began at `start` with its round and reached to `end`, when an ACK comes at `at`. What
/// comes behind a pause belongs to none.
pub(crate) fn train_end(start: StackTime, end: StackTime, at: StackTime) -> StackTime {
    let end = if end > start { end } else { start };
    if at - end <= TRAIN_GAP_NS { at } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;

    const MS: i64 = 1_000_000;

    /// Where the train of a round that begins at 10 ms ends, if ACKs come then.
    fn end_of(acks: &[i64]) -> i64 {
        let train_end = |end, at: &i64| train_end(StackTime(10 * MS), end, StackTime(*at));
        acks.iter().fold(StackTime(0), train_end).0
    }

    #[test]
    fn a_train_begins_with_its_round_and_a_pause_ends_it() {
        assert_eq!(end_of(&[12 * MS, 14 * MS]), 14 * MS);
        assert_eq!(end_of(&[12 * MS + 1, 13 * MS]), 10 * MS, "the first came late");
        assert_eq!(end_of(&[11 * MS, 13 * MS + 1, 14 * MS]), 11 * MS, "none begins behind a pause");
    }

    #[test]
    fn a_train_of_more_than_half_the_least_round_trip_is_a_sign() {
        let of = |train_end, flight_segments| {
            let round =
                Round { start: StackTime(10 * MS), train_end, flight_segments, ..Round::default() };
            Signs::of(&round, 20 * MS).train
        };
        assert!(of(StackTime(20 * MS + 1), Segments::new(16)));
        assert!(!of(StackTime(20 * MS), Segments::new(16)));
        assert!(!of(StackTime(20 * MS + 1), Segments::new(15)), "no sign counts yet");
    }

    #[test]
    fn a_round_whose_least_round_trip_stands_an_eighth_above_the_path_s_is_a_sign() {
        let of = |rtt_min, rtt_count, least| {
            let round = Round {
                rtt_min: Some(rtt_min),
                rtt_count,
                flight_segments: Segments::new(16),
                ..Round::default()
            };
            Signs::of(&round, least).delay
        };
        assert!(of(90 * MS + 1, 8, 80 * MS) && !of(90 * MS, 8, 80 * MS));
        assert!(!of(90 * MS + 1, 7, 80 * MS), "too few of them");
        assert!(of(14 * MS + 1, 8, 10 * MS) && !of(14 * MS, 8, 10 * MS), "4 ms at least");
        assert!(of(316 * MS + 1, 8, 300 * MS), "16 ms at most");
    }
}
