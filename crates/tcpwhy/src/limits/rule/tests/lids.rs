//! Flights that something else than the congestion window keeps still.

use super::*;
use crate::limits::sense::PLATEAU_NS;

#[test]
fn a_flight_that_stands_still_before_the_first_loss_or_for_seconds_has_a_lid() {
    let cached = |n: u64| Round { phase: Phase::Cached, ..round(n, 184) };
    assert_eq!(state_of(&closed((0..6).map(cached)), 3), State::Sndbuf);
    assert_eq!(state_of(&closed((0..5).map(cached)), 3), State::CwndCachedSsthresh);
    let creeps = |n: u64| Round { phase: Phase::Cached, ..round(n, 12 + n / 2) };
    assert_eq!(
        state_of(&closed((0..7).map(creeps)), 2),
        State::CwndCachedSsthresh,
        "to the segment"
    );
    let after_loss = |still| {
        let round = |n: u64| Round { phase: Phase::Avoidance, still, ..round(n, 184) };
        state_of(&closed((0..4).map(round)), 1)
    };
    assert_eq!(after_loss((PLATEAU_NS, 200)), State::CwndAvoidance, "CUBIC's plateau");
    assert_eq!(after_loss((PLATEAU_NS + 1, 200)), State::Sndbuf);
    assert_eq!(after_loss((PLATEAU_NS + 1, 3)), State::CwndAvoidance, "three rounds");
    // Reno's window would have grown by all of 184 segments in 372 rounds, however short.
    assert_eq!(after_loss((1, 372)), State::CwndAvoidance);
    assert_eq!(after_loss((1, 373)), State::Sndbuf);
}

#[test]
fn a_flight_that_stands_still_for_eight_rounds_behind_a_loss_may_have_a_lid() {
    let told = |rounds| {
        let still = (RTT, rounds);
        let of = |n: u64| Round { phase: Phase::Avoidance, still, rtt_count: 1, ..round(n, 184) };
        let told = told_of(&closed((0..4).map(of)), 1, acked(Edge::Far));
        (told.state, told.sure, told.alternative.contains(&State::Sndbuf))
    };
    assert_eq!(told(7), (State::CwndAvoidance, Sure::Shown, false));
    assert_eq!(told(8), (State::CwndAvoidance, Sure::Likely, true));
}

#[test]
fn a_lid_within_a_third_of_the_receivers_window_is_that_window() {
    let cached = closed((0..6).map(|n| Round { phase: Phase::Cached, ..round(n, 184) }));
    let told = |edge| {
        let held = acked(edge);
        let decision = told_of(&cached, 1, held);
        (decision.state, decision.alternative.contains(&State::RwndCap))
    };
    let near = Edge::Near(State::RwndReader);
    assert_eq!(told(near), (State::RwndReader, false), "Linux waits for more room");
    assert_eq!(told(Edge::PerhapsNear), (State::Sndbuf, true), "its scale is a guess");
    assert_eq!(told(Edge::Far), (State::Sndbuf, false));
}

#[test]
fn from_afar_a_lid_whose_flights_end_as_writes_do_is_the_application() {
    // Six rounds of one burst of `segments` each; `short` of the rounds end with a short one.
    let told = |segments, short: u64, tap_at_sender| {
        let mut before = Before::NONE;
        let rounds = closed((0..6).map(|n| {
            let phase = Phase::Cached;
            let mut round =
                Round { phase, tap_at_sender, tap_gap: RTT, gaps: 1, ..round(n, segments) };
            round.pulses.push(round.start, &mut before, Cause::Arrival { before: 0 }, None);
            before = Before { at: round.start, pushed: true, short: n < short, ..before };
            round
        }));
        state_of(&rounds, 3)
    };
    assert_eq!(told(2, 6, false), State::App);
    assert_eq!(told(2, 4, false), State::App, "four of five");
    assert_eq!(told(2, 3, false), State::Sndbuf, "three of five");
    assert_eq!(told(3, 6, false), State::Sndbuf, "a writer that blocks may end so");
    assert_eq!(told(2, 6, true), State::Sndbuf, "ACKs were seen to let them go");
}

#[test]
fn from_afar_a_lid_may_be_a_pace_where_data_pauses_for_less_than_half_the_round() {
    let told = |tap_gap| {
        let of = |n| Round {
            phase: Phase::Cached,
            tap_at_sender: false,
            sees_queues: true,
            tap_gap,
            ..round(n, 12)
        };
        let uneven = |n: u64| Round { gaps: 4, acked: 1448 * (9 + n as i64 % 3), ..of(n) };
        let rounds = closed((0..6).map(uneven));
        let held = acked(Edge::Far);
        let decision = told_of(&rounds, 1, held);
        (decision.state, decision.alternative.contains(&State::Pacing))
    };
    assert_eq!(told(RTT / 2), (State::Sndbuf, true));
    assert_eq!(told(RTT / 2 + 1), (State::Sndbuf, false), "a buffer's silence");
}

#[test]
fn a_lid_that_leaves_no_silence_may_be_a_pace() {
    let told = |stopped: i64| {
        let of = |n| {
            let round = round(n, 184);
            Round { phase: Phase::Cached, stopped_at: round.start + stopped, ..round }
        };
        let held = acked(Edge::Far);
        let decision = told_of(&closed((0..6).map(of)), 1, held);
        (decision.state, decision.alternative.contains(&State::Pacing))
    };
    assert_eq!(told(RTT - RTT / 8), (State::Sndbuf, true));
    assert_eq!(told(RTT - RTT / 8 - 1), (State::Sndbuf, false), "a full buffer waits for ACKs");
}

