//! Where lost packets were lost, seen from the link.
//!
//! A packet that was lost behind the link took its turn on it, so the gap in departures has room for it. One that found
//! the queue full took no turn, so what was behind it left at once. A queue that is empty does not overflow. Where nothing
//! was sent behind it for a while, the gap tells nothing; a queue as long as it ever was is then taken for a full one.

use crate::offsets::Offset;
use std::collections::VecDeque;

use super::gap::Lost;
use super::stretch::{SLACK_PACKETS, Stretch};

/// Gaps with losses whose copies may still come. Ours: 128 KB.
const MOST_GAPS: usize = 4096;

/// Lost packets that are listed one by one.
const MOST_LOST: usize = 4096;

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// The link's queue had no room for it, or it never came to the link.
    Before,
    /// It had its turn on the link and was lost behind it.
    Behind,
    /// The queue was empty, so that it did not overflow.
    Elsewhere,
}

/// A gap in which packets went missing.
#[derive(Clone, Copy, Debug)]
struct Holed {
    number: u64,
    chain: u64,
    /// The share of its lost packets for which there was room; `None` where nothing waited behind them.
    room: Option<f64>,
    /// When the packet before it left.
    from: f64,
}

/// What is known of lost packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    gaps: VecDeque<Holed>,
    /// The longest that a packet was on the link and in its queue.
    longest: f64,
    /// Lost before the link or in its queue, behind it, and elsewhere.
    pub(super) counts: [f64; 3],
    /// Of the first, those that found the queue at least half as long as it ever was.
    pub(super) full: f64,
    /// Offset of the data, and where it was lost.
    pub(super) told: Vec<(Offset, Place)>,
}

impl Places {
    /// A gap between departures.
    pub(super) fn push(&mut self, stretch: &Stretch, per: f64) {
        let gap = &stretch.gap;
        self.longest = self.longest.max(stretch.delay());
        if gap.sent <= gap.work {
            return;
        }
        let room = stretch.time() - f64::from(gap.work) * per;
        let room = room / (f64::from(gap.sent - gap.work) * per);
        let room = stretch.is_causal.then_some(room.clamp(0.0, 1.0));
        if self.gaps.len() == MOST_GAPS {
            self.gaps.pop_front();
        }
        let (number, chain, from) = (gap.number, u64::from(gap.chain), stretch.from);
        self.gaps.push_back(Holed { number, chain, room, from });
    }

    /// A packet turned out to be lost; the largest takes so long on the link.
    pub(super) fn on_lost(&mut self, lost: &Lost, packet: f64) {
        let behind = self.gaps.partition_point(|gap| gap.number <= lost.number);
        let gap = behind.checked_sub(1).and_then(|at| self.gaps.get(at));
        let Some(gap) = gap.filter(|gap| lost.number - gap.number < gap.chain) else { return };
        let waits = gap.from - lost.sent as f64;
        let place = match gap.room {
            Some(room) => {
                self.counts[0] += 1.0 - room;
                // What is lost on its way to the link finds any queue; what overflows it, a long one.
                if waits * 2.0 >= self.longest {
                    self.full += 1.0 - room;
                }
                self.counts[1] += room;
                if room < 0.5 { Place::Before } else { Place::Behind }
            }
            None if waits <= 0.0 => {
                self.counts[2] += 1.0;
                Place::Elsewhere
            }
            None if waits >= (self.longest - SLACK_PACKETS * packet).max(packet) => {
                self.counts[0] += 1.0;
                self.full += 1.0;
                Place::Before
            }
            None => return,
        };
        if self.told.len() < MOST_LOST {
            self.told.push((lost.seq, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::link::gap::Gap;

    const TURN: f64 = 1_000.0;

    /// A gap of two packets of a byte each. The first packet was lost. The gap begins at 10,000 and takes this many
    /// turns.
    fn gap(turns: f64, is_causal: bool) -> Stretch {
        let (from, to) = (10_000.0, 10_000.0 + turns * TURN);
        let gap = Gap { work: 1, sent: 2, packets: 1, chain: 2, number: 7, ..Gap::default() };
        Stretch { from, to, first: from, last: to - TURN, is_causal, gap }
    }

    fn place(stretch: &Stretch, sent: i64) -> Option<Place> {
        let mut places = Places { longest: 5.0 * TURN, ..Places::default() };
        places.push(stretch, TURN);
        places.on_lost(&Lost { number: 7, seq: Offset::FIRST, sent }, TURN);
        places.told.first().map(|told| told.1)
    }

    #[test]
    fn a_lost_packet_had_its_turn_or_found_no_room() {
        assert_eq!(place(&gap(2.0, true), 0), Some(Place::Behind));
        assert_eq!(place(&gap(1.0, true), 0), Some(Place::Before));
    }

    #[test]
    fn what_overflows_a_queue_finds_it_long() {
        let full = |sent| {
            let mut places = Places { longest: 8.0 * TURN, ..Places::default() };
            places.push(&gap(1.0, true), TURN);
            places.on_lost(&Lost { number: 7, seq: Offset::FIRST, sent }, TURN);
            (places.counts[0], places.full)
        };
        assert_eq!(full(2_000), (1.0, 1.0));
        assert_eq!(full(6_000), (1.0, 1.0));
        assert_eq!(full(6_001), (1.0, 0.0), "lost on its way to the link");
    }

    #[test]
    fn an_empty_queue_does_not_overflow_and_the_longest_may_have() {
        assert_eq!(place(&gap(30.0, false), 10_000), Some(Place::Elsewhere));
        assert_eq!(place(&gap(30.0, false), 5_500), Some(Place::Before));
        assert_eq!(place(&gap(30.0, false), 8_000), None, "the gap does not tell");
    }

    #[test]
    fn what_lies_in_no_gap_is_not_told_of() {
        let mut places = Places::default();
        places.push(&gap(1.0, true), TURN);
        for number in [6, 9] {
            places.on_lost(&Lost { number, seq: Offset::FIRST, sent: 0 }, TURN);
        }
        assert_eq!((places.told.len(), places.counts), (0, [0.0; 3]));
    }
}
