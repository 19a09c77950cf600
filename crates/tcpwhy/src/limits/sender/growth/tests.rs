use super::*;

/// Rounds with these flights in segments, released by ACKs; which of them showed the end of slow start.
fn shown(growth: &mut Growth, flights: &[u64]) -> Vec<Option<u64>> {
    let round = |(number, segments): (usize, &u64)| Round {
        number: number as u64,
        start: StackTime(number as i64 * 100),
        segments: Segments::new(*segments),
        flight_segments: Segments::new(*segments),
        ack_released: 1,
        advances: *segments as u32 / 2,
        ..Round::default()
    };
    let rounds = flights.iter().enumerate().map(round);
    rounds.map(|round| growth.push(&round, 100).map(|from| from.number)).collect()
}

#[test]
fn slow_start_ended_with_the_first_round_that_crept() {
    let mut growth = Growth::default();
    let seen = shown(&mut growth, &[10, 20, 40, 44, 45, 46, 47]);
    assert_eq!(seen, [None, None, None, None, None, Some(3), None]);
    assert_eq!(growth.exit, Some((StackTime(300), Some(Segments::new(44)), ExitCause::Cached)));
    assert_eq!(growth.phase(), Phase::Cached);
}

#[test]
fn rounds_that_may_creep_are_undecided_until_they_grow_or_stand_still_for_long() {
    let mut growth = Growth::default();
    shown(&mut growth, &[10, 20, 40, 44]);
    let undecided = |growth: &Growth, round| growth.is_undecided(round, 4);
    assert_eq!([2, 3, 4].map(|round| undecided(&growth, round)), [false, true, true]);
    let lid = u64::from(UNCUT_LID_ROUNDS);
    assert!(growth.is_undecided(3, 3 + lid - 1));
    assert!(!growth.is_undecided(3, 3 + lid), "by then a lid would show");
    let (mut creeps, mut doubles) = (Growth::default(), Growth::default());
    shown(&mut creeps, &[10, 20, 40, 44, 45, 46]);
    assert!(!creeps.is_undecided(3, 6), "it crept");
    shown(&mut doubles, &[10, 20, 40, 80]);
    assert!(!doubles.is_undecided(3, 4));
}

#[test]
fn a_loss_or_the_threshold_ends_what_a_pause_began() {
    let after_pause = |round: &Round| {
        let mut growth = Growth { regain: Some(Segments::new(30)), ..Growth::default() };
        growth.push(round, 100);
        growth.phase()
    };
    let round = Round {
        segments: Segments::new(20),
        flight_segments: Segments::new(29),
        ..Round::default()
    };
    assert_eq!(after_pause(&round), Phase::AfterIdle);
    assert_eq!(
        after_pause(&Round { flight_segments: Segments::new(30), ..round }),
        Phase::SlowStart
    );
    assert_eq!(after_pause(&Round { loss: true, ..round }), Phase::SlowStart);
}

/// The phase after these flights in segments, each with its ACKs in `advances`.
fn phase_after(flights: &[u64], advances: &[u32]) -> Phase {
    let mut growth = Growth::default();
    for ((number, segments), advances) in (0..).zip(flights).zip(advances) {
        growth.push(
            &Round {
                number,
                segments: Segments::new(*segments),
                flight_segments: Segments::new(*segments),
                ack_released: 1,
                advances: *advances,
                ..Round::default()
            },
            100,
        );
    }
    growth.phase()
}

#[test]
fn a_flight_that_grows_by_a_segment_or_two_for_each_thin_ack_is_in_slow_start() {
    // Two segments for an ACK, the most that RFC 3465 allows.
    let flights = [8, 10, 12, 14, 16, 20, 24, 32, 40, 50];
    let acks = [1, 1, 1, 1, 2, 2, 4, 4, 5, 5];
    assert_eq!(phase_after(&flights, &acks), Phase::SlowStart);
    // One segment for an ACK of four.
    let flights = [16, 20, 25, 31, 39, 49, 61];
    assert_eq!(phase_after(&flights, &[4, 4, 5, 6, 8, 10, 12]), Phase::SlowStart);
}

