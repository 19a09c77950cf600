//! The path's narrowest link: full, and whose is the queue before it?

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::sense::{NEVER_EMPTY, QUEUE_SAMPLES};
use crate::limits::wait::{Edge, Wait};
use crate::report::State::{
    self, App, AppWindow, BandwidthExternal, BandwidthSelfQueue, BandwidthVariable, CwndClamp,
    Pacing, RwndCap, RwndReader, Sndbuf,
};
use crate::report::Sure;

/// A stream that passes a tap away from its sender without a pause: a link before the tap that is full, if there is a
/// queue or none could be seen. What released which packet cannot be told there, but a window or a buffer that held
/// the sender would leave the link silent now and then. Writes that end short are an application's.
pub(super) fn from_afar(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let is_far = !round.tap_at_sender && round.edge_flight == 0;
    let is_one = near.has_queue();
    if !is_far || round.sees_queues && !is_one || !near.passes_steadily() {
        return None;
    }
    if is_one && near.is_shared() {
        return Some(shared(near));
    }
    if near.pulses_around().end_short() {
        return None;
    }
    let edge = if wait.came_free() { Edge::Far } else { wait.edge() };
    Some(if is_one {
        let seen = Seen::Stream { room: edge.room(), still: near.stands_still() };
        Verdict::likely(BandwidthSelfQueue).seen(seen)
    } else if near.ran_so_across_a_loss() {
        Verdict::likely(BandwidthSelfQueue).seen(Seen::AcrossLoss { room: edge.room() })
    } else {
        passes_unseen(edge)
    })
}

/// Packets that pass steadily where no queue can be seen.
pub(super) fn passes_unseen(edge: Edge) -> Verdict {
    Verdict::unknown().seen(Seen::PassesUnseen { room: edge.room() })
}

/// There is a queue, and packets in it show that others have a part of the link.
pub(super) fn shared_with_others(_: &Wait, near: &Near<'_>) -> Option<Verdict> {
    (near.has_queue() && near.is_shared()).then(|| shared(near))
}

/// A full link that others have a part of; away from the sender a shaper of its own may look so, too.
fn shared(near: &Near<'_>) -> Verdict {
    let at_sender = near.this().tap_at_sender;
    Verdict::likely(BandwidthExternal).seen(Seen::Among { at_sender })
}

/// A queue that never emptied in a round kept the path's slowest link busy throughout; so did one at a steady rate.
pub(super) fn queue_stands(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let never_empty =
        NEVER_EMPTY.is_reached(near.queue(), near.least) && round.rtt_count >= QUEUE_SAMPLES;
    let is_full = near.has_queue()
        && round.is_answered_throughout()
        && (never_empty || near.is_rate_flat() || near.keeps_rate_across_loss());
    if !is_full {
        return None;
    }
    if near.is_rate_variable() {
        return Some(Verdict::likely(BandwidthVariable).seen(Seen::RateMoves));
    }
    if near.is_slower_than_before() {
        return Some(Verdict::possible(BandwidthVariable).seen(Seen::RateFell));
    }
    Some(full(wait, near))
}

/// What `verdict` becomes at the end of all. A rate that fell and never came back is that of a link whose first packets
/// passed faster, as a token bucket lets them, or of a share of it; it varies only if it came back.
pub(crate) fn by_what_came_later(verdict: Verdict, came_back: bool) -> Verdict {
    let fell = verdict.state == BandwidthVariable && verdict.sure == Sure::Possible;
    if fell && !came_back { Verdict::likely(BandwidthSelfQueue) } else { verdict }
}

