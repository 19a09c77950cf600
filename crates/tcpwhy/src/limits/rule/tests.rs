//! What rounds of one kind and another are named.

use super::*;
use crate::limits::near::Rounds;
use crate::limits::pulse::{Before, Cause};
use crate::limits::round::{Phase, Round};
use crate::limits::sense::PLATEAU_NS;
use crate::limits::wait::{Edge, Release, Window};
use crate::report::Cwnd;

const RTT: i64 = 20_000_000;

/// A round of that flight, its sends 1 ms apart, each answered a round trip later.
fn round(number: u64, flight: u64) -> Round {
    let start = number as i64 * RTT;
    Round {
        number,
        start,
        end: start + RTT,
        flight: flight as i64 * 1448,
        flight_segments: flight,
        segments: flight,
        acked: flight as i64 * 1448,
        sends: 19,
        ack_released: 19,
        gaps: 18,
        longest_gap: 1_000_000,
        ack_gap: 1_000_000,
        stopped_at: start + 19_000_000,
        rtt_min: Some(RTT),
        rtt_max: RTT,
        rtt_sum: 19 * RTT,
        rtt_count: 19,
        tap_at_sender: true,
        ..Round::default()
    }
}

/// A wait that an ACK ended, with so much of the receiver's window left.
fn acked(edge: Edge) -> Wait {
    let window = match edge {
        Edge::Far => Window::OPEN,
        Edge::PerhapsNear => Window { is_near: true, ..Window::OPEN },
        Edge::Near(state) => Window { is_near: true, is_told: true, state, ..Window::OPEN },
    };
    Wait { ended_by: Release::Ack { by_data: false }, window, ..Wait::PLAIN }
}

/// One that ended by itself, unless its ACK was late; `whole` if the send before it was a full segment.
fn free(by_ack: bool, whole: bool) -> Wait {
    Wait { ack_may_be_late: by_ack, ended_whole: whole, ..Wait::PLAIN }
}

/// What rounds tell of such a wait behind a send of round `number`.
fn told_of(rounds: &Rounds, number: u64, wait: Wait) -> Verdict {
    by_rounds(&wait, &Near::new(rounds, number, RTT))
}

fn closed(rounds: impl IntoIterator<Item = Round>) -> Rounds {
    let mut kept = Rounds::default();
    rounds.into_iter().for_each(|round| kept.push(&round));
    kept
}

fn state_of(rounds: &Rounds, number: u64) -> State {
    held_in(rounds, number, false)
}

fn held_in(rounds: &Rounds, number: u64, past_pulse: bool) -> State {
    let held = Wait { is_past_pulse: past_pulse, ..acked(Edge::Far) };
    told_of(rounds, number, held).state
}

#[test]
fn a_flight_that_stands_still_before_the_first_loss_or_for_seconds_has_a_lid() {
    let cached = |n: u64| Round { phase: Phase::Cached, ..round(n, 184) };
    assert_eq!(state_of(&closed((0..4).map(cached)), 1), State::Sndbuf);
    assert_eq!(state_of(&closed((0..3).map(cached)), 1), State::CwndCachedSsthresh);
    let after_loss = |still| {
        let round = |n: u64| Round { phase: Phase::Avoidance, still, ..round(n, 184) };
        state_of(&closed((0..4).map(round)), 1)
    };
    assert_eq!(after_loss((PLATEAU_NS, 200)), State::CwndAvoidance, "CUBIC's plateau");
    assert_eq!(after_loss((PLATEAU_NS + 1, 200)), State::Sndbuf);
    assert_eq!(after_loss((PLATEAU_NS + 1, 3)), State::CwndAvoidance, "three rounds");
}

#[test]
fn a_steady_stream_without_pauses_seen_from_afar_is_paced() {
    let afar = |n: u64| Round { tap_at_sender: false, sees_queues: true, ..round(n, 36) };
    assert_eq!(state_of(&closed((0..4).map(afar)), 1), State::Pacing);
    // A pause of an eighth of the round and a little more: a window that was full.
    let paused = |n: u64| Round { longest_gap: RTT / 8 + 1, ..afar(n) };
    assert_ne!(state_of(&closed((0..4).map(paused)), 1), State::Pacing);
    let stopped = |n: u64| Round { stopped_at: n as i64 * RTT + RTT * 7 / 8 - 1, ..afar(n) };
    assert_ne!(state_of(&closed((0..4).map(stopped)), 1), State::Pacing);
}

