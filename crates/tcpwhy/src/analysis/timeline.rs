//! One sender's timeline: when its packets left its stack, in order with what arrived there.
//!
//! A packet left the stack no later than it passed the tap less the constant distance (`high`),
//! no earlier than its cause arrived (`low`); its timestamp narrows both. Senders that wait act
//! the moment something arrives, so a send is put at the newest arrival in that range if one lies
//! within the noise below `high`, else at `high`. One that its echo shows to have stood in the host's
//! own queue waited for room there, which what left that queue made (`tcp_tsq_handler`): it is put at
//! the newest departure in the range. What remains above is the packet's lag: a queue between stack
//! and tap.

use core::mem;

use super::Causes;
use super::passed::{DEPARTED, Near, Passed, Reader};
use super::way_back::WayBack;
use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{Block, Event};
use crate::flow::gathered::Gathered;
use crate::flow::run::{Place, Run};
use crate::limits::quick::burst::{Placed, Placement, Rule};
use crate::limits::quick::turns::Turns;
use crate::limits::sender::Terms;
use crate::limits::walk::Walker;
use crate::measure::clock::{NearMap, SideClock};

/// Events that may wait for the horizon. Ours: four chunks, a round of 20 Gbit/s over 10 ms.
const MOST_WAITING: usize = 4 * super::CHUNK;
/// Arrivals kept for the next send of a silent side to be put at. Ours: ACKs that come together.
const NEAR_KEPT: usize = 64;

/// The least way that is known may be too long by this part of it, for all that tells of it had to wait. Ours: not
/// measured; an ACK that the capture lacks is missed by a whole round trip.
const NEARER: i64 = 8;

/// How far a walker has taken the events: sends and arrivals separately, because a send that
/// passed the tap late may have left before an arrival that passed it earlier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    out: Place,
    arrived: Place,
    near: Near,
    largest_lag: i64,
    /// When the last sends before those at hand passed the tap, newest first.
    departed: Vec<TapTime>,
    /// Some were on their way before the time that they are stamped with.
    is_scheduled: bool,
    back: WayBack,
}

impl Cursor {
    /// First event not yet taken in all senses.
    pub(crate) fn least(&self, sends: Passed<'_>, arrivals: Passed<'_>) -> Place {
        sends.among_all(self.out).min(arrivals.among_all(self.arrived.min(self.near.at)))
    }