/// What `verdict` becomes where the link was full for a round trip and more. A window, a buffer, a pace or a repair beside
/// it cost nothing, for it could carry no more. So did what only seems to have waited for a program, by elimination.
/// A program that is known to have written nothing, a shut window, timers, queues of the own host, the last flight and
/// what is the path's already keep their names.
pub(crate) fn while_full(verdict: Verdict, (varies, is_proven): (bool, bool)) -> Verdict {
    use State::{
        AckPath, CwndAfterIdle, CwndAvoidance, CwndCachedSsthresh, CwndPostLoss, CwndSlowStart,
        RecoveryCorrupt, RecoveryEcn, RecoveryLoss, RecoveryReorderSpurious, RwndAutotune, Unknown,
    };
    let yields = match verdict.state {
        CwndSlowStart
        | CwndAvoidance
        | CwndAfterIdle
        | CwndPostLoss
        | CwndCachedSsthresh
        | CwndClamp
        | RwndCap
        | RwndAutotune
        | RwndReader
        | Sndbuf
        | AppWindow
        | Pacing
        | RecoveryLoss
        | RecoveryEcn
        | RecoveryReorderSpurious
        | RecoveryCorrupt
        | Unknown
        | AckPath
        | BandwidthSelfQueue => true,
        App => !verdict.alternative.is_empty(),
        _ => false,
    };
    let is_shown = is_proven && !varies;
    match () {
        () if !yields => verdict,
        () if is_shown => Verdict::shown(BandwidthSelfQueue),
        () => Verdict::likely(BandwidthSelfQueue).seen(Seen::BusyLink { varies }),
    }
}