#[test]
fn growth_that_avoidance_may_give_or_that_many_acks_gave_is_the_end_of_slow_start() {
    let creeps = phase_after(&[16, 17, 18, 19, 20], &[1; 5]);
    assert_eq!(creeps, Phase::Cached, "a segment a round, whatever the ACKs");
    let twentieth = phase_after(&[160, 168, 176, 185, 194], &[4; 5]);
    assert_eq!(twentieth, Phase::Cached, "CUBIC, behind a receiver that joins segments");
    let many = phase_after(&[16, 20, 25, 31, 39, 49], &[8, 10, 12, 15, 19, 24]);
    assert_eq!(many, Phase::Cached, "an ACK for two segments doubles the half of it");
}

#[test]
fn hystart_is_named_by_what_it_saw_until_the_flight_crept() {
    let exit = |sign_in: u64, flights: &[u64]| {
        let mut growth = Growth::default();
        for (number, segments) in (0..).zip(flights) {
            let start = number as i64 * 1000;
            let train_end = if number == sign_in { start + 51 } else { start };
            growth.push(
                &Round {
                    number,
                    start: StackTime(start),
                    train_end: StackTime(train_end),
                    segments: Segments::new(*segments),
                    flight_segments: Segments::new(*segments),
                    ack_released: 1,
                    advances: 100,
                    ..Round::default()
                },
                100,
            );
        }
        growth.exit.map(|exit| exit.2)
    };
    let flights = [10, 20, 40, 44, 45, 46];
    assert_eq!(exit(2, &flights), Some(ExitCause::HystartTrain), "as the window last doubled");
    assert_eq!(exit(3, &flights), Some(ExitCause::HystartTrain));
    assert_eq!(exit(4, &flights), Some(ExitCause::Cached), "too late to have ended it");
    assert_eq!(exit(1, &flights), Some(ExitCause::Cached), "it doubled once more");
    let dips = [10, 20, 40, 36, 41, 42, 43];
    assert_eq!(exit(2, &dips), Some(ExitCause::HystartTrain), "another lid was between");
}

#[test]
fn what_a_loss_has_cut_is_no_more_held_by_a_remembered_threshold() {
    let mut growth = Growth::default();
    shown(&mut growth, &[10, 20, 40, 44, 45, 46]);
    assert_eq!(growth.phase(), Phase::Cached);
    growth.cut(Segments::new(46), 0);
    // In the round of the loss all that was in flight before it still counts.
    growth.push(
        &Round {
            segments: Segments::new(4),
            flight_segments: Segments::new(46),
            loss: true,
            ..Round::default()
        },
        1,
    );
    assert_eq!(growth.phase(), Phase::AfterLoss);
    growth.push(
        &Round {
            segments: Segments::new(46),
            flight_segments: Segments::new(46),
            ..Round::default()
        },
        1,
    );
    assert_eq!(growth.phase(), Phase::Avoidance);
}

#[test]
fn a_flight_that_stands_still_has_another_lid() {
    let mut growth = Growth::default();
    assert!(shown(&mut growth, &[10, 20, 40, 40, 40, 40, 41, 40]).iter().all(Option::is_none));
    assert_eq!(growth.phase(), Phase::SlowStart);
}

#[test]
fn a_flight_below_what_was_let_out_before_does_not_fill_the_window() {
    let mut growth = Growth::default();
    assert!(shown(&mut growth, &[10, 20, 40, 20, 22, 24, 26]).iter().all(Option::is_none));
    assert_eq!(growth.phase(), Phase::SlowStart);
    growth.cut(Segments::new(20), 0);
    let seen = shown(&mut growth, &[20, 22, 24, 26]);
    assert_eq!(seen.iter().flatten().count(), 1, "a loss has cut it: {seen:?}");
    let mut growth = Growth::default();
    let seen = shown(&mut growth, &[10, 20, 40, 35, 36, 37, 38]);
    assert_eq!(seen.iter().flatten().count(), 1, "within what an ACK may hide: {seen:?}");
}

#[test]
fn rounds_that_no_window_limited_are_no_steps_of_its_growth() {
    let mut growth = Growth::default();
    shown(&mut growth, &[10, 20]);
    for number in 2..20 {
        let (segments, free) = if number % 2 == 0 { (20, 20) } else { (21, 0) };
        let round = Round {
            number,
            segments: Segments::new(segments),
            flight_segments: Segments::new(segments),
            ack_released: 1,
            free,
            ..Round::default()
        };
        assert_eq!(growth.push(&round, 100), None);
    }
    assert_eq!(growth.phase(), Phase::SlowStart);
}

