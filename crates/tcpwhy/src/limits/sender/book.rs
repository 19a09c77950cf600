//! The book of rounds: the open one, the last closed ones, and what all of them add up to.
//!
//! [`super::rounds`] says what a round is and what a run of them tells.

use super::listed::ListedRound;
use crate::clocks::StackTime;
use crate::limits::evidence::Evidence;
use crate::limits::near::Rounds;
use crate::limits::near::spacing::Spacing;
use crate::limits::round::{Phase, Round, is_queue};
use crate::limits::sense::{
    BURST_GAP_NS, FILLS, LISTED_ROUNDS, NEVER, NOWHERE, SAME_SEGMENTS, SWINGS,
};
use crate::measure::sketch::Sketch;
use crate::offsets::Offset;
use crate::report::State;
use crate::segments::Segments;

/// A send of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSend {
    pub(crate) at: StackTime,
    /// The send before it, `NEVER` without one.
    pub(crate) before: StackTime,
    /// How long after that it passed the tap.
    pub(crate) tap_gap: i64,
    /// How far behind its stack the tap saw it, beyond the constant part.
    pub(crate) lag: i64,
    pub(crate) segments: Segments,
    /// Bytes never sent before.
    pub(crate) new: i64,
    pub(crate) frame: u64,
}

impl Round {
    /// Takes a send.
    pub(crate) fn add_send(&mut self, send: &NewSend) {
        if self.sends > 0 && send.before > NEVER {
            self.longest_gap = self.longest_gap.max(send.at - send.before);
            self.gaps += 1;
        }
        let pause = send.at - send.before.max(self.start) > BURST_GAP_NS;
        self.burst_now = if pause { send.new } else { self.burst_now + send.new };
        self.burst = self.burst.max(self.burst_now);
        self.tap_gap = self.tap_gap.max(send.tap_gap);
        self.sends += 1;
        self.bytes += send.new;
        self.segments += send.segments;
        self.lag_min = if self.sends == 1 { send.lag } else { self.lag_min.min(send.lag) };
        self.stopped_at = send.at;
        self.last_frame = send.frame;
        if self.first_frame == 0 {
            self.first_frame = send.frame;
        }
    }

    /// Takes down where its last send left the sender.
    pub(crate) fn stop_at(&mut self, stop: &Evidence, mss: i64) {
        self.flight = self.flight.max(stop.in_flight);
        self.flight_segments = self.flight_segments.max(stop.segments);
        if stop.room < mss {
            self.edge_flight = self.edge_flight.max(stop.in_flight);
        }
        self.stop = *stop;
    }
}

/// Rounds in a row without a loss, mostly released by ACKs, whose flights are one to the segment, or two in turn: a send
/// buffer counts what packets take of memory (`sk_wmem_queued`), which changes with how they are cut.
#[derive(Clone, Copy, Debug, Default)]
struct Still {
    /// The first two, of odd and even rounds.
    flights: [Segments; 2],
    since: StackTime,
    rounds: u32,
    /// The newest, if it was limited: when it began.
    last: Option<(Segments, StackTime)>,
    unmoved: Unmoved,
}

/// The largest flight of a window that nothing has cut, and how many rounds have used it since without one that is larger.
#[derive(Clone, Copy, Debug, Default)]
struct Unmoved {
    most: Segments,
    rounds: u32,
}

impl Unmoved {
    /// Takes a round, which ACKs let out or not.
    fn push(&mut self, round: &Round, limited: bool) -> u32 {
        let flight = round.flight_segments;
        if round.phase != Phase::Uncut || flight > self.most + SAME_SEGMENTS {
            *self = Self { most: flight, rounds: 0 };
        }
        let is_full = FILLS.is_reached(flight, self.most) && round.edge_flight == 0;
        self.rounds += u32::from(limited && is_full);
        self.rounds
    }
}

impl Still {
    /// Takes a round; for how long and how many rounds the flight has stood still with it.
    fn push(&mut self, round: &Round) -> (i64, u32) {
        let (flight, start) = (round.flight_segments, round.start);
        let limited = round.ack_released > round.free && !round.loss;
        let turn = self.rounds as usize % 2;
        let goes_on = self.rounds >= 2 && flight.abs_diff(self.flights[turn]) <= SAME_SEGMENTS;
        match self.last.filter(|_| limited) {
            Some(_) if goes_on => {}
            Some((before, since)) if is_like(flight, before) => {
                (self.flights, self.since, self.rounds) = ([before, flight], since, 1);
            }
            _ => (self.flights, self.since, self.rounds) = ([flight; 2], start, 0),
        }
        self.last = limited.then_some((flight, start));
        self.rounds += 1;
        let unmoved = self.unmoved.push(round, limited);
        (round.end - self.since, self.rounds.max(unmoved))
    }
}

