//! What was lost: where the flight stood then, and whether losses are a policer's.

use super::holes::Holes;
use crate::clocks::StackTime;
use crate::flow::event::Event;
use crate::limits::sense::LISTED;
use crate::measure::drops::{Drops, Flights};
use crate::measure::flight::{RETRANSMITTED, Sent, UNSEEN};
use crate::measure::loss::Lost;
use crate::measure::policer::Policer;
use crate::offsets::Offset;
use crate::report::InFlightAtLoss;

/// The losses of a direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) flights: Vec<InFlightAtLoss>,
    /// Lost originals, for the loss pattern.
    pub(crate) lost: Vec<Lost>,
    policer: Policer,
    drops: Drops,
    /// What was lost before the tap.
    pub(crate) holes: Holes,
}

impl Losses {
    /// An episode first repairs `original`, up to `seq`; with or without a queue that stood all the time.
    pub(super) fn on_first(&mut self, original: &Sent, seq: Offset, queued: bool, least_rtt: i64) {
        if self.flights.len() < LISTED {
            let seen = original.flags & UNSEEN == 0;
            self.flights.push(InFlightAtLoss {
                at_ns: original.at.0,
                bytes: self.holes.flight_with(original).max(0) as u64,
                frame: seen.then_some(original.frame),
            });
        }
        // A policer's credit was spent when the last before it had passed.
        let since = self.holes.at(original.start).map_or(original.at, |hole| hole.since);
        self.policer.on_loss(since, seq, queued, least_rtt);
    }

    /// `event` repeats at `now` what was lost; `original` is the first of it.
    pub(super) fn on_repair(
        &mut self,
        event: &Event,
        original: Option<&Sent>,
        now: StackTime,
        flights: Flights,
    ) {
        let first = original.filter(|original| original.flags & (RETRANSMITTED | UNSEEN) == 0);
        let dropped_at = first.map(|first| first.at);
        self.drops.on_repair((event.seq, event.end()), dropped_at, now, flights);
    }

    /// `original` is retransmitted for the first time, in this episode.
    pub(super) fn push(&mut self, original: &Sent, episode: u32) {
        if self.lost.len() < LISTED {
            let flight = self.holes.flight_with(original);
            let (at, position) = (original.at, original.segments_to);
            self.lost.push(Lost { at, position, flight, episode });
        }
    }

    /// Whether they are a policer's so far.
    pub(crate) fn are_policed(&self) -> bool {
        self.policed_rate().is_some() || self.policer.is_one()
    }

    /// The rate that the policer lets pass, in bytes of payload a second, where its drops tell.
    pub(crate) fn policed_rate(&self) -> Option<i64> {
        self.drops.rate()
    }
}
