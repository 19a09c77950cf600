//! Links that are full or shared.

use super::*;
use crate::clocks::StackTime;
use crate::segments::Segments;

/// Rounds whose packets stood a tenth of a round trip and more in a queue.
fn queued(ack_gap: i64) -> Rounds {
    let late = RTT + RTT / 8;
    closed((0..4).map(|n| Round {
        ack_gap,
        rtt_min: Some(late),
        rtt_max: late,
        rtt_sum: 19 * late,
        phase: Phase::Avoidance,
        ..round(n, 184)
    }))
}

#[test]
fn a_path_that_was_silent_for_half_a_round_was_not_full() {
    assert_eq!(state_of(&queued(RTT / 2), 1), State::BandwidthSelfQueue);
    assert_eq!(state_of(&queued(RTT / 2 + 1), 1), State::CwndAvoidance);
}

#[test]
fn whose_a_queue_is_shows_only_where_the_flight_and_the_queue_vary() {
    let held = acked(Edge::Far);
    let told = |rounds: &Rounds| {
        let decision = told_of(rounds, 2, held);
        (decision.state, decision.alternative.contains(&State::BandwidthExternal))
    };
    assert_eq!(told(&queued(0)), (State::BandwidthSelfQueue, true), "one flight, one delay");
    // Flights from 184 segments up, each answered in the next round after twice the round trip. That grows by `share`
    // per cent of what the flight grows by.
    let vary = |share: i64| {
        let flight = |n: i64| 184 + 20 * (n - 1).max(0);
        closed((0..6).map(|n| {
            let late = 2 * RTT + 2 * RTT * share * (flight(n - 1) - 184) / 18400;
            let (rtt_min, rtt_sum) = (Some(late), 19 * late);
            let phase = Phase::Avoidance;
            let queued = Round { rtt_min, rtt_max: late, rtt_sum, phase, ..round(n as u64, 0) };
            Round {
                flight: flight(n) * 1448,
                flight_segments: Segments::new(flight(n) as u64),
                ..queued
            }
        }))
    };
    assert_eq!(told(&vary(100)), (State::BandwidthSelfQueue, false));
    assert_eq!(told(&vary(60)), (State::BandwidthSelfQueue, false));
    let sure = |rounds: &Rounds| told_of(rounds, 2, held).sure;
    assert_eq!(
        (told(&vary(10)), sure(&vary(10))),
        ((State::BandwidthSelfQueue, true), Sure::Possible)
    );
    let three = closed(vary(10).kept.into_iter().take(4));
    assert_eq!(
        (told(&three), sure(&three)),
        ((State::BandwidthSelfQueue, true), Sure::Likely),
        "three answers"
    );
}

#[test]
fn a_link_that_others_have_a_part_of_is_told_wherever_the_tap_is() {
    let told = |tap_at_sender, per_mille: u64| {
        let mut rounds = queued(0);
        for round in &mut rounds.kept {
            let own = round.acked as u64 * 1_000_000_000 / RTT as u64;
            (round.link, round.tap_at_sender) = (Some(own * 1000 / per_mille), tap_at_sender);
        }
        state_of(&rounds, 1)
    };
    assert_eq!([true, false].map(|at| told(at, 600)), [State::BandwidthExternal; 2]);
    assert_eq!([true, false].map(|at| told(at, 700)), [State::BandwidthSelfQueue; 2]);
}

#[test]
fn what_keeps_a_flight_still_may_hold_the_sender_of_a_full_link() {
    let told = |rounds: &Rounds, edge| {
        let held = acked(edge);
        let decision = told_of(rounds, 2, held);
        let others = decision.alternative;
        (decision.state, [State::Sndbuf, State::RwndCap].map(|state| others.contains(&state)))
    };
    let still = queued(0);
    assert_eq!(told(&still, Edge::Far), (State::BandwidthSelfQueue, [true, false]));
    let near = Edge::Near(State::RwndReader);
    assert_eq!(told(&still, near), (State::BandwidthSelfQueue, [false, true]));
    assert_eq!(
        told(&still, Edge::PerhapsNear),
        (State::BandwidthSelfQueue, [true, true]),
        "a guess"
    );
}

