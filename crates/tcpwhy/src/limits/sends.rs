//! What a send of new data does, and what it says about the wait before it.

use super::evidence::Evidence;
use super::replay::{Ack, FrameEnd};
use super::rounds::Phase;
use super::walker::{ExitCause, InitialFlight, NEVER, Run, Walker};
use crate::flow::event::{Event, PSH};
use crate::measure::flight::{SHORT, Sent};
use crate::measure::ipid::Step;
use crate::report::TimeIn;

/// Transfers end with an idle time longer than this, and than a round trip. Ours: an application
/// that writes as fast as it can (reads a disk, encrypts) pauses for up to some milliseconds.
const IDLE_ENDS_RUN_NS: i64 = 10_000_000;
/// Sends closer than this are one burst. Ours: not measured.
const BURST_GAP_NS: i64 = 100_000;
/// Most transfers kept of one direction; later ones are counted only.
const MAX_RUNS: usize = 4096;

/// What released a send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Release {
    /// An ACK that advanced; `by_data`: it came on data of the peer.
    Ack { by_data: bool },
    /// The receiver's window moved without an ACK of new data.
    Window,
    /// It follows the last send of its burst directly.
    Burst,
    /// Nothing that arrived.
    Free,
}

impl Walker {
    /// Data of this sender at stack time `at`.
    pub(crate) fn on_data(&mut self, event: &Event, at: i64, lag: i64, segments: u64, step: Step) {
        self.tally.bytes_sent += u64::from(event.len);
        self.tally.frames += 1;
        self.tally.segments += segments;
        if self.first_data.is_none() {
            // A capture that starts midway starts the account at the first byte it meets.
            if self.flight.nxt < event.seq
                && self.flight.outstanding() == 0
                && event.seq > 0
                && self.flight.segments_to_nxt == 0
            {
                self.flight.restart(event.seq);
            }
            self.first_offset = self.flight.nxt;
            self.first_data = Some(at);
        }
        if event.end() <= self.flight.nxt {
            self.on_repeat(event, at, segments, step);
        } else {
            self.on_new_data(event, at, lag, segments, step);
        }
        self.last_send = at;
        self.peer_data_since_send = false;
    }

    fn on_new_data(&mut self, event: &Event, at: i64, lag: i64, segments: u64, step: Step) {
        let release = self.release_of(at);
        let was_quiet = self.flight.outstanding() == 0;
        self.watch_lost_tail(event, at, step);
        self.watch_idle(event, segments, release, at);
        self.open_run(event, at, was_quiet && release == Release::Free);
        if release != Release::Burst {
            self.start_flight(release);
            self.settle_wait(release, event, at);
        }
        if self.round.sends == 0 && (release == Release::Free || self.marker == NEVER) {
            self.round.start = at;
            self.marker = self.flight.nxt;
        }
        let short = segments * self.terms.mss.max(1) as u64 != u64::from(event.len);
        let flags = if short && event.has(PSH) { SHORT } else { 0 };
        let sent = Sent {
            start: event.seq,
            end: event.end(),
            at,
            flight_then: 0,
            frame: event.frame,
            segments_to: 0,
            segments: segments as u32,
            flags,
        };
        let (before, mss) = (self.flight.nxt, self.terms.mss);
        self.flight.send_new(sent, mss);
        if self.sent_frames.len() < 4096 && self.may_replay() {
            self.sent_frames
                .push(FrameEnd { segments: self.flight.segments_to_nxt, byte: self.flight.nxt });
        }
        self.note_stop(event, at, lag, segments, self.flight.nxt - before, release);
        self.last_short = short;
        self.sent_since_ack = true;
        if let Some(run) = self.runs.last_mut() {
            run.to = self.flight.nxt;
            run.last_round = self.round.number;
        }
    }

