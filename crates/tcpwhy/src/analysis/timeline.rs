//! One sender's timeline: when its packets left its stack, in order with what arrived there.
//!
//! A packet left the stack no later than it passed the tap less the constant distance (`high`),
//! no earlier than its cause arrived (`low`); its timestamp narrows both. Senders that wait act
//! the moment something arrives, so a send is put at the newest arrival in that range if one lies
//! within the noise below `high`, else at `high`. What remains above is the packet's lag: a queue
//! between stack and tap.

use crate::flow::connection::Flow;
use crate::flow::event::{Event, Side};
use crate::limits::walker::Walker;
use crate::measure::clock::{Cause, NearMap, SideClock};

/// Events that may wait for the horizon. Ours: four chunks, a round of 20 Gbit/s over 10 ms.
const MOST_WAITING: usize = 4 * super::CHUNK;
/// Arrivals kept for the next send of a silent side to be put at. Ours: ACKs that come together.
const NEAR_KEPT: usize = 64;

/// How far a walker has taken the events: sends and arrivals separately, because a send that
/// passed the tap late may have left before an arrival that passed it earlier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    out: usize,
    arrived: usize,
    /// The newest arrival not after the last send's latest time, for the search to start from.
    near: usize,
    largest_lag: i64,
}

impl Cursor {
    /// First event not yet taken in both senses.
    pub(crate) fn least(&self) -> usize {
        self.out.min(self.arrived).min(self.near)
    }

    /// The first `done` events are gone.
    pub(crate) fn rebase(&mut self, done: usize) {
        self.out -= done;
        self.arrived -= done;
        self.near -= done.min(self.near);
    }
}

/// A place among the events, and the newest arrival before it.
#[derive(Clone, Copy, Debug)]
struct Near {
    at: usize,
    arrival: Option<usize>,
    /// The sender; what the other side sends arrives.
    side: Side,
}

impl Near {
    fn at(at: usize, events: &[Event], side: Side) -> Self {
        let at = at.min(events.len());
        Self { at, arrival: events[..at].iter().rposition(|e| e.side() != side), side }
    }

    /// Goes behind the last event not after `time`; sends come nearly in order, so it is near.
    fn move_to(&mut self, time: i64, events: &[Event]) {
        let from = self.at;
        while self.at > 0 && events[self.at - 1].tap > time {
            self.at -= 1;
        }
        if self.at < from {
            if self.arrival.is_some_and(|arrival| arrival >= self.at) {
                *self = Self::at(self.at, events, self.side);
            }
            return;
        }
        while let Some(event) = events.get(self.at) {
            if event.tap > time {
                break;
            }
            if event.side() != self.side {
                self.arrival = Some(self.at);
            }
            self.at += 1;
        }
    }
}

/// A send on its timeline.
#[derive(Clone, Copy, Debug)]
struct Placed {
    at: i64,
    lag: i64,
}

/// Walks `flow`'s events on the walker's timeline, up to where nothing later can interfere, or to
/// the end if `last`.
pub(crate) fn walk(
    walker: &mut Walker,
    clock: &SideClock,
    flow: &Flow,
    causes: &[Cause],
    cursor: &mut Cursor,
    last: bool,
) {
    let side = walker.terms.side;
    let events = flow.events.as_slice();
    let horizon = horizon(events, clock, cursor, last);
    let mut placing =
        Placing { clock, map: NearMap::default(), near: Near::at(cursor.near, events, side) };
    loop {
        cursor.out = skip(events, cursor.out, |e| e.side() == side);
        let send = events.get(cursor.out).map(|event| {
            let placed = placing.place(events, event, causes[cursor.out], walker.terms.spread);
            (event, placed)
        });
        let until = send.map_or(i64::MAX, |(_, placed)| placed.at);
        cursor.arrived = skip(events, cursor.arrived, |e| e.side() != side);
        let is_due = events.get(cursor.arrived).is_some_and(|e| e.tap <= until);
        if is_due && !arrivals(walker, flow, cursor, until, horizon) {
            break;
        }
        let Some((event, placed)) = send else { break };
        if placed.at > horizon {
            break;
        }
        cursor.largest_lag = cursor.largest_lag.max(placed.lag);
        walker.on_out(event, placed.at, placed.lag);
        cursor.out += 1;
    }
    // What is learnt between chunks may change what the stop is made of.
    walker.take_stop();
    cursor.near = placing.near.at;
    if cursor.out >= events.len() {
        // No send is waiting: the next one will not reach further back than this.
        cursor.near = cursor.near.max(cursor.arrived.saturating_sub(NEAR_KEPT));
    }
}

/// Up to which time nothing later can interfere. A clock that jumped may hold it back for good:
/// what has waited for several chunks is taken as it stands.
fn horizon(events: &[Event], clock: &SideClock, cursor: &Cursor, last: bool) -> i64 {
    if last || events.len() > MOST_WAITING {
        return i64::MAX;
    }
    let newest = events.last().map_or(0, |e| e.tap);
    newest - clock.floor().unwrap_or(0) - 2 * cursor.largest_lag - 1_000_000
}

/// Hands the walker what arrived up to `until`; `false` if the horizon was met before.
fn arrivals(
    walker: &mut Walker,
    flow: &Flow,
    cursor: &mut Cursor,
    until: i64,
    horizon: i64,
) -> bool {
    let side = walker.terms.side;
    while let Some(event) = flow.events.get(cursor.arrived) {
        if event.side() != side {
            if event.tap > until {
                break;
            }
            if event.tap > horizon {
                return false;
            }
            let rest = &flow.events[cursor.arrived..];
            let taken =
                if event.len > 0 { walker.go_on_receiving(rest, until.min(horizon)) } else { 0 };
            if taken > 0 {
                cursor.arrived += taken;
                continue;
            }
            walker.on_in(event, event.tap, flow.blocks(event));
        }
        cursor.arrived += 1;
    }
    true
}

fn skip(events: &[Event], from: usize, wanted: impl Fn(&Event) -> bool) -> usize {
    events
        .get(from..)
        .map_or(from, |rest| from + rest.iter().position(wanted).unwrap_or(rest.len()))
}

/// What sends are placed by.
struct Placing<'a> {
    clock: &'a SideClock,
    map: NearMap,
    near: Near,
}

impl Placing<'_> {
    /// When `event`, drawn by `cause`, left the stack; `spread` is the noise of immediate answers.
    fn place(&mut self, events: &[Event], event: &Event, cause: Cause, spread: i64) -> Placed {
        let latest = event.tap - self.clock.floor().unwrap_or(0);
        let tick = self.clock.tick_of(event, &mut self.map);
        let low = cause.at.max(tick.map_or(i64::MIN, |t| t.0));
        let high = latest.min(tick.map_or(i64::MAX, |t| t.1)).max(low);
        let noise = spread + tick.filter(|t| t.1 < latest).map_or(0, |t| t.1 - t.0);
        self.near.move_to(high, events);
        let found = self.near.arrival.map(|arrival| events[arrival].tap);
        let at = found.filter(|tap| *tap >= low.max(high - noise)).unwrap_or(high);
        Placed { at, lag: (latest - at.max(high)).max(0) }
    }
}
