//! One connection from its events to its account: the stages in order.
//!
//! Events arrive in capture order and are taken in chunks. A chunk is learnt from first (clocks,
//! distances), then laid out on each sender's own timeline and walked. What a later packet could
//! still change stays for the next chunk, so a long transfer needs no more memory than a chunk,
//! and a short one is seen whole before anything is decided.
//!
//! The timelines live in one frame of reference a side: an arrival happens when it passes the
//! tap, a send happens `floor` (the constant round trip between tap and stack) before it passes.
//! That shifts a whole direction by the constant way from tap to stack, which is added back to
//! the inner borders when they are booked.

mod analyst;
mod directions;
mod doubles;
mod ending;
pub(crate) mod exchanges;
pub(crate) mod failed;
mod kept;
mod passed;
pub(crate) mod summary;
pub(crate) mod terms;
pub(crate) mod timeline;
mod trail;
mod way_back;

#[cfg(test)]
mod tests;

pub(crate) use analyst::{AT_ONCE, Content, bring};
pub use analyst::{Analyst, Begun, Part, Sums};
pub use kept::Keep;

use crate::clocks::TapTime;
use crate::flow::event::{self, Side};
use crate::flow::facts::Facts;
use crate::flow::gathered::Gathered;
use crate::flow::run::Run;
use crate::limits::account::due::FullLink;
use crate::limits::quick::turns::{Turns, may_be_turns};
use crate::limits::sender::Terms;
use crate::limits::walk::Walker;
use crate::measure::clock::{Cause, LastBound, SideClock};
use crate::measure::link::{Busy, Link, Seen, Tap};
use crate::measure::stack;
use crate::offsets::Offset;
use crate::report::{
    Answer, Answers, Ending, EndingKind, Failure, FinPassed, Passed as PassedBytes, Transfer,
    Vantage,
};
use passed::Passed;
use trail::Trails;

/// Events taken at a time. Ours: 4,096 of 64 bytes fit the second-level cache; a chunk of one
/// round of a 100 Gbit/s transfer is no larger.
pub(crate) const CHUNK: usize = 4096;

/// A sender may be nearer to the tap than the least that is known by this, and by a small part of that. Ours: not
/// measured; on its own host (`testdata/windows`) it was some microseconds.
const NEARER_NS: i64 = 100_000;

/// What is kept of a connection one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detail {
    /// Rounds, intervals and retransmissions.
    pub(crate) rounds: bool,
    /// When each byte passed, if it is no more than this many points a side.
    pub(crate) passed: Option<usize>,
    /// What passed the tap, for pictures.
    pub(crate) trail: bool,
}

/// The state of one connection's analysis between chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Analysis {
    pub(crate) clocks: [SideClock; 2],
    /// Events that were learnt from, but that a later one may still change.
    left: Gathered,
    causes: Vec<Causes>,
    /// Which events each side sent; their followers are its own, too.
    which: [Vec<u32>; 2],
    pub(crate) walkers: Option<[Walker; 2]>,
    /// The walkers are of another connection, kept for their room.
    walkers_are_stale: bool,
    turns: [Turns; 2],
    /// Up to which event each walker has taken sends and arrivals.
    taken: [timeline::Cursor; 2],
    pub(crate) place: terms::Place,
    pub(crate) guessed_shift: [u8; 2],
    guess: [terms::ShiftGuess; 2],
    detail: bool,
    /// The links that the packets of each side pass behind the tap, and how many of the first events they know.
    links: Option<Box<[Link; 2]>>,
    /// What they were found to be at the end.
    pub(crate) busy: [Option<Busy>; 2],
    linked: usize,
    /// When the bytes of each side passed, and what was answered to them, where that is asked for.
    pub(crate) passed: Option<[(PassedBytes, Answers); 2]>,
    /// With more points than these they are not kept.
    most_passed: usize,
    /// What passed the tap, where that is asked for.
    trails: Option<Box<Trails>>,
    /// What it waited for to its end in vain.
    pub(crate) ending: Option<Box<Ending>>,
    #[cfg(test)]
    long_way: bool,
}

impl Analysis {
    /// An analysis that has seen nothing.
    pub(crate) fn new(detail: Detail) -> Self {
        let passed = detail.passed.map(|_| Default::default());
        let most_passed = detail.passed.unwrap_or(0);
        let links = detail.rounds.then(Default::default);
        let trails = detail.trail.then(Default::default);
        Self { detail: detail.rounds, passed, most_passed, links, trails, ..Self::default() }
    }

