//! The state of one sender, event by event.
//!
//! This file holds what is known and takes the events; `sends`, `acks` and `repair` say what each
//! kind does, `settle` how the time between them is decided. What belongs together is a type of
//! its own, in the file named after it, with the rules that need nothing else.

use super::account::due::Due;
use super::account::evidence::Evidence;
use super::account::ledger::Ledger;
use super::account::piece::{Base, Piece};
use super::account::waits::Waits;
use super::avoidance::Avoidance;
use super::batch::Batch;
use super::book::RoundBook;
use super::growth::{Growth, InitialFlight};
use super::order::SendOrder;
use super::pulse::Before;
use super::reader::Answers;
use super::releases::Releases;
use super::repair::Repairs;
use super::replay::Replay;
use super::samples::FlightSamples;
use super::sends::segments_of;
use super::silence::{Silence, Tail};
use super::stop::Stop;
use super::transfers::Transfers;
use super::trips::{self, RoundTrips};
use super::window::ReceiverWindow;
use super::writes::Writes;
use crate::flow::event::{ACK, AFTER_GAP, Block, Event, FIN, PROBE, SYN, Side, UNSEEN_CAUSE};
use crate::measure::flight::Flight;
use crate::measure::idle::IdleWatch;
use crate::measure::ipid::Counter;
use crate::report::{Retransmission, State};

/// Before any time or offset of a connection ([`crate::flow::connection::Flow`] clamps them to a
/// quarter of this), and far enough from the end of the numbers for sums and percentages.
pub(crate) const NEVER: i64 = -(1 << 55);
/// Most retransmissions listed and flights at losses kept of one direction.
pub(crate) const MAX_LISTED: usize = 2000;

/// What does not change along the way.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, no state machine")]
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
    /// Constant way from the sender's stack to the tap and back, 0 if unknown.
    pub(crate) own_way: i64,
    /// The tap stands on the sender's host.
    pub(crate) tap_at_sender: bool,
    /// Queues between the sender and the tap show: none can be, or its time stamps tell of them.
    pub(crate) sees_queues: bool,
    /// The capture lacks all that the receiver sent: no ACK and no window tells what held the sender.
    pub(crate) unanswered: bool,
    /// Both ends offered selective acknowledgements, or nobody saw.
    pub(crate) sack: bool,
    /// Keep rounds, intervals and retransmissions.
    pub(crate) detail: bool,
    /// Whose counter the sender's IP identifications are.
    pub(crate) counter: Counter,
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
    pub(crate) damaged: u64,
    pub(crate) not_captured: u64,
    pub(crate) max_in_flight: i64,
    pub(crate) syn: u64,
}

impl Tally {
    /// A data frame of `len` bytes was sent.
    pub(crate) fn add_frame(&mut self, len: u32, segments: u64) {
        self.bytes_sent += u64::from(len);
        self.frames += 1;
        self.segments += segments;
    }
}

/// How the connection was opened, as this sender sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    pub(crate) is_over: bool,
    /// When each side last sent its SYN.
    pub(crate) last_syn: [Option<i64>; 2],
}

/// This sender's last data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sends {
    pub(crate) last: i64,
    /// When it passed the tap.
    pub(crate) tap: i64,
    /// How far the tap saw it behind that, beyond the constant part.
    pub(crate) lag: i64,
    /// When the burst it belongs to began.
    pub(crate) burst_start: i64,
    /// The last of new data.
    pub(crate) new: Before,
    /// What may have been a write each.
    pub(crate) writes: Writes,
    /// Offset after the last that was no whole number of full segments (`snd_sml`), and its length.
    pub(crate) short: (i64, u32),
}

/// How far the peer has taken what was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// When something last arrived, was reported or was repeated.
    pub(crate) at: i64,
    /// When last all own data was acknowledged, or data of the peer came.
    pub(crate) done: i64,
    /// The tail was probed since: the next timer is the RTO.
    pub(crate) tail_probed: bool,
    /// What had been sent when its own host last refused a packet.
    pub(crate) refused_to: i64,
}

/// The peer's own data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) last_data: Option<i64>,
    /// Some came since this side's last data.
    pub(crate) spoke: bool,
}

/// Pauses after which the congestion window may start anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    pub(crate) watch: IdleWatch,
    /// Largest flight so far, in segments.
    pub(crate) largest_flight: u64,
    /// Position and round where the last pause ended.
    pub(crate) start: u64,
    pub(crate) round: u64,
}