#[test]
fn a_steady_stream_from_afar_shows_no_clock_without_time_stamps() {
    let blind = |n: u64| Round { tap_at_sender: false, tap_gap: RTT, ..round(n, 36) };
    let held = acked(Edge::Far);
    let told = told_of(&closed((0..4).map(blind)), 1, held);
    assert_eq!(told.state, State::Unknown);
    assert!(told.alternative.contains(&State::Pacing), "it may be one: {:?}", told.alternative);
    // Nor do pulses, which a queue of the path may have made.
    let mut pulses = pulsing(false, false);
    for round in &mut pulses.kept {
        (round.tap_at_sender, round.tap_gap) = (false, RTT);
    }
    assert_eq!(told_of(&pulses, 1, free(false, false)).state, State::Unknown);
}

/// Four rounds of three pulses each, which the sender set off itself, and which end so.
fn pulsing(pushed: bool, short: bool) -> Rounds {
    let mut before = Before::NONE;
    closed((0..4).map(|n| {
        let mut round = Round { longest_gap: RTT / 3, ..round(n, 36) };
        for at in [0, RTT / 3, RTT * 2 / 3] {
            round.pulses.push(round.start + at, &mut before, Cause::Own, None);
            before = Before { at: round.start + at, pushed, short, ..before };
        }
        round
    }))
}

#[test]
fn pulses_of_the_senders_own_are_paced_unless_they_end_as_writes_do() {
    let state = |rounds: &Rounds| told_of(rounds, 1, free(false, false)).state;
    assert_eq!(state(&pulsing(false, false)), State::Pacing);
    assert_eq!(state(&pulsing(true, false)), State::Pacing);
    assert_eq!(state(&pulsing(true, true)), State::App);
    let two = pulsing(false, false).kept.into_iter().take(2);
    assert_eq!(state(&closed(two)), State::App, "five gaps tell nothing");
}

#[test]
fn what_waits_longer_than_its_clock_waits_for_a_window() {
    let rounds = pulsing(false, false);
    assert_eq!(held_in(&rounds, 1, false), State::Pacing);
    assert_eq!(held_in(&rounds, 1, true), State::Sndbuf, "flights that stand still have a lid");
}

#[test]
fn what_a_pace_still_holds_may_have_filled_slow_starts_window() {
    let told = |cwnd: Option<u64>, phase| {
        let mut rounds = pulsing(false, false);
        for round in &mut rounds.kept {
            (round.cwnd, round.phase) = (Cwnd { low: cwnd, high: cwnd, best: cwnd }, phase);
        }
        let decision = told_of(&rounds, 1, free(false, false));
        (decision.state, decision.alternative.contains(&State::CwndSlowStart))
    };
    assert_eq!(told(Some(44), Phase::SlowStart), (State::Pacing, true));
    assert_eq!(told(Some(45), Phase::SlowStart), (State::Pacing, false), "it had room for more");
    assert_eq!(told(None, Phase::SlowStart), (State::Pacing, false), "nothing tells of one");
    assert_eq!(told(Some(44), Phase::Avoidance), (State::Pacing, false), "it is over");
}

/// Nine pulses a round that ACKs and windows jolt, of which so many end with a short segment;
/// each third distance is like the one before, or none.
fn jolted(short: usize, some_alike: bool) -> Rounds {
    let mut before = Before::NONE;
    let mut round = Round { longest_gap: RTT / 3, ..round(0, 36) };
    let gaps: &[i64] = if some_alike { &[1, 1, 3] } else { &[1, 3, 9] };
    let mut at = round.start;
    for number in 0..10 {
        round.pulses.push(at, &mut before, Cause::Own, None);
        before = Before { at, pushed: true, short: number < short, ..before };
        at += gaps[number % 3] * RTT / 40;
    }
    closed([round])
}

