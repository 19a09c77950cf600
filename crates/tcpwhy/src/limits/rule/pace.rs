//! A clock of the sender's own: it spaced its sends, whenever ACKs arrived.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::round::Phase;
use crate::limits::wait::{Edge, Wait};
use crate::report::State::{App, BandwidthSelfQueue, CwndAvoidance, Pacing, RecoveryLoss};

/// A pace of less than a pulse a round trip. An application that always writes whole segments by a timer looks the
/// same, and from afar so does what ACKs let go.
fn less_than_a_pulse(wait: &Wait, in_flight: bool) -> Option<Verdict> {
    let told = if wait.at_sender { Verdict::likely(Pacing) } else { Verdict::unknown() };
    wait.is_slow_pace.then_some(told.seen(Seen::SlowPulses { in_flight }))
}

/// All was acknowledged, and the next whole segments came in time with those before: a pace of less than a pulse a round
/// trip. Away from the sender it is left open. It stays though `make ablation` has no such pace: one of 600 kbit/s at
/// 37 ms is `app` without it, in the model and in Linux 6.1.
pub(super) fn slow(wait: &Wait) -> Option<Verdict> {
    less_than_a_pulse(wait, true).filter(|_| wait.is_by_itself_after_all())
}

/// Nothing was in flight, and the next whole segments came in time with those before: a pace of less than a pulse a round
/// trip. Away from the sender it is left open. It stays for the same pace of 600 kbit/s at 37 ms, whose pulses are
/// acknowledged before the next.
pub(super) fn slow_without_flight(wait: &Wait) -> Option<Verdict> {
    less_than_a_pulse(wait, false)
}

/// The pace is the limit, unless the path shows that it could not be faster, or the pulses end as writes do.
pub(super) fn clock(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let by_itself = wait.came_free();
    if wait.is_past_pulse && !by_itself || !near.is_paced(by_itself) {
        return None;
    }
    let (round, pulses) = (near.this(), near.pulses());
    let has_clock = near.has_even_sends();
    Some(if has_clock && pulses.end_short() {
        Verdict::likely(App).seen(Seen::ShortPulses)
    } else if round.shows_no_clock() {
        steady_from_afar(near)
    } else if near.has_queue() && near.is_rate_flat() {
        Verdict::likely(BandwidthSelfQueue).seen(Seen::EvenBeforeQueue)
    } else if round.fills_window() {
        // What a pace still holds has filled the window already.
        Verdict::likely(Pacing).seen(Seen::PacedFullWindow)
    } else if has_clock && pulses.are_unfinished() {
        Verdict::likely(Pacing).seen(Seen::UnfinishedPulses)
    } else {
        Verdict::likely(Pacing).seen(Seen::EvenSends)
    })
}

/// The sender has a clock, and a repair keeps to it (`tcp_xmit_retransmit_queue` asks `tcp_pacing_check`): it held what
/// came by itself, for a window lets data out when ACKs arrive, and a program has no part in what is retransmitted. What an
/// ACK let out may have waited for the clock as well.
pub(crate) fn in_repair(by_itself: bool, near: &Near<'_>) -> Option<Verdict> {
    near.has_clock_in_repairs().then(|| match by_itself {
        true if near.runs_at_full_rate() => {
            Verdict::likely(BandwidthSelfQueue).seen(Seen::EvenBeforeQueue)
        }
        true => Verdict::likely(Pacing).seen(Seen::ClockInRepair),
        false => Verdict::possible(RecoveryLoss).seen(Seen::ClockInRepair),
    })
}

/// Seen from elsewhere, where the ACK that released a packet cannot be told from one that passed by: a steady rate
/// without pauses and without a queue.
pub(super) fn from_afar(_: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let is_even = !round.tap_at_sender
        && round.edge_flight == 0
        && round.is_smooth()
        && near.is_rate_flat()
        && !near.has_queue();
    is_even.then(|| match round.phase {
        // A link that a queue has shown to be full at this rate is so without one, too: a window that a loss has cut
        // just fills it.
        _ if near.runs_at_full_rate() => {
            Verdict::likely(BandwidthSelfQueue).seen(Seen::FullRateFromAfar)
        }
        Phase::Avoidance | Phase::Uncut if near.opens() => {
            Verdict::likely(CwndAvoidance).seen(Seen::OpensFromAfar)
        }
        _ => steady_from_afar(near),
    })
}

