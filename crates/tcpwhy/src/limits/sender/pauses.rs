//! Pauses after which the congestion window may start anew.

use super::Sender;
use super::window::Filled;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::round::Phase;
use crate::limits::sense::AFTER_PAUSE;
use crate::limits::wait::Release;
use crate::segments::Segments;

impl Sender {
    /// When the open transfer was last seen to go on: its last send, or the last ACK of its data.
    pub(crate) fn gone_on_at(&self) -> StackTime {
        self.progress.at.max(self.sends.last)
    }

    /// Watches for a restart after idling: `event` is new data, not yet in flight, which resumed at
    /// `resumed_at` what had paused.
    pub(crate) fn watch_idle(
        &mut self,
        event: &Event,
        segments: Segments,
        release: Release,
        resumed_at: Option<StackTime>,
    ) {
        let by_ack = matches!(release, Release::Ack { .. } | Release::Window);
        if self.pauses.watch.is_judging()
            && !self.pauses.watch.extend(event, segments, self.terms.mss, by_ack)
        {
            // A first flight that the receiver's window ended tells nothing of the congestion window.
            self.judge_idle(by_ack && self.had_room(event, self.stop.evidence.room));
        }
        let Some(at) = resumed_at else { return };
        self.replay_now();
        if self.pauses.watch.on_send(at, event, self.sends.last, self.window_before_pause()) {
            self.pauses.start = self.flight.segments_to_nxt;
            self.pauses.round = self.book.open.number;
            self.pauses.at_pause = self.pauses.since_cut;
            self.pauses.watch.extend(event, segments, self.terms.mss, false);
        }
    }

    /// The congestion window before a pause: by the replay if it still holds, else at least the
    /// largest flight.
    fn window_before_pause(&self) -> Segments {
        let replayed = self.replay.cwnd(Segments::NONE).high.unwrap_or(0);
        Segments::new(replayed).max(self.pauses.largest_flight)
    }

    pub(crate) fn judge_idle(&mut self, full: bool) {
        let initial = self.initial.filter(|i| i.full == Some(true)).map(|i| i.segments);
        if let Some(restarted) = self.pauses.watch.judge(full, initial) {
            let has_threshold = self.growth.exit.is_some();
            // What a loss has taken from the window before the pause, the pause did not.
            let at_pause = self.pauses.at_pause;
            let was_cut = self.growth.was_cut && at_pause > restarted.segments;
            let before = if was_cut { restarted.before.min(at_pause) } else { restarted.before };
            self.growth.regain = Some(if has_threshold {
                Segments::new(AFTER_PAUSE.of(before.get()))
            } else {
                before
            });
            self.window.filled = Filled::default();
            self.book.closed.name_from(self.pauses.round, Phase::AfterIdle);
            if self.growth.exit.is_none() {
                let una = self.pauses.start;
                self.replay.start(una, una + restarted.segments.get(), full);
            }
        }
    }
}