    /// What released the send at `at`.
    fn release_of(&self, at: i64) -> Release {
        let tolerance = self.tolerance();
        let advanced = self.advances.back().copied();
        if let Some(ack_at) = advanced
            && at - ack_at <= tolerance
            && !(self.flight.outstanding() == 0 && self.advanced_by_data)
        {
            return Release::Ack { by_data: self.advanced_by_data };
        }
        if self.last_window_move > self.last_send && at - self.last_window_move <= tolerance {
            return Release::Window;
        }
        let in_burst = self.flight.outstanding() > 0
            && self.last_send > NEVER
            && at - self.last_send <= tolerance
            && at - self.burst_start <= self.rtt_scale() / 2;
        if in_burst { Release::Burst } else { Release::Free }
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
                && self.stop.room >= self.terms.mss
                && !self.last_short;
            initial.full = Some(full);
            let (una, nxt) = (0, initial.segments);
            self.replay.start(una, nxt, full);
        }
        self.burst_start = self.now;
    }

    /// Runs the replay over the last batch of ACKs and what was sent after them, if the ACK that
    /// arrives at `at` does not belong to it. ACKs that come together make one batch: which of
    /// them released which packet is within the noise of the capture, so it is dealt out again.
    pub(crate) fn replay_batch(&mut self, at: i64) {
        let together = self.last_release.is_some_and(|last| at - last <= self.tolerance())
            && self.batch_start.is_some_and(|start| at - start <= self.rtt_scale() / 8);
        if !self.sent_since_ack || together {
            return;
        }
        self.batch_start = Some(at);
        self.replay_now();
    }

    /// Runs the replay over all ACKs that came.
    pub(crate) fn replay_now(&mut self) {
        self.sent_since_ack = false;
        if self.replay.has_started() {
            self.replay.push(&self.acks, &self.sent_frames, self.flight.segments_to_nxt);
        } else if self.initial.is_none() && self.flight.segments_to_nxt > 0 {
            self.initial = Some(InitialFlight {
                segments: self.flight.outstanding_segments(),
                bytes: self.flight.outstanding(),
                full: None,
            });
        }
        self.acks.clear();
        self.sent_frames.clear();
    }

    /// Whether the replay goes on, or may start again before it is run next: where slow start has
    /// ended, only a restart after idling makes it do so, and all before that is replayed then.
    fn may_replay(&self) -> bool {
        self.replay.in_slow_start() || !self.replay.has_started() || self.idle.is_judging()
    }

    /// Remembers an ACK for the replay.
    pub(crate) fn queue_ack(&mut self) {
        if !self.may_replay() {
            return;
        }
        let una = self.flight.segments_to(self.flight.una);
        let window_end = self.window_end;
        if self.acks.len() < 4096 {
            self.acks.push(Ack { una, window_end });
        } else if let Some(last) = self.acks.last_mut() {
            *last = Ack { una, window_end };
        }
    }

    fn open_run(&mut self, event: &Event, at: i64, idle: bool) {
        let idled = idle && self.last_progress_before(at) > IDLE_ENDS_RUN_NS.max(self.rtt_scale());
        if !self.runs.is_empty() && !idled && !self.peer_spoke() {
            return;
        }
        if self.runs.len() >= MAX_RUNS {
            self.runs_dropped += 1;
            return;
        }
        let number = self.round.number;
        let from = event.seq.max(self.flight.nxt);
        let after_peer = self.last_peer_data.filter(|_| self.peer_spoke()).map(|peer| at - peer);
        self.runs.push(Run {
            start: at,
            end: at,
            from,
            to: from,
            first_round: number,
            last_round: number,
            after_peer,
        });
        self.run_times.push(TimeIn::default());
    }

    /// The capture lacks what was sent from `since` on, up to offset `to`: it belongs to the open
    /// transfer, or begins one.
    pub(crate) fn extend_run(&mut self, since: i64, to: i64) {
        let from = self.flight.nxt;
        if self.runs.is_empty() || self.peer_spoke() {
            let number = self.round.number;
            let after_peer = None;
            self.runs.push(Run {
                start: since,
                end: since,
                from,
                to,
                first_round: number,
                last_round: number,
                after_peer,
            });
            self.run_times.push(TimeIn::default());
            self.peer_data_since_send = false;
        }
        if let Some(run) = self.runs.last_mut() {
            run.to = run.to.max(to);
            run.end = run.end.max(self.now);
        }
        if self.first_data.is_none() {
            self.first_data = Some(since);
            self.first_offset = from;
        }
    }

    fn last_progress_before(&self, at: i64) -> i64 {
        at - self.last_progress.max(self.last_send)
    }

    /// Whether data of the peer came since this side's last data.
    fn peer_spoke(&self) -> bool {
        self.peer_data_since_send
    }

    fn note_stop(
        &mut self,
        event: &Event,
        at: i64,
        lag: i64,
        segments: u64,
        new: i64,
        release: Release,
    ) {
        let flight = self.flight.in_flight();
        let outstanding = self.flight.outstanding_segments();
        self.tally.max_in_flight = self.tally.max_in_flight.max(flight);
        let room =
            if self.window_end > NEVER { self.window_end - self.flight.nxt } else { i64::MAX };
        let stop = Evidence {
            in_flight: flight,
            segments: outstanding,
            room,
            window: self.window,
            cwnd: self.replay.cwnd(outstanding).best.unwrap_or(0),
            queue_ns: self.stop.queue_ns,
            first_frame: event.frame,
            last_frame: event.frame,
        };
        self.stop = stop;
        self.stop_round = self.round.number;
        self.stop_window_max = self.window_max;
        self.stop_window_recent = self.recent_windows[0].max(self.recent_windows[1]);
        self.largest_flight = self.largest_flight.max(outstanding);
        self.sample_flight(flight);
        let late = self.last_release.is_some_and(|ack| at - ack > self.promptness());
        let round = &mut self.round;
        if round.sends > 0 && self.last_send > NEVER {
            let gap = at - self.last_send;
            round.gap_sum += gap;
            round.gap_squares += i128::from(gap) * i128::from(gap);
            round.gaps += 1;
            round.longest_gap = round.longest_gap.max(gap);
        }
        let pause = at - self.last_send.max(round.start) > BURST_GAP_NS;
        round.burst_now = if pause { new } else { round.burst_now + new };
        round.burst = round.burst.max(round.burst_now);
        round.sends += 1;
        round.bytes += new;
        round.segments += segments;
        round.lag_min = if round.sends == 1 { lag } else { round.lag_min.min(lag) };
        round.tap_at_sender = self.terms.tap_at_sender;
        match release {
            Release::Ack { .. } | Release::Window => {
                round.ack_released += 1;
                round.late += u32::from(late);
            }
            Release::Free => round.free += 1,
            Release::Burst => {}
        }
        round.flight = round.flight.max(flight);
        round.flight_segments = round.flight_segments.max(outstanding);
        if room < self.terms.mss {
            round.edge_flight = round.edge_flight.max(flight);
        }
        round.stop = stop;
        round.stopped_at = at;
        round.last_frame = event.frame;
        if round.first_frame == 0 {
            round.first_frame = event.frame;
        }
    }

    /// Keeps an even sample of at most 1,000 flights over all sends, for the loss test.
    fn sample_flight(&mut self, flight: i64) {
        if !self.tally.frames.is_multiple_of(self.sample_every) {
            return;
        }
        self.flight_samples.push(flight);
        if self.flight_samples.len() == 1000 {
            let mut odd = false;
            self.flight_samples.retain(|_| {
                odd = !odd;
                odd
            });
            self.sample_every *= 2;
        }
    }

    /// Watches the flights of rounds for the end of slow start (limits-method section 5).
    pub(crate) fn note_growth(&mut self, round: &super::rounds::Round) {
        // What a round sends is the window's worth; the flight at its end counts the overlap with
        // the last one too.
        let flight = round.segments;
        if self.flights.regain.is_some_and(|before| round.flight_segments >= before) {
            self.flights.regain = None;
        }
        if self.flights.lost_at.is_some_and(|before| round.flight_segments >= before) {
            self.flights.lost_at = None;
        }
        if !self.replay.in_slow_start() && self.flights.exit.is_none() {
            // The replay broke without growth ending: more was sent than Linux would have.
            self.flights.exit = Some((round.end, None, ExitCause::Unknown));
        }
        let limited = round.ack_released > round.free && round.edge_flight == 0;
        if !limited || self.flights.exit.is_some() {
            self.flights.last = flight;
            return;
        }
        let slow = flight * 2 < self.flights.last * 3;
        let last = core::mem::replace(&mut self.flights.last, flight);
        if !slow || flight < last {
            self.flights.slow = 0;
            return;
        }
        self.flights.slow += 1;
        if self.flights.slow == 1 {
            self.flights.slow_from = (flight, round.start, round.number);
            self.flights.steps = 0;
            return;
        }
        self.flights.steps = self.flights.steps << 1 & 7 | u8::from(flight > last);
        let (first, at, number) = self.flights.slow_from;
        // A flight that stands still, or rises once, has another lid than the window; one that
        // creeps upwards is in congestion avoidance from its first slow round on.
        if self.flights.steps.count_ones() >= 2 {
            let delayed = round.rtt_min.is_some_and(|rtt| {
                let least = self.least_rtt();
                // `hystart_update`: the round's least of 8 samples above base + clamp(base/8, 4..16 ms).
                round.rtt_count >= 8 && rtt > least + (least / 8).clamp(4_000_000, 16_000_000)
            });
            let trained = round.train.1 - round.train.0 > self.least_rtt() / 2;
            let cause = match (delayed, trained) {
                (true, _) => ExitCause::HystartDelay,
                (_, true) => ExitCause::HystartTrain,
                _ => ExitCause::Cached,
            };
            self.flights.exit = Some((at, Some(first), cause));
            self.rounds.name_from(number, self.phase());
            self.replay.exit();
        }
    }

    /// How the waits of the open round are to be named when the congestion window held them.
    pub(crate) fn phase(&self) -> Phase {
        if self.flights.regain.is_some() {
            return Phase::AfterIdle;
        }
        match self.flights.exit {
            None => Phase::SlowStart,
            Some(_) if self.flights.lost_at.is_some() => Phase::AfterLoss,
            Some((_, _, ExitCause::Cached)) => Phase::Cached,
            Some((_, _, ExitCause::Unseen)) => Phase::Unseen,
            Some(_) => Phase::Avoidance,
        }
    }
}

/// Wire segments of a captured frame's payload.
pub(crate) fn segments_of(len: u32, mss: i64) -> u64 {
    let mss = mss.max(1) as u64;
    u64::from(len).div_ceil(mss)
}