/// One sender's walk.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    pub(crate) terms: Terms,
    /// Time of the newest event, and of the one before it.
    pub(crate) now: i64,
    pub(crate) event_before: i64,
    /// Frame of the newest event.
    pub(crate) frame: u64,
    /// Constant part of the way from the tap to this sender: added to every inner border.
    pub(crate) shift_in: i64,
    pub(crate) handshake: Handshake,
    pub(crate) flight: Flight,
    pub(crate) window: ReceiverWindow,
    pub(crate) answers: Answers,
    pub(crate) sends: Sends,
    pub(crate) releases: Releases,
    pub(crate) progress: Progress,
    pub(crate) peer: Peer,
    pub(crate) stop: Stop,
    pub(crate) silence: Silence,
    /// What the end of the connection tells of the time before it.
    pub(crate) tail: Option<Tail>,
    pub(crate) waits: Waits,
    pub(crate) trips: RoundTrips,
    pub(crate) book: RoundBook,
    pub(crate) order: SendOrder,
    pub(crate) batch: Batch,
    pub(crate) replay: Replay,
    pub(crate) initial: Option<InitialFlight>,
    /// The capture lacks the first flight, or a part of it.
    pub(crate) initial_hidden: bool,
    pub(crate) growth: Growth,
    pub(crate) avoidance: Avoidance,
    pub(crate) pauses: Pauses,
    pub(crate) repairs: Repairs,
    pub(crate) retransmissions: Vec<Retransmission>,
    pub(crate) samples: FlightSamples,
    pub(crate) transfers: Transfers,
    pub(crate) tally: Tally,
    /// Up to where time is judged, in the report's time, and what of that is not booked yet.
    pub(crate) judged_until: i64,
    pub(crate) due: Due,
    pub(crate) ledger: Ledger,
    /// Never take the short ways, for the test that holds both against each other.
    #[cfg(test)]
    pub(crate) long_way: bool,
}

impl Walker {
    /// A walker that has seen nothing; `midway` if the capture lacks the handshake, `shift_in` the
    /// constant way from the tap to this sender.
    pub(crate) fn new(terms: Terms, midway: bool, shift_in: i64) -> Self {
        // What a capture begins with midway left its sender's stack before that.
        let start = if midway { -terms.own_way } else { -shift_in };
        Self {
            terms,
            now: start,
            event_before: start,
            frame: 0,
            shift_in,
            handshake: Handshake { is_over: midway, ..Handshake::default() },
            flight: Flight::default(),
            window: ReceiverWindow::default(),
            answers: Answers::default(),
            sends: Sends {
                last: NEVER,
                tap: 0,
                lag: 0,
                burst_start: NEVER,
                new: Before::NONE,
                writes: Writes::default(),
                short: (NEVER, 0),
            },
            releases: Releases::default(),
            progress: Progress::default(),
            peer: Peer::default(),
            stop: Stop::default(),
            silence: Silence::default(),
            tail: None,
            waits: Waits::default(),
            trips: RoundTrips::new(terms.floor),
            book: RoundBook::default(),
            order: SendOrder::default(),
            batch: Batch::default(),
            replay: Replay::default(),
            initial: None,
            initial_hidden: midway,
            growth: Growth::default(),
            avoidance: Avoidance::default(),
            pauses: Pauses::default(),
            repairs: Repairs::default(),
            retransmissions: Vec::new(),
            samples: FlightSamples::default(),
            transfers: Transfers::default(),
            tally: Tally::default(),
            judged_until: 0,
            due: Due::default(),
            ledger: Ledger::new(terms.detail),
            #[cfg(test)]
            long_way: false,
        }
    }

    /// Starts anew as [`Walker::new`] does, and keeps the room of what grows in every connection.
    pub(crate) fn renew(&mut self, terms: Terms, midway: bool, shift_in: i64) {
        let mut new = Self::new(terms, midway, shift_in);
        new.flight.reuse(&mut self.flight);
        new.replay.reuse(&mut self.replay);
        new.book.reuse(&mut self.book);
        new.batch.reuse(&mut self.batch);
        new.samples.reuse(&mut self.samples);
        new.transfers.reuse(&mut self.transfers);
        new.waits.reuse(&mut self.waits);
        new.releases.reuse(&mut self.releases);
        new.ledger.reuse(&mut self.ledger);
        *self = new;
    }

    /// The round trip to judge by.
    pub(crate) fn rtt_scale(&self) -> i64 {
        self.trips.scale()
    }

    /// A time of the tap, at which something would have passed if the tap stood at this sender, in the report's.
    pub(crate) fn on_own_time(&self, at: i64) -> i64 {
        at + self.shift_in - self.terms.own_way
    }

    /// Whether some list was cut short.
    pub(crate) fn is_truncated(&self) -> bool {
        self.ledger.truncated
            || self.transfers.dropped > 0
            || self.book.is_full()
            || self.retransmissions.len() >= MAX_LISTED
    }

    /// Least round trip, 0 if unknown.
    pub(crate) fn least_rtt(&self) -> i64 {
        if self.trips.least == i64::MAX { 0 } else { self.trips.least }
    }

    /// A send within this of its cause was released by it.
    pub(crate) fn tolerance(&self) -> i64 {
        self.trips.tolerance(self.terms.spread)
    }

    /// A send later than this after its cause, though within the tolerance, may have had another.
    pub(crate) fn promptness(&self) -> i64 {
        trips::promptness(self.terms.spread)
    }

