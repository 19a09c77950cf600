//! The state of one sender, event by event.
//!
//! This file holds what is known and how time is laid down; `sends`, `acks` and `repair` say what
//! each event does to it, `settle` how pieces are decided.

use std::collections::VecDeque;

use super::evidence::Evidence;
use super::ledger::Ledger;
use super::piece::{Base, Piece};
use super::repair::Repairs;
use super::replay::{Ack, FrameEnd, Replay};
use super::rounds::{Round, Rounds};
use super::sends::segments_of;
use crate::flow::event::{ACK, AFTER_GAP, Block, Event, FIN, PROBE, SYN, Side, TS};
use crate::measure::flight::Flight;
use crate::measure::idle::IdleWatch;
use crate::measure::ipid::{self, Step};
use crate::measure::rto::Rto;
use crate::measure::sketch::Sketch;
use crate::report::{Retransmission, State, TimeIn};

/// Sends within this of an ACK were released by it (limits-method section 4), at least.
const RELEASE_MIN_NS: i64 = 50_000;
/// Less than this beyond a window is damage or a probe. Ours: a super-segment.
pub(crate) const HOLE_BYTES: i64 = 65_536;
/// Before any time or offset of a connection ([`crate::flow::connection::Flow`] clamps them to a
/// quarter of this), and far enough from the end of the numbers for sums and percentages.
pub(crate) const NEVER: i64 = -(1 << 55);
/// Most retransmissions listed and flights at losses kept of one direction.
pub(crate) const MAX_LISTED: usize = 2000;
/// Most rounds kept for the report.
const MAX_ROUNDS: usize = 10_000;

/// What does not change along the way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// The sender.
    pub(crate) side: Side,
    /// Effective payload of a full segment.
    pub(crate) mss: i64,
    /// Shift of the windows the receiver announces.
    pub(crate) shift: u8,
    /// The shift is a guess: windows are lower bounds.
    pub(crate) shift_guessed: bool,
    /// Capture noise and jitter of the constant delay: answers within it are immediate.
    pub(crate) spread: i64,
    /// Least round trip, from both floors; 0 if unknown.
    pub(crate) floor: i64,
    /// The tap stands on the sender's host.
    pub(crate) tap_at_sender: bool,
    /// Both ends offered selective acknowledgements, or nobody saw.
    pub(crate) sack: bool,
    /// Keep rounds, intervals and retransmissions.
    pub(crate) detail: bool,
}

/// What a transfer is known by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) first_round: u64,
    pub(crate) last_round: u64,
    /// Time since the peer's last data before it.
    pub(crate) after_peer: Option<i64>,
}

/// Counters that go into the report as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bytes_sent: u64,
    pub(crate) frames: u64,
    pub(crate) segments: u64,
    pub(crate) fast: u64,
    pub(crate) rto: u64,
    pub(crate) tlp: u64,
    pub(crate) spurious: u64,
    pub(crate) unnecessary: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) partial_acks: u64,
    pub(crate) not_captured: u64,
    pub(crate) max_in_flight: i64,
    pub(crate) syn: u64,
}

/// A closed round with the state of the wait after its last send, once known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookedRound {
    pub(crate) round: Round,
    pub(crate) limited_by: State,
    pub(crate) known: bool,
}

