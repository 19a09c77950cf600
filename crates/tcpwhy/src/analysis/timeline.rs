//! One sender's timeline: when its packets left its stack, in order with what arrived there.
//!
//! A packet left the stack no later than it passed the tap less the constant distance (`high`),
//! no earlier than its cause arrived (`low`); its timestamp narrows both. Senders that wait act
//! the moment something arrives, so a send is put at the newest arrival in that range if one lies
//! within the noise below `high`, else at `high`. What remains above is the packet's lag: a queue
//! between stack and tap.

use crate::flow::event::{Event, run_of};
use crate::flow::gathered::Gathered;
use crate::limits::burst::Placed;
use crate::limits::walker::Walker;
use crate::measure::clock::{Cause, NearMap, SideClock};

/// Events that may wait for the horizon. Ours: four chunks, a round of 20 Gbit/s over 10 ms.
const MOST_WAITING: usize = 4 * super::CHUNK;
/// Sends placed before they are walked. Ours: they fit the first-level cache.
const MOST_TOGETHER: usize = 256;
/// Arrivals kept for the next send of a silent side to be put at. Ours: ACKs that come together.
const NEAR_KEPT: usize = 64;

/// The events of one side, in capture order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed<'a> {
    /// Those of both sides.
    pub(crate) events: &'a [Event],
    /// Which of them are this side's.
    pub(crate) which: &'a [u32],
}

impl<'a> Passed<'a> {
    fn get(self, at: usize) -> Option<&'a Event> {
        self.events.get(*self.which.get(at)? as usize)
    }

    /// Which of the events of both sides the one at `at` is; behind all of them if there is none.
    fn index(self, at: usize) -> usize {
        self.which.get(at).map_or(self.events.len(), |index| *index as usize)
    }

    fn from(self, at: usize) -> impl Iterator<Item = &'a Event> {
        let rest = self.which.get(at..).unwrap_or_default();
        rest.iter().map(move |index| &self.events[*index as usize])
    }
}

/// How far a walker has taken the events: sends and arrivals separately, because a send that
/// passed the tap late may have left before an arrival that passed it earlier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    out: usize,
    arrived: usize,
    near: Near,
    largest_lag: i64,
    /// Room for sends that were placed.
    placed: Vec<Placed>,
}

impl Cursor {
    /// Goes back to the beginning, and keeps the room.
    pub(crate) fn renew(&mut self) {
        *self = Self { placed: core::mem::take(&mut self.placed), ..Self::default() };
    }

    /// First event not yet taken in all senses.
    pub(crate) fn least(&self, sends: Passed<'_>, arrivals: Passed<'_>) -> usize {
        sends.index(self.out).min(arrivals.index(self.arrived.min(self.near.at)))
    }

    /// The first sends and arrivals are gone.
    pub(crate) fn rebase(&mut self, sends: usize, arrivals: usize) {
        self.out -= sends;
        self.arrived -= arrivals;
        self.near.at -= arrivals;
    }
}

/// A place among the arrivals, for the newest before a send to be found from the last send's.
#[derive(Clone, Copy, Debug, Default)]
struct Near {
    at: usize,
    /// When the arrival before it passed the tap, if there was one.
    before: Option<i64>,
}

impl Near {
    /// Goes behind the last arrival not after `time`; sends come nearly in order, so it is near.
    fn move_to(&mut self, time: i64, arrivals: Passed<'_>) {
        while let Some(arrival) = arrivals.get(self.at).filter(|arrival| arrival.tap <= time) {
            self.before = Some(arrival.tap);
            self.at += 1;
        }
        while self.at > 0 && self.before.is_some_and(|tap| tap > time) {
            self.at -= 1;
            self.before =
                self.at.checked_sub(1).and_then(|at| arrivals.get(at)).map(|arrival| arrival.tap);
        }
    }

    /// Goes to `at` if that is further on.
    fn skip_to(&mut self, at: usize, arrivals: Passed<'_>) {
        if let Some(before) = at.checked_sub(1).filter(|_| at > self.at) {
            self.before = arrivals.get(before).map(|arrival| arrival.tap);
            self.at = at;
        }
    }
}