    /// Takes an event of this sender, `lag` behind its stack beyond the constant part.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    pub(crate) fn on_out(&mut self, event: &Event, at: i64, lag: i64) {
        let segments = segments_of(event.len, self.terms.mss);
        let step = self.order.push(event, segments);
        self.take_stop();
        let before = self.now;
        self.advance(at, event.frame);
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
        self.handshake.is_over |= self.terms.unanswered;
        if event.has(UNSEEN_CAUSE) {
            self.on_unseen_arrival();
        }
        if event.is_data() {
            if !self.handshake.is_over && self.peer.last_data.is_none() {
                // It is the first to speak: the ACK that it waited for has come.
                self.on_established(self.now);
            }
            self.handshake.is_over = true;
            self.on_data(event, self.now, lag, segments, step);
        } else if event.has(PROBE) {
            self.waits.probed = true;
        } else if event.has(FIN) && event.seq > self.flight.nxt && self.handshake.is_over {
            // The FIN's place tells of data that the tap has not seen.
            self.flight.send_unseen(event.seq, self.now, self.terms.mss);
            self.sends.last = self.now;
        }
    }

    /// Takes an arrival at this sender.
    pub(crate) fn on_in(&mut self, event: &Event, at: i64, blocks: &[Block]) {
        self.take_stop();
        let before = self.now;
        self.event_before = before;
        self.advance(at, event.frame);
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
        if self.handshake.is_over {
            return;
        }
        self.handshake.is_over = true;
        self.progress.at = at;
        if let Some(sent) = self.handshake.last_syn[self.terms.side].filter(|_| self.tally.syn == 0)
        {
            let rtt = at - sent;
            self.trips.sample(rtt, 0, 0);
            self.trips.shorten(rtt.max(1));
        }
    }

    /// A SYN or SYN-ACK of either side; a repeat turns the wait since the last into `syn_retry`.
    fn on_syn(&mut self, event: &Event, at: i64) {
        let side = event.side();
        if let Some(before) = self.handshake.last_syn[side] {
            if side == self.terms.side {
                self.tally.syn += 1;
            }
            if !self.handshake.is_over {
                self.relabel(before, Base::sure(State::SynRetry, 95));
            }
        }
        self.handshake.last_syn[side] = Some(at);
    }

    /// Lays down time up to `at`, the time of `frame`; the timeline never runs backwards.
    #[inline]
    pub(crate) fn advance(&mut self, at: i64, frame: u64) {
        let before = core::mem::replace(&mut self.frame, frame);
        if at > self.now {
            self.lay_down(at, (if before == 0 { frame } else { before }, frame));
        }
    }

    /// Lays down the time up to `at`, between two frames.
    #[inline(never)]
    fn lay_down(&mut self, at: i64, (first_frame, last_frame): (u64, u64)) {
        let base = self.base_now();
        let episode = self.repairs.current();
        let (start, end) = (self.now, at);
        self.now = at;
        let evidence = match base {
            Base::Flying => self.stop.evidence,
            // What shut came after the stop.
            Base::Shut => {
                let window = self.window.size;
                Evidence { window, first_frame, last_frame, ..self.stop.evidence }
            }
            _ => Evidence { first_frame, last_frame, ..self.stop.evidence },
        };
        let at_edge = base == Base::Flying
            && self.window.room(self.flight.nxt) < self.terms.mss
            && self.is_edge_told();
        let join = self.releases.acks.is_empty();
        self.waits.lay(Piece { start, end, base, episode, at_edge, evidence }, join);
    }

    /// Gives all open time since `from` a decided base; a piece that straddles it is split.
    pub(crate) fn relabel(&mut self, from: i64, base: Base) {
        self.waits.relabel(from, base);
    }

    /// Closes the open round at `at`, where `una` passed its marker.
    pub(crate) fn close_round(&mut self, at: i64) {
        if self.book.open.sends > 0 {
            let mut round = self.book.open;
            round.end = at;
            round.loss |= self.repairs.current() != 0;
            if self.growth.exit.is_some() {
                let acked = round.acked.max(0) as u64 / self.terms.mss.max(1) as u64;
                self.avoidance.on_round(&round, acked, self.least_rtt());
                round.cwnd = self.avoidance.window().unwrap_or(round.cwnd);
                if round.loss {
                    // It shrank somewhere in it.
                    round.cwnd.best = None;
                }
            }
            round.let_out_more = self.growth.has_let_out_more(round.flight_segments);
            self.trips.on_round(!round.is_answered_throughout());
            self.book.enter(&round, self.least_rtt(), self.terms.detail);
            self.note_growth(&round);
            self.window.on_round(round.number + 1);
        }
        self.book.open_next(at, self.flight.nxt);
    }
}

/// The room of `old`, for another connection.
pub(crate) fn emptied<T>(old: &mut Vec<T>) -> Vec<T> {
    let mut room = core::mem::take(old);
    room.clear();
    room
}
