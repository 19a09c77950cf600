//! How the flight grew from round to round, and where slow start ended (limits-method section 5).
//!
//! What a round sends is the window's worth. In slow start it doubles; two rounds in three that
//! grow by less than half, and do grow, are congestion avoidance since the first slow one. A
//! flight that stands still, or rises once, has another lid than the window; so has one below what the
//! window has let out since it was last cut.

use super::round::{Phase, Round};

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
}

/// A flight that fills the window is no less than so many eighths of what was in flight before: it is counted when its
/// last was sent, and an ACK may have come meanwhile. Ours: not measured.
const FULL_EIGHTHS: u64 = 7;

/// Flights of the cwnd-limited rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    last: u64,
    slow: u32,
    /// The first of the slow rounds.
    slow_from: Option<SlowFrom>,
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
        self.regain.is_none() && flight * 8 < self.most * FULL_EIGHTHS
    }

    /// Takes a closed round; from which round on slow start had ended, if this one shows it.
    pub(crate) fn push(&mut self, round: &Round, least_rtt: i64) -> Option<SlowFrom> {
        let flight = round.segments;
        let below = |before: &u64| round.flight_segments < *before;
        // A loss ends slow start, after a pause too.
        let regaining = self.regain.filter(|_| !round.loss);
        (self.regain, self.lost_at) = (regaining.filter(below), self.lost_at.filter(below));
        let is_full = !self.has_let_out_more(round.flight_segments);
        // A pause cuts it, too.
        let most = if self.regain.is_some() { 0 } else { self.most };
        self.most = most.max(round.flight_segments);
        let limited = round.ack_released > round.free && round.edge_flight == 0 && is_full;
        if !limited || self.exit.is_some() {
            (self.last, self.slow) = (flight, 0);
            return None;
        }
        let slow = flight * 2 < self.last * 3;
        let last = core::mem::replace(&mut self.last, flight);
        if !slow || flight < last {
            self.slow = 0;
            return None;
        }
        self.slow += 1;
        if self.slow == 1 {
            self.slow_from = Some(SlowFrom { flight, start: round.start, number: round.number });
            self.steps = 0;
            return None;
        }
        self.steps = self.steps << 1 & 7 | u8::from(flight > last);
        let from = self.slow_from.filter(|_| self.steps.count_ones() >= 2)?;
        self.leave_slow_start(from.start, Some(from.flight), cause(round, least_rtt));
        Some(from)
    }

    /// How the waits of the open round are to be named when the congestion window held them.
    pub(crate) fn phase(&self) -> Phase {
        if self.regain.is_some() {
            return Phase::AfterIdle;
        }
        match self.exit {
            None => Phase::SlowStart,
            Some(_) if self.lost_at.is_some() => Phase::AfterLoss,
            Some((_, _, ExitCause::Cached)) => Phase::Cached,
            Some((_, _, ExitCause::Unseen)) => Phase::Unseen,
            Some(_) if !self.was_cut => Phase::Uncut,
            Some(_) => Phase::Avoidance,
        }
    }
}

/// What made slow start end without a loss: Linux's `HyStart` by delay or by the length of the
/// train of ACKs, else a threshold that was remembered.
fn cause(round: &Round, least_rtt: i64) -> ExitCause {
    let delayed = round.rtt_min.is_some_and(|rtt| {
        // `hystart_update`: the round's least of 8 samples above base + clamp(base/8, 4..16 ms).
        round.rtt_count >= 8 && rtt > least_rtt + (least_rtt / 8).clamp(4_000_000, 16_000_000)
    });
    let trained = round.train.1 - round.train.0 > least_rtt / 2;
    match (delayed, trained) {
        (true, _) => ExitCause::HystartDelay,
        (_, true) => ExitCause::HystartTrain,
        _ => ExitCause::Cached,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of so many segments, released by ACKs; which of them showed the end of slow start.
    fn shown(growth: &mut Growth, flights: &[u64]) -> Vec<Option<u64>> {
        let round = |(number, segments): (usize, &u64)| Round {
            number: number as u64,
            start: number as i64 * 100,
            segments: *segments,
            flight_segments: *segments,
            ack_released: 1,
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
