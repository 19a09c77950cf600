//! Data that does nothing but go on with its burst, which most does: the same comes out as when each
//! frame is taken by itself, in a fraction of the time.
//!
//! While nothing arrives, what decides whether a send belongs to its burst does not change but for the time and the
//! numbers. What the wait before it was, which round it belongs to and what it says of the windows is as for the send
//! before.

use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{AFTER_GAP, Event, PROBE, SYN, UNSEEN_CAUSE};
use crate::flow::run::Run;
use crate::limits::sender::Sender;
use crate::limits::sender::sends::segments_of;
use crate::limits::sense::{NEVER, NOWHERE};
use crate::limits::wait::Release;
use crate::limits::walk::Walker;
use crate::measure::flight::Left;
use crate::measure::ipid::Step;
use crate::offsets::Offset;

/// When a packet left its sender's stack, and how far behind that it passed the tap, beyond the constant
/// part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) at: StackTime,
    pub(crate) lag: i64,
}

/// When the first packets of a run left their sender's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) first: Placed,
    /// How many others are placed, and by which rule.
    pub(crate) others: usize,
    pub(crate) rule: Rule,
}

/// When packets left that follow each other under one map of their sender's clock, and between which
/// nothing arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// All at this time; `None`: each as long before it passed the tap as is constant.
    pub(crate) at: Option<StackTime>,
    /// The constant way between stack and tap, and up to when they may have left: later is a lag.
    pub(crate) floor: i64,
    pub(crate) high: StackTime,
}

impl Placement {
    /// Of one packet alone.
    pub(crate) fn of(first: Placed) -> Self {
        Self { first, others: 0, rule: Rule { at: None, floor: 0, high: StackTime::MAX } }
    }

    /// Of what is left of it behind the first packets of the run, `left`; `None` if nothing is.
    fn behind(self, packets: usize, left: Run<'_>) -> Option<Self> {
        match packets {
            0 => Some(self),
            1.. if packets > self.others => None,
            _ => Some(Self {
                first: self.rule.place(left.tap(0)),
                others: self.others - packets,
                ..self
            }),
        }
    }

    /// The largest lag of those that `run` begins with: it grows from the second on.
    pub(crate) fn largest_lag(&self, run: Run<'_>) -> i64 {
        let last = self.others.checked_sub(1).map(|last| self.rule.place(run.rest()[last].tap));
        last.map_or(self.first.lag, |last| last.lag.max(self.first.lag))
    }
}

impl Rule {
    /// When a packet left that passed the tap at `tap`.
    #[inline]
    pub(crate) fn place(&self, tap: TapTime) -> Placed {
        let latest = tap.left(self.floor);
        Placed { at: self.left().when(tap), lag: latest.since(self.high).max(0) }
    }

    /// When they left.
    #[inline]
    pub(crate) fn left(&self) -> Left {
        self.at.map_or(Left::Ahead(self.floor), Left::At)
    }
}

/// What a burst may go up to while nothing arrives.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The last offset at which the receiver's window has room for a segment.
    pub(crate) seq: Offset,
    /// When the burst is over, and how long after the send before it one still belongs to it.
    pub(crate) end: StackTime,
    pub(crate) gap: i64,
    /// What has arrived lies near up to here, and what moved the window without an ACK up to there.
    pub(crate) near: StackTime,
    pub(crate) moved_near: StackTime,
    /// How many more frames the flight can keep.
    pub(crate) frames: usize,
    /// Time only makes the last piece of the open wait longer.
    pub(crate) flies: bool,
}

impl Sender {
    /// Whether the send of `event` at `at` does nothing but go on with the burst.
    #[inline]
    fn is_in_burst(&self, event: &Event, at: StackTime, bounds: &Bounds) -> bool {
        let last = self.sends.last;
        let is_next = bounds.frames > 0
            && event.len > 0
            && event.bits & (SYN | AFTER_GAP | PROBE | UNSEEN_CAUSE) == 0
            && event.seq == self.flight.nxt
            && event.seq <= bounds.seq;
        let is_near = at - last <= bounds.gap && at <= bounds.end && at > bounds.near;
        let moved = self.window.moved_at > last && at <= bounds.moved_near;
        is_next && is_near && !moved && at >= self.now
    }
}

impl Walker {
    /// Takes one packet that was sent, and when it left.
    pub(crate) fn on_send(&mut self, event: &Event, placed: Placed) {
        let bounds = if event.len > 0 { self.burst_bounds() } else { None };
        let goes_on = bounds.is_some_and(|mut bounds| {
            let goes_on = self.goes_on(event, placed, &mut bounds);
            self.fly_on(Some(&bounds));
            goes_on
        });
        if !goes_on {
            self.on_out(event, placed.at, placed.lag);
        }
    }

