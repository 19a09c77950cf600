//! When one side's bytes passed the tap, for what the other side acknowledges.
//!
//! Data that goes on from a packet is kept as it came ([`Follower`]): each ends as much later as the
//! one before it.

use crate::clocks::TapTime;
use crate::offsets::Offset;
use std::collections::VecDeque;

use super::drop_first;
use crate::flow::run::{Follower, Run};

/// Packets whose arrival is remembered: more than a second of distinct ticks.
pub(super) const MOST: usize = 2048;

/// Packets of one side that bring new bytes, in the order of these.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    runs: VecDeque<Arrived>,
    /// What is the own of the others of each run, in order.
    others: VecDeque<Follower>,
}

/// A packet, and `more` others that each end `len` bytes later.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    end: Offset,
    tap: TapTime,
    len: i64,
    more: usize,
}

impl Arrived {
    /// The end of the last.
    fn last_end(&self) -> Offset {
        self.end + self.more as i64 * self.len
    }

    /// How many of them end at `to` or before.
    fn upto(&self, to: Offset) -> usize {
        if to < self.end {
            0
        } else if to >= self.last_end() {
            1 + self.more
        } else {
            1 + ((to - self.end) / self.len) as usize
        }
    }
}

impl Arrivals {
    /// Forgets all, and keeps the room.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.others.clear();
    }

    /// A packet passed at `tap`, which ends at `end`: it is kept if none before it ended there.
    #[inline]
    pub(super) fn push(&mut self, end: Offset, tap: TapTime) {
        if self.runs.back().is_none_or(|last| last.last_end() < end) {
            self.make_room(1);
            self.runs.push_back(Arrived { end, tap, len: 0, more: 0 });
        }
    }

    /// The followers of what just passed did.
    pub(super) fn push_followers(&mut self, run: Run<'_>) {
        let len = i64::from(run.head.len);
        let left_out = run.rest().len().saturating_sub(MOST);
        let Some((first, others)) = run.rest()[left_out..].split_first() else { return };
        self.make_room(1 + others.len());
        let end = run.head.end() + (left_out as i64 + 1) * len;
        self.runs.push_back(Arrived { end, tap: first.tap, len, more: others.len() });
        self.others.extend(others);
    }

    /// Takes out those that end at `to` or before; when the last of them passed.
    #[inline]
    pub(super) fn take_upto(&mut self, to: Offset) -> Option<TapTime> {
        let mut last = None;
        while let Some(run) = self.runs.front()
            && let packets @ 1.. = run.upto(to)
        {
            last = self.pop(packets);
        }
        last
    }

    /// When the packet that ends at `end` passed, if it is among these. What SACK tells of is among the newest.
    pub(super) fn at_end(&self, end: Offset) -> Option<TapTime> {
        let mut others = self.others.len();
        for run in self.runs.iter().rev() {
            others -= run.more;
            if run.last_end() < end {
                return None;
            }
            if run.end == end {
                return Some(run.tap);
            }
            let packets = run.upto(end);
            if packets > 1 {
                let is_end = run.end + (packets as i64 - 1) * run.len == end;
                let own = self.others.get(others + packets - 2)?;
                return is_end.then_some(own.tap);
            }
        }
        None
    }

    /// Lets go of the oldest that are too many beside this many more.
    fn make_room(&mut self, more: usize) {
        let mut gone = (self.runs.len() + self.others.len() + more).saturating_sub(MOST);
        while let Some(run) = self.runs.front().filter(|_| gone > 0) {
            let packets = gone.min(1 + run.more);
            self.pop(packets);
            gone -= packets;
        }
    }

    /// Takes the first `packets` out of the oldest run, which has as many. Returns when the last of them passed.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    fn pop(&mut self, packets: usize) -> Option<TapTime> {
        let run = self.runs.front_mut()?;
        if run.more == 0 {
            return self.runs.pop_front().map(|alone| alone.tap);
        }
        let last = packets.checked_sub(2).and_then(|at| self.others.get(at));
        let last = last.map_or(run.tap, |own| own.tap);
        if packets > run.more {
            drop_first(&mut self.others, run.more);
            self.runs.pop_front();
        } else if let Some(own) = self.others.get(packets - 1) {
            (run.end, run.tap) = (run.end + packets as i64 * run.len, own.tap);
            run.more -= packets;
            drop_first(&mut self.others, packets);
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::Event;
    use proptest::prelude::*;

    /// Every packet by itself.
    #[derive(Default)]
    struct Naive(VecDeque<(Offset, TapTime)>);

    impl Naive {
        fn push(&mut self, end: Offset, tap: TapTime) {
            self.0.push_back((end, tap));
            self.0.drain(..self.0.len().saturating_sub(MOST));
        }

        fn at_end(&self, at: Offset) -> Option<TapTime> {
            self.0.iter().find(|(end, _)| *end == at).map(|(_, tap)| *tap)
        }

        fn take_upto(&mut self, to: Offset) -> Option<TapTime> {
            let came = self.0.partition_point(|(end, _)| *end <= to);
            self.0.drain(..came).next_back().map(|(_, tap)| tap)
        }
    }

    /// What comes next: a packet of this many bytes and its followers, then an ACK of this many bytes less than all.
    fn acts() -> impl Strategy<Value = (u32, usize, i64)> {
        (1..50_u32, prop_oneof![4 => 0..40_usize, 1 => 0..3000_usize], -10..4000_i64)
    }

    proptest! {
        #[test]
        fn runs_are_kept_as_their_packets_one_by_one(acts in prop::collection::vec(acts(), 1..40)) {
            let (mut runs, mut naive) = (Arrivals::default(), Naive::default());
            let (mut at, mut tap) = (Offset::FIRST, TapTime(0));
            for (len, more, unacked) in acts {
                let head = Event { seq: at, len, run: more as u32, ..Event::default() };
                let others = (1..=more as i64).map(|number| tap + 3 * number);
                let others: Vec<_> = others
                    .map(|tap| Follower { tap, frame: 0, id: 0, is_pushed: false })
                    .collect();
                runs.push(head.end(), tap);
                runs.push_followers(Run::new(&head, &others));
                for (number, tap) in (1..).zip(core::iter::once(tap).chain(others.iter().map(|o| o.tap))) {
                    naive.push(at + number * i64::from(len), tap);
                }
                (at, tap) = (head.run_end(), tap + 3 * more as i64 + 2);
                prop_assert_eq!(runs.at_end(at - unacked), naive.at_end(at - unacked));
                prop_assert_eq!(runs.take_upto(at - unacked), naive.take_upto(at - unacked));
            }
        }
    }
}