#[test]
fn a_lid_whose_pulses_follow_acks_at_even_distances_may_be_a_pace() {
    // `rounds` of four bursts each, which ACKs seem to let go, at these two distances in turn, ended so.
    let told = |rounds: u64, [one, other]: [i64; 2], short: bool, edge: Edge, tap_gap: i64| {
        let mut before = Before::NONE;
        let rounds = closed((0..rounds).map(|n| {
            let mut round = Round {
                phase: Phase::Cached,
                tap_gap,
                longest_gap: RTT / 4,
                gaps: 4,
                ..round(n, 8)
            };
            for at in [0, one, one + other, 2 * one + other] {
                round.pulses.push(
                    round.start + at,
                    &mut before,
                    Cause::Arrival { before: 0 },
                    None,
                );
                before = Before { at: round.start + at, pushed: true, short, ..before };
            }
            round
        }));
        let held = Wait { has_passed_over_acks: true, ..acked(edge) };
        let decision = told_of(&rounds, 1, held);
        (decision.state, decision.alternative.contains(&State::Pacing))
    };
    let even = [RTT / 4; 2];
    let (buffer, may_be_paced) = ((State::Sndbuf, false), (State::Sndbuf, true));
    assert_eq!(told(4, even, false, Edge::Far, RTT / 2), may_be_paced);
    assert_eq!(told(4, even, false, Edge::PerhapsNear, RTT / 2), may_be_paced);
    assert_eq!(told(4, even, false, Edge::Far, RTT / 2 + 1), buffer, "a full window's silence");
    assert_eq!(told(2, even, false, Edge::Far, RTT / 2), buffer, "seven distances");
    assert_eq!(told(4, [RTT / 3, RTT / 6], false, Edge::Far, RTT / 2), buffer, "no clock");
    assert_eq!(told(4, even, true, Edge::Far, RTT / 2), buffer, "they end as writes do");
}

#[test]
fn a_flight_that_stands_still_for_eight_rounds_in_a_window_that_no_loss_has_cut_has_a_lid() {
    let in_phase = |phase, rounds: u32| {
        let round = |n: u64| {
            let still = (n as i64 * RTT, n as u32 + 1);
            Round { phase, still, ..round(n, 184) }
        };
        let closed = closed((0..u64::from(rounds)).map(round));
        state_of(&closed, u64::from(rounds) - 1)
    };
    assert_eq!(in_phase(Phase::Uncut, 8), State::Sndbuf);
    assert_eq!(in_phase(Phase::Uncut, 7), State::CwndAvoidance);
    assert_eq!(in_phase(Phase::Avoidance, 8), State::CwndAvoidance, "CUBIC's plateau");
}

/// Rounds of slow start with these `flights` in segments; the window would have let out as many as `windows`.
fn flights(flights: [u64; 5], windows: [u64; 5]) -> Rounds {
    closed((0..5).map(|n| {
        let window = Some(windows[n]);
        let cwnd = Cwnd { low: window, high: window, best: window };
        Round { cwnd, ..round(n as u64, flights[n]) }
    }))
}

#[test]
fn a_flight_that_swings_below_the_window_of_slow_start_has_a_lid() {
    let windows = [20, 40, 80, 120, 180];
    let swings = flights([20, 32, 76, 48, 90], windows);
    let states = [0, 1, 2, 3, 4].map(|n| state_of(&swings, n));
    let (window, lid) = (State::CwndSlowStart, State::Sndbuf);
    assert_eq!(states, [window, lid, lid, lid, lid], "the third is between two that are below");
    let once = flights([20, 32, 80, 120, 180], windows);
    assert_eq!([0, 1, 2, 3, 4].map(|n| state_of(&once, n)), [window; 5], "one round alone");
    let mut stopped = swings.kept.clone();
    for at in [1, 3] {
        stopped[at].edge_flight = stopped[at].flight;
    }
    let between = state_of(&closed(stopped), 2);
    assert_eq!(between, window, "the receiver's window stopped those around it");
    let mut written = swings.kept.clone();
    written[3].free = 1;
    assert_eq!(state_of(&closed(written), 2), window, "a write of its own came between");
    let far = flights([20, 32, 80, 120, 90], windows);
    assert_eq!([0, 1, 2, 3, 4].map(|n| state_of(&far, n)), [window; 5], "two that are far apart");
}

#[test]
fn flights_below_what_slow_start_has_let_out_before_have_a_lid_though_no_replay_knows_the_window() {
    let told = |below: &[u64]| {
        let rounds = [10, 20, 27, 20, 21].into_iter().zip(0..).map(|(flight, n)| Round {
            phase: Phase::SlowStart,
            cwnd: Cwnd { low: Some(flight), ..Cwnd::default() },
            let_out_more: below.contains(&n),
            ..round(n, flight)
        });
        let closed = closed(rounds);
        [3, 4].map(|n| state_of(&closed, n))
    };
    assert_eq!(told(&[3, 4]), [State::Sndbuf; 2]);
    assert_eq!(told(&[3]), [State::CwndSlowStart; 2], "one round alone");
}