#[test]
fn a_window_has_let_out_more_until_it_is_cut() {
    let mut growth = Growth::default();
    shown(&mut growth, &[20, 40]);
    assert!(
        growth.has_let_out_more(Segments::new(34)) && !growth.has_let_out_more(Segments::new(35)),
        "seven eighths of 40"
    );
    let paused = Growth { regain: Some(Segments::new(30)), ..growth };
    assert!(!paused.has_let_out_more(Segments::new(10)), "a pause has cut it");
    growth.cut(Segments::new(40), 0);
    assert!(!growth.has_let_out_more(Segments::new(10)));
}

#[test]
fn what_a_needless_repair_took_is_given_back() {
    let mut growth = Growth::default();
    let cut = |growth: &mut Growth, at: i64, repair| {
        growth.cut(Segments::new(40), repair);
        growth.leave_slow_start(StackTime(at), Some(Segments::new(40)), ExitCause::Loss);
    };
    shown(&mut growth, &[10, 20, 40]);
    cut(&mut growth, 300, 7);
    assert_eq!(growth.phase(), Phase::AfterLoss);
    assert!(!growth.give_back(6), "another's");
    assert!(growth.give_back(7));
    assert_eq!(growth.phase(), Phase::SlowStart);
    shown(&mut growth, &[80, 84, 86, 88]);
    assert_eq!(growth.phase(), Phase::Uncut, "flights that creep tell that it ended");
}

/// Whether slow start goes on after a needless repair, if then flights are about as large each time, in rounds of 100 with
/// a train of ACKs as long as this.
fn goes_on_behind(train: i64) -> bool {
    let mut growth = Growth::default();
    shown(&mut growth, &[10, 20, 40]);
    growth.cut(Segments::new(40), 7);
    growth.leave_slow_start(StackTime(300), Some(Segments::new(40)), ExitCause::Loss);
    growth.give_back(7);
    for (number, segments) in (3..).zip([40, 36, 38]) {
        let start = number as i64 * 100;
        growth.push(
            &Round {
                number,
                start: StackTime(start),
                train_end: StackTime(start + train),
                segments: Segments::new(segments),
                flight_segments: Segments::new(40),
                ack_released: 1,
                ..Round::default()
            },
            100,
        );
    }
    growth.phase() == Phase::SlowStart
}

#[test]
fn flights_that_stand_still_after_a_needless_repair_tell_the_end_only_with_a_sign_of_it() {
    assert!(goes_on_behind(50), "another lid");
    assert!(!goes_on_behind(51), "a train of half the round trip ends slow start");
}

#[test]
fn what_a_loss_has_cut_since_is_not_given_back() {
    let mut growth = Growth::default();
    shown(&mut growth, &[10, 20, 40]);
    for repair in [7, 8] {
        growth.cut(Segments::new(40), repair);
        growth.leave_slow_start(StackTime(300), Some(Segments::new(40)), ExitCause::Loss);
    }
    assert!(!growth.give_back(7));
    assert_eq!(growth.phase(), Phase::AfterLoss);
}

#[test]
fn a_flight_lost_is_below_the_window_until_it_is_regained() {
    let mut growth = Growth::default();
    growth.leave_slow_start(StackTime(7), Some(Segments::new(30)), ExitCause::Loss);
    growth.leave_slow_start(StackTime(9), None, ExitCause::Unknown);
    growth.cut(Segments::new(30), 0);
    shown(&mut growth, &[20]);
    assert_eq!(growth.phase(), Phase::AfterLoss);
    shown(&mut growth, &[30]);
    assert_eq!(growth.phase(), Phase::Avoidance);
    assert_eq!(
        growth.exit,
        Some((StackTime(7), Some(Segments::new(30)), ExitCause::Loss)),
        "the first cause stays"
    );
}

#[test]
fn a_window_creeps_though_its_rounds_vary_by_a_segment_and_a_lid_does_not() {
    let phase = |flights: &[u64]| {
        let mut growth = Growth::default();
        shown(&mut growth, flights);
        growth.phase()
    };
    assert_eq!(phase(&[10, 10, 9, 12, 11, 13]), Phase::Cached);
    assert_eq!(phase(&[10, 20, 40, 41, 40, 41, 40, 41]), Phase::SlowStart, "to the segment");
    assert_eq!(phase(&[10, 20, 40, 42, 40, 42, 40, 42]), Phase::SlowStart, "it swings");
}