    /// Takes the first of `run` between which nothing arrives, and when each of them left.
    pub(crate) fn on_sends(&mut self, mut run: Run<'_>, mut placement: Placement) {
        let mut bounds = self.burst_bounds();
        loop {
            let taken = bounds.as_mut().map_or(0, |bounds| self.on_streak(run, &placement, bounds));
            let Some(left) = run.behind(taken) else { break };
            let Some(rest) = placement.behind(taken, left) else { break };
            let first;
            let event = if let Some(event) = left.untouched() {
                event
            } else {
                first = left.first();
                &first
            };
            let one = rest.first;
            let goes_on = bounds.as_mut().is_some_and(|bounds| self.goes_on(event, one, bounds));
            if !goes_on {
                self.fly_on(bounds.as_ref());
                self.on_out(event, one.at, one.lag);
                bounds = self.burst_bounds();
            }
            let Some(later) = left.behind(1) else { break };
            let Some(rest) = rest.behind(1, later) else { break };
            (run, placement) = (later, rest);
        }
        self.fly_on(bounds.as_ref());
    }

    /// Takes a send that does nothing but go on with the burst; whether it did.
    #[inline]
    fn goes_on(&mut self, event: &Event, placed: Placed, bounds: &mut Bounds) -> bool {
        self.sender.is_in_burst(event, placed.at, bounds) && self.go_on(event, placed, bounds)
    }

    /// Takes a send of the burst, unless others of it are missing before it.
    #[inline(never)]
    fn go_on(&mut self, event: &Event, placed: Placed, bounds: &mut Bounds) -> bool {
        let Placed { at, lag } = placed;
        let segments = segments_of(event.len, self.sender.terms.mss);
        let mut order = self.sender.order.clone();
        if matches!(order.push(event, segments), Step::After(1..)) {
            return false;
        }
        self.sender.order = order;
        if at > self.sender.now && !bounds.flies {
            self.begin_piece(at, event.frame, bounds);
        }
        bounds.frames -= 1;
        (self.sender.now, self.sender.frame) = (at, event.frame);
        self.sender.tally.add_frame(event.len, segments);
        self.sender.send(event, at, lag, segments, Release::Burst);
        if !self.sender.proofs.is_empty() {
            // They speak of time that is not yet written down.
            self.fly_on(Some(bounds));
            self.take_proofs();
            bounds.flies = self.flies();
        }
        (self.sender.sends.last, self.sender.sends.tap, self.sender.sends.lag) =
            (at, event.tap, lag);
        self.sender.trips.jumps.note_lag(lag);
        true
    }

    /// Begins a piece, which keeps the stop it began with, for the time up to a send of the burst.
    pub(crate) fn begin_piece(&mut self, at: StackTime, frame: u64, bounds: &mut Bounds) {
        self.sender.take_stop();
        self.advance(at, frame);
        bounds.flies = self.flies();
    }

    /// Writes down how far the open wait has gone on.
    fn fly_on(&mut self, bounds: Option<&Bounds>) {
        if bounds.is_some_and(|bounds| bounds.flies) {
            self.waits.fly_on(self.sender.now);
        }
    }

    /// Whether time only makes the last piece of the open wait longer.
    fn flies(&self) -> bool {
        self.sender.releases.acks.is_empty()
            && self.waits.flies(self.sender.repairs.episodes.current())
    }

    /// What the burst that the last send belongs to may go up to; `None` if none goes on.
    fn burst_bounds(&self) -> Option<Bounds> {
        #[cfg(test)]
        if self.long_way {
            return None;
        }
        let may_go_on = self.sender.flight.outstanding() > 0
            && !self.sender.is_at_zero()
            && self.sender.sends.last > NEVER
            && self.sender.order.unexplained == 0
            && self.sender.handshake.is_over
            && !self.sender.peer.spoke
            && self.waits.nagled.is_none()
            && self.sender.book.marker != NOWHERE
            && !self.sender.pauses.watch.is_judging()
            && !self.sender.transfers.runs.is_empty();
        let tolerance = self.sender.tolerance();
        let acks = &self.sender.releases.acks;
        may_go_on.then(|| Bounds {
            seq: self.sender.window.last_with_room(self.sender.terms.mss),
            end: self.sender.burst_end(),
            gap: tolerance,
            near: acks.back().map_or(NEVER, |ack| ack.at + tolerance),
            moved_near: self.sender.window.moved_at + tolerance,
            frames: self.sender.flight.frames_left(),
            flies: self.flies(),
        })
    }
}