    /// Notes how far both have come, and when the last sends before them, `departed`, passed the tap.
    fn leave(
        &mut self,
        (sends, departed): (Reader<'_>, &[TapTime]),
        arrivals: Reader<'_>,
        (placing, back): (&Placing<'_>, WayBack),
    ) {
        let (sent, arrived) = (sends.passed, arrivals.passed);
        let departed =
            sent.departed_before(sends.place, TapTime::MAX).chain(departed.iter().copied());
        self.departed = departed.take(DEPARTED).collect();
        (self.out, self.arrived) = (sends.place, arrivals.place);
        self.near = Near { at: placing.near.place, before: placing.before };
        (self.is_scheduled, self.back) = (placing.is_scheduled, back);
        if self.out.run >= sent.which.len() {
            // No send is waiting: the next one will not reach further back than this.
            self.near.skip_to(arrived.before(self.arrived, NEAR_KEPT), arrived);
        }
    }

    /// The first sends and arrivals are gone, up to these places.
    pub(crate) fn rebase(&mut self, sends: Place, arrivals: Place) {
        for (place, gone) in
            [(&mut self.out, sends), (&mut self.arrived, arrivals), (&mut self.near.at, arrivals)]
        {
            place.run -= gone.run;
            if place.run == 0 {
                place.of_next -= gone.of_next;
            }
        }
    }
}

/// Walks the events on the walker's timeline, up to where nothing later can interfere, or to
/// the end if `last`. `which` are those of each side.
pub(crate) fn walk(
    walker: &mut Walker,
    clocks: &[SideClock; 2],
    gathered: &Gathered,
    (causes, which): (&[Causes], &[Vec<u32>; 2]),
    cursor: &mut Cursor,
    last: bool,
) {
    let side = walker.sender.terms.side;
    let (clock, peer) = (&clocks[side], &clocks[1 - side]);
    let [sent, arrived] = [side, 1 - side].map(|side| Passed { gathered, which: &which[side] });
    let horizon = horizon(gathered, clock, cursor, last);
    let mut sends = Reader::at(cursor.out, sent);
    let mut arrivals = Reader::at(cursor.arrived, arrived);
    let near = (Reader::at(cursor.near.at, arrived), cursor.near.before);
    let (mut back, departed) = (cursor.back, mem::take(&mut cursor.departed));
    let mut placing = Placing::new(clock, near, (sent, &departed), &walker.sender.terms);
    placing.is_scheduled = cursor.is_scheduled;
    loop {
        let run = sends.run.map(|run| (run, causes[sent.which[sends.place.run] as usize]));
        let send = run.map(|(run, causes)| {
            let cause = if sends.place.of_next == 0 { causes.first } else { causes.again };
            placing.place(run.head, (sends.place, run.tap(0)), (cause, causes.until))
        });
        let until = send.map_or(StackTime::MAX, |placed| placed.at);
        // What passed the tap together with a send comes before it only if it does so in the capture.
        let tied = run.filter(|(run, _)| run.tap(0).at_stack() == until && until <= horizon);
        let overdue = run.filter(|(run, causes)| {
            !placing.is_at_sender && back.overdue(&run.first(), causes.until, clock).is_some()
        });
        let before = until - i64::from(tied.is_some());
        let before = overdue.map_or(before, |(_, causes)| before.min(causes.until.at_stack() - 1));
        let come = Coming { peer, until: before, send: until, horizon };
        if arrivals.comes() <= before && !come.arrive(walker, &mut arrivals, &mut back) {
            break;
        }
        if let Some((run, _)) = tied {
            come.arrive_together(walker, &mut arrivals, &mut back, &run.first());
        }
        let (Some((run, causes)), Some(mut first)) =
            (run, send.filter(|placed| placed.at <= horizon))
        else {
            break;
        };
        if let Some(opened) = opened_for(run, walker, arrivals, placing.latest(run, first)) {
            let come = Coming { until: opened, send: opened, ..come };
            if !come.arrive(walker, &mut arrivals, &mut back) {
                break;
            }
            first.at = opened;
        }
        // What may have to wait for a window that is to come is looked at one by one.
        let latest = placing.latest(run, first) + (run.last_tap() - run.tap(0));
        let is_held = arrivals.comes() <= latest && walker.sender.lacks_window(&run.last());
        if run.rest().is_empty() || is_held {
            cursor.largest_lag = cursor.largest_lag.max(first.lag);
            walker.on_send(&run.first(), first);
            back.took(first.at);
            sends.go_on(1);
            continue;
        }
        let until = (arrivals.comes() - 1).min(horizon);
        let placement = placing.follow(run, sends.place, causes.again, (first, until));
        cursor.largest_lag = cursor.largest_lag.max(placement.largest_lag(run));
        walker.on_sends(run, placement);
        back.took(first.at);
        sends.go_on(1 + placement.others);
    }
    // What is learnt between chunks may change what the stop is made of.
    walker.sender.take_stop();
    cursor.leave((sends, &departed), arrivals, (&placing, back));
}

/// Walks all events of a connection on the timeline of the sender of `turns`. None of the events has followers.
/// Returns `None` where they are no turns. The order is that of [`walk`].
pub(crate) fn walk_turns(
    turns: &mut Turns,
    (terms, clock): (&Terms, &SideClock),
    gathered: &Gathered,
    (causes, which): (&[Causes], &[Vec<u32>; 2]),
) -> Option<()> {
    let events = &gathered.events;
    let [sent, arrived] =
        [terms.side, 1 - terms.side].map(|side| Passed { gathered, which: &which[side] });
    let near = Reader::at(Place::default(), arrived);
    let mut placing = Placing::new(clock, (near, None), (sent, &[]), terms);
    let mut back = WayBack::default();
    let mut arrivals = arrived.which.iter().map(|at| &events[*at as usize]).peekable();
    for (run, at) in which[terms.side].iter().enumerate() {
        let event = &events[*at as usize];
        let Causes { first, until, .. } = causes[*at as usize];
        let place = Place { run, of_next: 0 };
        let Placed { at, .. } = placing.place(event, (place, event.tap), (first, until));
        let is_far = !terms.tap_at_sender;
        if is_far && back.overdue(event, until, clock).is_some() {
            return None;
        }
        let is_before = |arrival: &&Event| match arrival.tap.at_stack() {
            came if arrival.tap == event.tap => came == at && arrival.frame < event.frame,
            came => came <= at,
        };
        while let Some(arrival) = arrivals.next_if(is_before) {
            turns.on_in(arrival)?;
        }
        turns.on_out(event, at)?;
    }
    arrivals.try_for_each(|arrival| turns.on_in(arrival))?;
    turns.are_over().then_some(())
}

/// Up to which time nothing later can interfere. A clock that jumped may hold that time back for good. So what has
/// waited for several chunks is taken as it is.
fn horizon(gathered: &Gathered, clock: &SideClock, cursor: &Cursor, last: bool) -> StackTime {
    if last || gathered.frames() > MOST_WAITING {
        return StackTime::MAX;
    }
    let newest = gathered.last_tap().unwrap_or_default();
    newest.left(clock.floor().unwrap_or(0))
        - 2 * cursor.largest_lag
        - 2 * cursor.back.most
        - 1_000_000
}

/// What is to come before a send.
#[derive(Clone, Copy)]
struct Coming<'a> {
    /// The clock of the host that it comes from.
    peer: &'a SideClock,
    /// What is there by this time comes.
    until: StackTime,
    /// When the send leaves.
    send: StackTime,
    horizon: StackTime,
}

impl Coming<'_> {
    /// Hands the walker the `arrivals`; `false` if the horizon was met before.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    fn arrive(self, walker: &mut Walker, arrivals: &mut Reader<'_>, back: &mut WayBack) -> bool {
        while let Some(run) = arrivals.run.filter(|_| arrivals.comes() <= self.until) {
            if arrivals.comes() > self.horizon {
                return false;
            }
            let is_late = back.came(arrivals.tap, self.send) > arrivals.comes();
            let taken = if run.head.len > 0 && !is_late {
                walker.go_on_receiving(arrivals.runs(), self.until.min(self.horizon))
            } else {
                0
            };
            match taken {
                0 => self.take(walker, arrivals, back, run),
                _ => arrivals.go_on(taken),
            }
        }
        true
    }

    /// Hands the walker what passed the tap when `sent` did, and comes before it in the capture.
    fn arrive_together(
        self,
        walker: &mut Walker,
        arrivals: &mut Reader<'_>,
        back: &mut WayBack,
        sent: &Event,
    ) {
        while let Some(run) = arrivals.run.filter(|_| arrivals.tap == sent.tap)
            && run.first().frame < sent.frame
        {
            self.take(walker, arrivals, back, run);
        }
    }

    /// Hands the walker the first of the arrivals, with which `run` begins.
    fn take(
        self,
        walker: &mut Walker,
        arrivals: &mut Reader<'_>,
        back: &mut WayBack,
        run: Run<'_>,
    ) {
        let came = back.came(arrivals.tap, self.send);
        let is_at_sender = walker.sender.terms.tap_at_sender;
        let mut hand = |event: &Event, blocks: &[Block]| {
            let held = if is_at_sender {
                back.held_before(event, self.peer)
            } else {
                back.held_behind(event.tap, came)
            };
            walker.sender.acks_held = held;
            walker.on_in(event, came, blocks);
        };
        match run.untouched() {
            Some(event) => hand(event, arrivals.passed.gathered.blocks(event)),
            None => hand(&run.first(), &[]),
        }
        arrivals.go_on(1);
    }
}