#[test]
fn pulses_of_whole_segments_are_no_writes_even_where_something_jolts_their_clock() {
    let state = |rounds: &Rounds| told_of(rounds, 0, free(false, false)).state;
    assert_eq!(state(&jolted(1, true)), State::Pacing, "one of nine ends short");
    assert_eq!(state(&jolted(2, true)), State::App);
    assert_eq!(state(&jolted(0, false)), State::App, "no two distances are alike");
}

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
    // Flights from 184 segments up, each answered in the next round after twice the round trip, and
    // so many hundredths more for each hundredth that the flight is larger.
    let vary = |share: i64| {
        let flight = |n: i64| 184 + 20 * (n - 1).max(0);
        closed((0..6).map(|n| {
            let late = 2 * RTT + 2 * RTT * share * (flight(n - 1) - 184) / 18400;
            let (rtt_min, rtt_sum) = (Some(late), 19 * late);
            let phase = Phase::Avoidance;
            let queued = Round { rtt_min, rtt_max: late, rtt_sum, phase, ..round(n as u64, 0) };
            Round { flight: flight(n) * 1448, flight_segments: flight(n) as u64, ..queued }
        }))
    };
    assert_eq!(told(&vary(100)), (State::BandwidthSelfQueue, false));
    assert_eq!(told(&vary(60)), (State::BandwidthSelfQueue, false));
    let sure = |rounds: &Rounds| told_of(rounds, 2, held).confidence;
    assert_eq!((told(&vary(10)), sure(&vary(10))), ((State::BandwidthSelfQueue, true), 55));
    let three = closed(vary(10).kept.into_iter().take(4));
    assert_eq!(
        (told(&three), sure(&three)),
        ((State::BandwidthSelfQueue, true), 70),
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
        (decision.state, decision.confidence, decision.alternative.contains(&State::Sndbuf))
    };
    let full = State::BandwidthSelfQueue;
    assert_eq!(told([130, 140, 150, 160, 170, 180]), (full, 85, false), "it grows");
    assert_eq!(told([180, 158, 180, 158, 180, 158]), (full, 85, false), "by less than an eighth");
    assert_eq!(told([183, 158, 182, 158, 183, 157]), (full, 70, true));
    assert!(rounds([200, 160, 200, 160, 200, 160], 5).swings(4), "not yet");
    assert!(!rounds([200, 160, 200, 160, 200, 160], 3).swings(4), "cut by a loss");
}

#[test]
fn a_lid_within_a_third_of_the_receivers_window_is_that_window() {
    let cached = closed((0..4).map(|n| Round { phase: Phase::Cached, ..round(n, 184) }));
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
    // Six rounds of one burst of so many segments each, of which so many end with a short one.
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
fn from_afar_even_flights_of_two_whole_segments_may_be_a_pace() {
    let told = |segments, end: u64, distances: [i64; 2]| {
        let mut before = Before::NONE;
        let mut at = 0;
        let rounds = closed((0..end).map(|n| {
            let mut round = Round {
                phase: Phase::Cached,
                tap_at_sender: false,
                sees_queues: true,
                tap_gap: RTT,
                gaps: 1,
                ..round(n, segments)
            };
            round.pulses.push(at, &mut before, Cause::Arrival { before: 0 }, None);
            before = Before { at, ..before };
            at += distances[n as usize % 2];
            round
        }));
        state_of(&rounds, 6)
    };
    assert_eq!(told(2, 9, [RTT; 2]), State::Unknown);
    assert_eq!(told(2, 8, [RTT; 2]), State::Sndbuf, "seven distances");
    assert_eq!(told(3, 9, [RTT; 2]), State::Sndbuf, "a small buffer");
    assert_eq!(told(2, 9, [RTT, 2 * RTT]), State::Sndbuf, "no clock");
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
        let rounds = closed((0..4).map(uneven));
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
        let decision = told_of(&closed((0..4).map(of)), 1, held);
        (decision.state, decision.alternative.contains(&State::Pacing))
    };
    assert_eq!(told(RTT - RTT / 8), (State::Sndbuf, true));
    assert_eq!(told(RTT - RTT / 8 - 1), (State::Sndbuf, false), "a full buffer waits for ACKs");
}