/// A steady stream. A path that is just full and has no queue looks the same from here.
fn steady_from_afar(near: &Near<'_>) -> Verdict {
    if near.this().shows_no_clock() {
        return super::link::passes_unseen(Edge::Far);
    }
    Verdict::likely(Pacing).seen(Seen::EvenFromAfar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::StackTime;
    use crate::limits::near::Rounds;
    use crate::limits::round::Round;
    use crate::report::State;
    use crate::report::Sure;
    use crate::segments::Segments;

    const RTT: i64 = 20_000_000;

    fn even(rounds: &Rounds, number: u64) -> State {
        from_afar(&Wait::PLAIN, &Near::new(rounds, number, RTT)).expect("it is even").state
    }

    #[test]
    fn a_pace_of_less_than_a_pulse_a_round_trip_shows_at_the_sender_alone() {
        let told = |at_sender| {
            let wait = Wait { is_slow_pace: true, was_quiet: true, at_sender, ..Wait::PLAIN };
            slow(&wait).map(|told| (told.state, told.sure))
        };
        assert_eq!(told(true), Some((Pacing, Sure::Likely)));
        assert_eq!(
            told(false),
            Some((State::Unknown, Sure::Possible)),
            "ACKs may have let them go"
        );
        assert_eq!(slow(&Wait { was_quiet: true, ..Wait::PLAIN }), None);
        assert_eq!(slow(&Wait { is_slow_pace: true, ..Wait::PLAIN }), None, "data was in flight");
    }

    /// What an even stream without a queue is called, at this rate in per cent of that at which a queue stood before.
    fn told_even(percent: i64, was_full: bool) -> State {
        let mut rounds = Rounds::default();
        for number in 0..8 {
            let (is_even, start) = (number > 3, number * RTT);
            rounds.push(&Round {
                number: number as u64,
                start: StackTime(start),
                end: StackTime(start + RTT),
                stopped_at: StackTime(start + RTT),
                sends: 50,
                gaps: 49,
                segments: Segments::new(50),
                acked: 1448 * if is_even { percent } else { 100 },
                sees_queues: true,
                ..Round::default()
            });
            if was_full && !is_even {
                rounds.note_full();
            }
        }
        even(&rounds, 7)
    }

    #[test]
    fn an_even_stream_at_the_rate_of_a_link_that_was_full_is_the_links() {
        assert_eq!(told_even(100, true), BandwidthSelfQueue);
        assert_eq!(told_even(95, true), BandwidthSelfQueue);
        assert_eq!(told_even(94, true), Pacing);
        assert_eq!(told_even(100, false), Pacing);
    }

    #[test]
    fn an_even_stream_whose_flight_grows_by_a_segment_a_round_has_a_window() {
        let told = |flights: &[u64], phase| {
            let mut rounds = Rounds::default();
            for (number, flight) in (0..).zip(flights) {
                let start = number * RTT;
                rounds.push(&Round {
                    number: number as u64,
                    start: StackTime(start),
                    end: StackTime(start + RTT),
                    stopped_at: StackTime(start + RTT),
                    phase,
                    sends: 50,
                    gaps: 49,
                    flight_segments: Segments::new(*flight),
                    acked: 1448 * 50,
                    sees_queues: true,
                    ..Round::default()
                });
            }
            even(&rounds, 3)
        };
        let after = |flights| told(flights, Phase::Avoidance);
        assert_eq!(after(&[29, 29, 31, 30, 32, 33]), CwndAvoidance);
        assert_eq!(after(&[29, 29, 31, 30, 32, 32]), Pacing, "three in six");
        assert_eq!(after(&[30, 31, 32, 33]), Pacing, "four rounds");
        assert_eq!(after(&[29, 32, 30, 31, 32, 33]), Pacing, "it fell");
        assert_eq!(told(&[29, 30, 31, 32, 33, 34], Phase::SlowStart), Pacing);
    }
}