/// When the receiver's window came that lets out what `run` begins with, if that goes beyond the one known when it is
/// said to have left and came by `latest`: nothing leaves before that, however soon it followed. So with the first ACK
/// of a flight that went with the SYN-ACK: of how near its host is, its few answers so far know too little.
fn opened_for(
    run: Run<'_>,
    walker: &Walker,
    arrivals: Reader<'_>,
    latest: StackTime,
) -> Option<StackTime> {
    if arrivals.comes() > latest {
        return None;
    }
    let sent = run.first();
    let sender = &walker.sender;
    let in_time = |event: &Event| event.tap.at_stack() <= latest && event.frame < sent.frame;
    if sender.is_first_ack_due(&sent) {
        let acks = arrivals.runs().flat_map(Run::events);
        let mut acks = acks.take_while(in_time);
        return acks.find(|event| event.ack > sender.flight.una).map(|event| event.tap.at_stack());
    }
    if !sender.lacks_window(&sent) {
        return None;
    }
    let events = arrivals.runs().flat_map(Run::events);
    let mut events = events.take_while(in_time);
    events.find(|event| sender.allows(event, sent.end())).map(|event| event.tap.at_stack())
}

/// What sends are placed by.
struct Placing<'a> {
    clock: &'a SideClock,
    map: NearMap,
    /// The first arrival that no send was put behind, and when the one before it passed the tap.
    near: Reader<'a>,
    before: Option<TapTime>,
    /// The sends, and when the last before them passed the tap.
    sent: Passed<'a>,
    departed: &'a [TapTime],
    /// Begin and end of the tick in which the last send left, and before when it was on its way.
    tick: Option<(StackTime, StackTime)>,
    until: StackTime,
    /// Linux stamps with the time at which `fq` is to let go (`tcp_skb_timestamp_ts`, since 4.20): only the echo
    /// tells that it waits there. Seen of sends that the stamp puts behind what they should echo then.
    is_scheduled: bool,
    /// The tap is where sends leave: what arrives there is at the sender.
    is_at_sender: bool,
    /// The constant way from the stack to the tap and back, and the noise of immediate answers.
    floor: i64,
    spread: i64,
}

