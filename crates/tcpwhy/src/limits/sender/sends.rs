//! What a send of new data does, and what it says about the wait before it.

use super::Sender;
use super::book::NewSend;
use super::growth::{ExitCause, InitialFlight};
use super::holes::Hole;
use super::replay::{Ack, FrameEnd};
use super::transfers::Run;
use crate::clocks::{StackTime, TapTime};
use crate::flow::event::{Event, PSH};
use crate::limits::beat;
use crate::limits::pulse::{Before, Cause};
use crate::limits::round::{Phase, Round};
use crate::limits::sense::{BATCH, BURST_TRIPS, DEFERRED, IDLE_ENDS_RUN_NS, NEVER, NOWHERE};
use crate::limits::wait::Release;
use crate::measure::flight::Sent;
use crate::measure::ipid::Step;
use crate::offsets::Offset;
use crate::segments::Segments;

impl Sender {
    /// Data is sent at `at`.
    pub(crate) fn begin_data(&mut self, event: &Event, at: StackTime, segments: Segments) {
        self.tally.add_frame(event.len, segments);
        self.begin_midway(event.seq, at);
        if self.transfers.first_at.is_none() {
            self.transfers.first_offset = self.flight.nxt;
            self.transfers.first_at = Some(at);
        }
    }

    /// Data was sent.
    pub(crate) fn after_data(&mut self, event: &Event, at: StackTime, lag: i64) {
        (self.sends.last, self.sends.tap, self.sends.lag) = (at, event.tap, lag);
        self.trips.jumps.note_lag(lag);
        self.peer.spoke = false;
    }

    /// The FIN's place tells of data up to `seq` that the tap has not seen.
    pub(crate) fn on_fin_behind_unseen(&mut self, seq: Offset) {
        self.flight.send_unseen(seq, self.now, self.terms.mss);
        self.sends.last = self.now;
    }

    /// What released new data at `at`.
    pub(crate) fn release_for(&mut self, event: &Event, at: StackTime) -> Release {
        self.unless_written(self.release_of(at), event, at)
    }

    /// New data at `at`, before the wait that it ends is judged.
    pub(crate) fn before_new(
        &mut self,
        event: &Event,
        at: StackTime,
        (release, segments, step): (Release, Segments, Step),
    ) {
        let was_quiet = self.flight.outstanding() == 0;
        let repeats =
            self.watch_lone_repeat(event, release, at) || self.watch_lost_tail(event, at, step);
        let resumes = was_quiet && !repeats;
        // Linux asks how long nothing was sent, not why (`tcp_slow_start_after_idle_check`).
        let by_itself = matches!(release, Release::Free | Release::Window);
        self.watch_idle(event, segments, release, (resumes && by_itself).then_some(at));
        self.open_run(event, at, resumes && release == Release::Free);
        if release != Release::Burst {
            self.start_flight(release);
        }
    }

    /// New data at `at`, behind the wait that it ended.
    pub(crate) fn take_new(
        &mut self,
        event: &Event,
        at: StackTime,
        lag: i64,
        (release, segments): (Release, Segments),
    ) {
        if self.terms.unanswered {
            // No ACK will end a repair: its account ends with the wait.
            self.repairs.episodes.on_progress(event.seq);
        }
        if self.book.open.sends == 0 && (release == Release::Free || self.book.marker == NOWHERE) {
            self.book.open.start = at;
            self.book.marker = self.flight.nxt;
        }
        self.send(event, at, lag, segments, release);
    }

