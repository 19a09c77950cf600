//! What replaces send times at a receiver of a sender without time stamps: a link's packets come evenly, and a queue
//! delays repairs.
//!
//! Nothing proves a link there, for a sender that spaces its packets looks the same. It is likely if nothing came faster,
//! if segments are full, and if either the repairs waited in a queue or a round trip holds several packets of it and
//! the window is no limit (a window of one burst a round trip comes evenly, too).

use std::collections::VecDeque;

use super::stretch::Scale;
use crate::clocks::TapTime;
use crate::flow::event::Event;
use crate::measure::sketch::Sketch;
use crate::offsets::Offset;

/// Of four packets, those faster than the link have to be the fewer.
const MOST_FASTER: f64 = 0.5;
/// The share of the bytes that come in full segments.
const FULL_SEGMENTS: f64 = 0.9;
/// Packets that a round trip holds.
const LEAST_PACKETS: f64 = 4.0;
/// A repair later than the round trip by this many packets waited in a queue.
const LATE_PACKETS: f64 = 3.0;
/// Duplicate ACKs that ask for a repair (RFC 5681 section 3.2).
const DUPLICATES: u32 = 3;
/// Repairs that may be under way. Ours: ACKs ask for one hole after the other.
const MOST_ASKED: usize = 16;

/// What is known of a direction without time stamps.
#[derive(Clone, Debug, Default)]
pub(super) struct Evenness {
    bytes: u64,
    full: u64,
    /// The ACK that came last, and how often it came again.
    last: Option<(Offset, u32)>,
    /// What was asked for, and when.
    asked: VecDeque<(Offset, TapTime)>,
    /// From then to its arrival, and the windows, in bytes.
    repairs: Sketch,
    windows: Sketch,
}

impl Evenness {
    /// Data arrived.
    pub(super) fn on_data(&mut self, event: &Event, mss: i64) {
        let length = i64::from(event.len);
        self.bytes += u64::from(event.len);
        self.full += (length - length % mss.max(1)) as u64;
        let asked = self.asked.iter().position(|asked| asked.0 == event.seq);
        if let Some((_, since)) = asked.and_then(|at| self.asked.remove(at)) {
            self.repairs.push(event.tap - since);
        }
    }

    /// The receiver answered; its windows are scaled by `shift`.
    pub(super) fn on_ack(&mut self, event: &Event, shift: u8) {
        self.windows.push(i64::from(event.window) << shift.min(14));
        if event.len > 0 {
            return;
        }
        let again = match self.last {
            Some((ack, again)) if ack == event.ack => again + 1,
            _ => 0,
        };
        self.last = Some((event.ack, again));
        if again == DUPLICATES {
            if self.asked.len() == MOST_ASKED {
                self.asked.pop_front();
            }
            self.asked.push_back((event.ack, event.tap));
        }
    }

    /// Whether what came at a rate of `scale` came through a link; this share of it came faster.
    pub(super) fn is_a_links(&self, scale: &Scale, faster: f64) -> bool {
        let Scale { per, packet, terms } = *scale;
        let late = self.repairs.quantile(500).map_or(0.0, |time| time as f64 - terms.trip);
        let waited = late > LATE_PACKETS * packet;
        let window = self.windows.quantile(500).unwrap_or(0) as f64;
        let held = terms.trip / per;
        faster < MOST_FASTER
            && self.full as f64 >= FULL_SEGMENTS * self.bytes as f64
            && (waited || held >= LEAST_PACKETS * packet / per && held <= window / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::ACK;
    use crate::measure::link::gap::Terms;

    const MS: i64 = 1_000_000;

    /// A link of 1,000 bytes a millisecond, and a round trip that holds this many packets of that size.
    fn scale(packets: i64) -> Scale {
        let terms = Terms { trip: (packets * MS) as f64, ..Terms::default() };
        Scale { per: 1_000.0, packet: MS as f64, terms }
    }

    fn data(seq: i64, at: i64, len: u32) -> Event {
        Event { seq: Offset::at(seq), tap: TapTime(at * MS), len, ..Event::default() }
    }

    fn ack(ack: i64, at: i64) -> Event {
        Event {
            ack: Offset::at(ack),
            tap: TapTime(at * MS),
            window: 50_000,
            bits: ACK,
            ..Event::default()
        }
    }

    /// Twenty segments of this many bytes, and ACKs with a window of 50,000.
    fn plain(len: u32) -> Evenness {
        let mut even = Evenness::default();
        for number in 0..20 {
            even.on_data(&data(number * 1_000, number, len), 1_000);
            even.on_ack(&ack(number * 1_000, number), 0);
        }
        even
    }

    #[test]
    fn even_arrivals_of_full_segments_are_a_links_if_a_round_trip_holds_some() {
        assert!(plain(1_000).is_a_links(&scale(4), 0.0));
        assert!(!plain(1_000).is_a_links(&scale(3), 0.0), "a burst a round trip looks as even");
        assert!(!plain(1_000).is_a_links(&scale(26), 0.0), "the window may be the limit");
        assert!(!plain(900).is_a_links(&scale(4), 0.0), "segments that are not full");
        assert!(!plain(1_000).is_a_links(&scale(4), 0.5), "much came faster");
    }

    #[test]
    fn a_repair_that_waited_shows_a_queue() {
        let repaired = |late: i64| {
            let mut even = plain(1_000);
            (0..4).for_each(|again| even.on_ack(&ack(7_000, 30 + again), 0));
            even.on_data(&data(7_000, 33 + 2 + late, 1_000), 1_000);
            even.is_a_links(&scale(2), 0.0)
        };
        assert!(repaired(4) && !repaired(3));
    }
}