impl<'a> Placing<'a> {
    fn new(
        clock: &'a SideClock,
        (near, before): (Reader<'a>, Option<TapTime>),
        (sent, departed): (Passed<'a>, &'a [TapTime]),
        terms: &Terms,
    ) -> Self {
        Self {
            clock,
            map: NearMap::default(),
            near,
            before,
            sent,
            departed,
            tick: None,
            until: StackTime::MAX,
            is_scheduled: false,
            is_at_sender: terms.tap_at_sender,
            floor: clock.floor().unwrap_or(0),
            spread: terms.spread,
        }
    }

    /// When room was made for the send at `place`: at the newest departure between `low` and `high`, if its range
    /// ends there before `latest` because it does not echo what arrived then. Where stamps are scheduled, it begins
    /// with the arrival of its cause.
    fn made_room(
        &self,
        place: Place,
        (cause, low, high): (StackTime, StackTime, StackTime),
        latest: StackTime,
    ) -> Option<StackTime> {
        if high != self.until - 1 || high >= latest {
            return None;
        }
        let low = if self.is_scheduled { cause } else { low };
        let here = self.sent.departed_before(place, high.passes(self.floor));
        let mut all = here.chain(self.departed.iter().copied()).map(|tap| tap.left(self.floor));
        all.find(|at| (low..=high).contains(at))
    }

    /// The latest that what `run` begins with can have left, put at `first`: away from the sender what is on its way for
    /// less than the least that is known is so by noise.
    fn latest(&self, run: Run<'_>, first: Placed) -> StackTime {
        let noise = self.spread + self.floor / NEARER;
        if self.is_at_sender { run.tap(0).at_stack() } else { first.at + noise }
    }

    /// Goes behind the last arrival not after `time`; sends come nearly in order, so it is near.
    #[inline]
    fn move_near(&mut self, time: StackTime) {
        let time = time.at_tap();
        while let Some(run) = self.near.run.filter(|_| self.near.tap <= time) {
            let more = run.within(time);
            self.before = Some(run.tap(more));
            self.near.go_on(more + 1);
        }
        while self.before.is_some_and(|tap| tap > time) && self.near.place > Place::default() {
            let arrived = self.near.passed;
            self.near = Reader::at(arrived.before(self.near.place, 1), arrived);
            self.before = arrived.tap_before(self.near.place);
        }
    }

    /// When the newest arrival came that was put before the sends, if not before `time`.
    #[inline]
    fn newest_since(&self, time: StackTime) -> Option<StackTime> {
        self.before.map(TapTime::at_stack).filter(|came| *came >= time)
    }

    /// When an event with the timestamp of `like` that passed at `tap`, drawn by what arrived at `cause` and not
    /// by what did at `until`, left the stack.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    fn place(
        &mut self,
        like: &Event,
        (place, tap): (Place, TapTime),
        (cause, until): (TapTime, TapTime),
    ) -> Placed {
        let latest = tap.left(self.floor);
        // Nothing is stamped after it passed the tap: where the map says so, this stamp's clock does not run as
        // it thinks (its tick is finer, or jumps).
        let tick = self.clock.tick_of(like, tap, &mut self.map);
        self.tick = tick.filter(|(start, _)| *start <= tap.at_stack());
        self.until = if self.is_at_sender { until.at_stack() } else { StackTime::MAX };
        self.is_scheduled |= self.tick.is_some_and(|(start, _)| start - self.spread > self.until);
        let tick = self.tick.map(|(start, end)| (start.min(self.until - 1), end));
        let cause = cause.at_stack();
        let low = cause.max(tick.map_or(StackTime::MIN, |t| t.0));
        let high = latest.min(tick.map_or(StackTime::MAX, |t| t.1)).min(self.until - 1).max(low);
        let noise = self.spread + tick.filter(|t| t.1 < latest).map_or(0, |t| t.1 - t.0);
        self.move_near(high);
        let near = self.newest_since(low.max(high - noise));
        if near.is_none()
            && let Some(at) = self.made_room(place, (cause, low, high), latest)
        {
            return Placed { at, lag: latest - at };
        }
        let at = near.unwrap_or(high);
        Placed { at, lag: (latest - at.max(high)).max(0) }
    }

