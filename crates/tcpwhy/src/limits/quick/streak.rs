//! Full segments close behind each other: what they move, moved for all of them at once.

use super::burst::{Bounds, Placement, Rule};
use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{AFTER_GAP, CORRUPT, Event, ID, PROBE, PSH, SYN, UNSEEN_CAUSE};
use crate::flow::run::{Follower, Run};
use crate::limits::pulse::Before;
use crate::limits::round::Round;
use crate::limits::sender::order::SendOrder;
use crate::limits::sender::sends::segments_of;
use crate::limits::sender::{Sender, Sends};
use crate::limits::sense::BURST_GAP_NS;
use crate::limits::walk::Walker;
use crate::measure::flight::Left;
use crate::measure::ipid;
use crate::segments::Segments;

/// Frames of one size that follow the last send of a burst.
#[derive(Debug)]
pub(crate) struct Streak {
    /// What is known of the sender's numbers behind it.
    order: SendOrder,
    pub(crate) frames: usize,
    /// Payload of all, and how many segments that is.
    pub(crate) bytes: i64,
    pub(crate) segments: Segments,
    /// When the last left, when it passed the tap, and its lag.
    pub(crate) at: StackTime,
    tap: TapTime,
    lag: i64,
    pub(crate) lag_min: i64,
    lag_max: i64,
    /// Longest time between two, when they left and at the tap.
    pub(crate) gap: i64,
    pub(crate) tap_gap: i64,
}

impl Streak {
    /// Nothing yet behind a send at `at` that passed the tap at `tap`.
    fn behind(at: StackTime, tap: TapTime, order: SendOrder) -> Self {
        Self {
            order,
            frames: 0,
            bytes: 0,
            segments: Segments::NONE,
            at,
            tap,
            lag: 0,
            lag_min: i64::MAX,
            lag_max: 0,
            gap: 0,
            tap_gap: 0,
        }
    }

    /// Takes its first frame, which left at `at`, if that goes on within `bounds`; whether it does.
    #[inline]
    fn begin(&mut self, first: &Event, at: StackTime, bounds: &StreakBounds) -> bool {
        let since = at - self.at;
        let is_near = bounds.frames > 0 && (0..=bounds.gap).contains(&since) && at <= bounds.until;
        let is_next = !bounds.has_ids || self.order.next_id() == Some(first.id);
        if !is_near || !is_next {
            return false;
        }
        if bounds.has_ids {
            self.order.go_on(first.id.wrapping_add(ipid::step(bounds.segments)), 1);
        }
        (self.gap, self.tap_gap) = (since, (first.tap - self.tap).max(0));
        (self.at, self.tap, self.frames) = (at, first.tap, 1);
        true
    }

    /// Takes the first of `frames`, placed by `rule`, as long as they go on within `bounds`.
    #[inline]
    fn extend(&mut self, frames: &[Follower], rule: Rule, bounds: &StreakBounds) {
        let frames = &frames[..frames.len().min(bounds.frames - self.frames)];
        let Some(first) = frames.first() else { return };
        let (mut id, any) = match self.order.next_id() {
            _ if !bounds.has_ids => (0, 0),
            Some(id) => (id, u16::MAX),
            None => return,
        };
        let (left, at) = (rule.left(), rule.place(first.tap).at);
        let since = at - self.at;
        if !(0..=bounds.gap).contains(&since) || at > bounds.until {
            return;
        }
        // Behind the first they leave together, or as far from each other as they pass the tap.
        let (gap, until) = match left {
            Left::At(_) => (i64::MAX, TapTime::MAX),
            Left::Ahead(way) => (bounds.gap, bounds.until.passes(way)),
        };
        let (mut tap, mut longest, mut taken) = (first.tap, 0, 0);
        let step = ipid::step(bounds.segments);
        for frame in frames {
            let since = frame.tap - tap;
            // They pass the tap in order: no time between two is less than none.
            if since > gap || frame.tap > until || (frame.id ^ id) & any != 0 {
                break;
            }
            longest = longest.max(since);
            (id, tap, taken) = (id.wrapping_add(step), frame.tap, taken + 1);
        }
        if taken == 0 {
            return;
        }
        if bounds.has_ids {
            self.order.go_on(id, taken as u32);
        }
        let between = if matches!(left, Left::At(_)) { 0 } else { longest };
        self.frames += taken;
        self.gap = self.gap.max(since).max(between);
        self.tap_gap = self.tap_gap.max(first.tap - self.tap).max(longest);
        (self.at, self.tap) = (left.when(tap), tap);
    }

    /// Takes down lags that begin with `first`, end with `last` and grow between.
    fn note_lags(&mut self, first: i64, last: i64) {
        self.lag = last;
        (self.lag_min, self.lag_max) = (self.lag_min.min(first), self.lag_max.max(last));
    }
}

/// What a streak may go up to.
struct StreakBounds {
    frames: usize,
    /// Wire segments of each frame, and whether they have identifications.
    segments: Segments,
    has_ids: bool,
    until: StackTime,
    gap: i64,
}

impl Round {
    /// Takes sends that follow its last one without a pause, up to `last_frame`.
    pub(crate) fn add_streak(&mut self, streak: &Streak, last_frame: u64) {
        self.longest_gap = self.longest_gap.max(streak.gap);
        self.gaps += streak.frames as i64;
        self.burst_now += streak.bytes;
        self.burst = self.burst.max(self.burst_now);
        self.tap_gap = self.tap_gap.max(streak.tap_gap);
        self.sends += streak.frames as u32;
        self.bytes += streak.bytes;
        self.segments += streak.segments;
        self.lag_min = self.lag_min.min(streak.lag_min);
        (self.stopped_at, self.last_frame) = (streak.at, last_frame);
    }
}

