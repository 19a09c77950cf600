//! One sender: what is known of it, event by event, as facts.
//!
//! Each part is a type of its own in the file named after it, with what it alone can tell. Nothing here names a state or a
//! confidence: what an event proves of time that has passed leaves as a [`proof::Proof`], what was true of a wait as a
//! [`Wait`](crate::limits::wait::Wait).

pub(crate) mod acks;
pub(crate) mod avoidance;
pub(crate) mod batch;
pub(crate) mod before;
pub(crate) mod book;
pub(crate) mod edge;
pub(crate) mod ended;
pub(crate) mod episodes;
pub(crate) mod gaps;
pub(crate) mod growth;
pub(crate) mod holes;
pub(crate) mod hystart;
pub(crate) mod jumps;
pub(crate) mod listed;
pub(crate) mod losses;
pub(crate) mod order;
pub(crate) mod pauses;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod releases;
pub(crate) mod repair;
pub(crate) mod repeats;
pub(crate) mod replay;
pub(crate) mod samples;
pub(crate) mod sends;
pub(crate) mod short;
pub(crate) mod silence;
pub(crate) mod stop;
pub(crate) mod stuck;
pub(crate) mod tally;
pub(crate) mod timers;
pub(crate) mod times;
pub(crate) mod transfers;
pub(crate) mod trips;
pub(crate) mod unseen;
pub(crate) mod window;
pub(crate) mod writes;

use self::avoidance::Avoidance;
use self::batch::Batch;
use self::book::RoundBook;
use self::growth::{Growth, InitialFlight};
use self::order::SendOrder;
use self::reader::Answers;
use self::releases::Releases;
use self::repair::Repairs;
use self::replay::Replay;
use self::samples::FlightSamples;
use self::silence::{Silence, Tail};
use self::stop::Stop;
use self::tally::Tally;
use self::timers::Suspect;
use self::transfers::Transfers;
use self::trips::RoundTrips;
use self::window::ReceiverWindow;
use self::writes::Writes;
use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{Event, Side};
use crate::limits::beat::Beat;
use crate::limits::proof::{Proof, Proven};
use crate::limits::pulse::Before;
use crate::limits::sense::{NEVER, NOWHERE};
use crate::measure::flight::Flight;
use crate::measure::idle::IdleWatch;
use crate::measure::ipid::Counter;
use crate::offsets::Offset;
use crate::report::Retransmission;
use crate::segments::Segments;

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
    /// The tap is on the sender's host.
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

/// How the connection was opened, as this sender sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    pub(crate) is_over: bool,
    /// Data was sent before its SYN-ACK was acknowledged: Fast Open (RFC 7413 section 4.2.2).
    pub(crate) is_early: bool,
    /// When each side last sent its SYN.
    pub(crate) last_syn: [Option<StackTime>; 2],
}

/// This sender's last data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sends {
    pub(crate) last: StackTime,
    /// When it passed the tap.
    pub(crate) tap: TapTime,
    /// How far the tap saw it behind that, beyond the constant part.
    pub(crate) lag: i64,
    /// When the burst it belongs to began.
    pub(crate) burst_start: StackTime,
    /// The last of new data.
    pub(crate) new: Before,
    pub(crate) beat: Beat,
    /// What may have been a write each.
    pub(crate) writes: Writes,
    /// Offset after the last that was no whole number of full segments (`snd_sml`), and its length.
    pub(crate) short: (Offset, u32),
}

/// How far the peer has taken what was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// When something last arrived, was reported or was repeated.
    pub(crate) at: StackTime,
    /// When last all own data was acknowledged, or data of the peer came.
    pub(crate) done: StackTime,
    /// The tail was probed since: the next timer is the RTO.
    pub(crate) tail_probed: bool,
    /// What had been sent when its own host last refused a packet.
    pub(crate) refused_to: Offset,
}

/// The peer's own data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) last_data: Option<StackTime>,
    /// Some came since this side's last data.
    pub(crate) spoke: bool,
    /// Offset after the highest byte that passed the tap on its way here.
    pub(crate) end: Offset,
    /// Up to where this side has acknowledged it by itself, without data of its own.
    pub(crate) answered_to: Offset,
    /// This side has said that some of it is missing while more lies behind that.
    pub(crate) has_hole: bool,
}

impl Peer {
    /// Whether data of the peer that had passed the tap was still on its way when this side sent `event`: it
    /// acknowledges less (RFC 9293 section 3.4: an ACK names the next byte that is awaited). What fills a hole is
    /// acknowledged at once (RFC 5681 section 4.2), so it came then.
    pub(crate) fn was_on_its_way(&mut self, event: &Event) -> bool {
        self.answered_to = self.answered_to.max(event.ack);
        let is_missing = event.ack < self.end;
        let fills_hole = self.has_hole && !is_missing;
        self.has_hole = is_missing && event.sack_count > 0;
        self.spoke && (is_missing || fills_hole)
    }
}

