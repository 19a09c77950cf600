//! Which congestion window would explain what was sent?
//!
//! A capture shows flights, not `cwnd`. The replay runs Linux's slow start (both sampling rules)
//! beside the capture, ACK by ACK, and lets each hypothesis send what its window, the receiver's
//! window and the data at hand allow. A hypothesis that would have allowed less than was sent is
//! dead. While one is alive its window is exact; once slow start has ended the window is known
//! only from below, by the flights.
//!
//! ACKs are taken in batches: at a tap behind a delay the packets that several ACKs released
//! arrive together, so the batch's sends are dealt out to its ACKs as the kernel would have.

use crate::cc::slow_start::{SampleRule, SlowStart};
use crate::limits::sense::{LINUX_INITIAL_WINDOW, SLACK};
use crate::offsets::Offset;
use crate::report::Cwnd;
use crate::segments::Segments;

/// An ACK as the replay needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    /// Segments acknowledged since the connection began.
    pub(crate) una: u64,
    /// Highest byte the receiver allows.
    pub(crate) window_end: Offset,
}

/// A captured frame of data: the stack handed it down whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameEnd {
    /// Segments sent up to its end.
    pub(crate) segments: u64,
    /// Its last byte.
    pub(crate) byte: Offset,
}

/// Windows that may explain a sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    alive: Vec<SlowStart>,
    una: u64,
    /// Position up to which the hypotheses have sent.
    nxt: u64,
    started: bool,
    /// The first flight did not fill the window: its size is assumed, and may prove larger.
    assumed: bool,
    exited: bool,
}

impl Replay {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.alive = super::emptied(&mut old.alive);
    }

    /// Whether slow start has not ended, as far as is known.
    pub(crate) fn in_slow_start(&self) -> bool {
        !self.exited
    }

    /// The first flight (or the first after a restart) ends at `nxt` with `una` acknowledged;
    /// `full` if more was waiting to be sent.
    pub(crate) fn start(&mut self, una: u64, nxt: u64, full: bool) {
        let flight = nxt.saturating_sub(una).max(1);
        let cwnd = if full { flight } else { flight.max(LINUX_INITIAL_WINDOW) };
        self.alive.clear();
        self.alive
            .extend([SampleRule::Old, SampleRule::New].map(|rule| SlowStart::new(rule, cwnd)));
        for window in &mut self.alive {
            window.on_sent(una, nxt);
        }
        (self.una, self.nxt, self.started, self.exited) = (una, nxt, true, false);
        self.assumed = !full;
    }

    /// Whether a first flight was taken.
    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Takes a batch of ACKs and the frames of new data that were sent after them, up to `nxt`.
    /// `at_edge` if the receiver's window stopped them: then a flight larger than an assumed window
    /// tells that the window is larger, not how large.
    pub(crate) fn push(&mut self, acks: &[Ack], frames: &[FrameEnd], nxt: u64, at_edge: bool) {
        if self.exited {
            self.nxt = nxt;
            return;
        }
        let (una, sent) = (self.una, self.nxt);
        self.alive.retain_mut(|window| step(window, una, sent, acks, frames, nxt));
        if let Some(last) = acks.last() {
            self.una = last.una.max(self.una);
        }
        self.nxt = nxt;
        if self.started && self.alive.is_empty() {
            if self.assumed {
                self.start(self.una, nxt, !at_edge);
            } else {
                self.exited = true;
            }
        }
    }

    /// Slow start ended: from here on only flights tell.
    pub(crate) fn exit(&mut self) {
        self.exited = true;
        self.alive.clear();
    }

    /// The window, given `flight` segments in flight after a stop. While hypotheses live they
    /// bound it; else the flight does from below.
    pub(crate) fn cwnd(&self, flight: Segments) -> Cwnd {
        let flight = flight.get();
        let windows = self.alive.iter().map(|w| w.cwnd);
        let (low, high) = (windows.clone().min(), windows.max());
        match (low, high) {
            (Some(_), Some(_)) if self.assumed => {
                Cwnd { low: Some(flight), high: None, best: None }
            }
            (Some(low), Some(high)) => Cwnd {
                low: Some(low),
                high: Some(high),
                best: Some(if low >= flight { low } else { high }),
            },
            _ => Cwnd { low: (flight > 0).then_some(flight), high: None, best: None },
        }
    }
}