    /// Puts new data into the flight.
    pub(crate) fn send(
        &mut self,
        event: &Event,
        at: StackTime,
        lag: i64,
        segments: Segments,
        release: Release,
    ) {
        let (mss, nxt) = (self.terms.mss, self.flight.nxt);
        let short = segments.bytes(mss.max(1)) != i64::from(event.len);
        if event.seq > nxt {
            let flight = self.stop.evidence.in_flight + (event.seq - nxt);
            self.repairs.losses.holes.push(Hole {
                range: (nxt, event.seq),
                since: self.sends.last,
                flight,
            });
        }
        self.flight.send_new(Sent::of(event, at, segments), self.terms.mss);
        if self.may_replay() {
            let segments = self.flight.segments_to_nxt;
            self.batch.add_frame(FrameEnd { segments, byte: self.flight.nxt });
        }
        self.note_mending(event, at);
        let (before, new, frame) = (self.sends.last, self.flight.nxt - nxt, event.frame);
        let tap_gap = event.tap - self.sends.tap;
        let cause = self.cause_of(release, event, at);
        let behind = self.behind_arrival(event.tap);
        let last = (self.sends.new.at, self.sends.new.short);
        self.book.open.pulses.push(at, &mut self.sends.new, cause, behind);
        // What fills the window is cut by it, not by the application.
        let room = self.window.room(self.flight.nxt);
        let ends_short = short && room >= if self.terms.shift_guessed { 1 } else { self.terms.mss };
        let sent = beat::Sent { at, before: last, from: event.seq, short: ends_short, mss };
        self.book.open.beats.push(&sent, &mut self.sends.beat);
        self.note_send(&NewSend { at, before, tap_gap, lag, segments, new, frame }, release);
        if short {
            self.sends.short = (event.end(), event.len);
            self.sends.writes.on_short();
        }
        self.sends.new = Before { at, pushed: event.has(PSH), short: ends_short, ..self.sends.new };
        self.batch.has_sends = true;
        if let Some(run) = self.transfers.runs.last_mut() {
            run.to = self.flight.nxt;
            run.last_round = self.book.open.number;
        }
    }

    /// What released the send at `at`.
    fn release_of(&self, at: StackTime) -> Release {
        let tolerance = self.tolerance();
        let advanced = self.releases.acks.back().map(|ack| ack.at);
        if let Some(ack_at) = advanced
            && at - ack_at <= tolerance
            && !(self.flight.outstanding() == 0 && self.releases.by_data)
        {
            return Release::Ack { by_data: self.releases.by_data };
        }
        let moved =
            self.window.moved_at > self.sends.last && at - self.window.moved_at <= tolerance;
        if moved && self.had_little_room() {
            return Release::Window;
        }
        let in_burst = self.flight.outstanding() > 0
            && self.sends.last > NEVER
            && at - self.sends.last <= tolerance
            && at <= self.burst_end();
        if in_burst { Release::Burst } else { Release::Free }
    }

    /// When the last burst is over, however close its sends followed each other: half a round trip behind its begin, but
    /// not while they may still have been released with its first.
    pub(crate) fn burst_end(&self) -> StackTime {
        self.sends.burst_start + BURST_TRIPS.of(self.rtt_scale()).max(self.tolerance())
    }

    /// Whether so little of the receiver's window was left at the last stop that its opening may let data out: less
    /// than a segment, or than the third that Linux waits for (`tcp_tso_should_defer`).
    fn had_little_room(&self) -> bool {
        let stop = &self.stop.evidence;
        stop.room < self.terms.mss.max(DEFERRED.of(stop.window))
    }

    /// The first flight ends where the first ACK of data releases the next send; after that each
    /// batch of ACKs is replayed once the sends it released are known.
    fn start_flight(&mut self, release: Release) {
        if let Some(initial) = &mut self.initial
            && initial.full.is_none()
        {
            // Stopped by the receiver's window, or with a short segment (by the application, or
            // Nagle's algorithm), the flight says nothing of the sender's window.
            let full = matches!(release, Release::Ack { by_data: false })
                && self.stop.evidence.room >= self.terms.mss
                && !self.sends.new.short;
            initial.full = Some(full);
            let (una, nxt) = (0, initial.segments.get());
            self.replay.start(una, nxt, full);
        }
        self.sends.burst_start = self.now;
    }

    /// Runs the replay over the last batch of ACKs and what was sent after them, if the ACK that
    /// arrives at `at` does not belong to it. ACKs that come together make one batch: which of
    /// them released which packet is within the noise of the capture, so it is dealt out again.
    pub(crate) fn replay_batch(&mut self, at: StackTime) {
        let together = self.releases.last.is_some_and(|last| at - last <= self.tolerance())
            && self.batch.start.is_some_and(|start| at - start <= BATCH.of(self.rtt_scale()));
        if !self.batch.has_sends || together {
            return;
        }
        self.batch.start = Some(at);
        self.replay_now();
    }