#[test]
fn a_lid_whose_pulses_follow_acks_at_even_distances_may_be_a_pace() {
    // So many rounds of four bursts each, which ACKs seem to let go, at these two distances in turn, ended so.
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

#[test]
fn who_fills_the_receivers_window_or_ends_with_a_whole_segment_may_have_written_before() {
    const SURE: (State, &[State]) = (State::App, &[]);
    const UNSURE: (State, &[State]) = (State::App, &[State::Pacing]);
    let told = |edge_flight| {
        let rounds = closed((0..5).map(|n| Round { edge_flight, ..round(n, 10) }));
        let told = [false, true].map(|whole| told_of(&rounds, 2, free(false, whole)));
        (rounds.kept[2].flight, told.map(|one| (one.state, one.alternative)))
    };
    let (flight, far) = told(0);
    assert_eq!(far, [SURE, UNSURE]);
    assert_eq!(told(flight - 1).1, [SURE, UNSURE], "another flight was larger");
    assert_eq!(told(flight).1, [UNSURE; 2]);
}

/// Rounds of slow start in which so many segments flew; the window would have let out as many as `windows`.
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

#[test]
fn flights_that_grow_and_bring_no_rate_stand_in_a_queue_though_it_empties_once_a_round_trip() {
    // Five flights from `first` segments up by so many a round, each answered in the next at a rate that grows by so
    // many thousandths a round.
    let grown = |first: u64, more: u64, gained: i64| {
        let acked = first as i64 * 1448;
        (0..5).map(move |n| Round {
            phase: Phase::Avoidance,
            acked: acked + acked * gained * (n as i64 - 1).max(0) / 1000,
            ..round(n, first + more * n)
        })
    };
    let told = |first, more, gained| state_of(&closed(grown(first, more, gained)), 2);
    assert_eq!(
        told(100, 7, 0),
        State::BandwidthSelfQueue,
        "21 % when the last answer was sent for"
    );
    assert_eq!(told(100, 6, 0), State::CwndAvoidance, "18 %");
    let four = closed(grown(100, 20, 0).take(4));
    assert_eq!(state_of(&four, 2), State::CwndAvoidance, "four rounds");
    assert_eq!(
        told(100, 10, 25),
        State::BandwidthSelfQueue,
        "a quarter of what the flight grew by"
    );
    assert_eq!(told(100, 10, 26), State::CwndAvoidance);
    assert_eq!(told(40, 3, 0), State::BandwidthSelfQueue);
    assert_eq!(told(39, 3, 0), State::CwndAvoidance, "a segment matters");
}

#[test]
fn a_path_that_was_outgrown_is_full_as_long_as_it_delivers_as_much() {
    // Flights of 100 segments and more bring no rate; many rounds later a flight has so many, at so many thousandths
    // of that rate, after a loss or not.
    let told = |flight: u64, share: i64, loss: bool| {
        let grown = (0..5).map(|n| Round { acked: 144_800, ..round(n, 100 + 7 * n) });
        let later = (5..20).map(|n| Round {
            acked: 144_800 * if n == 5 { 1000 } else { share } / 1000,
            loss: loss && n == 5,
            ..round(n, flight)
        });
        let rounds = grown.chain(later).map(|r| Round { phase: Phase::Avoidance, ..r });
        state_of(&closed(rounds), 15)
    };
    assert_eq!(told(100, 950, false), State::BandwidthSelfQueue);
    assert_eq!(told(99, 950, false), State::CwndAvoidance, "too few to fill it");
    assert_eq!(told(100, 949, false), State::CwndAvoidance, "something else took from it");
    assert_eq!(told(100, 1000, true), State::CwndAvoidance, "it may be another path since");
}

#[test]
fn rates_of_a_clock_that_stands_still_are_compared_without_harm() {
    let rounds = (0..8).map(|n| {
        let round = Round { phase: Phase::Avoidance, acked: 1 << 33, ..round(n, 100 + 7 * n) };
        Round { start: round.start, end: round.start + 1, ..round }
    });
    assert_eq!(state_of(&closed(rounds), 3), State::BandwidthSelfQueue);
}

/// The state of round 12 of 16, each behind a queue of a fifth of the path's round trip, whose ends come 3 ms too early
/// and too late by turns; a loss in round 6 cuts the window by half, and what arrives becomes so much in per cent.
fn jittering(lost: bool, percent: i64, queue: i64) -> State {
    let rounds = (0..16).map(|n: u64| {
        let border = |n: u64| n as i64 * RTT + if n.is_multiple_of(2) { 3_000_000 } else { 0 };
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
    assert_eq!(jittering(true, 100, RTT / 10), State::CwndAvoidance, "no queue stands");
}

#[test]
fn each_rule_has_a_name_of_its_own() {
    let mut names: Vec<&str> = ORDER.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ORDER.len());
}

#[test]
fn what_a_send_tells_is_asked_before_what_rounds_tell() {
    let is_later = |rule: &Rule| matches!(rule.ask, Ask::TwoRoundsLater(_));
    assert!(
        ORDER.is_sorted_by_key(is_later),
        "else a rule would be asked out of the table's order"
    );
}