/// Whether two flights may be those of one buffer in turn.
fn is_like(a: Segments, b: Segments) -> bool {
    SWINGS.is_kept(a.abs_diff(b), a.max(b))
}

/// One sender's rounds.
#[derive(Clone, Debug)]
pub(crate) struct RoundBook {
    /// The open round, and the sequence number that ends it.
    pub(crate) open: Round,
    pub(crate) marker: Offset,
    /// How close its ACKs come.
    pub(crate) spacing: Spacing,
    /// The last closed ones.
    pub(crate) closed: Rounds,
    still: Still,
    /// All of them, where they are asked for, and the first whose state is not known yet.
    pub(crate) listed: Vec<ListedRound>,
    pub(crate) next_unnamed: usize,
    /// Bytes per second of all rounds, and of those that the path's rate held.
    pub(crate) rates: Sketch,
    pub(crate) path_rates: Sketch,
    /// Rates of the link that others have a part of, in bytes per second.
    pub(crate) shared_links: Sketch,
    pub(crate) last_path_round: Option<u64>,
    /// Largest burst that passed without loss or queue.
    pub(crate) burst_proven: i64,
}

impl Default for RoundBook {
    fn default() -> Self {
        Self {
            open: Round::default(),
            marker: NOWHERE,
            spacing: Spacing::default(),
            closed: Rounds::default(),
            still: Still::default(),
            listed: Vec::new(),
            next_unnamed: 0,
            rates: Sketch::default(),
            path_rates: Sketch::default(),
            shared_links: Sketch::default(),
            last_path_round: None,
            burst_proven: 0,
        }
    }
}

