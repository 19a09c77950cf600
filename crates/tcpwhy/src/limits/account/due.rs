//! Judged time that is not booked yet: all packets of the narrowest link show whether it was busy meanwhile.
//!
//! A window, a buffer or a repair that ran beside a busy link cost nothing: the link could not have carried more. So
//! where it is proven to have been full, that is what the time was for ([`rule::link::while_full`]).

use std::collections::VecDeque;

use super::ledger::Interval;
use crate::limits::rule::{self, Verdict};
use crate::limits::sense::HELD_BACK;

/// When the link of a direction was full.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullLink {
    /// In order, apart from each other, in the report's time.
    pub(crate) spans: Vec<(i64, i64)>,
    /// It varied, or others had a part of it.
    pub(crate) varies: bool,
    /// That it is a link is proven, and not only likely.
    pub(crate) is_proven: bool,
    /// Its rate fell and came back.
    pub(crate) came_back: bool,
}

impl FullLink {
    /// `interval` in parts. Each part lies in a time when the link was full, or outside.
    fn part(&self, interval: &Interval) -> Vec<Interval> {
        if interval.end <= interval.start {
            return vec![interval.clone()];
        }
        let yields = |full: bool| {
            let Interval { state, sure, alternative, .. } = *interval;
            let verdict = Verdict { state, sure, alternative };
            let verdict = rule::link::by_what_came_later(verdict, self.came_back);
            if full {
                rule::link::while_full(verdict, (self.varies, self.is_proven))
            } else {
                verdict
            }
        };
        let from = self.spans.partition_point(|span| span.1 <= interval.start);
        let mut parts = Vec::new();
        let mut start = interval.start;
        let mut push = |start: &mut i64, end: i64, full: bool| {
            if end > *start {
                let Verdict { state, sure, alternative } = yields(full);
                let start = core::mem::replace(start, end);
                parts.push(Interval { start, end, state, sure, alternative, ..interval.clone() });
            }
        };
        for span in self.spans[from..].iter().take_while(|span| span.0 < interval.end) {
            push(&mut start, span.0.min(interval.end), false);
            push(&mut start, span.1.min(interval.end), true);
        }
        push(&mut start, interval.end, false);
        parts
    }
}

/// Intervals in order, held back or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Due {
    waiting: VecDeque<Interval>,
    /// Whether the link was full is not known yet.
    holds: bool,
    full: FullLink,
}

impl Due {
    /// Holds back what comes until the link is known.
    pub(crate) fn hold(&mut self) {
        self.holds = true;
    }

    /// The link is known: nothing is held back any more.
    pub(crate) fn release(&mut self, full: FullLink) {
        (self.holds, self.full) = (false, full);
    }

    /// Whether nothing changes what comes, or holds it back.
    pub(crate) fn passes(&self) -> bool {
        !self.holds && self.waiting.is_empty() && self.full.spans.is_empty()
    }

    /// Takes a judged interval, behind the others.
    pub(crate) fn push(&mut self, interval: Interval) {
        match self.waiting.back_mut().filter(|last| last.is_like(&interval)) {
            Some(last) => last.join(&interval),
            None => self.waiting.push_back(interval),
        }
    }

    /// What may be booked, in parts.
    pub(crate) fn next(&mut self) -> Option<Vec<Interval>> {
        if self.holds && self.waiting.len() <= HELD_BACK {
            return None;
        }
        self.waiting.pop_front().map(|interval| self.full.part(&interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::evidence::Evidence;
    use crate::report::State::{
        self, App, BandwidthSelfQueue, CwndAvoidance, Pacing, RecoveryLoss, ZeroWindow,
    };
    use crate::report::Sure;

    fn interval(start: i64, end: i64, state: State, alternative: &'static [State]) -> Interval {
        let evidence = Evidence::default();
        Interval { start, end, state, sure: Sure::Shown, alternative, evidence }
    }

    /// What is booked of these where the link was full in these `spans`.
    fn booked(of: &[Interval], spans: &[(i64, i64)]) -> Vec<(i64, i64, State)> {
        let mut due = Due::default();
        due.hold();
        for interval in of {
            due.push(interval.clone());
        }
        assert!(due.next().is_none(), "the link is not known");
        due.release(FullLink {
            spans: spans.to_vec(),
            varies: false,
            is_proven: true,
            came_back: false,
        });
        let parts = core::iter::from_fn(|| due.next()).flatten();
        parts.map(|part| (part.start, part.end, part.state)).collect()
    }

    #[test]
    fn what_ran_beside_a_full_link_cost_nothing() {
        let judged = [interval(0, 10, CwndAvoidance, &[]), interval(10, 30, RecoveryLoss, &[])];
        let told = booked(&judged, &[(5, 12), (20, 40)]);
        let link = BandwidthSelfQueue;
        let parts = [(0, 5, CwndAvoidance), (5, 10, link), (10, 12, link), (12, 20, RecoveryLoss)];
        assert_eq!(told, [&parts[..], &[(20, 30, link)]].concat());
    }

    #[test]
    fn a_program_that_wrote_nothing_and_a_shut_window_keep_their_names() {
        let judged = [interval(0, 10, App, &[]), interval(10, 20, ZeroWindow, &[])];
        assert_eq!(booked(&judged, &[(0, 20)]), [(0, 10, App), (10, 20, ZeroWindow)]);
        let eliminated = [interval(0, 10, App, &[Pacing])];
        assert_eq!(booked(&eliminated, &[(0, 20)]), [(0, 10, BandwidthSelfQueue)]);
    }

    #[test]
    fn beside_an_idle_link_nothing_changes() {
        let judged = [interval(0, 10, CwndAvoidance, &[])];
        assert_eq!(booked(&judged, &[(10, 20)]), [(0, 10, CwndAvoidance)]);
        assert_eq!(booked(&judged, &[]), [(0, 10, CwndAvoidance)]);
    }

    #[test]
    fn of_more_than_can_be_held_back_the_oldest_is_booked_as_it_stands() {
        let mut due = Due::default();
        due.hold();
        for at in 0..=HELD_BACK as i64 {
            let state = if at % 2 == 0 { CwndAvoidance } else { App };
            assert!(due.next().is_none());
            due.push(interval(at, at + 1, state, &[]));
        }
        assert_eq!(due.next().map(|parts| parts[0].start), Some(0));
        assert!(due.next().is_none());
    }
}