    /// Forgets all, and keeps the room: allocating it anew for each of 100,000 connections took
    /// longer than analysing them.
    pub(crate) fn renew(&mut self, detail: Detail) {
        self.detail = detail.rounds;
        self.passed = detail.passed.map(|_| Default::default());
        self.most_passed = detail.passed.unwrap_or(0);
        match &mut self.links {
            // Room that is given back goes to pieces among the accounts that stay.
            Some(links) if detail.rounds => {
                links.iter_mut().for_each(|link| *link = Link::default());
            }
            links => *links = detail.rounds.then(Default::default),
        }
        self.trails = detail.trail.then(Default::default);
        self.busy = [None, None];
        self.ending = None;
        let [a, b] = &mut self.clocks;
        a.renew();
        b.renew();
        self.left.clear();
        self.causes.clear();
        self.which.iter_mut().for_each(Vec::clear);
        self.walkers_are_stale = true;
        self.taken = Default::default();
        self.place = terms::Place::default();
        self.guessed_shift = [0; 2];
        self.guess = Default::default();
    }

    /// Takes the next events of a connection, all there are if `last`; `facts` are what was known of
    /// it behind them.
    pub(crate) fn process(&mut self, facts: &Facts, gathered: &mut Gathered, last: bool) {
        self.study(facts, gathered);
        self.walk(facts, gathered, last);
    }

    /// Learns all that the next events tell before any sender's timeline is walked.
    pub(crate) fn study(&mut self, facts: &Facts, gathered: &mut Gathered) {
        let known = self.left.events.len();
        gathered.follow(&mut self.left);
        self.linked = known;
        self.note_passed(facts, gathered, known);
        self.note_trails(facts, gathered, known);
        for index in self.learn(facts, gathered, known) {
            gathered.events[index].bits |= event::UNSEEN_CAUSE;
        }
        self.place = terms::place(facts, &self.clocks);
    }

    /// What both sides sent, if these are all their packets and they talked in turns.
    pub(crate) fn turns(&mut self, facts: &Facts, gathered: &Gathered) -> Option<&[Turns; 2]> {
        if !may_be_turns(facts, gathered) {
            return None;
        }
        for side in [0, 1] {
            let terms = self.terms_of(facts, side);
            let (turns, clock) = (&mut self.turns[side], &self.clocks[side]);
            turns.renew(&terms, self.place.way_in[side]);
            let known = (&self.causes[..], &self.which);
            timeline::walk_turns(turns, (&terms, clock), gathered, known)?;
        }
        Some(&self.turns)
    }

    /// Walks both senders' timelines over the next events, that were studied.
    pub(crate) fn walk(&mut self, facts: &Facts, gathered: &mut Gathered, last: bool) {
        self.watch_links(facts, gathered);
        let midway = facts.sides.iter().all(|s| s.syn.is_none());
        let new_terms = [0, 1].map(|side| self.terms_of(facts, side));
        let way_in = self.place.way_in;
        if core::mem::take(&mut self.walkers_are_stale)
            && let Some(walkers) = &mut self.walkers
        {
            for (walker, terms) in walkers.iter_mut().zip(new_terms) {
                walker.renew(terms, midway, way_in[terms.side]);
            }
        }
        let walkers = self.walkers.get_or_insert_with(|| {
            new_terms.map(|terms| Walker::new(terms, midway, way_in[terms.side]))
        });
        for (side, walker) in walkers.iter_mut().enumerate() {
            walker.sender.terms = new_terms[side];
            walker.sender.order.is_counted_by(walker.sender.terms.counter);
            #[cfg(test)]
            {
                walker.long_way = self.long_way;
            }
            walker.ledger.lifetime = Some(facts.lifetime());
            if self.links.is_some() {
                walker.due.hold();
            }
            timeline::walk(
                walker,
                &self.clocks,
                gathered,
                (&self.causes, &self.which),
                &mut self.taken[side],
                last,
            );
        }
        if !last {
            self.forget(gathered);
            return;
        }
        self.ending = ending::of(facts, walkers).map(Box::new);
        for (side, walker) in walkers.iter_mut().enumerate() {
            self.busy[side] = self.links.as_mut().and_then(|links| links[side].measured());
            let own = |tap: TapTime| walker.sender.on_own_time(tap);
            let full = self.busy[side].as_ref().map_or_else(FullLink::default, |busy| FullLink {
                spans: busy.full.iter().map(|(from, to)| (own(*from), own(*to))).collect(),
                varies: busy.varies,
                is_proven: busy.is_proven,
                came_back: false,
            });
            walker.finish(facts.lifetime(), facts.sides[side].fin_at.is_some(), full);
            // Nobody acknowledges, so only what never came again was missed for sure.
            if facts.is_one_way() {
                walker.sender.tally.not_captured += walker.sender.flight.unseen_segments();
            }
        }
    }

