//! Which controller's congestion avoidance explains the flights after a loss?
//!
//! Reno halves its window at a loss and adds one segment a round trip, CUBIC shrinks it to 0.7 and
//! follows a curve. Each is replayed from the first round after a repair, one hypothesis a
//! controller, a step a round, and given up where the flight departs from it. Only rounds that the
//! window limited tell: a window that is not used does not grow.
//!
//! Left out: controllers that pace by a model of the path (BBR), whose rounds are not limited by
//! ACKs of a full window, and all others that shrink by half or to 0.7.

use crate::cc::cubic::Cubic;
use crate::cc::reno::Reno;
use crate::limits::round::Round;
use crate::limits::sense::{CLEARLY, EXPLAINED_ROUNDS, REPLAYED, REPLAYED_SEGMENTS};
use crate::report::Cwnd;
use crate::segments::Segments;

/// What is replayed after losses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Avoidance {
    reno: Option<Reno>,
    cubic: Option<Cubic>,
    /// Window at the loss, until the first round after its repair.
    lost_at: Option<u64>,
    /// What CUBIC remembers of the losses before.
    last_max: u64,
    /// Rounds that one of them alone explained.
    alone: [u64; 2],
}

impl Avoidance {
    /// A repair began with a window of `cwnd` segments.
    pub(crate) fn on_loss(&mut self, cwnd: Segments) {
        (self.reno, self.cubic) = (None, None);
        self.lost_at = Some(cwnd.get());
    }

    /// The repair was for no loss, and the window is what it was.
    pub(crate) fn forget_loss(&mut self) {
        (self.reno, self.cubic, self.lost_at) = (None, None, None);
    }

    /// Takes a closed round in which `acked` segments were acknowledged.
    pub(crate) fn on_round(&mut self, round: &Round, acked: Segments, rtt_min: i64) {
        let limited = round.ack_released > round.free && round.edge_flight == 0;
        if round.loss || !limited {
            (self.reno, self.cubic) = (None, None);
            return;
        }
        let flight = round.flight_segments.get();
        if let Some(lost_at) = self.lost_at.take() {
            let last_max = Cubic::last_max_after(lost_at, self.last_max);
            self.last_max = last_max;
            self.reno = near(flight, Reno::ssthresh(lost_at)).then(|| Reno::new(flight));
            self.cubic =
                near(flight, Cubic::ssthresh(lost_at)).then(|| Cubic::new(flight, Some(last_max)));
            return;
        }
        if let Some(reno) = &mut self.reno {
            reno.on_ack(acked.get());
        }
        if let Some(cubic) = &mut self.cubic {
            cubic.on_ack(round.end.0, acked.get(), rtt_min);
        }
        self.reno = self.reno.filter(|reno| near(flight, reno.cwnd));
        self.cubic = self.cubic.filter(|cubic| near(flight, cubic.cwnd));
        match (self.reno, self.cubic) {
            (Some(_), None) => self.alone[0] += 1,
            (None, Some(_)) => self.alone[1] += 1,
            _ => {}
        }
    }

    /// The window now, as far as some hypothesis holds.
    pub(crate) fn window(&self) -> Option<Cwnd> {
        let windows = [self.reno.map(|reno| reno.cwnd), self.cubic.map(|cubic| cubic.cwnd)];
        let (low, high) =
            (windows.iter().flatten().min().copied()?, windows.iter().flatten().max().copied()?);
        Some(Cwnd { low: Some(low), high: Some(high), best: (low == high).then_some(low) })
    }

    /// The controller that explains clearly more than the other, and in how many rounds.
    pub(crate) fn controller(&self) -> Option<(&'static str, u64)> {
        let [reno, cubic] = self.alone;
        let is_clear =
            |rounds: u64, other: u64| rounds >= EXPLAINED_ROUNDS && rounds >= CLEARLY * other;
        match () {
            () if is_clear(reno, cubic) => Some(("reno", reno)),
            () if is_clear(cubic, reno) => Some(("cubic", cubic)),
            () => None,
        }
    }
}

/// Within two segments or a tenth: limited transmit, and ACKs on the way when it was seen.
fn near(flight: u64, cwnd: u64) -> bool {
    flight.abs_diff(cwnd) <= REPLAYED.of(cwnd).max(REPLAYED_SEGMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::StackTime;

    const RTT: i64 = 50_000_000;

    fn round(number: usize, flight: u64) -> Round {
        let end = (number as i64 + 1) * RTT;
        Round {
            flight_segments: Segments::new(flight),
            ack_released: 9,
            end: StackTime(end),
            ..Round::default()
        }
    }

    /// A loss at a window of 100, then rounds of these flights.
    fn after_loss(flights: &[u64]) -> Avoidance {
        let mut avoidance = Avoidance::default();
        avoidance.on_loss(Segments::new(100));
        for (number, flight) in flights.iter().enumerate() {
            avoidance.on_round(&round(number, *flight), Segments::new(*flight), RTT);
        }
        avoidance
    }

    #[test]
    fn half_and_one_more_each_round_is_reno() {
        let flights: Vec<u64> = (50..60).collect();
        let avoidance = after_loss(&flights);
        assert_eq!(avoidance.controller(), Some(("reno", 9)));
        assert_eq!(avoidance.window().and_then(|cwnd| cwnd.best), Some(59));
    }

    #[test]
    fn seven_tenths_and_a_curve_is_cubic() {
        let mut cubic = Cubic::new(70, Some(100));
        let mut flights = vec![70];
        for number in 1..10 {
            cubic.on_ack((number + 1) * RTT, cubic.cwnd, RTT);
            flights.push(cubic.cwnd);
        }
        assert_eq!(after_loss(&flights).controller(), Some(("cubic", 9)));
    }

    #[test]
    fn seven_rounds_name_nobody() {
        let flights: Vec<u64> = (50..58).collect();
        assert_eq!(after_loss(&flights).controller(), None);
    }

    #[test]
    fn a_window_that_neither_would_have_names_nobody() {
        let avoidance = after_loss(&[85; 12]);
        assert_eq!((avoidance.controller(), avoidance.window()), (None, None));
    }

    #[test]
    fn a_round_that_the_receiver_stopped_ends_the_replay() {
        let mut avoidance = after_loss(&[50, 51]);
        let stopped = Round { edge_flight: 1448, ..round(2, 52) };
        avoidance.on_round(&stopped, Segments::new(52), RTT);
        assert_eq!(avoidance.window(), None);
    }
}
