//! What was lost before the tap, which sees only that it is missing.
//!
//! The packet that shows a hole may be the first of the next burst. Whether the burst before it lost its end or
//! that one its beginning, nobody knows here: chance takes either, what drops because too much is sent the
//! former. Halfway between, random losses look random and policers' do not. Ours: of 14 policers and 7 random losses
//! on a kernel in simulated time, seen from the receiver, five policers were told as random losses with the later
//! burst's flights, and two of the random losses were not told as such with the earlier one's.

use crate::clocks::StackTime;
use crate::offsets::Offset;
use std::collections::VecDeque;

use crate::flow::event::Block;
use crate::limits::sense::HOLES;
use crate::measure::flight::{Sent, UNSEEN};

/// Something that is missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) range: Block,
    /// When the last before it was sent.
    pub(crate) since: StackTime,
    /// What was in flight with it, if the burst before lost its end.
    pub(crate) flight: i64,
}

/// The newest of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(VecDeque<Hole>);

impl Holes {
    pub(crate) fn push(&mut self, hole: Hole) {
        if self.0.len() == HOLES {
            self.0.pop_front();
        }
        self.0.push_back(hole);
    }

    /// The hole that `offset` lies in.
    pub(crate) fn at(&self, offset: Offset) -> Option<&Hole> {
        self.0.iter().find(|hole| (hole.range.0..hole.range.1).contains(&offset))
    }

    /// What was in flight with `sent`: halfway between what it was if a burst lost its end, and if the next
    /// one lost its beginning.
    pub(crate) fn flight_with(&self, sent: &Sent) -> i64 {
        let hole = self.at(sent.start).filter(|_| sent.flags & UNSEEN != 0);
        hole.map_or(sent.flight_then, |hole| {
            hole.flight.max(sent.flight_then).midpoint(sent.flight_then)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::block;

    #[test]
    fn a_hole_follows_what_was_sent_before_it() {
        let mut holes = Holes::default();
        let hole = |start, end, since| Hole {
            range: block(start, end),
            since: StackTime(since),
            flight: 0,
        };
        holes.push(hole(10, 20, 5));
        holes.push(hole(30, 40, 7));
        let since = |holes: &Holes, offset| holes.at(Offset::at(offset)).map(|hole| hole.since.0);
        let told = [9, 10, 19, 20, 39].map(|offset| since(&holes, offset));
        assert_eq!(told, [None, Some(5), Some(5), None, Some(7)]);
        for start in 0..HOLES as i64 {
            holes.push(hole(100 + start, 101 + start, 9));
        }
        assert_eq!(since(&holes, 10), None, "the oldest go");
        assert_eq!(since(&holes, 100), Some(9));
    }

    #[test]
    fn what_a_burst_may_have_lost_at_its_end_flew_with_half_of_what_it_had_more() {
        let mut holes = Holes::default();
        holes.push(Hole { range: block(30, 40), since: StackTime(7), flight: 25 });
        let lost = Sent {
            start: Offset::at(30),
            end: Offset::at(40),
            flight_then: 15,
            flags: UNSEEN,
            ..Sent::default()
        };
        assert_eq!(holes.flight_with(&lost), 20);
        assert_eq!(holes.flight_with(&Sent { flags: 0, ..lost }), 15, "the tap saw it");
        assert_eq!(holes.flight_with(&Sent { flight_then: 26, ..lost }), 26);
    }
}
