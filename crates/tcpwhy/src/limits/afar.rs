//! What holds a sender whose packets are seen away from its host?
//!
//! There the ACK that released a packet cannot be told from one that passed by, and what stands in
//! queues before the tap makes each send seem late. But the tap sees what its sender does not: whether
//! the stream pauses. A window or a buffer that holds the sender leaves the way silent for the rest of
//! the round trip; a link that is full does not.

use super::decision::{Decision, decision};
use super::piece::Edge;
use super::pulse::Pulses;
use super::queue::are_same;
use super::round::{Phase, Round, is_queue};
use super::rounds::Rounds;
use super::spacing::shared;
use super::walker::Walker;
use crate::report::State;

/// Fewer packets do not show whether a stream pauses. Ours: not measured.
const ENOUGH_PACKETS: u32 = 16;

impl Rounds {
    /// What holds a stream that passes a tap away from its sender without a pause: a link before the
    /// tap that is full, if a queue stands or none could be seen. What released which packet cannot be
    /// told there, but a window or a buffer that held the sender would leave the link silent now and
    /// then. Writes that end short are an application's.
    pub(super) fn link_afar(&self, at: usize, edge: Edge, rtt_min: i64) -> Option<Decision> {
        let round = &self.kept[at];
        let queue = round.standing_queue(rtt_min);
        let queue_is_one = is_queue(queue, rtt_min);
        let is_far = !round.tap_at_sender && round.edge_flight == 0;
        if !is_far || round.sees_queues && !queue_is_one || !self.passes_steadily(at, rtt_min) {
            return None;
        }
        if queue_is_one && self.shared_link(at).is_some() {
            return Some(shared(round.tap_at_sender, queue));
        }
        let near = self.around(at).filter(|r| !r.loss).map(|r| &r.pulses);
        if Pulses::sum(near).end_short() {
            return None;
        }
        Some(if queue_is_one {
            use State::{BandwidthExternal, LocalQdisc, Pacing, RwndCap, RwndReader, Sndbuf};
            let stands = self.stands_still(at);
            let others: &[State] = match edge {
                Edge::PerhapsNear if stands => {
                    &[LocalQdisc, Pacing, BandwidthExternal, RwndCap, RwndReader, Sndbuf]
                }
                Edge::PerhapsNear | Edge::Near(_) => {
                    &[LocalQdisc, Pacing, BandwidthExternal, RwndCap, RwndReader]
                }
                Edge::Far if stands => &[LocalQdisc, Pacing, BandwidthExternal, Sndbuf],
                Edge::Far => &[LocalQdisc, Pacing, BandwidthExternal],
            };
            let confidence = if others.len() > 3 { 65 } else { 75 };
            decision(State::BandwidthSelfQueue, confidence, others, queue)
        } else if self.ran_so_across_a_loss(at) {
            use State::{App, LocalQdisc, Pacing, RwndCap, RwndReader, Sndbuf};
            // Below a window smaller than what the loss left of its own, a sender keeps its rate, too.
            let others: &[State] = if edge.may_be_near() {
                &[Pacing, LocalQdisc, App, Sndbuf, RwndCap, RwndReader]
            } else {
                &[Pacing, LocalQdisc, App, Sndbuf]
            };
            decision(State::BandwidthSelfQueue, 60, others, queue)
        } else {
            unseen(edge, queue)
        })
    }

    /// How long the way to the tap held up what found nothing of its sender's before it, at most.
    pub(crate) fn held_up(&self) -> i64 {
        self.kept.iter().map(|round| round.held_up).max().unwrap_or(0)
    }

    /// The rate before the newest loss and after its repair, if that is one: the window was cut meanwhile, and so
    /// did not hold the sender.
    pub(super) fn rate_across_loss(&self) -> Option<u64> {
        let clean = |at: usize| self.kept.get(at).filter(|round| !round.loss && !round.holed);
        let after = self.kept.len().checked_sub(1)?;
        // The first round behind a repair answers what the repair let out.
        let repair = after.checked_sub(2).filter(|at| clean(*at).is_none())?;
        let before = (0..repair).rev().find_map(clean)?;
        let [rate, old] = [clean(after)?, clean(after - 1).and(Some(before))?].map(Round::rate);
        rate.filter(|rate| old.is_some_and(|old| are_same(*rate, old)))
    }

