//! In which order a sender's packets left it.
//!
//! The IP identification tells where it counts up ([`ipid`]); else the timestamp does, which
//! cannot tell within one tick of its clock.

use crate::flow::event::{Event, TS};
use crate::measure::ipid::{self, Step};
use crate::offsets::Offset;
use crate::segments::Segments;

/// What was seen of one sender's numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendOrder {
    ids: ipid::Ledger,
    newest_stamp: Option<u32>,
    /// Segments missing by the ledger that no hole in sequence explains.
    pub(crate) unexplained: u64,
}

impl SendOrder {
    /// Learns whose counter the identifications are.
    pub(crate) fn is_counted_by(&mut self, counter: ipid::Counter) {
        self.ids.is_of(counter);
    }

    /// Whether `event` has the newest timestamp that was seen, or none.
    pub(crate) fn is_of_newest_tick(&self, event: &Event) -> bool {
        !event.has(TS) || self.newest_stamp == Some(event.tsval)
    }

    /// Whether what is lost before the tap is missing in the sender's numbers.
    pub(crate) fn counts_packets(&self) -> bool {
        self.ids.is_believed()
    }

    /// The identification of the next packet, once one was seen.
    pub(crate) fn next_id(&self) -> Option<u16> {
        self.ids.next()
    }

    /// Takes `packets` of the newest tick that came in order, up to the one before identification `next`.
    pub(crate) fn go_on(&mut self, next: u16, packets: u32) {
        self.ids.go_on(next, packets);
    }

    /// What was taken so ends at this offset.
    pub(crate) fn reach(&mut self, end: Offset) {
        self.ids.reach(end);
    }

    /// Whether `event`, of `segments` on the wire, was sent after all others seen.
    pub(crate) fn push(&mut self, event: &Event, segments: Segments) -> Step {
        let by_id = self.ids.push(event, segments);
        if !event.has(TS) {
            return by_id;
        }
        let newest = self.newest_stamp.get_or_insert(event.tsval);
        let age = newest.wrapping_sub(event.tsval).cast_signed();
        if age < 0 {
            *newest = event.tsval;
        }
        match by_id {
            Step::Unknown if age > 0 => Step::Before,
            Step::Unknown if age < 0 => Step::After(0),
            known => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_tells_the_order_but_not_within_its_tick() {
        let mut order = SendOrder::default();
        let steps = [u32::MAX, u32::MAX, 0, u32::MAX, 1].map(|tsval| {
            order.push(&Event { tsval, bits: TS, ..Event::default() }, Segments::new(1))
        });
        assert_eq!(
            steps,
            [Step::Unknown, Step::Unknown, Step::After(0), Step::Before, Step::After(0)]
        );
    }
}
