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

pub(crate) mod exchanges;
pub(crate) mod summary;
pub(crate) mod terms;
pub(crate) mod timeline;

#[cfg(test)]
mod tapes;
#[cfg(test)]
mod tests;

use crate::flow::connection::Flow;
use crate::flow::copies::RECENT;
use crate::flow::event::Side;
use crate::limits::walker::Walker;
use crate::measure::clock::{Cause, LastBound, SideClock};
use crate::report::Vantage;
use timeline::Passed;

/// Events taken at a time. Ours: 4,096 of 56 bytes fit the second-level cache; a chunk of one
/// round of a 100 Gbit/s transfer is no larger.
pub(crate) const CHUNK: usize = 4096;

/// The state of one connection's analysis between chunks.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    pub(crate) clocks: [SideClock; 2],
    causes: Vec<Cause>,
    /// Which events each side sent.
    which: [Vec<u32>; 2],
    pub(crate) walkers: Option<[Walker; 2]>,
    /// The walkers are of another connection, kept for their room.
    walkers_are_stale: bool,
    /// Up to which event each walker has taken sends and arrivals.
    taken: [timeline::Cursor; 2],
    pub(crate) place: terms::Place,
    pub(crate) guessed_shift: [u8; 2],
    guess: [terms::ShiftGuess; 2],
    detail: bool,
    #[cfg(test)]
    long_way: bool,
}

impl Analysis {
    /// An analysis that has seen nothing; `detail` keeps rounds and intervals.
    pub(crate) fn new(detail: bool) -> Self {
        Self { detail, ..Self::default() }
    }

    /// Forgets all, and keeps the room: allocating it anew for each of 100,000 connections took
    /// longer than analysing them.
    pub(crate) fn renew(&mut self, detail: bool) {
        self.detail = detail;
        let [a, b] = &mut self.clocks;
        a.renew();
        b.renew();
        self.causes.clear();
        self.which.iter_mut().for_each(Vec::clear);
        self.walkers_are_stale = true;
        self.taken = Default::default();
        self.place = terms::Place::default();
        self.guessed_shift = [0; 2];
        self.guess = Default::default();
    }

    /// Takes what `flow` has gathered; all of it if `last`.
    pub(crate) fn process(&mut self, flow: &mut Flow, last: bool) {
        self.learn(flow);
        self.place = terms::place(flow, &self.clocks);
        let midway = flow.sides.iter().all(|s| s.syn.is_none());
        let new_terms = [0, 1].map(|side| self.terms_of(flow, side));
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
            walker.terms = new_terms[side];
            #[cfg(test)]
            {
                walker.long_way = self.long_way;
            }
            walker.ledger.lifetime = Some(flow.last_tap);
            timeline::walk(
                walker,
                &self.clocks[side],
                flow,
                (&self.causes, &self.which),
                &mut self.taken[side],
                last,
            );
            if last {
                walker.finish(flow.last_tap, flow.sides[side].fin_at.is_some());
                // Nobody acknowledges, so only what never came again was missed for sure.
                if flow.is_one_way() {
                    walker.tally.not_captured += walker.flight.unseen_segments();
                }
            }
        }
        self.forget(flow);
    }

    fn learn(&mut self, flow: &mut Flow) {
        let fresh = flow.known;
        let guessing = flow.window_shift(0).is_none();
        self.causes.reserve(flow.events.len() - fresh);
        for (index, event) in flow.events.iter().enumerate().skip(fresh) {
            let (own, peer) = (event.side(), 1 - event.side());
            self.which[own].push(index as u32);
            let cause = self.clocks[own].cause_of(event);
            self.clocks[own].learn(event, cause);
            self.clocks[peer].peer_passed(event);
            self.causes.push(cause);
            if guessing {
                self.guess[own].push(event);
                self.guess[peer].peer(event);
            }
        }
        // A tick that was not known before tells something of the earlier events too.
        let from = self.clocks.each_mut().map(|clock| {
            let knew = clock.tick().is_some();
            clock.fit_tick();
            if knew { fresh } else { 0 }
        });
        let first = from[0].min(from[1]);
        let mut last = [LastBound::default(); 2];
        let known = flow.events[first..].iter().zip(&self.causes[first..]);
        for (index, (event, cause)) in (first..).zip(known) {
            let side = event.side();
            if index >= from[side] {
                self.clocks[side].bound(event, *cause, &mut last[side]);
            }
        }
        flow.known = flow.events.len();
        self.guessed_shift = [self.guess[1].shift(), self.guess[0].shift()];
    }

    fn terms_of(&self, flow: &Flow, side: Side) -> crate::limits::walker::Terms {
        let shift = flow.window_shift(1 - side);
        crate::limits::walker::Terms {
            side,
            mss: i64::from(terms::mss(flow)),
            shift: shift.unwrap_or(self.guessed_shift[1 - side]),
            shift_guessed: shift.is_none(),
            spread: self.clocks[side].spread(),
            floor: match (self.clocks[0].floor(), self.clocks[1].floor()) {
                (Some(a), Some(b)) => a + b,
                _ => 0,
            },
            own_way: self.clocks[side].floor().unwrap_or(0),
            tap_at_sender: matches!(
                (self.place.vantage, side),
                (Vantage::Client, 0) | (Vantage::Server, 1)
            ),
            sack: flow.sides.iter().all(|s| s.syn.as_ref().is_none_or(|syn| syn.sack_permitted)),
            detail: self.detail,
        }
    }

    /// Drops what both walkers have taken.
    fn forget(&mut self, flow: &mut Flow) {
        let [client, server] =
            self.which.each_ref().map(|which| Passed { events: &flow.events, which });
        let done = self.taken[0].least(client, server).min(self.taken[1].least(server, client));
        // The last ones are still what the next may be a copy of.
        let done = done.min(flow.events.len().saturating_sub(RECENT));
        let gone = self.which.each_mut().map(|which| {
            let gone = which.partition_point(|index| (*index as usize) < done);
            which.drain(..gone);
            for index in which.iter_mut() {
                *index -= done as u32;
            }
            gone
        });
        flow.drop_events(done);
        self.causes.drain(..done);
        self.taken[0].rebase(gone[0], gone[1]);
        self.taken[1].rebase(gone[1], gone[0]);
    }
}