    /// Whether the round at `at` ran at a rate that a loss did not change.
    fn ran_so_across_a_loss(&self, at: usize) -> bool {
        let rate = self.kept[at].rate();
        self.across_loss.is_some_and(|unmoved| rate.is_some_and(|rate| are_same(rate, unmoved)))
    }

    /// Whether data kept passing the tap in the rounds around `at`: evenly, or without a silence as long as
    /// each packet of the round stood in a queue. Then that was not empty, and lets packets out in bursts,
    /// as a token bucket does.
    fn passes_steadily(&self, at: usize, rtt_min: i64) -> bool {
        let near = || self.around(at).filter(|r| !r.loss);
        let steady = |r: &Round| r.passes_evenly() || r.tap_gap <= r.standing_queue(rtt_min);
        near().map(|r| r.sends).sum::<u32>() >= ENOUGH_PACKETS && near().all(steady)
    }

    /// What holds a sender that seems paced as seen from elsewhere, where the ACK that released a packet
    /// cannot be told from one that passed by: a steady rate without pauses and without a queue.
    pub(super) fn paced_afar(&self, at: usize, queue: i64) -> Option<Decision> {
        use State::{
            App, BandwidthExternal, BandwidthSelfQueue, CwndAvoidance, LocalQdisc, Pacing, Sndbuf,
        };
        let round = &self.kept[at];
        let is_even = !round.tap_at_sender
            && round.edge_flight == 0
            && round.is_smooth()
            && self.is_rate_flat(at);
        // A link that a queue has shown to be full at this rate is so without one, too: a window that a loss has cut
        // just fills it.
        let is_links = |rate| self.full_rate.is_some_and(|full| are_same(rate, full));
        let others = &[Pacing, LocalQdisc, BandwidthExternal, App, Sndbuf];
        is_even.then(|| match (round.rate(), round.phase) {
            (Some(rate), _) if is_links(rate) => decision(BandwidthSelfQueue, 60, others, queue),
            (_, Phase::Avoidance | Phase::Uncut) if self.opens_at(at) => {
                decision(CwndAvoidance, 60, &[Pacing, BandwidthSelfQueue, App], queue)
            }
            _ => round.paced_afar(queue),
        })
    }

    /// Whether flights around `at` grow by a segment a round, as a window that nothing else holds does in congestion
    /// avoidance (RFC 5681 section 3.1). What is in flight at a pace stands. Ours: in five rounds or more, one of
    /// which may not have.
    fn opens_at(&self, at: usize) -> bool {
        let near = || self.around(at).filter(|round| !round.loss).map(|r| r.flight_segments);
        let rounds = near().count() as u64;
        let falls = near().zip(near().skip(1)).any(|(one, next)| next + 1 < one);
        let grown =
            near().last().zip(near().next()).map(|(last, first)| last.saturating_sub(first));
        rounds >= 5 && !falls && grown.is_some_and(|grown| grown + 2 >= rounds)
    }

    /// In the newest round a queue stood all the time: if its rate is one with those before, the link has no more.
    pub(super) fn note_full(&mut self) {
        let newest = self.kept.len() - 1;
        if !self.kept[newest].loss && self.is_rate_flat(newest) {
            self.full_rate = self.kept[newest].rate();
        }
    }
}

impl Walker {
    /// Whether the last ACK before the send at `at` may have come so late to a sender elsewhere that it let that go. The
    /// tap does not see that way, but how long the other one held up what found it empty of the sender's own.
    pub(super) fn may_be_late_acks(&self, at: i64) -> bool {
        let delay = self.book.closed.held_up().max(self.book.open.held_up);
        let since = self.releases.last.map(|last| at - last);
        !self.terms.tap_at_sender
            && delay > 0
            && since.is_some_and(|since| since <= delay + self.tolerance())
    }
}

impl Round {
    /// Seen away from its sender, without the time stamps that tell what stood in queues: its packets come as the
    /// path let them through, and whether the sender had a clock does not show.
    pub(super) const fn shows_no_clock(&self) -> bool {
        !self.tap_at_sender && !self.sees_queues
    }

    /// A steady stream. A path that is just full and has no queue looks the same from here.
    pub(super) fn paced_afar(&self, queue: i64) -> Decision {
        use State::{App, BandwidthExternal, Pacing, Sndbuf};
        if self.shows_no_clock() {
            return unseen(Edge::Far, queue);
        }
        decision(Pacing, 60, &[BandwidthExternal, App, Sndbuf], queue)
    }
}