/// One sender's walk.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, no state machine")]
#[derive(Debug)]
pub(crate) struct Walker {
    pub(crate) terms: Terms,
    pub(crate) flight: Flight,
    pub(crate) rto: Rto,
    pub(crate) rtt: Sketch,
    pub(crate) rtt_min: i64,
    /// Highest byte the receiver allows, and its window as last announced and at most.
    pub(crate) window_end: i64,
    pub(crate) window: i64,
    pub(crate) window_max: i64,
    /// Largest window of this run of eight rounds and of the one before: a buffer that shrank long
    /// ago is no reader that lags now.
    pub(crate) recent_windows: [i64; 2],
    pub(crate) replay: Replay,
    pub(crate) acks: Vec<Ack>,
    pub(crate) sent_frames: Vec<FrameEnd>,
    pub(crate) sent_since_ack: bool,
    /// When the first ACK of the open batch arrived.
    pub(crate) batch_start: Option<i64>,
    /// The open round and the sequence number that ends it.
    pub(crate) round: Round,
    pub(crate) marker: i64,
    pub(crate) rounds: Rounds,
    pub(crate) booked_rounds: Vec<BookedRound>,
    pub(crate) pieces: VecDeque<Piece>,
    /// Index of the first piece of the open wait.
    pub(crate) wait_from: usize,
    pub(crate) now: i64,
    pub(crate) open: bool,
    /// Times of ACKs that advanced in this wait, oldest first.
    pub(crate) advances: VecDeque<i64>,
    /// The last event that advanced `una` also carried data of the peer.
    pub(crate) advanced_by_data: bool,
    pub(crate) last_window_move: i64,
    pub(crate) last_send: i64,
    pub(crate) burst_start: i64,
    pub(crate) last_progress: i64,
    pub(crate) last_peer_data: Option<i64>,
    pub(crate) peer_data_since_send: bool,
    pub(crate) probed: bool,
    /// The capture lacks packets, and no ACK has come since: what is in flight is not known.
    pub(crate) blind: bool,
    /// Time of the event before this one.
    pub(crate) event_before: i64,
    pub(crate) ids: ipid::Ledger,
    pub(crate) newest_stamp: Option<u32>,
    /// Segments missing by the ledger that no hole in sequence explains.
    pub(crate) unexplained: u64,
    /// What the last wait with data in flight was decided to be.
    pub(crate) last_flying: Base,
    /// When something last left the flight.
    pub(crate) last_release: Option<i64>,
    pub(crate) last_short: bool,
    pub(crate) stop: Evidence,
    /// Round and largest window so far at the last stop.
    pub(crate) stop_round: u64,
    pub(crate) stop_window_max: i64,
    pub(crate) stop_window_recent: i64,
    /// Constant part of the way from the tap to this sender: added to every inner border.
    pub(crate) shift_in: i64,
    /// The tail was probed since the last progress: the next timer is the RTO.
    pub(crate) tail_probed: bool,
    pub(crate) next_unnamed: usize,
    /// Largest flight, and the position where the last pause ended.
    pub(crate) largest_flight: u64,
    pub(crate) pause_start: u64,
    pub(crate) pause_round: u64,
    pub(crate) repairs: Repairs,
    pub(crate) idle: IdleWatch,
    pub(crate) runs: Vec<Run>,
    pub(crate) run_times: Vec<TimeIn>,
    pub(crate) next_run: usize,
    pub(crate) finishing: bool,
    /// Offset of the first data byte the capture meets.
    pub(crate) first_offset: i64,
    /// Bytes per second of rounds, and flights of a sample of all sends.
    pub(crate) rate_sketch: Sketch,
    /// Bytes per second of rounds that the path's rate held.
    pub(crate) path_rates: Sketch,
    pub(crate) last_path_round: Option<u64>,
    /// Largest burst that passed without loss or queue.
    pub(crate) burst_proven: i64,
    pub(crate) flight_samples: Vec<i64>,
    pub(crate) sample_every: u64,
    pub(crate) runs_dropped: u64,
    pub(crate) last_syn: [Option<i64>; 2],
    /// Last time own data was acknowledged in full, and the peer's data moved.
    pub(crate) last_done: i64,
    pub(crate) tally: Tally,
    pub(crate) retransmissions: Vec<Retransmission>,
    pub(crate) ledger: Ledger,
    pub(crate) initial: Option<InitialFlight>,
    pub(crate) first_data: Option<i64>,
    pub(crate) flights: Flights,
}

/// The first flight, once an ACK of data ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialFlight {
    pub(crate) segments: u64,
    pub(crate) bytes: i64,
    pub(crate) full: Option<bool>,
}

/// Flights of the cwnd-limited rounds, for the end of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flights {
    pub(crate) last: u64,
    pub(crate) slow: u32,
    /// Flight, end and number of the first of these rounds.
    pub(crate) slow_from: (u64, i64, u64),
    /// Which of the last three of them grew.
    pub(crate) steps: u8,
    pub(crate) exit: Option<(i64, Option<u64>, ExitCause)>,
    /// Flight before an idle restart; the window is below it until regained.
    pub(crate) regain: Option<u64>,
    /// Flight at the last loss, until regained.
    pub(crate) lost_at: Option<u64>,
}

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