    /// Runs the replay over all ACKs that came.
    pub(crate) fn replay_now(&mut self) {
        self.batch.has_sends = false;
        if self.replay.has_started() {
            let at_edge = self.window.room(self.flight.nxt) < self.terms.mss;
            self.replay.push(
                &self.batch.acks,
                &self.batch.frames,
                self.flight.segments_to_nxt,
                at_edge,
            );
        } else if self.initial.is_none() && self.flight.segments_to_nxt > 0 {
            self.initial = Some(InitialFlight {
                segments: self.flight.outstanding_segments(),
                bytes: self.flight.outstanding(),
                full: None,
            });
        }
        self.batch.clear();
    }

    /// Whether the replay goes on, or may start again before it is run next: where slow start has
    /// ended, only a restart after idling makes it do so, and all before that is replayed then.
    pub(crate) fn may_replay(&self) -> bool {
        self.replay.in_slow_start() || !self.replay.has_started() || self.pauses.watch.is_judging()
    }

    /// Remembers an ACK for the replay.
    pub(crate) fn queue_ack(&mut self) {
        if !self.may_replay() {
            return;
        }
        let una = self.flight.segments_to(self.flight.una);
        self.batch.add_ack(Ack { una, window_end: self.window.end });
    }

    fn open_run(&mut self, event: &Event, at: StackTime, idle: bool) {
        let idled = idle && at - self.gone_on_at() > IDLE_ENDS_RUN_NS.max(self.rtt_scale());
        let idled = idled && !self.is_part_by_timer(event, at);
        if !self.transfers.runs.is_empty() && !idled && !self.peer.spoke {
            return;
        }
        let from = event.seq.max(self.flight.nxt);
        self.end_run(at);
        let after_peer = self.peer.last_data.filter(|_| self.peer.spoke).map(|peer| at - peer);
        self.transfers.begin(Run { after_peer, ..Run::at(at, from, self.book.open.number) });
    }

    /// The open transfer is over, for another begins at `at`.
    fn end_run(&mut self, at: StackTime) {
        let is_in_flight = self.flight.outstanding() > 0;
        self.transfers.last_until(if is_in_flight { at } else { self.gone_on_at() });
    }

    /// The capture lacks what was sent from `since` on, up to offset `to`: it belongs to the open
    /// transfer, or begins one.
    pub(crate) fn extend_run(&mut self, since: StackTime, to: Offset) {
        let from = self.flight.nxt;
        if self.transfers.runs.is_empty() || self.peer.spoke {
            self.end_run(since);
            self.transfers.begin(Run { to, ..Run::at(since, from, self.book.open.number) });
            self.peer.spoke = false;
        }
        if let Some(run) = self.transfers.runs.last_mut() {
            run.to = run.to.max(to);
            run.end = run.end.max(self.now);
        }
        if self.transfers.first_at.is_none() {
            self.transfers.first_at = Some(since);
            self.transfers.first_offset = from;
        }
    }

    /// Whether an arrival set off the send at `at`: one long after it may have had another cause.
    fn cause_of(&self, release: Release, event: &Event, at: StackTime) -> Cause {
        match release {
            Release::Burst => Cause::Burst,
            Release::Free => Cause::Own,
            Release::Ack { .. } | Release::Window
                if self.releases.last.is_some_and(|ack| at - ack > self.promptness()) =>
            {
                Cause::Own
            }
            _ if !self.terms.tap_at_sender => Cause::Arrival { before: 0 },
            Release::Ack { .. } | Release::Window => {
                let before = self.behind_arrival(event.tap).unwrap_or_default();
                Cause::Arrival { before }
            }
        }
    }

    /// How long before a send that passed the tap at `tap` something arrived; `None` away from the sender, where
    /// queues make a send late, and if nothing has.
    pub(super) fn behind_arrival(&self, tap: TapTime) -> Option<i64> {
        let arrived = self.releases.last.unwrap_or(NEVER).max(self.window.moved_at);
        (self.terms.tap_at_sender && arrived > NEVER)
            .then(|| tap.left(self.terms.own_way) - arrived)
    }

