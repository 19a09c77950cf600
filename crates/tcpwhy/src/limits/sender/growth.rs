//! How the flight grew from round to round, and where slow start ended (limits-method section 5).
//!
//! What a round sends is the window's worth. In slow start it doubles; two rounds in three that
//! grow by less than half, and do grow, are congestion avoidance since the first slow one. A
//! flight that stays the same, or rises once, has another lid than the window; so has one below what the window has
//! let out since it was last cut. Where the receiver thins its ACKs, a sender that counts ACKs and not bytes grows in
//! slow start by less than half, too, but by more than in congestion avoidance.

use super::hystart::Signs;
use crate::limits::round::{Phase, Round};
use crate::limits::sense::{AVOIDANCE, DOUBLES, FILLS, GROWN_STEPS, THINNED};

/// Why slow start ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ExitCause {
    Loss,
    HystartDelay,
    HystartTrain,
    Cached,
    Unknown,
    /// In a gap of the capture.
    Unseen,
}

/// The first flight, once an ACK of data ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialFlight {
    pub(crate) segments: u64,
    pub(crate) bytes: i64,
    pub(crate) full: Option<bool>,
}

/// A round from which the flight no longer doubled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SlowFrom {
    pub(crate) flight: u64,
    pub(crate) start: i64,
    pub(crate) number: u64,
    /// What `HyStart` saw up to then since the flight last doubled.
    signs: Signs,
}

/// Flights of the cwnd-limited rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    last: u64,
    slow: u32,
    /// The first of the slow rounds.
    slow_from: Option<SlowFrom>,
    /// ACKs since then, and how many segments they took.
    acks: u64,
    taken: u64,
    /// What `HyStart` saw since the flight last doubled.
    signs: Signs,
    /// The round from which on the flight grew by thinned ACKs: what it would be on all of them tells nothing then.
    pub(crate) thinned_from: Option<u64>,
    /// Which of the last three of them grew.
    steps: u8,
    /// Most segments in flight since the window was last cut.
    most: u64,
    /// When slow start ended, with which window, and why.
    pub(crate) exit: Option<(i64, Option<u64>, ExitCause)>,
    /// Threshold left by an idle restart; slow start goes on up to it.
    pub(crate) regain: Option<u64>,
    /// Flight at the last loss, until regained.
    pub(crate) lost_at: Option<u64>,
    /// A loss or a mark has cut the window.
    pub(crate) was_cut: bool,
}

impl Growth {
    /// Slow start ended at `at` with a window of `ssthresh`, unless it had ended before.
    pub(crate) fn leave_slow_start(&mut self, at: i64, ssthresh: Option<u64>, cause: ExitCause) {
        self.exit.get_or_insert((at, ssthresh, cause));
    }

    /// A loss cuts the window of `cwnd` segments.
    pub(crate) fn cut(&mut self, cwnd: u64) {
        (self.lost_at, self.was_cut, self.most) = (Some(cwnd), true, 0);
    }

    /// Whether the window, which nothing has cut since, has let out clearly more than `flight` segments.
    pub(crate) fn has_let_out_more(&self, flight: u64) -> bool {
        self.regain.is_none() && !FILLS.is_reached(flight, self.most)
    }

    /// Takes a closed round; from which round on slow start had ended, if this one shows it.
    pub(crate) fn push(&mut self, round: &Round, least_rtt: i64) -> Option<SlowFrom> {
        let flight = round.segments;
        let below = |before: &u64| round.flight_segments < *before;
        // A loss ends slow start, after a pause too.
        let regaining = self.regain.filter(|_| !round.loss);
        self.regain = regaining.filter(below);
        // What was in flight in the round of a loss was so before it.
        self.lost_at = self.lost_at.filter(|before| round.loss || below(before));
        let is_full = !self.has_let_out_more(round.flight_segments);
        // A pause cuts it, too.
        let most = if self.regain.is_some() { 0 } else { self.most };
        self.most = most.max(round.flight_segments);
        let limited = round.ack_released > round.free && round.edge_flight == 0 && is_full;
        let signs = Signs::of(round, least_rtt);
        if !limited || self.exit.is_some() {
            (self.last, self.slow, self.signs) = (flight, 0, self.signs.or(signs));
            return None;
        }
        let slow = !DOUBLES.is_reached(flight, self.last);
        let last = core::mem::replace(&mut self.last, flight);
        self.signs = if slow { self.signs.or(signs) } else { signs };
        if !slow || flight < last {
            self.slow = 0;
            return None;
        }
        self.slow += 1;
        if self.slow == 1 {
            let (start, number, signs) = (round.start, round.number, self.signs);
            self.slow_from = Some(SlowFrom { flight, start, number, signs });
            (self.steps, self.acks, self.taken) = (0, 0, 0);
            return None;
        }
        self.acks += u64::from(round.advances);
        self.taken += last;
        self.steps = self.steps << 1 & 7 | u8::from(flight > last);
        let from = self.slow_from.filter(|_| self.steps.count_ones() >= GROWN_STEPS)?;
        if self.is_thinned(&from, flight) {
            self.slow = 0;
            self.thinned_from.get_or_insert(from.number);
            return None;
        }
        self.leave_slow_start(from.start, Some(from.flight), cause(from.signs));
        Some(from)
    }

