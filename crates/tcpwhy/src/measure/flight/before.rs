//! What was sent before the capture began, and is in flight when it does.
//!
//! The first ACK tells where the flight begins, SACK blocks and the first new byte how far it reached. Each segment
//! gets an entry of its own, for any may be retransmitted.

use super::{Flight, MAX_ENTRIES, Sent, UNSEEN, Volley};
use crate::clocks::StackTime;
use crate::offsets::Offset;

/// Beside [`UNSEEN`]: it was sent before the capture began.
pub(super) const BEFORE: u8 = 8;

impl Flight {
    /// What lies between `ack` and `una` was sent before the capture. Its oldest was sent at the first of `times`, its
    /// newest at the other. A flight that reaches further back than is kept is left out.
    pub(crate) fn reach_back(&mut self, ack: Offset, times: (StackTime, StackTime), mss: i64) {
        let (upto, mss) = (self.una, mss.max(1));
        let Some(segments) = segments_between(ack, upto, mss) else { return };
        let segments_to = self.segments_to(upto);
        for entry in &mut self.entries {
            entry.first.segments_to += segments;
            entry.first.flight_then += upto - ack;
        }
        self.segments_to_nxt += segments;
        self.una = ack;
        for number in (0..segments).rev() {
            let sent = unseen((ack, upto), (number, segments), times, mss);
            let segments_to = segments_to + number + 1;
            // As much was in flight with it, as ACKs clock it.
            let sent = Sent { segments_to, flight_then: upto - ack, ..sent };
            self.entries.push_front(Volley::of(sent));
        }
    }

    /// Whether the newest in flight was sent before the capture.
    pub(crate) fn ends_before(&self) -> bool {
        self.entries.back().is_some_and(|newest| newest.first.flags & BEFORE != 0)
    }

    /// What lies between `nxt` and `end` was sent before the capture.
    pub(crate) fn send_before(&mut self, end: Offset, times: (StackTime, StackTime), mss: i64) {
        let (from, mss) = (self.nxt, mss.max(1));
        let Some(segments) = segments_between(from, end, mss) else { return };
        for number in 0..segments {
            let sent = self.behind_nxt(unseen((from, end), (number, segments), times, mss));
            (self.nxt, self.segments_to_nxt) = (sent.end, sent.segments_to);
            let sent = Sent { flight_then: end - self.una, ..sent };
            self.entries.push_back(Volley::of(sent));
        }
    }
}

/// How many segments lie between the two, if there are some, and no more than are kept.
fn segments_between(from: Offset, to: Offset, mss: i64) -> Option<u64> {
    let bytes = u64::try_from(to.checked_since(from)?).ok().filter(|bytes| *bytes > 0)?;
    let segments = bytes.div_ceil(mss.unsigned_abs());
    (segments <= (MAX_ENTRIES / 2) as u64).then_some(segments)
}

/// The segment `number` of this many between two offsets.
fn unseen(
    (from, to): (Offset, Offset),
    (number, segments): (u64, u64),
    (oldest, newest): (StackTime, StackTime),
    mss: i64,
) -> Sent {
    let start = from + number as i64 * mss;
    let at = oldest + (newest - oldest) / segments as i64 * number as i64;
    let flags = UNSEEN | BEFORE;
    Sent { start, end: to.min(start + mss), at, segments: 1, flags, ..Sent::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::Event;
    use crate::flow::event::block;
    use crate::segments::Segments;

    const MSS: i64 = 1_000;

    /// Two segments that the capture met, from 10,000 on, and what lay before them.
    fn midway(ack: Offset) -> Flight {
        let mut flight = Flight::default();
        flight.restart(Offset::at(10_000));
        for number in 0..2 {
            let event =
                Event { seq: Offset::at(10_000 + number * MSS), len: 1_000, ..Event::default() };
            flight.send_new(Sent::of(&event, StackTime(50), Segments::new(1)), MSS);
        }
        flight.reach_back(ack, (StackTime(10), StackTime(40)), MSS);
        flight
    }

    #[test]
    fn what_the_first_ack_does_not_cover_is_in_flight_and_not_missing() {
        let mut flight = midway(Offset::at(7_500));
        assert_eq!(
            (flight.una, flight.outstanding(), flight.outstanding_segments()),
            (Offset::at(7_500), 4_500, Segments::new(5))
        );
        assert_eq!(
            (flight.oldest_at(), flight.unseen_segments()),
            (Some(StackTime(10)), Segments::NONE)
        );
        assert!(
            flight.is_unseen(Offset::at(7_500), Offset::at(8_500))
                && !flight.is_unseen(Offset::at(9_500), Offset::at(10_500))
        );
        let acked = flight.ack(Offset::at(11_000));
        assert_eq!(
            (acked.bytes, acked.unseen_segments, acked.newest_at),
            (3_500, Segments::NONE, Some(StackTime(50)))
        );
        assert_eq!(flight.outstanding_segments(), Segments::new(1));
    }

    #[test]
    fn an_ack_of_the_first_byte_reaches_no_further_back() {
        assert_eq!(midway(Offset::at(10_000)).outstanding(), 2_000);
        let far = midway(Offset::at(10_000 - (MAX_ENTRIES as i64) * MSS));
        assert_eq!(far.outstanding(), 2_000, "more than is kept");
    }

    #[test]
    fn what_sack_reports_was_sent() {
        let mut flight = Flight::default();
        flight.restart(Offset::at(5_000));
        flight.send_before(Offset::at(8_000), (StackTime(0), StackTime(30)), MSS);
        flight.send_before(Offset::at(7_000), (StackTime(0), StackTime(30)), MSS);
        assert_eq!(
            (flight.nxt, flight.outstanding_segments()),
            (Offset::at(8_000), Segments::new(3))
        );
        assert!(flight.ends_before());
        assert_eq!(flight.sack(&[block(6_000, 8_000)]), 2_000);
        assert_eq!(flight.ack(Offset::at(8_000)).unseen_segments, Segments::new(0));
    }
}
