//! Takes down what passes the tap, for pictures.

use std::collections::VecDeque;

use crate::clocks::TapTime;
use crate::flow::event::{self, Block, Event};
use crate::offsets::Offset;
use crate::report::{Answered, Sent, Trail, Trip};

/// Segments whose ACK is waited for at most. Ours: a flight of 90 MB.
const OUT: usize = 1 << 16;

/// Blocks among which one is looked for that was told before. Ours: an ACK has up to four.
const TOLD: usize = 4;

/// The trails of both directions while their packets pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Trails([Way; 2]);

/// One direction.
#[derive(Clone, Debug, Default)]
struct Way {
    trail: Trail,
    /// Bytes that have passed, and those that were acknowledged.
    high: Offset,
    acked: Offset,
    edge: Offset,
    /// Ends of segments that are not yet acknowledged, and when they passed.
    out: VecDeque<(Offset, TapTime)>,
    /// Up to here nothing tells a round trip: it was repeated (Karn's rule, RFC 6298 section 3).
    repeated: Offset,
}

impl Trails {
    /// An event passes; `shift` is that of the window it announces.
    pub(super) fn push(&mut self, event: &Event, blocks: &[Block], shift: u8) {
        let side = event.side();
        if event.is_data() {
            self.0[side].sent(event);
        }
        if event.has(event::ACK) && !event.has(event::SYN) {
            self.0[1 - side].answered(event, blocks, shift);
        }
    }

    /// The trails, for good.
    pub(super) fn take(self) -> [Trail; 2] {
        self.0.map(|way| way.trail)
    }
}

impl Way {
    fn sent(&mut self, event: &Event) {
        let (from, to) = (event.seq, event.end());
        let mark = |from: Offset, to: Offset, flight| Sent {
            at_ns: event.tap.0,
            until_ns: event.tap.0,
            from: from.get(),
            to: to.get(),
            flight,
            packets: 1,
            frame: event.frame,
        };
        if from < self.high {
            let flight = self.high.since(self.acked);
            self.trail.late.push(mark(from, to.min(self.high), flight));
            self.repeated = self.repeated.max(self.high);
        }
        if to > self.high {
            let from = from.max(self.high);
            self.high = to;
            self.trail.sends.push(mark(from, to, to.since(self.acked)));
            if self.out.len() < OUT {
                self.out.push_back((to, event.tap));
            }
        }
    }

    fn answered(&mut self, event: &Event, blocks: &[Block], shift: u8) {
        let window = i64::from(event.window) << shift;
        let edge = event.ack.plus(window);
        for (from, to) in blocks.iter().filter(|block| block.0 >= event.ack) {
            self.sacked(event, from.get(), to.get());
        }
        let is_new = event.ack > self.acked;
        if is_new {
            self.acked = event.ack;
            self.trip(event);
        }
        // The data of the other direction repeats its ACK: that tells nothing.
        if is_new || edge != self.edge || self.trail.answers.list.is_empty() {
            self.edge = edge;
            self.trail.answers.push(Answered {
                at_ns: event.tap.0,
                until_ns: event.tap.0,
                acked: self.acked.get(),
                edge: edge.get(),
                window: (window, window),
                flight: self.high.since(self.acked).max(0),
                frame: event.frame,
            });
        }
    }

    fn trip(&mut self, event: &Event) {
        let mut last = None;
        while let Some((to, at)) = self.out.front().copied().filter(|out| out.0 <= event.ack) {
            last = Some((to, at));
            self.out.pop_front();
        }
        if let Some((to, at)) = last.filter(|last| last.0 > self.repeated) {
            debug_assert!(to <= event.ack);
            let took = event.tap.since(at).max(0);
            let (at_ns, until_ns) = (event.tap.0, event.tap.0);
            self.trail.trips.push(Trip { at_ns, until_ns, least_ns: took, most_ns: took });
        }
    }

    /// Each ACK repeats the last blocks: what is new of them is kept.
    fn sacked(&mut self, event: &Event, mut from: i64, to: i64) {
        let told = &self.trail.sacked.list;
        for known in told.iter().rev().take(TOLD) {
            if known.from <= from && from < known.to {
                from = known.to;
            }
        }
        if from < to {
            let (at_ns, until_ns, frame) = (event.tap.0, event.tap.0, event.frame);
            let mark = Sent { at_ns, until_ns, from, to, flight: 0, packets: 1, frame };
            self.trail.sacked.push(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::block;
    use crate::flow::event::{ACK, FROM_SERVER};

    fn data(at: i64, seq: i64) -> Event {
        Event {
            tap: TapTime(at),
            seq: Offset::at(seq),
            len: 100,
            bits: ACK | FROM_SERVER,
            ..Event::default()
        }
    }

    fn ack(at: i64, ack: i64, window: u16) -> Event {
        Event { tap: TapTime(at), ack: Offset::at(ack), window, bits: ACK, ..Event::default() }
    }

    fn trail(events: &[(Event, &[Block])]) -> Trail {
        let mut trails = Trails::default();
        for (event, blocks) in events {
            trails.push(event, blocks, 1);
        }
        let [_, server] = trails.take();
        server
    }

    #[test]
    fn segments_answers_and_round_trips_are_taken_down() {
        let trail = trail(&[
            (data(0, 0), &[]),
            (data(1, 100), &[]),
            (ack(20, 100, 500), &[]),
            (ack(21, 200, 500), &[]),
        ]);
        let sends: Vec<_> =
            trail.sends.list.iter().map(|mark| (mark.from, mark.to, mark.flight)).collect();
        assert_eq!(sends, [(0, 100, 100), (100, 200, 200)]);
        let answers: Vec<_> =
            trail.answers.list.iter().map(|mark| (mark.acked, mark.edge, mark.flight)).collect();
        assert_eq!(answers, [(100, 1100, 100), (200, 1200, 0)]);
        let trips: Vec<_> = trail.trips.list.iter().map(|mark| mark.least_ns).collect();
        assert_eq!(trips, [20, 20]);
    }

    #[test]
    fn a_repeat_is_apart_and_tells_no_round_trip() {
        let trail = trail(&[
            (data(0, 0), &[]),
            (data(1, 100), &[]),
            (ack(20, 0, 500), &[block(100, 200)]),
            (ack(21, 0, 500), &[block(100, 200)]),
            (data(40, 0), &[]),
            (ack(60, 200, 500), &[]),
        ]);
        assert_eq!(
            trail.late.list.iter().map(|mark| (mark.from, mark.to)).collect::<Vec<_>>(),
            [(0, 100)]
        );
        assert_eq!(trail.sacked.list.len(), 1, "what was told before is not told again");
        assert!(trail.trips.list.is_empty());
    }
}