/// Walks the events on the walker's timeline, up to where nothing later can interfere, or to
/// the end if `last`. `which` are those of each side.
pub(crate) fn walk(
    walker: &mut Walker,
    clock: &SideClock,
    gathered: &Gathered,
    (causes, which): (&[Cause], &[Vec<u32>; 2]),
    cursor: &mut Cursor,
    last: bool,
) {
    let side = walker.terms.side;
    let events = gathered.events.as_slice();
    let [sends, arrived] = [side, 1 - side].map(|side| Passed { events, which: &which[side] });
    let horizon = horizon(events, clock, cursor, last);
    let (map, near) = (NearMap::default(), cursor.near);
    let (spread, placed) = (walker.terms.spread, core::mem::take(&mut cursor.placed));
    let mut placing = Placing { clock, map, near, tick: None, spread, placed };
    loop {
        let first = sends.index(cursor.out);
        let send = events.get(first).map(|event| placing.place(arrived, event, causes[first]));
        let until = send.map_or(i64::MAX, |placed| placed.at);
        let is_due = arrived.get(cursor.arrived).is_some_and(|e| e.tap <= until);
        if is_due && !arrivals(walker, gathered, arrived, &mut cursor.arrived, until, horizon) {
            break;
        }
        let Some(placed) = send.filter(|placed| placed.at <= horizon) else { break };
        cursor.largest_lag = cursor.largest_lag.max(placed.lag);
        let run = run_of(&events[first + 1..]);
        if run.is_empty() {
            walker.on_sends(&events[first..=first], core::slice::from_ref(&placed));
            cursor.out += 1;
            continue;
        }
        let due = arrived.get(cursor.arrived).map_or(i64::MAX, |arrival| arrival.tap - 1);
        placing.follow(arrived, run, causes.get(first + 1), (placed, due.min(horizon)));
        let sent = &events[first..][..placing.placed.len()];
        let lags = placing.placed.iter().map(|placed| placed.lag);
        cursor.largest_lag = lags.fold(cursor.largest_lag, i64::max);
        walker.on_sends(sent, &placing.placed);
        cursor.out += sent.len();
    }
    // What is learnt between chunks may change what the stop is made of.
    walker.take_stop();
    (cursor.near, cursor.placed) = (placing.near, placing.placed);
    if cursor.out >= sends.which.len() {
        // No send is waiting: the next one will not reach further back than this.
        cursor.near.skip_to(cursor.arrived.saturating_sub(NEAR_KEPT), arrived);
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

/// Hands the walker what arrived up to `until`, from `at` on; `false` if the horizon was met before.
fn arrivals(
    walker: &mut Walker,
    gathered: &Gathered,
    arrived: Passed<'_>,
    at: &mut usize,
    until: i64,
    horizon: i64,
) -> bool {
    while let Some(event) = arrived.get(*at) {
        if event.tap > until {
            break;
        }
        if event.tap > horizon {
            return false;
        }
        let taken = if event.len > 0 {
            walker.go_on_receiving(arrived.from(*at), until.min(horizon))
        } else {
            0
        };
        if taken == 0 {
            walker.on_in(event, event.tap, gathered.blocks(event));
        }
        *at += taken.max(1);
    }
    true
}

/// What sends are placed by.
struct Placing<'a> {
    clock: &'a SideClock,
    map: NearMap,
    near: Near,
    /// Begin and end of the tick in which the last send left.
    tick: Option<(i64, i64)>,
    /// Noise of immediate answers.
    spread: i64,
    /// What was placed and not yet walked.
    placed: Vec<Placed>,
}

impl Placing<'_> {
    /// When `event`, drawn by `cause`, left the stack.
    fn place(&mut self, arrived: Passed<'_>, event: &Event, cause: Cause) -> Placed {
        let latest = event.tap - self.clock.floor().unwrap_or(0);
        self.tick = self.clock.tick_of(event, &mut self.map);
        let tick = self.tick;
        let low = cause.at.max(tick.map_or(i64::MIN, |t| t.0));
        let high = latest.min(tick.map_or(i64::MAX, |t| t.1)).max(low);
        let noise = self.spread + tick.filter(|t| t.1 < latest).map_or(0, |t| t.1 - t.0);
        self.near.move_to(high, arrived);
        let at = self.near.before.filter(|tap| *tap >= low.max(high - noise)).unwrap_or(high);
        Placed { at, lag: (latest - at.max(high)).max(0) }
    }

    /// Keeps what was placed last, and places what goes on from it, all drawn by `cause`, up to where an
    /// arrival or another map of the clock comes between, or time `until`.
    fn follow(
        &mut self,
        arrived: Passed<'_>,
        run: &[Event],
        cause: Option<&Cause>,
        (last, until): (Placed, i64),
    ) {
        self.placed.clear();
        self.placed.push(last);
        let floor = self.clock.floor().unwrap_or(0);
        let (start, end) = self.tick.unwrap_or((i64::MIN, i64::MAX));
        let low = cause.map_or(i64::MIN, |cause| cause.at).max(start);
        let width = end.saturating_sub(start);
        let (before, map_end) = (self.near.before, self.map.end());
        let after = arrived.get(self.near.at).map_or(i64::MAX, |arrival| arrival.tap);
        for event in run.iter().take(MOST_TOGETHER) {
            let latest = event.tap - floor;
            let high = latest.min(end).max(low);
            let noise = self.spread + if end < latest { width } else { 0 };
            let at = before.filter(|tap| *tap >= low.max(high - noise)).unwrap_or(high);
            let is_between = high >= after || before.is_some_and(|tap| tap > high);
            if event.tap >= map_end || is_between || at > until {
                break;
            }
            self.placed.push(Placed { at, lag: (latest - at.max(high)).max(0) });
        }
    }
}
