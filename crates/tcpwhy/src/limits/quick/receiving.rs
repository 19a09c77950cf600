//! Data of the peer that does nothing but go on with its flow: the same comes out as when each packet is
//! taken by itself. This is quicker for the millions that a side takes while it sends nothing.

use crate::clocks::StackTime;
use crate::flow::event::{ACK, AFTER_GAP, ECE, Event, PROBE, SYN};
use crate::flow::run::Run;
use crate::limits::account::piece::Base;
use crate::limits::evidence::Evidence;
use crate::limits::walk::Walker;
use crate::offsets::Offset;
use crate::report::State;

/// How far a flow has gone on.
struct Flowing {
    /// When the packet before the last one arrived, and the last.
    before: StackTime,
    now: StackTime,
    /// When the last that carried data did.
    last: StackTime,
    taken: usize,
    frame: u64,
    /// The last frame that came later than the one before it. What comes at one time ends no time.
    ended_by: u64,
    /// Offset after the highest byte of them.
    end: Offset,
    /// The longest pause of a flow, and up to when it may go on.
    pause: i64,
    until: StackTime,
}

impl Flowing {
    /// Takes the packet in frame `number` that arrived at `at` if it flows; whether it does.
    fn take(&mut self, at: StackTime, number: u64) -> bool {
        let flows = self.now <= at && at <= self.until && at - self.last <= self.pause;
        if flows {
            self.ended_by = if at > self.now { number } else { self.ended_by };
            (self.before, self.now, self.last) = (self.now, at, at);
            self.taken += 1;
            self.frame = number;
        }
        flows
    }

    /// Takes the packets of `run`; whether all of them flow.
    fn take_run(&mut self, run: Run<'_>) -> bool {
        let before = self.taken;
        let all = self.take_packets(run);
        let bytes = (self.taken - before) as i64 * i64::from(run.head.len);
        if bytes > 0 {
            self.end = self.end.max(run.first().seq + bytes);
        }
        all
    }

    fn take_packets(&mut self, run: Run<'_>) -> bool {
        if !self.take(run.tap(0).at_stack(), run.first().frame) {
            return false;
        }
        let (rest, frame_of) = (run.rest(), |own| run.head.frame_of(own));
        let Some(end) = rest.last() else { return true };
        // No pause within the rest is longer than all of it.
        let came = end.tap.at_stack();
        if came > self.until || came - self.last > self.pause {
            return rest.iter().all(|own| self.take(own.tap.at_stack(), frame_of(*own)));
        }
        let before = |at: usize| at.checked_sub(1).map_or(self.now, |at| rest[at].tap.at_stack());
        let later = (0..rest.len()).rev().find(|at| rest[*at].tap.at_stack() > before(*at));
        let ended_by = later.map_or(self.ended_by, |at| frame_of(rest[at]));
        let before = before(rest.len() - 1);
        (self.before, self.now, self.last) = (before, came, came);
        (self.frame, self.ended_by) = (frame_of(*end), ended_by);
        self.taken += rest.len();
        true
    }
}

impl Walker {
    /// Takes the first of `runs`, up to `until`, that are data of the peer and do nothing but go on with
    /// its flow; how many.
    pub(crate) fn go_on_receiving<'a>(
        &mut self,
        mut runs: impl Iterator<Item = Run<'a>>,
        until: StackTime,
    ) -> usize {
        const RECEIVING: Base = Base::shown(State::Receiving);
        #[cfg(test)]
        if self.long_way {
            return 0;
        }
        let (una, window) = (self.sender.flight.una, self.sender.window);
        let may_go_on = self.sender.peer.spoke
            && self.sender.repairs.episodes.current() == 0
            && self.base_now() == Base::Quiet
            && una + window.size <= window.end
            && self.waits.flow_of(RECEIVING);
        let Some(last) = self.sender.peer.last_data.filter(|_| may_go_on) else { return 0 };
        let mut flowing = Flowing {
            before: self.sender.event_before,
            now: self.sender.now,
            last,
            taken: 0,
            frame: self.sender.frame,
            ended_by: self.waits.open_until(),
            end: self.sender.peer.end,
            pause: self.sender.flowing_gap(),
            until,
        };
        let shift = self.sender.terms.shift;
        let is_plain = |event: &Event| {
            event.len > 0
                && event.bits & (AFTER_GAP | SYN | ECE | PROBE | ACK) == ACK
                && event.sack_count == 0
                && event.ack == una
                && i64::from(event.window) << shift == window.size
        };
        while let Some(run) = runs.next().filter(|run| is_plain(run.head))
            && flowing.take_run(run)
        {}
        let Flowing { before, now, last, taken, frame, ended_by, end, .. } = flowing;
        if taken > 0 {
            self.sender.peer.end = end;
            self.sender.take_stop();
            (self.sender.event_before, self.sender.now, self.sender.peer.last_data) =
                (before, now, Some(last));
            self.sender.window.recent[0] = self.sender.window.recent[0].max(window.size);
            self.sender.progress.done = self.sender.progress.done.max(now);
            let (first_frame, last_frame) = (self.sender.frame, ended_by);
            self.sender.frame = frame;
            self.waits
                .go_on(now, &Evidence { first_frame, last_frame, ..self.sender.stop.evidence });
        }
        taken
    }
}