impl Walker {
    /// A walker that has seen nothing; `midway` if the capture lacks the handshake, `shift_in` the
    /// constant way from the tap to this sender.
    #[expect(clippy::too_many_lines, reason = "a flat list of initial values")]
    pub(crate) fn new(terms: Terms, midway: bool, shift_in: i64) -> Self {
        Self {
            terms,
            flight: Flight::default(),
            rto: Rto::default(),
            rtt: Sketch::default(),
            rtt_min: if terms.floor > 0 { terms.floor } else { i64::MAX },
            window_end: NEVER,
            window: 0,
            window_max: 0,
            recent_windows: [0; 2],
            replay: Replay::default(),
            acks: Vec::new(),
            sent_frames: Vec::new(),
            sent_since_ack: false,
            batch_start: None,
            round: Round::default(),
            marker: NEVER,
            rounds: Rounds::default(),
            booked_rounds: Vec::new(),
            pieces: VecDeque::new(),
            wait_from: 0,
            now: -shift_in,
            open: midway,
            advances: VecDeque::new(),
            advanced_by_data: false,
            last_window_move: NEVER,
            last_send: NEVER,
            burst_start: NEVER,
            last_progress: 0,
            last_peer_data: None,
            peer_data_since_send: false,
            probed: false,
            blind: false,
            event_before: -shift_in,
            ids: ipid::Ledger::default(),
            newest_stamp: None,
            unexplained: 0,
            last_flying: Base::Flying,
            last_release: None,
            last_short: false,
            stop: Evidence::default(),
            stop_round: 0,
            stop_window_max: 0,
            stop_window_recent: 0,
            shift_in,
            tail_probed: false,
            next_unnamed: 0,
            largest_flight: 0,
            pause_start: 0,
            pause_round: 0,
            repairs: Repairs::default(),
            idle: IdleWatch::default(),
            runs: Vec::new(),
            run_times: Vec::new(),
            next_run: 0,
            finishing: false,
            first_offset: 0,
            rate_sketch: Sketch::default(),
            path_rates: Sketch::default(),
            last_path_round: None,
            burst_proven: 0,
            flight_samples: Vec::new(),
            sample_every: 1,
            runs_dropped: 0,
            last_syn: [None; 2],
            last_done: 0,
            tally: Tally::default(),
            retransmissions: Vec::new(),
            ledger: Ledger::new(terms.detail),
            initial: None,
            first_data: None,
            flights: Flights::default(),
        }
    }

    /// Starts anew as [`Walker::new`] does, and keeps the room of what grows in every connection.
    pub(crate) fn renew(&mut self, terms: Terms, midway: bool, shift_in: i64) {
        let mut new = Self::new(terms, midway, shift_in);
        new.flight.reuse(&mut self.flight);
        new.replay.reuse(&mut self.replay);
        new.rounds.reuse(&mut self.rounds);
        new.acks = emptied(&mut self.acks);
        new.sent_frames = emptied(&mut self.sent_frames);
        new.flight_samples = emptied(&mut self.flight_samples);
        new.runs = emptied(&mut self.runs);
        new.run_times = emptied(&mut self.run_times);
        core::mem::swap(&mut new.pieces, &mut self.pieces);
        core::mem::swap(&mut new.advances, &mut self.advances);
        new.pieces.clear();
        new.advances.clear();
        new.ledger.reuse(&mut self.ledger);
        *self = new;
    }

    /// The round trip to judge by: the least, else the smoothed one, else a guess of 1 ms.
    pub(crate) fn rtt_scale(&self) -> i64 {
        let least = (self.rtt_min < i64::MAX).then_some(self.rtt_min);
        least.or(self.rto.srtt()).unwrap_or(1_000_000)
    }

    /// Whether some list was cut short.
    pub(crate) fn is_truncated(&self) -> bool {
        self.ledger.truncated
            || self.runs_dropped > 0
            || self.booked_rounds.len() >= MAX_ROUNDS
            || self.retransmissions.len() >= MAX_LISTED
    }

    /// Least round trip, 0 if unknown.
    pub(crate) fn least_rtt(&self) -> i64 {
        if self.rtt_min == i64::MAX { 0 } else { self.rtt_min }
    }

    /// A send within this of its cause was released by it.
    pub(crate) fn tolerance(&self) -> i64 {
        RELEASE_MIN_NS.max(self.rtt_scale() * 3 / 100) + self.terms.spread
    }

    /// A send later than this after its cause, though within the tolerance, may have had another.
    pub(crate) fn promptness(&self) -> i64 {
        RELEASE_MIN_NS + self.terms.spread
    }