/// Pauses after which the congestion window may start anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    pub(crate) watch: IdleWatch,
    /// Largest flight so far, in segments.
    pub(crate) largest_flight: Segments,
    /// The same since a loss last cut the window, without flights of repairs; what it was before that cut; and what it was when
    /// the pause that is judged began.
    pub(crate) since_cut: Segments,
    pub(crate) before_cut: Segments,
    pub(crate) at_pause: Segments,
    /// Position and round where the last pause ended.
    pub(crate) start: u64,
    pub(crate) round: u64,
}

/// One sender: what is known of it, as facts.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) terms: Terms,
    /// Time of the newest event, and of the one before it.
    pub(crate) now: StackTime,
    pub(crate) event_before: StackTime,
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
    /// The sender probed the receiver's window in the open wait.
    pub(crate) has_probed: bool,
    /// How long the newest arrival stood in queues on its way here, as far as that is known.
    pub(crate) acks_held: i64,
    /// The capture lacks packets, and no ACK has come since: what is in flight is not known.
    pub(crate) is_blind: bool,
    /// What may yet tell of the waits before it: they are not booked meanwhile.
    pub(crate) suspect: Option<Suspect>,
    /// What events have proven of time that has passed, until the account has taken it down.
    pub(crate) proofs: Vec<Proof>,
}

impl Sender {
    /// A sender before anything was seen of it.
    pub(crate) fn new(terms: Terms, midway: bool, shift_in: i64) -> Self {
        // What a capture begins with midway left its sender's stack before that.
        let from_tap = TapTime::default().left(terms.own_way);
        let start = if midway { from_tap } else { StackTime::of_report(0, shift_in) };
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
                tap: TapTime::default(),
                lag: 0,
                burst_start: NEVER,
                new: Before::NONE,
                beat: Beat::default(),
                writes: Writes::default(),
                short: (NOWHERE, 0),
            },
            releases: Releases::default(),
            progress: Progress::default(),
            peer: Peer::default(),
            stop: Stop::default(),
            silence: Silence::default(),
            tail: None,
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
            has_probed: false,
            acks_held: 0,
            is_blind: false,
            suspect: None,
            proofs: Vec::new(),
        }
    }

    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.flight.reuse(&mut old.flight);
        self.replay.reuse(&mut old.replay);
        self.book.reuse(&mut old.book);
        self.batch.reuse(&mut old.batch);
        self.samples.reuse(&mut old.samples);
        self.transfers.reuse(&mut old.transfers);
        self.releases.reuse(&mut old.releases);
        self.proofs = emptied(&mut old.proofs);
    }
}

impl Sender {
    /// All time since `since` was for `what`.
    fn prove(&mut self, since: StackTime, what: Proven) {
        self.proofs.push(Proof::Since { since, what });
    }

    /// The round trip to judge by.
    pub(crate) fn rtt_scale(&self) -> i64 {
        self.trips.scale()
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

    /// The handshake is over for this side: its round trip seeds the timers
    /// (`tcp_ack_update_rtt` of the SYN or SYN-ACK), if that was sent once.
    pub(crate) fn on_established(&mut self, at: StackTime) {
        if self.handshake.is_over {
            return;
        }
        self.handshake.is_over = true;
        self.progress.at = at;
        if let Some(sent) = self.handshake.last_syn[self.terms.side].filter(|_| self.tally.syn == 0)
        {
            let rtt = at - sent;
            self.trips.sample(rtt, Offset::FIRST, Offset::FIRST);
            self.trips.shorten(rtt.max(1));
        }
    }

    /// A SYN or SYN-ACK of either side; a repeat turns the wait since the last into `syn_retry`.
    pub(crate) fn on_syn(&mut self, event: &Event, at: StackTime) {
        let side = event.side();
        if let Some(before) = self.handshake.last_syn[side] {
            if side == self.terms.side {
                self.tally.syn += 1;
            }
            if !self.handshake.is_over {
                self.prove(before, Proven::SynRepeated);
            }
        }
        self.handshake.last_syn[side] = Some(at);
    }

    /// Closes the open round at `at`, where `una` passed its marker.
    pub(crate) fn close_round(&mut self, at: StackTime) {
        if self.book.open.sends > 0 {
            let mut round = self.book.open;
            round.end = at;
            round.loss |= self.repairs.episodes.current() != 0;
            if self.growth.exit.is_some() {
                let acked = Segments::new(round.acked.max(0) as u64 / self.terms.mss.max(1) as u64);
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