    /// Places the packets that follow `first`, which was placed last and `run` begins with, all drawn by
    /// what arrived at `cause`: as many as one rule places, up to where an arrival or another map of the
    /// clock comes between, or time `until`. It is as when each is placed by itself.
    fn follow(
        &self,
        run: Run<'_>,
        place: Place,
        cause: TapTime,
        (first, until): (Placed, StackTime),
    ) -> Placement {
        let floor = self.floor;
        let Some(next) = run.rest().first() else { return Placement::of(first) };
        let (start, tick_end) = self.tick.unwrap_or((StackTime::MIN, StackTime::MAX));
        let (start, end) = (start.min(self.until - 1), tick_end.min(self.until - 1));
        let cause = cause.at_stack();
        let (low, latest) = (cause.max(start), next.tap.left(floor));
        let high = latest.min(end).max(low);
        let noise = self.spread + if tick_end < latest { tick_end.since(start) } else { 0 };
        let near = self.newest_since(low.max(high - noise));
        let behind = Place { of_next: place.of_next + 1, ..place };
        let room =
            near.map_or_else(|| self.made_room(behind, (cause, low, high), latest), |_| None);
        // Up to which `latest` it is as here. Above the tick's end, or below what is known, the time does not move.
        let moves = (low..=end).contains(&latest);
        let holds = match near {
            _ if end < latest => StackTime::MAX,
            _ if latest < low => low.min(end),
            Some(near) => end.min(near.plus(self.spread)),
            None => end.min(until),
        };
        let holds = if moves { holds.min(self.near.comes() - 1) } else { holds };
        let at = near.or(room).unwrap_or(high);
        let is_between =
            high >= self.near.comes() || self.before.is_some_and(|tap| tap.at_stack() > high);
        if is_between || at > until {
            return Placement::of(first);
        }
        let last_tap = holds.passes(floor).min(self.map.end() - 1);
        let others = run.within(last_tap);
        let rule = Rule {
            at: (!moves || near.is_some()).then_some(at),
            floor,
            high: if moves { StackTime::MAX } else { room.unwrap_or(high) },
        };
        Placement { first, others, rule }
    }
}