/// One hypothesis through a batch; `false` if it would not have sent this much. A frame goes out
/// when the whole of it fits both windows: the stack builds it (`tcp_write_xmit`) for what is
/// allowed at that moment, so a frame is never the work of two ACKs.
fn step(
    window: &mut SlowStart,
    mut una: u64,
    mut sent: u64,
    acks: &[Ack],
    frames: &[FrameEnd],
    nxt: u64,
) -> bool {
    let mut frames = frames.iter().peekable();
    for ack in acks {
        let acked = ack.una.saturating_sub(una);
        if acked > 0 {
            window.on_ack(acked);
            una = ack.una;
        }
        let before = sent;
        while let Some(frame) =
            frames.next_if(|f| f.segments <= una + window.cwnd && f.byte <= ack.window_end)
        {
            sent = frame.segments.max(sent);
        }
        if sent > before {
            window.on_sent(una, sent);
        }
    }
    if nxt > sent {
        if nxt > una + window.cwnd + SLACK {
            return false;
        }
        window.on_sent(una, nxt);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Offset = Offset::MAX;

    fn frames(ends: &[u64]) -> Vec<FrameEnd> {
        ends.iter().map(|end| FrameEnd { segments: *end, byte: Offset::at(*end as i64) }).collect()
    }

    #[test]
    fn frames_go_out_whole_so_a_receive_limited_round_stops_growth() {
        // Rounds of worked-example.md in segments (one byte each here), its ACKs and frames. In
        // round 5 the second frame does not fit until the third ACK, so the use of the window
        // never exceeds 72 and then falls to 55: the first ACK of round 6 grows nothing under
        // the old rule (kernel 4.18), nor under the new one: 144 + 17 = 161; ungated it would be 199.
        let mut replay = Replay::default();
        replay.start(0, 10, true);
        let ack = |una, window_end| Ack { una, window_end };
        replay.push(&[ack(10, OPEN)], &frames(&[15, 20, 25, 30]), 30, false);
        assert_eq!(replay.cwnd(Segments::new(20)).best, Some(20));
        replay.push(&[ack(30, Offset::at(62))], &frames(&[32, 43, 54, 62]), 62, false);
        assert_eq!(replay.cwnd(Segments::new(32)).best, Some(40));
        let round4 = frames(&[79, 84, 101, 106, 126, 128, 134]);
        replay.push(&[ack(54, Offset::at(140)), ack(62, Offset::at(142))], &round4, 134, false);
        assert_eq!(replay.cwnd(Segments::new(72)).best, Some(72));
        let round5 = [
            ack(79, Offset::at(170)),
            ack(84, Offset::at(171)),
            ack(116, Offset::at(182)),
            ack(128, Offset::at(186)),
            ack(134, Offset::at(189)),
        ];
        replay.push(&round5, &frames(&[150, 172, 189]), 189, false);
        assert_eq!(replay.cwnd(Segments::new(55)).best, Some(144));
        let round6 = frames(&[195, 217, 239, 279, 282, 325, 350]);
        replay.push(&[ack(172, OPEN), ack(189, OPEN)], &round6, 350, false);
        assert_eq!(
            replay.cwnd(Segments::new(161)),
            Cwnd { low: Some(161), high: Some(161), best: Some(161) }
        );
    }

    #[test]
    fn a_flight_that_the_receiver_stopped_bounds_an_assumed_window_from_below() {
        let mut replay = Replay::default();
        // The first flight filled the receiver's window: 10 is assumed, and 45 were sent.
        replay.start(0, 45, false);
        let sent: Vec<u64> = (46..=176).collect();
        replay.push(&[Ack { una: 45, window_end: Offset::at(176) }], &frames(&sent), 176, true);
        assert_eq!(
            replay.cwnd(Segments::new(131)),
            Cwnd { low: Some(131), high: None, best: None }
        );
        // Now nothing but the window stops it.
        let sent: Vec<u64> = (177..=176 + 400).collect();
        replay.push(&[Ack { una: 176, window_end: OPEN }], &frames(&sent), 576, false);
        assert_eq!(replay.cwnd(Segments::new(400)).best, Some(400));
    }

    #[test]
    fn a_flight_beyond_the_window_ends_the_replay() {
        let mut replay = Replay::default();
        replay.start(0, 10, true);
        let sent: Vec<u64> = (11..=33).collect();
        replay.push(&[Ack { una: 10, window_end: OPEN }], &frames(&sent), 10 + 20 + 3, false);
        assert!(!replay.in_slow_start());
        assert_eq!(replay.cwnd(Segments::new(23)).low, Some(23));
    }
}