    /// Takes down a send of new data: the wait that follows is judged by it.
    fn note_send(&mut self, send: &NewSend, release: Release) {
        let flight = &self.flight;
        // A loss among repairs belongs to their episode, so only what was sent outside may begin one.
        if !self.repairs.episodes.is_repairing() {
            self.samples.push(self.tally.frames, || flight.outstanding());
        }
        let round = &mut self.book.open;
        round.tap_at_sender = self.terms.tap_at_sender;
        round.sees_queues = self.terms.sees_queues;
        match release {
            Release::Ack { .. } | Release::Window => round.ack_released += 1,
            Release::Free => round.free += 1,
            Release::Burst => {}
        }
        if release != Release::Burst && self.sends.last + self.sends.lag <= send.at {
            round.held_up = round.held_up.max(send.lag);
        }
        round.add_send(send);
        self.stop.on_send(send.frame, release != Release::Burst);
    }

    /// Watches the flights of rounds for the end of slow start.
    pub(crate) fn note_growth(&mut self, round: &Round) {
        let is_replayed = self.growth.thinned_from.is_none() && !self.growth.goes_by_flights;
        if !self.replay.in_slow_start() && is_replayed {
            // The replay broke without growth ending: more was sent than Linux would have.
            self.growth.leave_slow_start(round.end, None, ExitCause::Unknown);
        }
        if let Some(from) = self.growth.push(round, self.least_rtt()) {
            self.book.closed.name_from(from.number, self.phase());
            self.replay.exit();
        }
        if let Some(number) = self.growth.thinned_from
            && self.replay.in_slow_start()
        {
            self.book.closed.forget_window_from(number);
            self.replay.exit();
        }
    }

    /// How the waits of the open round are to be named when the congestion window held them.
    pub(crate) fn phase(&self) -> Phase {
        self.growth.phase()
    }
}

/// Wire segments of a captured frame's payload.
pub(crate) fn segments_of(len: u32, mss: i64) -> Segments {
    let (len, mss) = (u64::from(len), mss.max(1) as u64);
    // Most frames are one segment; that shows without a division.
    Segments::new(if len <= mss { u64::from(len > 0) } else { len.div_ceil(mss) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::sender::Terms;

    /// What released a send at 10 ms, just after the receiver's window of 30,000 bytes moved and left `room`.
    fn released(room: i64) -> Release {
        let mut walker = Sender::new(Terms { mss: 1448, ..Terms::default() }, true, 0);
        walker.window.moved_at = StackTime(10_000_000);
        walker.sends.last = StackTime(1_000_000);
        (walker.stop.evidence.room, walker.stop.evidence.window) = (room, 30_000);
        walker.release_of(StackTime(10_000_000))
    }

    #[test]
    fn a_window_lets_out_what_it_may_have_held() {
        assert_eq!(released(0), Release::Window);
        assert_eq!(released(9_999), Release::Window, "Linux may wait for a third");
        assert_eq!(released(10_000), Release::Free);
    }

    /// What released a send right behind another, so long after the begin of their burst, where a round trip is `rtt`.
    fn released_behind(rtt: i64, since_begin: i64) -> Release {
        let mut walker = Sender::new(Terms { mss: 1448, ..Terms::default() }, true, 0);
        walker.trips.sample(rtt, Offset::FIRST, Offset::FIRST);
        walker.flight.nxt = Offset::at(1448);
        walker.sends.burst_start = StackTime(10_000_000);
        let at = 10_000_000 + since_begin;
        walker.sends.last = StackTime(at - 500);
        walker.release_of(StackTime(at))
    }

    #[test]
    fn a_burst_lasts_half_a_round_trip_and_as_long_as_it_may_have_left_at_once() {
        assert_eq!(released_behind(8_000, 50_000), Release::Burst, "line rate on a fast LAN");
        assert_eq!(released_behind(8_000, 50_001), Release::Free);
        assert_eq!(released_behind(1_000_000, 500_000), Release::Burst);
        assert_eq!(released_behind(1_000_000, 500_001), Release::Free);
    }
}