impl Sender {
    /// How many of `first` and what goes on from it are full segments and go on with the burst until a
    /// time.
    #[inline(always)]
    fn streak_of(
        &self,
        first: &Event,
        rest: &[Follower],
        placement: &Placement,
        bounds: &Bounds,
        until: StackTime,
    ) -> Streak {
        const UNUSUAL: u16 = SYN | AFTER_GAP | PROBE | CORRUPT | UNSEEN_CAUSE;
        let (len, nxt) = (i64::from(first.len), self.flight.nxt);
        let segments = segments_of(first.len, self.terms.mss);
        let is_next = segments > Segments::NONE
            && segments.bytes(self.terms.mss) == len
            && first.bits & UNUSUAL == 0
            && first.seq == nxt
            && nxt <= bounds.seq
            && self.order.is_of_newest_tick(first);
        let mut streak = Streak::behind(self.sends.last, self.sends.tap, self.order.clone());
        if !is_next {
            return streak;
        }
        let bounds = StreakBounds {
            frames: bounds.frames.min(((bounds.seq - nxt) / len) as usize + 1),
            segments,
            has_ids: first.has(ID),
            until,
            gap: bounds.gap.min(BURST_GAP_NS),
        };
        let Placement { first: one, others, rule } = *placement;
        if streak.begin(first, one.at, &bounds) {
            streak.note_lags(one.lag, one.lag);
            streak.extend(&rest[..others], rule, &bounds);
        }
        if let Some(last) = streak.frames.checked_sub(2) {
            let lag_of = |at: usize| rule.place(rest[at].tap).lag;
            streak.note_lags(lag_of(0), lag_of(last));
        }
        let frames = streak.frames as u64;
        (streak.bytes, streak.segments) = (frames as i64 * len, segments * frames);
        streak
    }

    /// Moves what the frames of `streak`, the first of `run`, move together.
    fn take_streak(&mut self, streak: &Streak, first: &Event, run: Run<'_>, placement: &Placement) {
        self.order = streak.order.clone();
        let (others, count) = (&run.rest()[..streak.frames - 1], streak.frames as u64);
        let last = others.last().map(|own| (run.head.frame_of(*own), own.is_pushed));
        let (last_frame, pushed) = last.unwrap_or((first.frame, first.has(PSH)));
        let (each, len) = (streak.segments / count, i64::from(first.len));
        let Streak { at, tap, lag, .. } = *streak;
        if !self.repairs.episodes.is_repairing() {
            let flight = self.flight.outstanding();
            let flight_after = |sent: u64| flight + sent as i64 * len;
            self.samples.push_each(self.tally.frames, count, flight_after);
        }
        if self.may_replay() {
            self.batch.add_frames(first, streak.frames, self.flight.segments_to_nxt, each.get());
        }
        let left = placement.rule.left();
        self.flight.push_each(first, placement.first.at, (others, left), each);
        self.order.reach(self.flight.nxt);
        (self.now, self.frame) = (at, last_frame);
        self.tally.bytes_sent += streak.bytes as u64;
        self.tally.frames += count;
        self.tally.segments += streak.segments;
        let round = &mut self.book.open;
        round.tap_at_sender = self.terms.tap_at_sender;
        round.sees_queues = self.terms.sees_queues;
        round.add_streak(streak, last_frame);
        self.stop.on_send(last_frame, false);
        self.batch.has_sends = true;
        if let Some(run) = self.transfers.runs.last_mut() {
            run.to = self.flight.nxt;
            run.last_round = self.book.open.number;
        }
        let new = Before { at, pushed, short: false, ..self.sends.new };
        self.sends = Sends { last: at, tap, lag, new, ..self.sends };
        self.trips.jumps.note_lag(streak.lag_max);
    }
}

impl Walker {
    /// Takes the first of `run` as long as they are full segments close behind each other and do nothing
    /// but go on with the burst; how many.
    pub(crate) fn on_streak(
        &mut self,
        run: Run<'_>,
        placement: &Placement,
        bounds: &mut Bounds,
    ) -> usize {
        let (last, new, at) =
            (self.sender.sends.last, self.sender.sends.new.at, placement.first.at);
        let is_behind = self.sender.book.open.sends > 0 && self.sender.now == last && new == last;
        if !is_behind || self.sender.window.moved_at > last || at <= bounds.near {
            return 0;
        }
        let begins = !bounds.flies && at > self.sender.now;
        // Where time may not go on, all that left at once does.
        let at_once = bounds.end.min(at);
        let until = if bounds.flies || begins { bounds.end } else { at_once };
        let first = run.first();
        let mut streak = self.sender.streak_of(&first, run.rest(), placement, bounds, until);
        if streak.frames == 0 {
            return 0;
        }
        if begins {
            self.begin_piece(at, first.frame, bounds);
            if !bounds.flies {
                streak = self.sender.streak_of(&first, run.rest(), placement, bounds, at_once);
            }
        }
        bounds.frames -= streak.frames;
        self.sender.take_streak(&streak, &first, run, placement);
        streak.frames
    }
}