/// Whose the queue is that never emptied in the round. What keeps the flight from growing may be a window or a buffer
/// that just fills the link, and a queue with it. Ours, not measured: 70, less than where it shows.
fn full(wait: &Wait, near: &Near<'_>) -> Verdict {
    let (edge, at_sender) = (wait.edge(), near.this().tap_at_sender);
    let (room, still) = (edge.room(), near.stands_still());
    match near.follows_own_flight() {
        Some(false) if !near.keeps_rate_across_loss() => {
            Verdict::possible(BandwidthSelfQueue).seen(Seen::QueueOfOthers { room, at_sender })
        }
        Some(true) if edge == Edge::Far && !still => Verdict::likely(BandwidthSelfQueue),
        _ => Verdict::likely(BandwidthSelfQueue).seen(Seen::Queue { room, still, at_sender }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::StackTime;
    use crate::limits::near::Rounds;
    use crate::limits::round::Round;
    use crate::limits::rule::by_rounds;
    use crate::limits::wait::{Release, Window};
    use crate::segments::Segments;

    const RTT: i64 = 20_000_000;

    /// Six rounds of nine packets each, changed by `change`, seen away from the sender.
    fn stream(change: impl Fn(&mut Round)) -> Rounds {
        let mut rounds = Rounds::default();
        for number in 0..6 {
            let start = number * 2 * RTT;
            let mut round = Round {
                number: number as u64,
                start: StackTime(start),
                end: StackTime(start + 2 * RTT),
                rtt_min: Some(2 * RTT),
                sends: 9,
                segments: Segments::new(10 + 3 * number as u64),
                flight_segments: Segments::new(10 + 3 * number as u64),
                tap_gap: 2 * RTT / 8,
                sees_queues: true,
                ..Round::default()
            };
            change(&mut round);
            rounds.push(&round);
        }
        rounds
    }

    /// The verdict from afar on a wait that an ACK ended behind a send of round `number`.
    fn asked(rounds: &Rounds, number: u64, edge: Edge) -> Option<Verdict> {
        let window = match edge {
            Edge::Far => Window::OPEN,
            Edge::PerhapsNear => Window { is_near: true, ..Window::OPEN },
            Edge::Near(state) => Window { is_near: true, is_told: true, state, ..Window::OPEN },
        };
        let wait = Wait { ended_by: Release::Ack { by_data: false }, window, ..Wait::PLAIN };
        from_afar(&wait, &Near::new(rounds, number, RTT))
    }

    fn told(change: impl Fn(&mut Round)) -> Option<(State, Sure)> {
        let decision = asked(&stream(change), 3, Edge::Far);
        decision.map(|decision| (decision.state, decision.sure))
    }

    #[test]
    fn a_rate_that_fell_varies_only_if_it_came_back() {
        let later = |verdict: Verdict, came_back| by_what_came_later(verdict, came_back).state;
        let fell = Verdict::possible(BandwidthVariable);
        assert_eq!(
            [false, true].map(|back| later(fell, back)),
            [BandwidthSelfQueue, BandwidthVariable]
        );
        let moves = Verdict::likely(BandwidthVariable);
        assert_eq!(later(moves, false), BandwidthVariable, "up and down");
    }

    #[test]
    fn a_stream_that_never_pauses_behind_a_queue_is_a_full_links() {
        let full = Some((BandwidthSelfQueue, Sure::Likely));
        assert_eq!(told(|_| ()), full);
        assert_eq!(told(|r| r.tap_at_sender = true), None);
        assert_eq!(told(|r| r.edge_flight = 1448), None, "the receiver's window was full");
        assert_eq!(told(|r| r.sends = 2), None, "twelve packets");
        assert_eq!(told(|r| r.rtt_min = Some(RTT + RTT / 10)), None, "no queue");
    }

    #[test]
    fn a_pause_speaks_against_it_unless_the_queue_outlasts_it() {
        let pause = |gap: i64, queue: i64| {
            told(|r| (r.tap_gap, r.rtt_min) = (gap, Some(RTT + queue))).is_some()
        };
        assert!(pause(RTT / 2, RTT / 4), "a quarter of the round");
        assert!(!pause(RTT / 2 + 1, RTT / 4));
        assert!(pause(RTT, RTT));
        assert!(!pause(RTT, RTT - 1));
    }

    #[test]
    fn what_a_late_ack_may_have_let_go_is_not_called_the_applications() {
        let mut rounds = Rounds::default();
        rounds.push(&Round {
            end: StackTime(RTT),
            rtt_min: Some(RTT),
            sends: 9,
            ..Round::default()
        });
        let told = |ack_may_be_late| {
            by_rounds(&Wait { ack_may_be_late, ..Wait::PLAIN }, &Near::new(&rounds, 0, RTT))
        };
        assert_eq!(told(false).state, App);
        assert_eq!(told(true).state, State::Unknown);
        assert!(told(true).alternative.contains(&App));
    }

    #[test]
    fn a_flight_that_stands_still_may_have_a_buffer_for_a_lid() {
        assert_eq!(
            told(|r| r.segments = Segments::new(10)),
            Some((BandwidthSelfQueue, Sure::Likely))
        );
        let others = |edge| {
            let decision =
                asked(&stream(|r| r.segments = Segments::new(10)), 3, edge).expect("a full link");
            [Sndbuf, RwndCap].map(|state| decision.alternative.contains(&state))
        };
        assert_eq!(others(Edge::Far), [true, false]);
        assert_eq!(others(Edge::Near(RwndCap)), [false, true]);
        assert_eq!(others(Edge::PerhapsNear), [true, true], "its scale is a guess");
    }

    /// As `told` where no queue can be seen, with a loss in round 3 of ten and this rate after it, in per cent of that
    /// before.
    fn told_blind(lost: bool, percent: i64) -> (State, Sure) {
        let mut rounds = Rounds::default();
        for number in 0..10 {
            let segments = 50 - number % 3;
            let rate = if number > 4 { percent } else { 100 };
            rounds.push(&Round {
                number: number as u64,
                start: StackTime(number * RTT),
                end: StackTime((number + 1) * RTT),
                rtt_min: Some(RTT),
                sends: 50,
                segments: Segments::new(segments as u64),
                flight_segments: Segments::new(segments as u64),
                acked: 1448 * rate,
                loss: lost && number == 3,
                tap_gap: RTT / 40,
                ..Round::default()
            });
        }
        let decision = asked(&rounds, 7, Edge::Far).expect("it passes steadily");
        (decision.state, decision.sure)
    }

    #[test]
    fn where_no_queue_can_be_seen_a_rate_that_a_loss_left_as_it_was_is_the_links() {
        assert_eq!(told_blind(true, 100), (BandwidthSelfQueue, Sure::Likely));
        assert_eq!(told_blind(true, 95), (BandwidthSelfQueue, Sure::Likely));
        assert_eq!(
            told_blind(true, 94),
            (State::Unknown, Sure::Possible),
            "the window was cut, and holds it"
        );
        assert_eq!(told_blind(false, 100), (State::Unknown, Sure::Possible), "a pace is as steady");
    }

    #[test]
    fn near_the_least_window_that_can_be_that_may_be_full() {
        let others = |edge| passes_unseen(edge).alternative.contains(&RwndCap);
        let near = [Edge::PerhapsNear, Edge::Near(RwndCap), Edge::Far].map(others);
        assert_eq!(near, [true, true, false]);
    }
}