/// A send that seems to have come by itself, where the ACK before it may have been late at the sender, which this tap
/// does not see.
pub(super) fn late_ack(queue: i64) -> Decision {
    use State::{App, CwndAvoidance, CwndSlowStart, Pacing, Sndbuf};
    decision(State::Unknown, 30, &[App, Sndbuf, CwndSlowStart, CwndAvoidance, Pacing], queue)
}

/// Packets that pass steadily where no queue can be seen.
fn unseen(edge: Edge, queue: i64) -> Decision {
    use State::{App, BandwidthSelfQueue, LocalQdisc, Pacing, RwndCap, RwndReader, Sndbuf};
    let either: &[State] = if edge.may_be_near() {
        &[BandwidthSelfQueue, RwndCap, RwndReader, Pacing, LocalQdisc, Sndbuf, App]
    } else {
        &[Pacing, BandwidthSelfQueue, LocalQdisc, Sndbuf, App]
    };
    decision(State::Unknown, 30, either, queue)
}

#[cfg(test)]
mod tests {
    use super::super::walker::Terms;
    use super::*;

    const RTT: i64 = 20_000_000;

    /// Six rounds of nine packets each, changed by `change`, seen away from the sender.
    fn stream(change: impl Fn(&mut Round)) -> Rounds {
        let mut rounds = Rounds::default();
        for number in 0..6 {
            let start = number * 2 * RTT;
            let mut round = Round {
                number: number as u64,
                start,
                end: start + 2 * RTT,
                rtt_min: Some(2 * RTT),
                sends: 9,
                segments: 10 + 3 * number as u64,
                flight_segments: 10 + 3 * number as u64,
                tap_gap: 2 * RTT / 8,
                sees_queues: true,
                ..Round::default()
            };
            change(&mut round);
            rounds.push(&round);
        }
        rounds
    }

    fn told(change: impl Fn(&mut Round)) -> Option<(State, u8)> {
        let decision = stream(change).link_afar(3, Edge::Far, RTT);
        decision.map(|decision| (decision.state, decision.confidence))
    }