    /// Whether the growth from the slow round `from` to this `flight` is that of slow start on thinned ACKs: more
    /// than congestion avoidance gives in these rounds, and a segment or two for each ACK (RFC 5681 section 3.1, RFC
    /// 3465 section 2.1). Each ACK took more than two segments.
    fn is_thinned(&self, from: &SlowFrom, flight: u64) -> bool {
        let rounds = u64::from(self.slow - 1);
        let grown = flight.saturating_sub(from.flight);
        grown > rounds * AVOIDANCE.of(from.flight).max(1)
            // The ACK that ends a round is counted with what it ends.
            && grown + 1 >= self.acks
            && THINNED.is_reached(self.taken, self.acks)
    }

    /// How the waits of the open round are to be named when the congestion window held them.
    pub(crate) fn phase(&self) -> Phase {
        if self.regain.is_some() {
            return Phase::AfterIdle;
        }
        match self.exit {
            None => Phase::SlowStart,
            Some(_) if self.lost_at.is_some() => Phase::AfterLoss,
            // What a loss has cut since is held by what that left.
            Some((_, _, ExitCause::Cached)) if !self.was_cut => Phase::Cached,
            Some((_, _, ExitCause::Unseen)) => Phase::Unseen,
            Some(_) if !self.was_cut => Phase::Uncut,
            Some(_) => Phase::Avoidance,
        }
    }
}

/// What made slow start end without a loss: one of the signs of `HyStart`, else a threshold that was remembered.
const fn cause(signs: Signs) -> ExitCause {
    match signs {
        Signs { delay: true, .. } => ExitCause::HystartDelay,
        Signs { train: true, .. } => ExitCause::HystartTrain,
        _ => ExitCause::Cached,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds with these flights in segments, released by ACKs; which of them showed the end of slow start.
    fn shown(growth: &mut Growth, flights: &[u64]) -> Vec<Option<u64>> {
        let round = |(number, segments): (usize, &u64)| Round {
            number: number as u64,
            start: number as i64 * 100,
            segments: *segments,
            flight_segments: *segments,
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
        assert_eq!(growth.exit, Some((300, Some(44), ExitCause::Cached)));
        assert_eq!(growth.phase(), Phase::Cached);
    }

    #[test]
    fn a_loss_or_the_threshold_ends_what_a_pause_began() {
        let after_pause = |round: &Round| {
            let mut growth = Growth { regain: Some(30), ..Growth::default() };
            growth.push(round, 100);
            growth.phase()
        };
        let round = Round { segments: 20, flight_segments: 29, ..Round::default() };
        assert_eq!(after_pause(&round), Phase::AfterIdle);
        assert_eq!(after_pause(&Round { flight_segments: 30, ..round }), Phase::SlowStart);
        assert_eq!(after_pause(&Round { loss: true, ..round }), Phase::SlowStart);
    }

    /// The phase after these flights in segments, each with its ACKs in `advances`.
    fn phase_after(flights: &[u64], advances: &[u32]) -> Phase {
        let mut growth = Growth::default();
        for ((number, segments), advances) in (0..).zip(flights).zip(advances) {
            growth.push(
                &Round {
                    number,
                    segments: *segments,
                    flight_segments: *segments,
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
                        start,
                        train_end,
                        segments: *segments,
                        flight_segments: *segments,
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
        growth.cut(46);
        // In the round of the loss all that was in flight before it still counts.
        growth.push(&Round { segments: 4, flight_segments: 46, loss: true, ..Round::default() }, 1);
        assert_eq!(growth.phase(), Phase::AfterLoss);
        growth.push(&Round { segments: 46, flight_segments: 46, ..Round::default() }, 1);
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
        growth.cut(20);
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
                segments,
                flight_segments: segments,
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
        assert!(growth.has_let_out_more(34) && !growth.has_let_out_more(35), "seven eighths of 40");
        let paused = Growth { regain: Some(30), ..growth };
        assert!(!paused.has_let_out_more(10), "a pause has cut it");
        growth.cut(40);
        assert!(!growth.has_let_out_more(10));
    }

    #[test]
    fn a_flight_lost_is_below_the_window_until_it_is_regained() {
        let mut growth = Growth::default();
        growth.leave_slow_start(7, Some(30), ExitCause::Loss);
        growth.leave_slow_start(9, None, ExitCause::Unknown);
        growth.cut(30);
        shown(&mut growth, &[20]);
        assert_eq!(growth.phase(), Phase::AfterLoss);
        shown(&mut growth, &[30]);
        assert_eq!(growth.phase(), Phase::Avoidance);
        assert_eq!(growth.exit, Some((7, Some(30), ExitCause::Loss)), "the first cause stays");
    }
}
