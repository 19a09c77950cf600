//! Clocks of the sender's own, and what its program wrote.

use super::*;
use crate::clocks::StackTime;

#[test]
fn a_steady_stream_without_pauses_seen_from_afar_is_paced() {
    let afar = |n: u64| Round { tap_at_sender: false, sees_queues: true, ..round(n, 36) };
    assert_eq!(state_of(&closed((0..4).map(afar)), 1), State::Pacing);
    // A pause of an eighth of the round and a little more: a window that was full.
    let paused = |n: u64| Round { longest_gap: RTT / 8 + 1, ..afar(n) };
    assert_ne!(state_of(&closed((0..4).map(paused)), 1), State::Pacing);
    let stopped =
        |n: u64| Round { stopped_at: StackTime(n as i64 * RTT + RTT * 7 / 8 - 1), ..afar(n) };
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

/// Nine pulses a round that ACKs and windows jolt; `short` of them end with a short segment. Each
/// third distance is like the one before, or none.
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
            round.pulses.push(StackTime(at), &mut before, Cause::Arrival { before: 0 }, None);
            before = Before { at: StackTime(at), ..before };
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