    /// Shows the links what is new.
    fn watch_links(&mut self, facts: &Facts, gathered: &Gathered) {
        let seen = [0, 1].map(|side| self.seen(facts, side));
        let Some(links) = &mut self.links else { return };
        for run in gathered.runs().skip(self.linked) {
            let side = run.head.side();
            links[1 - side].on_answer(run.head, gathered.blocks(run.head), &seen[1 - side]);
            links[side].on_sends(run, &seen[side]);
        }
    }

    /// What the links of `side` have to know.
    fn seen(&self, facts: &Facts, side: Side) -> Seen {
        let floors = [0, 1].map(|side| self.clocks[side].floor());
        Seen {
            tap: match (self.place.vantage, side) {
                (Vantage::Client, 0) | (Vantage::Server, 1) => Tap::AtSender,
                (Vantage::Client | Vantage::Server, _) => Tap::AtReceiver,
                (Vantage::Middle | Vantage::Unknown, _) => Tap::Between,
            },
            mss: i64::from(terms::mss(facts)),
            ip: if facts.endpoints[0].is_ipv6() { 40 } else { 20 },
            ticks: [side, 1 - side].map(|side| self.clocks[side].tick()),
            trip: floors[0].zip(floors[1]).map_or(0, |(near, far)| near + far),
            shift: facts.window_shift(1 - side).unwrap_or(self.guessed_shift[1 - side]),
        }
    }

    /// Takes down what passed the tap behind the `known` first events.
    fn note_trails(&mut self, facts: &Facts, gathered: &Gathered, known: usize) {
        let Some(trails) = &mut self.trails else { return };
        let guessed = self.guessed_shift;
        let shifts = [0, 1].map(|side| facts.window_shift(side).unwrap_or(guessed[side]));
        for run in gathered.runs().skip(known) {
            let mut blocks = gathered.blocks(run.head);
            for event in run.events() {
                trails.push(&event, blocks, shifts[event.side()]);
                blocks = &[];
            }
        }
    }

    /// Takes down when the new data passed the tap, and what was answered to it: that of all but the first
    /// events, which were `known` before.
    fn note_passed(&mut self, facts: &Facts, gathered: &Gathered, known: usize) {
        let Some(passed) = &mut self.passed else { return };
        let shifts = [0, 1].map(|side| facts.window_shift(side).unwrap_or(0));
        let bytes = |offset: Offset| u64::try_from(offset.get()).unwrap_or(0);
        for event in gathered.runs().skip(known).flat_map(Run::events) {
            let side = event.side();
            if event.is_data() {
                passed[side].0.push(event.tap.0, bytes(event.end()));
            }
            if event.has(event::FIN) {
                let fin = FinPassed { at_ns: event.tap.0, with_data: event.is_data() };
                passed[side].0.fin.get_or_insert(fin);
            }
            if event.has(event::ACK) && !event.has(event::SYN) {
                let edge = event.ack + (i64::from(event.window) << shifts[side]);
                let answer =
                    Answer { at_ns: event.tap.0, acked: bytes(event.ack), edge: bytes(edge) };
                passed[1 - side].1.push(answer);
            }
        }
        let longest = passed.iter().map(|each| each.0.points.len().max(each.1.points.len())).max();
        if longest > Some(self.most_passed) {
            self.passed = None;
        }
    }

    /// Learns from the events behind the first `known`, which it learnt from before. Returns which of them answer
    /// what the capture lacks.
    fn learn(&mut self, facts: &Facts, gathered: &Gathered, known: usize) -> Vec<usize> {
        let mut unseen = Vec::new();
        self.causes.reserve(gathered.events.len() - known);
        for (index, event) in (known as u32..).zip(&gathered.events[known..]) {
            let (own, peer) = (event.side(), 1 - event.side());
            self.which[own].push(index);
            if let Some(echoed) = self.clocks[own].unseen_echo(event)
                && event.is_data()
                && let Some(tick) = self.clocks[peer].fitted_tick()
                && self.clocks[own].came_just_before(event, echoed, tick)
            {
                unseen.push(index as usize);
            }
            let mut cause = self.clocks[own].cause_of(event, gathered.blocks(event));
            // A timer sends probes, and they tell of no distance.
            cause.fresh &= !event.has(event::PROBE);
            self.clocks[own].learn(event, cause);
            self.clocks[peer].peer_passed(event);
            let Cause { at, until, .. } = cause;
            let mut causes = Causes { first: at, again: at, until };
            if event.run > 0 {
                let (run, cause) = (gathered.run(event), self.clocks[own].cause_again(event));
                self.clocks[own].learn(&run.last(), cause);
                self.clocks[peer].peer_went_on(run);
                causes.again = cause.at;
            }
            self.causes.push(causes);
        }
        // A tick that was not known before tells something of the earlier events too.
        let from = self.clocks.each_mut().map(|clock| {
            let knew = clock.tick().is_some();
            clock.fit_tick();
            if knew { known } else { 0 }
        });
        let first = from[0].min(from[1]);
        let mut last = [LastBound::default(); 2];
        let caused = gathered.events[first..].iter().zip(&self.causes[first..]);
        for (index, (event, causes)) in (first..).zip(caused) {
            let side = event.side();
            if index >= from[side] {
                self.clocks[side].bound(event, causes.first, &mut last[side]);
                if event.run > 0 {
                    let run = gathered.run(event);
                    self.clocks[side].bound_again(run, causes.again, &mut last[side]);
                }
            }
        }
        if facts.window_shift(0).is_none() {
            self.guess_shifts(gathered, known);
        }
        unseen
    }

