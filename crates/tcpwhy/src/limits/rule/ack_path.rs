//! The way back: the ACKs that would let more out stand in a queue there.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::round::is_queue;
use crate::limits::sense::NEVER_EMPTY;
use crate::limits::wait::Wait;
use crate::report::State::AckPath;

/// The round trip stood above its least, and only because ACKs stood in a queue on their way back: a thin uplink, or one
/// that others fill. Where the data stood in a queue, too, its link had no more to give. Time stamps tell it: at the
/// sender's host those of the ACKs; at others what sends echo, which shows what had not come when they left.
pub(super) fn acks_queue(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let back = near.queue_back();
    let has_queue = is_queue(back, near.least) && !near.has_queue_elsewhere();
    let holds = NEVER_EMPTY.is_reached(back, near.least)
        || near.this().is_answered_throughout() && near.is_rate_flat();
    let is_let_out = !wait.came_free();
    (is_let_out && has_queue && holds)
        .then(|| Verdict::likely(AckPath).seen(Seen::AcksQueue { still: near.stands_still() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::StackTime;
    use crate::limits::near::Rounds;
    use crate::limits::round::Round;
    use crate::limits::wait::Release;
    use crate::report::State;

    const RTT: i64 = 40_000_000;
    const MS: i64 = 1_000_000;

    /// The verdict on a wait that ended by `ended_by` in rounds whose ACKs stood `back` in queues, and whose data stood
    /// `forth`.
    fn told(back: i64, forth: i64, ended_by: Release) -> Option<State> {
        let mut rounds = Rounds::default();
        for number in 0..6 {
            rounds.push(&Round {
                number,
                start: StackTime(number as i64 * RTT),
                end: StackTime((number as i64 + 1) * RTT),
                rtt_min: Some(RTT + back + forth),
                held_back: Some(back),
                rtt_else: Some(RTT + forth),
                ack_gap: RTT,
                ..Round::default()
            });
        }
        let wait = Wait { ended_by, ..Wait::PLAIN };
        acks_queue(&wait, &Near::new(&rounds, 3, RTT)).map(|verdict| verdict.state)
    }

    const ACK: Release = Release::Ack { by_data: false };

    #[test]
    fn acks_that_stand_in_a_queue_as_long_as_half_a_round_trip_are_what_was_waited_for() {
        assert_eq!(told(20 * MS, 0, ACK), Some(AckPath));
        assert_eq!(told(20 * MS - 1, 0, ACK), None, "its end may be a window's");
        assert_eq!(told(20 * MS, 0, Release::Free), None, "no ACK was waited for");
    }

    #[test]
    fn where_the_data_stands_in_a_queue_as_well_its_link_is_full() {
        assert_eq!(told(200 * MS, 4 * MS, ACK), Some(AckPath));
        assert_eq!(told(200 * MS, 4 * MS + 1, ACK), None);
        assert_eq!(told(0, 200 * MS, ACK), None);
    }
}
