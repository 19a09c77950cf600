//! Nagle's algorithm: a short segment waits until the one before it is acknowledged (RFC 9293 section 3.7.4).

use super::piece::Base;
use super::replay::LINUX_INITIAL_WINDOW;
use super::sends::Release;
use super::trips;
use super::walker::Walker;
use crate::flow::event::Event;
use crate::report::State;

impl Walker {
    /// Whether Nagle's algorithm held `event`, a short segment: in Linux until the last short one
    /// before it was acknowledged (`tcp_minshall_check`). Stacks that wait for all that was sent
    /// (RFC 9293 §3.7.4) are not told.
    pub(super) fn is_held_by_nagle(&self, release: Release, event: &Event) -> bool {
        matches!(release, Release::Ack { by_data: false })
            && i64::from(event.len) < self.terms.mss
            && self.had_room(event, self.window.room(event.seq))
            && !self.repairs.is_repairing()
            && !self.is_held_by_cwnd_first()
            && self.waited_for_short()
    }

    /// Whether the congestion window was full, too: it is asked for first (`tcp_write_xmit`, v6.1: `tcp_cwnd_test` before
    /// `tcp_nagle_test`). Of the first flight nothing tells but that Linux begins with so many segments.
    fn is_held_by_cwnd_first(&self) -> bool {
        let sent = self.flight.segments_to_nxt;
        match self.initial {
            Some(initial) if initial.segments == sent => sent == LINUX_INITIAL_WINDOW,
            _ => self.fills_cwnd(),
        }
    }

    /// What `event` waited for that Nagle's algorithm may have held until the short segment before it
    /// was acknowledged. If that came at once, and `event` is just as long, though more is written
    /// while one waits, an application that writes once in a round trip is likelier.
    pub(super) fn nagle_wait(&self, event: &Event, at: i64) -> Base {
        if trips::is_delayed_ack(at - self.sends.last - self.least_rtt()) {
            return Base::sure(State::NagleDelack, 85);
        }
        if event.len == self.sends.short.1 {
            let (state, alternative) = (State::App, &[State::NagleDelack] as &[_]);
            return Base::Fixed { state, confidence: 60, alternative };
        }
        let (state, alternative) = (State::NagleDelack, &[State::App] as &[_]);
        Base::Fixed { state, confidence: 75, alternative }
    }

    /// What a sender waited for whose flight was acknowledged before it sent `event` at `at`, which came by itself: if
    /// that goes on with the same transfer, its application had written no more. If it is a
    /// short end of a tail that was lost before the tap, Nagle's algorithm may have held it meanwhile.
    pub(super) fn flight_before(&self, event: &Event, at: i64) -> Base {
        if self.is_full_until_late(event, at) {
            return self.window_wait(92, &[]);
        }
        if let Some(late) = self.written(State::App) {
            return late;
        }
        let is_short = i64::from(event.len) < self.terms.mss;
        if self.progress.tail_probed && is_short && self.waited_for_short() {
            let (state, alternative) = (State::LastFlight, &[State::NagleDelack] as &[_]);
            return Base::Fixed { state, confidence: 60, alternative };
        }
        if let Some(pace) = self.slow_pace(at, &[State::LocalQdisc, State::App]) {
            return pace;
        }
        // Away from the sender it may be the tail of the transfer, sent again: that was lost before the tap.
        let app_paused = self.terms.tap_at_sender && self.transfers.goes_on(at);
        Base::sure(if app_paused { State::App } else { State::LastFlight }, 95)
    }

    /// Whether the last short segment was acknowledged since the sender stopped.
    fn waited_for_short(&self) -> bool {
        let una_then = self.flight.nxt - self.stop.evidence.in_flight;
        (una_then + 1..=self.flight.una).contains(&self.sends.short.0)
    }
}