#[test]
fn flights_that_swing_behind_a_full_link_are_no_windows() {
    // The queue goes with the flight, so it is this transfer's own.
    let rounds = |flights: [u64; 6], lost: u64| {
        closed((0..).zip(flights).map(|(n, flight)| {
            let before = flights[(n as usize).saturating_sub(1)];
            let rtt = 2 * RTT * before as i64 / 160;
            let (rtt_min, rtt_max, rtt_sum) = (Some(rtt), rtt, 19 * rtt);
            let phase = Phase::Avoidance;
            Round { rtt_min, rtt_max, rtt_sum, phase, loss: n == lost, ..round(n, flight) }
        }))
    };
    let told = |flights| {
        let held = acked(Edge::Far);
        let decision = told_of(&rounds(flights, u64::MAX), 4, held);
        (decision.state, decision.sure, decision.alternative.contains(&State::Sndbuf))
    };
    let full = State::BandwidthSelfQueue;
    assert_eq!(told([130, 140, 150, 160, 170, 180]), (full, Sure::Likely, false), "it grows");
    assert_eq!(
        told([180, 158, 180, 158, 180, 158]),
        (full, Sure::Likely, false),
        "by less than an eighth"
    );
    assert_eq!(told([183, 158, 182, 158, 183, 157]), (full, Sure::Likely, true));
    assert!(rounds([200, 160, 200, 160, 200, 160], 5).swings(4), "not yet");
    assert!(!rounds([200, 160, 200, 160, 200, 160], 3).swings(4), "cut by a loss");
}

#[test]
fn a_rate_that_goes_up_and_down_under_a_queue_is_the_links() {
    let rounds = |acked: [i64; 6]| {
        closed(acked.into_iter().enumerate().map(|(n, acked)| {
            let late = RTT * 2;
            let (rtt_min, rtt_sum) = (Some(late), 19 * late);
            Round { acked, rtt_min, rtt_sum, phase: Phase::Avoidance, ..round(n as u64, 184) }
        }))
    };
    assert_eq!(state_of(&rounds([60, 90, 60, 90, 60, 90]), 3), State::BandwidthVariable);
    // A quarter up and down.
    assert_eq!(state_of(&rounds([60, 80, 60, 80, 60, 80]), 3), State::BandwidthSelfQueue);
    // One step down, for good.
    assert_eq!(state_of(&rounds([90, 90, 90, 60, 60, 60]), 3), State::BandwidthSelfQueue);
}

#[test]
fn a_link_that_is_slower_than_it_was_varies() {
    let rounds = |is_slower, lost| {
        closed((0..6).map(|n| {
            let late = RTT * 2;
            let (rtt_min, rtt_sum, loss) = (Some(late), 19 * late, lost && n == 3);
            let phase = Phase::Avoidance;
            Round { acked: 60, is_slower, rtt_min, rtt_sum, phase, loss, ..round(n, 184) }
        }))
    };
    assert_eq!(state_of(&rounds(true, false), 3), State::BandwidthVariable);
    assert_eq!(state_of(&rounds(false, false), 3), State::BandwidthSelfQueue);
    assert_ne!(
        state_of(&rounds(true, true), 3),
        State::BandwidthVariable,
        "a repair is slow as well"
    );
}

#[test]
fn rates_of_a_clock_that_stands_still_are_compared_without_harm() {
    let rounds = (0..8).map(|n| {
        let round = Round { phase: Phase::Avoidance, acked: 1 << 33, ..round(n, 100 + 7 * n) };
        Round { start: round.start, end: round.start + 1, ..round }
    });
    assert_eq!(state_of(&closed(rounds), 3), State::CwndAvoidance);
}

/// The state of round 12 of 16, each behind a queue of a fifth of the path's round trip, whose ends come 3 ms too early
/// and too late by turns; a loss in round 6 cuts the window by half, and what arrives falls to `percent` per cent.
fn jittering(lost: bool, percent: i64, queue: i64) -> State {
    let rounds = (0..16).map(|n: u64| {
        let late = |n: u64| if n.is_multiple_of(2) { 3_000_000 } else { 0 };
        let border = |n: u64| StackTime(n as i64 * RTT + late(n));
        let plain = round(n, if n > 6 { 40 + n % 2 } else { 80 });
        let rate = if n > 6 { percent } else { 100 };
        // In the rounds that the comparison rests on, nothing is late.
        let (start, end) = match n {
            0..10 => (plain.start, plain.end),
            10 => (plain.start, border(11)),
            _ => (border(n), border(n + 1)),
        };
        Round {
            start,
            end,
            acked: 1448 * rate,
            loss: lost && n == 6,
            phase: Phase::Avoidance,
            rtt_min: Some(RTT + queue),
            ..plain
        }
    });
    state_of(&closed(rounds), 12)
}

#[test]
fn a_rate_that_a_cut_window_left_as_it_was_is_the_links_though_rounds_vary() {
    let queue = RTT / 5;
    assert_eq!(jittering(true, 100, queue), State::BandwidthSelfQueue);
    assert_eq!(jittering(true, 95, queue), State::BandwidthSelfQueue);
    assert_eq!(
        jittering(true, 94, queue),
        State::CwndAvoidance,
        "the window was cut, and holds it"
    );
    assert_eq!(jittering(false, 100, queue), State::CwndAvoidance, "no loss has tried");
    assert_eq!(jittering(true, 100, RTT / 10), State::CwndAvoidance, "there is no queue");
}