    /// Learns by how much windows are scaled: a sender knows what was announced when that could have come to it.
    fn guess_shifts(&mut self, gathered: &Gathered, known: usize) {
        // Within the noise of immediate answers a sender may be nearer than the least that is known.
        let ways = self.clocks.each_ref().map(|clock| {
            let floor = clock.floor().unwrap_or(0);
            floor - clock.spread().min(NEARER_NS + floor / 32)
        });
        for event in &gathered.events[known..] {
            let (own, peer) = (event.side(), 1 - event.side());
            self.guess[own].push(&gathered.run(event).last(), ways[own]);
            self.guess[peer].peer(event);
        }
        self.guessed_shift = [self.guess[1].shift(), self.guess[0].shift()];
    }

    /// What did not work, as far as the connection tells by itself; a finding tells of what never arrived.
    pub(crate) fn failure(&self, facts: &Facts, transfers: &[Transfer]) -> Option<Failure> {
        let lost = |kind| matches!(kind, EndingKind::NeverAcknowledged | EndingKind::NeverArrived);
        let is_lost = self.ending.as_ref().is_some_and(|ending| lost(ending.kind));
        // By its own numbers it has sent more than came here: that is no silence of its program.
        let has_sent_more = self
            .walkers
            .as_ref()
            .is_some_and(|w| ending::sent_to(facts, 1) > w[1].sender.flight.nxt);
        failed::of(facts, transfers).filter(|_| !is_lost && !has_sent_more)
    }

    fn terms_of(&self, facts: &Facts, side: Side) -> Terms {
        let shift = facts.window_shift(1 - side);
        let tap_at_sender =
            matches!((self.place.vantage, side), (Vantage::Client, 0) | (Vantage::Server, 1));
        Terms {
            side,
            mss: i64::from(terms::mss(facts)),
            shift: shift.unwrap_or(self.guessed_shift[1 - side]),
            shift_guessed: shift.is_none() && !self.guess[side].is_certain(),
            spread: self.clocks[side].spread(),
            floor: match (self.clocks[0].floor(), self.clocks[1].floor()) {
                (Some(a), Some(b)) => a + b,
                _ => 0,
            },
            own_way: self.clocks[side].floor().unwrap_or(0),
            tap_at_sender,
            unanswered: facts.has_sent_nothing(1 - side),
            sees_queues: tap_at_sender || self.clocks[side].tick().is_some(),
            sack: facts
                .sides
                .iter()
                .all(|s| s.syn.as_ref().is_none_or(|syn| syn.sack_permitted || syn.incomplete)),
            detail: self.detail,
            counter: stack::counter(&facts.sides[side]),
        }
    }

    /// Keeps what is not taken by both walkers.
    fn forget(&mut self, gathered: &Gathered) {
        let [client, server] = self.which.each_ref().map(|which| Passed { gathered, which });
        let done = self.taken[0].least(client, server).min(self.taken[1].least(server, client));
        self.left.take_rest(gathered, done);
        let gone = [client, server].map(|passed| passed.at_or_behind(done));
        for (which, gone) in self.which.iter_mut().zip(gone) {
            which.drain(..gone.run);
            for index in which.iter_mut() {
                *index -= done.run as u32;
            }
        }
        self.causes.drain(..done.run);
        if let Some(causes) = self.causes.first_mut().filter(|_| done.of_next > 0) {
            causes.first = causes.again;
        }
        self.taken[0].rebase(gone[0], gone[1]);
        self.taken[1].rebase(gone[1], gone[0]);
    }
}

/// When what drew an event arrived at the tap, and what drew its followers; [`TapTime::MIN`] when unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Causes {
    pub(crate) first: TapTime,
    pub(crate) again: TapTime,
    /// Before when all of them were on their way.
    pub(crate) until: TapTime,
}