    /// Takes an event of this sender, `lag` behind its stack beyond the constant part.
    pub(crate) fn on_out(&mut self, event: &Event, at: i64, lag: i64) {
        let before = self.now;
        self.advance(at);
        let segments = segments_of(event.len, self.terms.mss);
        let step = self.order_of(event, segments);
        if event.has(SYN) {
            self.on_syn(event, at);
            // Fast Open (RFC 7413): the SYN carries data.
            if event.is_data() {
                self.on_data(event, self.now, lag, segments, step);
            }
            return;
        }
        if event.has(AFTER_GAP) || self.is_beyond_window(event) {
            self.on_gap(before, event.seq);
        }
        if event.is_data() {
            self.open = true;
            self.on_data(event, self.now, lag, segments, step);
        } else if event.has(PROBE) {
            self.probed = true;
        } else if event.has(FIN) && event.seq > self.flight.nxt && self.open {
            // The FIN's place tells of data that the tap has not seen.
            self.flight.send_unseen(event.seq, self.now, self.terms.mss);
            self.last_send = self.now;
        }
    }

    /// Whether `event` was sent after all others seen: by its IP identification, else by its
    /// timestamp, which cannot tell within one tick.
    fn order_of(&mut self, event: &Event, segments: u64) -> Step {
        let by_id = self.ids.push(event, segments);
        if !event.has(TS) {
            return by_id;
        }
        let newest = self.newest_stamp.get_or_insert(event.tsval);
        let age = newest.wrapping_sub(event.tsval).cast_signed();
        if age < 0 {
            *newest = event.tsval;
        }
        match by_id {
            Step::Unknown if age > 0 => Step::Before,
            Step::Unknown if age < 0 => Step::After(0),
            known => known,
        }
    }

    /// Data further than the receiver allowed: the ACKs that allowed it, and more, are missing in
    /// the capture (a rotated file left out, a stall of the capturing host).
    fn is_beyond_window(&self, event: &Event) -> bool {
        event.is_data()
            && self.first_data.is_some()
            && !self.terms.shift_guessed
            && self.window_end > NEVER
            && event.seq > self.window_end + HOLE_BYTES
    }

    /// Packets are missing in the capture since `before`: what happened there is not known, and
    /// neither is the window after it.
    fn on_gap(&mut self, before: i64, at: i64) {
        self.relabel(before, Base::sure(State::CaptureGap, 99));
        if at > self.flight.nxt {
            self.extend_run(before, at);
        }
        if at > self.flight.una {
            self.tally.not_captured += self.flight.skip_to(at, self.terms.mss);
        }
        self.last_progress = self.now;
        self.wait_from = self.pieces.len();
        self.advances.clear();
        self.blind = true;
        self.replay.exit();
        if self.flights.exit.is_none() {
            self.flights.exit = Some((self.now, None, ExitCause::Unseen));
        }
        self.round = Round { number: self.round.number, start: self.now, ..Round::default() };
        self.marker = self.flight.nxt;
        if self.round.number.is_multiple_of(8) {
            self.recent_windows = [0, self.recent_windows[0]];
        }
    }

    /// Takes an arrival at this sender.
    pub(crate) fn on_in(&mut self, event: &Event, at: i64, blocks: &[Block]) {
        let before = self.now;
        self.event_before = before;
        if !(event.is_data() && self.goes_on_receiving(event, at)) {
            self.advance(at);
        }
        if event.has(AFTER_GAP) && event.has(ACK) {
            self.on_gap(before, event.ack);
        }
        if event.has(SYN) {
            self.on_syn(event, at);
            if event.has(ACK) {
                self.on_established(at);
                self.take_window(event);
            }
            return;
        }
        if event.has(ACK) {
            self.on_established(at);
            self.on_ack(event, self.now, blocks);
        }
        if event.is_data() {
            self.on_peer_data(self.now);
        }
    }

    /// The handshake is over for this side: its round trip seeds the timers
    /// (`tcp_ack_update_rtt` of the SYN or SYN-ACK), if that was sent once.
    fn on_established(&mut self, at: i64) {
        if self.open {
            return;
        }
        self.open = true;
        self.last_progress = at;
        if let Some(sent) = self.last_syn[self.terms.side].filter(|_| self.tally.syn == 0) {
            let rtt = at - sent;
            self.rto.sample(rtt, 0, 0);
            self.rtt_min = self.rtt_min.min(rtt.max(1));
        }
    }

    /// A SYN or SYN-ACK of either side; a repeat turns the wait since the last into `syn_retry`.
    fn on_syn(&mut self, event: &Event, at: i64) {
        let side = event.side();
        if let Some(before) = self.last_syn[side] {
            if side == self.terms.side {
                self.tally.syn += 1;
            }
            if !self.open {
                self.relabel(before, Base::sure(State::SynRetry, 95));
            }
        }
        self.last_syn[side] = Some(at);
    }