impl RoundBook {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.closed.reuse(&mut old.closed);
        self.spacing.reuse(&mut old.spacing);
    }

    /// Enters `round`, which is closed; `least_rtt` is the path's, `list` keeps it for the report.
    pub(crate) fn enter(&mut self, round: &Round, least_rtt: i64, list: bool) {
        if round.is_clean(least_rtt) {
            self.burst_proven = self.burst_proven.max(round.burst);
        }
        let queue_stood = is_queue(round.standing_queue(least_rtt), least_rtt);
        let link = if queue_stood { self.spacing.link() } else { None };
        // Whether it comes back shows at the end, until when the account waits in detail alone.
        let is_slower = list
            && queue_stood
            && self.closed.is_far_below_before(round.rate())
            && self.closed.is_far_below_before(self.spacing.closest());
        let round = &Round { still: self.still.push(round), link, is_slower, ..*round };
        self.closed.push(round);
        if queue_stood && round.is_answered_throughout() {
            self.closed.note_full();
        }
        if let Some(rate) = round.rate() {
            self.rates.push(i64::try_from(rate).unwrap_or(i64::MAX));
        }
        if list && !self.is_full() {
            self.listed.push(ListedRound::of(round));
        }
    }

    /// Opens the round after the open one at `start`; it ends when `marker` is acknowledged.
    pub(crate) fn open_next(&mut self, start: StackTime, marker: Offset) {
        let number = self.open.number + u64::from(self.open.sends > 0);
        self.open = Round { number, start, ..Round::default() };
        self.marker = marker;
    }

    /// Begins the open round anew at `start`: what was sent in it is not known.
    pub(crate) fn restart(&mut self, start: StackTime, marker: Offset) {
        let Round { number, holed, .. } = self.open;
        self.open = Round { number, start, holed, ..Round::default() };
        self.marker = marker;
    }

    /// Round `number` ran at the path's rate, or at what others left of it.
    pub(crate) fn note_path_rate(&mut self, number: u64, state: State) {
        if self.last_path_round == Some(number) {
            return;
        }
        self.last_path_round = Some(number);
        let link = self.closed.link_at(number).filter(|_| state == State::BandwidthExternal);
        if let Some(rate) = link {
            self.shared_links.push(i64::try_from(rate).unwrap_or(i64::MAX));
        }
        if let Some(rate) = self.closed.rate(number) {
            self.path_rates.push(i64::try_from(rate).unwrap_or(i64::MAX));
        }
    }

    /// Whether more rounds came than are listed.
    pub(crate) fn is_full(&self) -> bool {
        self.listed.len() >= LISTED_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_without_a_send_keeps_its_number() {
        let mut book = RoundBook::default();
        book.open_next(StackTime(5), Offset::at(100));
        assert_eq!(
            (book.open.number, book.open.start, book.marker),
            (0, StackTime(5), Offset::at(100))
        );
        book.open.sends = 1;
        book.restart(StackTime(6), Offset::at(101));
        assert_eq!((book.open.number, book.open.sends), (0, 0));
        book.open.sends = 1;
        book.open_next(StackTime(7), Offset::at(102));
        assert_eq!(book.open.number, 1);
    }

    #[test]
    fn a_flight_stands_still_until_it_differs_by_two_segments_or_one_is_lost() {
        let mut still = Still::default();
        let mut push = |flight_segments, loss, ack_released, start| {
            let end = start + 10;
            let rest = Round { ack_released, loss, ..Round::default() };
            still.push(&Round { start, end, flight_segments, ..rest })
        };
        assert_eq!(push(Segments::new(40), false, 1, StackTime(0)), (10, 1));
        assert_eq!(push(Segments::new(41), false, 1, StackTime(10)), (20, 2));
        assert_eq!(
            push(Segments::new(39), false, 1, StackTime(20)),
            (30, 3),
            "as the first, give or take one"
        );
        assert_eq!(
            push(Segments::new(43), false, 1, StackTime(30)),
            (20, 2),
            "the one before it, and this"
        );
        assert_eq!(push(Segments::new(43), true, 1, StackTime(40)), (10, 1));
        assert_eq!(
            push(Segments::new(43), false, 0, StackTime(50)),
            (10, 1),
            "a write, not a window"
        );
    }

    /// For how many of these the flight stood still at most.
    fn still_behind(flights: &[u64]) -> u32 {
        let mut still = Still::default();
        let told = flights.iter().map(|flight_segments| {
            let round = Round { ack_released: 1, ..Round::default() };
            still.push(&Round { flight_segments: Segments::new(*flight_segments), ..round }).1
        });
        told.max().expect("there are some")
    }

    #[test]
    fn flights_of_two_sizes_in_turn_stand_still_and_those_that_grow_do_not() {
        assert_eq!(still_behind(&[30, 28, 30, 28, 30, 28, 30, 28]), 8);
        assert_eq!(still_behind(&[20, 40, 30, 28, 30, 28]), 4, "since they do");
        assert_eq!(still_behind(&[32, 27, 32, 27]), 1, "they differ by more than an eighth");
        assert_eq!(still_behind(&[30, 31, 32, 33, 34, 35, 36]), 2, "a segment a round");
        assert_eq!(still_behind(&[30, 30, 31, 31, 32, 32, 33, 33]), 4, "a segment each second");
    }

    /// For how many rounds the largest flight has not grown behind these, all used and in this phase but what `odd` makes
    /// another.
    fn unmoved_behind(flights: &[u64], phase: Phase, odd: impl Fn(&mut Round, usize)) -> u32 {
        let mut still = Still::default();
        let told = flights.iter().enumerate().map(|(number, flight_segments)| {
            let mut round = Round { ack_released: 1, phase, ..Round::default() };
            round.flight_segments = Segments::new(*flight_segments);
            odd(&mut round, number);
            still.push(&round).1
        });
        told.last().expect("there are some")
    }

    #[test]
    fn a_window_that_nothing_has_cut_grows_across_pauses_and_signs_of_loss() {
        let flights = [30, 28, 30, 7, 25, 28, 30, 28, 30];
        let told = |phase| unmoved_behind(&flights, phase, |_, _| ());
        assert_eq!(told(Phase::Uncut), 7, "all but that of 7 and of 25");
        assert_eq!(told(Phase::Avoidance), 4, "a loss may have cut it");
        let signs = |round: &mut Round, number| round.loss = number == 7;
        assert_eq!(unmoved_behind(&flights, Phase::Uncut, signs), 6);
        let written = |round: &mut Round, _| round.free = 2;
        assert_eq!(unmoved_behind(&flights, Phase::Uncut, written), 1, "the program's");
        assert_eq!(unmoved_behind(&[30, 31, 32, 33], Phase::Uncut, |_, _| ()), 2);
    }

    #[test]
    fn only_rounds_without_loss_and_queue_prove_a_burst() {
        let clean = Round { rtt_count: 1, rtt_max: 7_000_000, burst: 9000, ..Round::default() };
        let mut book = RoundBook::default();
        book.enter(&Round { loss: true, burst: 90_000, ..clean }, 7_000_000, false);
        book.enter(&Round { rtt_max: 9_000_000, burst: 80_000, ..clean }, 7_000_000, false);
        assert_eq!(book.burst_proven, 0);
        book.enter(&clean, 7_000_000, true);
        assert_eq!((book.burst_proven, book.listed.len()), (9000, 1));
    }
}

#[cfg(test)]
mod slower;
