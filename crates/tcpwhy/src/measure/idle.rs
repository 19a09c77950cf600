//! Did the sender restart from a small window after idling?
//!
//! Linux halves `cwnd` once per RTO of idle time, down to the initial window
//! (`tcp_cwnd_restart`, when `tcp_slow_start_after_idle` is 1; RFC 5681 §4.1). The verdict
//! compares the first flight after the pause with the one before it (limits-method section 5).

use crate::clocks::StackTime;
use crate::flow::event::{Event, TS};
use crate::offsets::Offset;
use crate::report::IdleRestart;
use crate::segments::Segments;

/// Most pauses reported of one direction.
const MAX_REPORTED: usize = 256;

/// Segments that a sender starts with after a timeout (RFC 5681 section 3.1; Linux `tcp_enter_loss`).
const LOSS_WINDOW: u64 = 1;

/// A pause that is being judged.
#[derive(Clone, Copy, Debug)]
struct Pause {
    at: StackTime,
    idle: i64,
    halvings: u32,
    cwnd_before: Segments,
    /// What the first frame after it echoes; the burst is what echoes the same, for nothing of
    /// it was acknowledged before.
    echo: Option<u32>,
    start: Offset,
    end: Offset,
    segments: Segments,
}

/// Watches one direction's pauses.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleWatch {
    quiet_since: Option<(StackTime, i64)>,
    pause: Option<Pause>,
    pub(crate) reported: Vec<IdleRestart>,
}

/// What a pause's verdict means for the congestion window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Restarted {
    /// The window the sender had before.
    pub(crate) before: Segments,
    /// What it sent at once.
    pub(crate) segments: Segments,
}

impl IdleWatch {
    /// Everything was acknowledged at `at`.
    pub(crate) fn on_quiet(&mut self, at: StackTime, rto: i64) {
        self.quiet_since = Some((at, rto));
    }

    /// New data after nothing was in flight; `cwnd_before` the largest flight so far,
    /// `last_send` the time of the last data before. Whether this
    /// pause is long enough to matter.
    pub(crate) fn on_send(
        &mut self,
        at: StackTime,
        event: &Event,
        last_send: StackTime,
        cwnd_before: Segments,
    ) -> bool {
        let Some((since, rto)) = self.quiet_since.take() else { return false };
        let idle = at - since;
        let unsent = at - last_send;
        if unsent <= rto {
            return false;
        }
        // `tcp_cwnd_restart` takes off an RTO, then halves once for each that is left and begun;
        // it counts from the last send.
        let halvings = ((unsent - 1) / rto.max(1)).clamp(0, 63) as u32;
        let echo = event.has(TS).then_some(event.tsecr);
        let (start, end) = (event.seq, event.seq);
        self.pause = Some(Pause {
            at,
            idle,
            halvings,
            cwnd_before,
            echo,
            start,
            end,
            segments: Segments::NONE,
        });
        true
    }

    /// Takes a frame after the pause; whether it still belongs to the first burst. `released` says
    /// that an ACK let it out, for captures without timestamps.
    pub(crate) fn extend(
        &mut self,
        event: &Event,
        segments: Segments,
        mss: i64,
        released: bool,
    ) -> bool {
        let Some(pause) = &mut self.pause else { return false };
        let same = match pause.echo {
            Some(echo) => event.has(TS) && event.tsecr == echo,
            None => !released,
        };
        if same {
            // Frames the listing left out within the burst count by their bytes.
            let skipped = (event.seq - pause.end).max(0);
            pause.segments += segments;
            pause.segments += Segments::new((skipped + mss - 1) as u64 / mss.max(1) as u64);
            pause.end = pause.end.max(event.end());
        }
        same
    }

    /// The first burst is over, ended by the congestion window if by a window at all: `full`. `initial` is the initial window as
    /// seen at the connection's start.
    pub(crate) fn judge(&mut self, full: bool, initial: Option<Segments>) -> Option<Restarted> {
        let pause = self.pause.take()?;
        let (segments, bytes) = (pause.segments.get(), pause.end - pause.start);
        let before = pause.cwnd_before.get();
        // Linux and RFC 6928: 10 segments, where the connection's own start did not show it.
        let initial_window = initial.map_or(10, Segments::get);
        let allowed = initial_window.max(before >> pause.halvings) + 1;
        let (verdict, reason) = if before < 2 * initial_window {
            (
                "not_applicable",
                format!(
                    "the flight before was {before} segments, less than two initial windows of {initial_window}"
                ),
            )
        } else if segments == LOSS_WINDOW && segments < initial_window && full {
            (
                "not_applicable",
                format!(
                    "{segments} segment is what a timeout leaves, or all there was; a restart leaves {initial_window}"
                ),
            )
        } else if segments <= allowed && full {
            (
                "on",
                format!(
                    "the first flight stopped at {segments} segments; after {} halvings of at least {} Linux allows {allowed}",
                    pause.halvings, before
                ),
            )
        } else if segments > 2 * initial_window && pause.halvings >= 3 && segments > allowed {
            (
                "off",
                format!("{segments} segments at once, more than the {allowed} a restart allows"),
            )
        } else if !full {
            ("unknown", format!("{segments} segments, which no congestion window need have ended"))
        } else {
            (
                "unknown",
                format!(
                    "{segments} segments fit both, after an idle time of {} RTO",
                    pause.halvings
                ),
            )
        };
        if self.reported.len() < MAX_REPORTED {
            self.reported.push(IdleRestart {
                at_ns: pause.at.0,
                idle_ns: pause.idle,
                verdict: verdict.to_owned(),
                reason,
                segments,
                bytes: bytes.max(0) as u64,
                cwnd_before: Some(before),
            });
        }
        (verdict == "on")
            .then_some(Restarted { before: pause.cwnd_before, segments: pause.segments })
    }

    /// Whether a pause waits for its first flight to end.
    pub(crate) fn is_judging(&self) -> bool {
        self.pause.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pause of a second is taken for after a window of 56 segments, if `segments` went out at first and more
    /// waited for an ACK; the connection began with `initial`.
    fn verdict(segments: u64, initial: u64) -> String {
        let mut watch = IdleWatch::default();
        watch.on_quiet(StackTime(0), 200_000_000);
        let event = Event { len: 1448, ..Event::default() };
        assert!(watch.on_send(StackTime(1_000_000_000), &event, StackTime(0), Segments::new(56)));
        watch.extend(&event, Segments::new(segments), 1448, false);
        watch.judge(true, Some(Segments::new(initial)));
        watch.reported[0].verdict.clone()
    }

    #[test]
    fn a_first_flight_of_one_segment_is_no_restarts() {
        assert_eq!(
            verdict(1, 10),
            "not_applicable",
            "a timeout, whose tail was lost before the tap"
        );
        assert_eq!(verdict(2, 10), "on");
        assert_eq!(verdict(1, 1), "on", "all a new connection began with");
        assert_eq!(verdict(11, 10), "on");
        assert_eq!(verdict(12, 10), "unknown");
    }
}