    /// Lays down time up to `at`; the timeline never runs backwards.
    pub(crate) fn advance(&mut self, at: i64) {
        if at <= self.now {
            return;
        }
        let base = self.base_now();
        let episode = self.repairs.current();
        let (start, end) = (self.now, at);
        self.now = at;
        if self.pieces.len() > self.wait_from
            && let Some(last) = self.pieces.back_mut()
            && last.base == base
            && last.episode == episode
            && self.advances.is_empty()
        {
            last.end = end;
            return;
        }
        self.pieces.push_back(Piece { start, end, base, episode, evidence: self.stop });
    }

    /// Lays down time up to `at` if the peer's data of that time does nothing but go on with its
    /// flow. The same comes out of [`Walker::advance`] and `on_peer_data`; this is quicker for the
    /// millions of packets that a side takes while it sends nothing.
    fn goes_on_receiving(&mut self, event: &Event, at: i64) -> bool {
        const RECEIVING: Base = Base::sure(State::Receiving, 95);
        let open = self.pieces.len() - self.wait_from;
        if at <= self.now
            || open > 1
            || self.wait_from == 0
            || event.bits & (AFTER_GAP | SYN) != 0
            || self.is_of_unseen(event.ack)
            || !self.peer_data_since_send
            || self.last_peer_data.is_none_or(|before| at - before > self.flowing_gap())
            || self.base_now() != Base::Quiet
        {
            return false;
        }
        let episode = self.repairs.current();
        let waits = |piece: &Piece| piece.base == Base::Quiet && piece.episode == episode;
        if open == 1 && !self.pieces.back().is_some_and(waits) {
            return false;
        }
        let stop = self.stop;
        let flow = &mut self.pieces[self.wait_from - 1];
        if flow.base != RECEIVING || flow.episode != episode {
            return false;
        }
        flow.end = at;
        flow.evidence.join(&stop);
        self.pieces.truncate(self.wait_from);
        self.now = at;
        true
    }

    fn base_now(&self) -> Base {
        if !self.open {
            return Base::sure(State::Handshake, 99);
        }
        let shut = self.window_end > NEVER
            && self.window_end - self.flight.nxt < self.terms.mss
            && self.window < self.terms.mss.min(self.window_max / 2)
            && self.flight.outstanding() <= self.terms.mss.min(self.window_max / 2);
        if shut {
            Base::Shut
        } else if self.flight.outstanding() > 0 {
            Base::Flying
        } else {
            Base::Quiet
        }
    }

    /// Gives all open time since `from` a decided base; a piece that straddles it is split.
    pub(crate) fn relabel(&mut self, from: i64, base: Base) {
        let mut at = self.pieces.len();
        while at > 0 && self.pieces[at - 1].end > from {
            at -= 1;
        }
        let Some(first) = self.pieces.get_mut(at) else { return };
        if first.start < from {
            let mut tail = *first;
            first.end = from;
            tail.start = from;
            at += 1;
            self.pieces.insert(at, tail);
            if at <= self.wait_from {
                self.wait_from += 1;
            }
        }
        for piece in self.pieces.range_mut(at..) {
            piece.base = base;
            piece.episode = 0;
        }
    }

    /// Closes the open round at `at`, where `una` passed its marker.
    pub(crate) fn close_round(&mut self, at: i64) {
        let mut round = self.round;
        if round.sends > 0 {
            round.end = at;
            round.loss |= self.repairs.current() != 0;
            if round.is_clean(self.least_rtt()) {
                self.burst_proven = self.burst_proven.max(round.burst);
            }
            self.rounds.push(&round);
            if let Some(rate) = round.rate() {
                self.rate_sketch.push(i64::try_from(rate).unwrap_or(i64::MAX));
            }
            if self.terms.detail && self.booked_rounds.len() < MAX_ROUNDS {
                self.booked_rounds.push(BookedRound {
                    round,
                    limited_by: State::Unknown,
                    known: false,
                });
            }
            self.note_growth(&round);
        }
        self.round = Round {
            number: round.number + u64::from(round.sends > 0),
            start: at,
            ..Round::default()
        };
        self.marker = self.flight.nxt;
    }
}

/// The room of `old`, for another connection.
pub(crate) fn emptied<T>(old: &mut Vec<T>) -> Vec<T> {
    let mut room = core::mem::take(old);
    room.clear();
    room
}
