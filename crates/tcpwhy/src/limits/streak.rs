//! Full segments close behind each other: what they move, moved for all of them at once.

use super::burst::{Bounds, Placed};
use super::order::SendOrder;
use super::pulse::{BURST_GAP_NS, Before};
use super::sends::segments_of;
use super::walker::{Sends, Walker};
use crate::flow::event::{AFTER_GAP, CORRUPT, Event, PROBE, PSH, SYN};

/// Frames of one size that follow the last send of a burst.
#[derive(Debug)]
pub(super) struct Streak {
    /// What is known of the sender's numbers behind it.
    order: SendOrder,
    pub(super) frames: usize,
    /// Payload of all, and how many segments that is.
    pub(super) bytes: i64,
    pub(super) segments: u64,
    /// When the last left, when it passed the tap, and its lag.
    pub(super) at: i64,
    tap: i64,
    lag: i64,
    pub(super) frame: u64,
    pub(super) lag_min: i64,
    lag_max: i64,
    /// Longest time between two, when they left and at the tap.
    pub(super) gap: i64,
    pub(super) tap_gap: i64,
}

impl Streak {
    /// Nothing yet behind a send at `at` that passed the tap at `tap`.
    fn behind(at: i64, tap: i64, order: SendOrder) -> Self {
        Self {
            order,
            frames: 0,
            bytes: 0,
            segments: 0,
            at,
            tap,
            lag: 0,
            frame: 0,
            lag_min: i64::MAX,
            lag_max: 0,
            gap: 0,
            tap_gap: 0,
        }
    }

    #[inline]
    fn add(&mut self, event: &Event, Placed { at, lag }: Placed) {
        self.gap = self.gap.max(at - self.at);
        self.tap_gap = self.tap_gap.max(event.tap - self.tap);
        self.lag_min = self.lag_min.min(lag);
        self.lag_max = self.lag_max.max(lag);
        (self.at, self.tap, self.lag, self.frame) = (at, event.tap, lag, event.frame);
        self.frames += 1;
    }
}

impl Walker {
    /// Takes the first of `events` as long as they are full segments of one size close behind each
    /// other and do nothing but go on with the burst; how many.
    pub(super) fn on_streak(
        &mut self,
        events: &[Event],
        placed: &[Placed],
        bounds: &mut Bounds,
    ) -> usize {
        let (Some(first), Some(one)) = (events.first(), placed.first()) else { return 0 };
        let (last, new) = (self.sends.last, self.sends.new.at);
        let is_behind = self.book.open.sends > 0 && self.now == last && new == last;
        if !is_behind || self.window.moved_at > last {
            return 0;
        }
        if !bounds.flies && one.at > self.now {
            if self.streak_of(&events[..1], placed, bounds, bounds.end).frames == 0 {
                return 0;
            }
            self.begin_piece(one.at, first.frame, bounds);
        }
        // Where time may not go on, all that left at once does.
        let until = if bounds.flies { bounds.end } else { bounds.end.min(self.now) };
        let streak = self.streak_of(events, placed, bounds, until);
        if streak.frames > 0 {
            bounds.frames -= streak.frames;
            self.take_streak(&streak, &events[..streak.frames], placed);
        }
        streak.frames
    }

    /// How many of `events` are full segments like the first and go on with the burst until a time.
    fn streak_of(
        &self,
        events: &[Event],
        placed: &[Placed],
        bounds: &Bounds,
        until: i64,
    ) -> Streak {
        const UNUSUAL: u16 = SYN | AFTER_GAP | PROBE | CORRUPT;
        let len = events.first().map_or(0, |event| event.len);
        let segments = segments_of(len, self.terms.mss);
        let is_full = segments > 0 && segments as i64 * self.terms.mss == i64::from(len);
        let frames = if is_full { bounds.frames } else { 0 };
        let mut streak = Streak::behind(self.sends.last, self.sends.tap, self.order.clone());
        let (from, gap_max) = (bounds.near + 1, bounds.gap.min(BURST_GAP_NS));
        let mut nxt = self.flight.nxt;
        for (event, placed) in events.iter().zip(placed).take(frames) {
            let gap = placed.at - streak.at;
            let is_next = event.len == len
                && event.bits & UNUSUAL == 0
                && event.seq == nxt
                && nxt <= bounds.seq
                && 0 <= gap
                && gap <= gap_max
                && from <= placed.at
                && placed.at <= until;
            if !is_next || !streak.order.goes_on(event, segments) {
                break;
            }
            nxt += i64::from(len);
            streak.add(event, *placed);
        }
        (streak.bytes, streak.segments) = (nxt - self.flight.nxt, streak.frames as u64 * segments);
        streak
    }

    /// Moves what the frames of `streak`, which `events` are, move together.
    fn take_streak(&mut self, streak: &Streak, events: &[Event], placed: &[Placed]) {
        self.order = streak.order.clone();
        let (each, count) = (streak.segments / streak.frames as u64, streak.frames as u64);
        let Streak { at, tap, lag, frame, .. } = *streak;
        if !self.repairs.is_repairing() {
            let (flight, len) = (self.flight.outstanding(), streak.bytes / streak.frames as i64);
            let flight_after = |sent: u64| flight + sent as i64 * len;
            self.samples.push_each(self.tally.frames, count, flight_after);
        }
        if self.may_replay() {
            self.batch.add_frames(events, self.flight.segments_to_nxt, each);
        }
        self.flight.push_each(events, placed.iter().map(|placed| placed.at), each);
        (self.now, self.frame) = (at, frame);
        self.tally.bytes_sent += streak.bytes as u64;
        self.tally.frames += count;
        self.tally.segments += streak.segments;
        let round = &mut self.book.open;
        round.tap_at_sender = self.terms.tap_at_sender;
        round.sees_queues = self.terms.sees_queues;
        round.add_streak(streak);
        self.stop.on_send(frame);
        self.batch.has_sends = true;
        if let Some(run) = self.transfers.runs.last_mut() {
            run.to = self.flight.nxt;
            run.last_round = self.book.open.number;
        }
        let pushed = events.last().is_some_and(|event| event.has(PSH));
        let new = Before { at, pushed, short: false, ..self.sends.new };
        self.sends = Sends { last: at, tap, lag, new, ..self.sends };
        self.trips.jumps.note_lag(streak.lag_max);
    }
}