    #[test]
    fn a_stream_that_never_pauses_behind_a_queue_is_a_full_links() {
        let full = Some((State::BandwidthSelfQueue, 75));
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

    /// Whether an ACK may be late that came `since` before a send, where the way to the tap held up an empty one's data so
    /// long.
    fn may_be_late(since: i64, held_up: i64, tap_at_sender: bool) -> bool {
        let terms = Terms { floor: RTT, tap_at_sender, ..Terms::default() };
        let mut walker = Walker::new(terms, true, 0);
        walker.releases.push(RTT, 1448, false);
        walker.book.open.held_up = held_up;
        walker.may_be_late_acks(RTT + since)
    }

    #[test]
    fn an_ack_may_be_as_late_as_data_that_found_the_way_empty() {
        // At once is within 3 % of the round trip.
        let latest = 5_000_000 + RTT * 3 / 100;
        assert!(may_be_late(latest, 5_000_000, false));
        assert!(!may_be_late(latest + 1, 5_000_000, false), "the application's pause");
        assert!(!may_be_late(latest, 5_000_000, true), "at the sender it is seen when it comes");
        assert!(!may_be_late(1_000, 0, false), "nothing is ever late here");
    }

    #[test]
    fn what_a_late_ack_may_have_let_go_is_not_called_the_applications() {
        let mut rounds = Rounds::default();
        rounds.push(&Round { end: RTT, rtt_min: Some(RTT), sends: 9, ..Round::default() });
        let told = |by_ack| rounds.free(0, by_ack, false, RTT);
        assert_eq!(told(false).state, State::App);
        assert_eq!(told(true).state, State::Unknown);
        assert!(told(true).alternative.contains(&State::App));
    }

    #[test]
    fn a_flight_that_stands_still_may_have_a_buffer_for_a_lid() {
        assert_eq!(told(|r| r.segments = 10), Some((State::BandwidthSelfQueue, 65)));
        let others = |edge| {
            let decision =
                stream(|r| r.segments = 10).link_afar(3, edge, RTT).expect("a full link");
            [State::Sndbuf, State::RwndCap].map(|state| decision.alternative.contains(&state))
        };
        assert_eq!(others(Edge::Far), [true, false]);
        assert_eq!(others(Edge::Near(State::RwndCap)), [false, true]);
        assert_eq!(others(Edge::PerhapsNear), [true, true], "its scale is a guess");
    }

    /// As `told` where no queue can be seen, with a loss in round 3 of ten and this rate after it, in per cent of that
    /// before.
    fn told_blind(lost: bool, percent: i64) -> (State, u8) {
        let mut rounds = Rounds::default();
        for number in 0..10 {
            let segments = 50 - number % 3;
            let rate = if number > 4 { percent } else { 100 };
            rounds.push(&Round {
                number: number as u64,
                start: number * RTT,
                end: (number + 1) * RTT,
                rtt_min: Some(RTT),
                sends: 50,
                segments: segments as u64,
                flight_segments: segments as u64,
                acked: 1448 * rate,
                loss: lost && number == 3,
                tap_gap: RTT / 40,
                ..Round::default()
            });
        }
        let decision = rounds.link_afar(7, Edge::Far, RTT).expect("it passes steadily");
        (decision.state, decision.confidence)
    }

    #[test]
    fn where_no_queue_can_be_seen_a_rate_that_a_loss_left_as_it_was_is_the_links() {
        assert_eq!(told_blind(true, 100), (State::BandwidthSelfQueue, 60));
        assert_eq!(told_blind(true, 95), (State::BandwidthSelfQueue, 60));
        assert_eq!(told_blind(true, 94), (State::Unknown, 30), "the window was cut, and holds it");
        assert_eq!(told_blind(false, 100), (State::Unknown, 30), "a pace is as steady");
    }

    /// What an even stream without a queue is called, at this rate in per cent of that at which a queue stood before.
    fn told_even(percent: i64, was_full: bool) -> State {
        let mut rounds = Rounds::default();
        for number in 0..8 {
            let (is_even, start) = (number > 3, number * RTT);
            rounds.push(&Round {
                number: number as u64,
                start,
                end: start + RTT,
                stopped_at: start + RTT,
                sends: 50,
                gaps: 49,
                segments: 50,
                acked: 1448 * if is_even { percent } else { 100 },
                sees_queues: true,
                ..Round::default()
            });
            if was_full && !is_even {
                rounds.note_full();
            }
        }
        rounds.paced_afar(7, 0).expect("it is even").state
    }

    #[test]
    fn an_even_stream_at_the_rate_of_a_link_that_was_full_is_the_links() {
        assert_eq!(told_even(100, true), State::BandwidthSelfQueue);
        assert_eq!(told_even(95, true), State::BandwidthSelfQueue);
        assert_eq!(told_even(94, true), State::Pacing);
        assert_eq!(told_even(100, false), State::Pacing);
    }

    #[test]
    fn an_even_stream_whose_flight_grows_by_a_segment_a_round_has_a_window() {
        let told = |flights: &[u64], phase| {
            let mut rounds = Rounds::default();
            for (number, flight) in (0..).zip(flights) {
                let start = number * RTT;
                rounds.push(&Round {
                    number: number as u64,
                    start,
                    end: start + RTT,
                    stopped_at: start + RTT,
                    phase,
                    sends: 50,
                    gaps: 49,
                    flight_segments: *flight,
                    acked: 1448 * 50,
                    sees_queues: true,
                    ..Round::default()
                });
            }
            rounds.paced_afar(3, 0).expect("it is even").state
        };
        let after = |flights| told(flights, Phase::Avoidance);
        assert_eq!(after(&[29, 29, 31, 30, 32, 33]), State::CwndAvoidance);
        assert_eq!(after(&[29, 29, 31, 30, 32, 32]), State::Pacing, "three in six");
        assert_eq!(after(&[30, 31, 32, 33]), State::Pacing, "four rounds");
        assert_eq!(after(&[29, 32, 30, 31, 32, 33]), State::Pacing, "it fell");
        assert_eq!(told(&[29, 30, 31, 32, 33, 34], Phase::SlowStart), State::Pacing);
    }

    #[test]
    fn near_the_least_window_that_can_be_that_may_be_full() {
        let others = |edge| unseen(edge, 0).alternative.contains(&State::RwndCap);
        let near = [Edge::PerhapsNear, Edge::Near(State::RwndCap), Edge::Far].map(others);
        assert_eq!(near, [true, true, false]);
    }
}
