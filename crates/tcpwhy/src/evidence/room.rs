//! A congestion window that had room, told by the sender's own kernel, is no rival of what the packets name.
//!
//! The packets tell the congestion window by replay, and where a window crept long ago the replay may leave it open. The
//! kernel's own figure settles that: TCP defers a send for want of window only while the rest is less than a third of
//! it (Linux `tcp_tso_should_defer`, `tcp_tso_win_divisor` 3), so a flight of half the window or less was not held by it.

use crate::find;
use crate::report::{Connection, Direction, Limit, Report, Round, Sure};

/// Of the rounds of an interval as many are measured, at least. Ours: looks miss a round now and then.
const MEASURED_PERCENT: usize = 90;

/// Takes the congestion window off what may have held a sender, where its kernel shows room in every measured round.
pub(super) fn settle(report: &mut Report) {
    let mut is_changed = false;
    for connection in &mut report.connections {
        is_changed |= settle_one(connection);
    }
    if is_changed {
        find::fill(&mut report.connections);
    }
}

fn settle_one(connection: &mut Connection) -> bool {
    let Some(mss) = connection.mss.filter(|mss| *mss > 0).map(u64::from) else { return false };
    let mut is_changed = false;
    for direction in connection.directions.iter_mut().flatten() {
        let Direction { limits, rounds, .. } = &mut **direction;
        for limit in limits.iter_mut().filter(|limit| !limit.state.is_congestion_window()) {
            let is_rival = limit.alternative.iter().any(|state| state.is_congestion_window());
            if is_rival && had_room(rounds, limit, mss) {
                limit.alternative.retain(|state| !state.is_congestion_window());
                if limit.alternative.is_empty() && limit.confidence == Sure::Likely {
                    limit.confidence = Sure::Shown;
                }
                limit
                    .evidence
                    .text
                    .push_str("; its kernel shows a congestion window with room for twice that");
                is_changed = true;
            }
        }
    }
    is_changed
}

/// Whether nearly every round of `limit` has a measured window, and each of them of at least twice the flight.
fn had_room(rounds: &[Round], limit: &Limit, mss: u64) -> bool {
    let own = || {
        rounds.iter().filter(|round| {
            round.limited_by == limit.state
                && (limit.start_ns..limit.end_ns).contains(&round.start_ns)
        })
    };
    let measured = || own().filter(|round| round.cwnd_measured_by.is_some());
    let is_room = |round: &Round| {
        let flight = round.in_flight_bytes.div_ceil(mss);
        round.cwnd.low.is_some_and(|low| low >= flight.saturating_mul(2))
    };
    let (all, seen) = (own().count(), measured().count());
    seen > 0 && seen * 100 >= all * MEASURED_PERCENT && measured().all(is_room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Cwnd, FrameRange, LimitEvidence, State};
    use crate::view::sample;

    /// What may have held ten rounds of 20 segments apart from the reader, if the kernel shows these windows in them.
    fn rivals(windows: &[u64]) -> (Vec<State>, Sure) {
        let mut connection = sample::connection(0, "10.0.0.7:4000", "10.0.0.8:80", 1_000);
        connection.mss = Some(1_000);
        let limit = Limit {
            start_ns: 0,
            end_ns: 1_000,
            state: State::RwndReader,
            confidence: Sure::Likely,
            alternative: vec![State::CwndAvoidance],
            evidence: LimitEvidence::default(),
        };
        let round = |at: usize| {
            let window = windows.get(at).copied();
            Round {
                start_ns: at as i64 * 100,
                in_flight_bytes: 20_000,
                limited_by: State::RwndReader,
                cwnd: Cwnd { low: window, high: window, best: window },
                cwnd_measured_by: window.map(|_| 0),
                bytes: 20_000,
                segments: 20,
                rtt_ns: None,
                window_room_bytes: None,
                delivery_rate_bps: None,
                bdp_bytes: None,
                frames: FrameRange::default(),
            }
        };
        connection.directions[1] = Some(Box::new(Direction {
            limits: vec![limit],
            rounds: (0..10).map(round).collect(),
            ..Direction::default()
        }));
        settle_one(&mut connection);
        let direction = connection.directions[1].as_deref().expect("a direction");
        (direction.limits[0].alternative.clone(), direction.limits[0].confidence)
    }

    const STILL: (&[State], Sure) = (&[State::CwndAvoidance], Sure::Likely);

    #[test]
    fn a_window_of_twice_the_flight_is_no_rival() {
        assert_eq!(rivals(&[118; 10]), (Vec::new(), Sure::Shown));
        assert_eq!(rivals(&[40; 9]), (Vec::new(), Sure::Shown), "one round was not looked at");
    }

    #[test]
    fn a_window_that_the_flight_may_have_filled_is_one() {
        let mut windows = [118; 10];
        windows[4] = 39;
        assert_eq!(rivals(&windows), (STILL.0.to_vec(), STILL.1));
    }

    #[test]
    fn rounds_that_were_not_looked_at_tell_nothing() {
        assert_eq!(rivals(&[118; 8]), (STILL.0.to_vec(), STILL.1));
    }
}
