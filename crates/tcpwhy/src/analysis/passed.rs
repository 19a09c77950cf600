//! The events of one side among those of both, and how to read them run by run.

use crate::clocks::{StackTime, TapTime};
use crate::flow::gathered::Gathered;
use crate::flow::run::{Place, Run};

/// Departures among which the one is looked for that made room for a send. Ours: two super-segments may stand
/// in the queue (`tcp_small_queue_check`), and what echoes an ACK leaves within the time of a few.
pub(super) const DEPARTED: usize = 16;

/// The events of one side, in capture order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed<'a> {
    /// Those of both sides.
    pub(crate) gathered: &'a Gathered,
    /// Which of them are this side's.
    pub(crate) which: &'a [u32],
}

impl<'a> Passed<'a> {
    /// The run at `at`, if there is one.
    #[inline]
    fn run(self, at: usize) -> Option<Run<'a>> {
        let event = self.gathered.events.get(*self.which.get(at)? as usize)?;
        Some(self.gathered.run(event))
    }

    /// The place of the event that is `events` before `place`, or of the first.
    pub(super) fn before(self, place: Place, mut events: usize) -> Place {
        let Place { mut run, of_next: mut here } = place;
        while events > here && run > 0 {
            events -= here;
            run -= 1;
            here = self.run(run).map_or(0, Run::len);
        }
        Place { run, of_next: here.saturating_sub(events) }
    }

    /// When the event before `place` passed the tap, if there is one.
    pub(super) fn tap_before(self, place: Place) -> Option<TapTime> {
        (place > Place::default()).then(|| Reader::at(self.before(place, 1), self).tap)
    }

    /// When the last runs before `place` passed the tap, at most [`DEPARTED`] and newest first: of each, its newest
    /// event that passed it by `time`, if one did.
    pub(super) fn departed_before(
        self,
        place: Place,
        time: TapTime,
    ) -> impl Iterator<Item = TapTime> {
        let here = self.run(place.run).filter(|_| place.of_next > 0);
        let here = here.map(|run| (run, place.of_next - 1));
        let earlier = (0..place.run).rev().map_while(move |at| self.run(at));
        let runs = here.into_iter().chain(earlier.map(|run| (run, run.rest().len())));
        runs.take(DEPARTED)
            .filter(move |(run, _)| run.tap(0) <= time)
            .map(move |(run, last)| run.tap(run.within(time).min(last)))
    }

    /// The place among the events of both sides of the one at `place`; behind all of them if there is
    /// none.
    pub(super) fn among_all(self, place: Place) -> Place {
        let run = self.which.get(place.run).map(|index| *index as usize);
        run.map_or(Place { run: self.gathered.events.len(), of_next: 0 }, |run| Place {
            run,
            ..place
        })
    }

    /// The place of the first event not before `place` among those of both sides.
    pub(crate) fn at_or_behind(self, place: Place) -> Place {
        let run = self.which.partition_point(|index| (*index as usize) < place.run);
        let is_here = self.which.get(run).is_some_and(|index| *index as usize == place.run);
        Place { run, of_next: if is_here { place.of_next } else { 0 } }
    }
}

/// Reads the events of one side from some place on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) passed: Passed<'a>,
    pub(super) place: Place,
    /// What is left of the run here, if there is one, and when its first event passed the tap; else never.
    pub(super) run: Option<Run<'a>>,
    pub(super) tap: TapTime,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn at(place: Place, passed: Passed<'a>) -> Self {
        let run = passed.run(place.run).and_then(|run| run.behind(place.of_next));
        Self { passed, place, run, tap: run.map_or(TapTime::MAX, |run| run.tap(0)) }
    }

    /// Goes behind the next `events`, or behind the last.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    pub(super) fn go_on(&mut self, mut events: usize) {
        while let Some(run) = self.run.filter(|_| events > 0) {
            if let Some(rest) = run.behind(events) {
                (self.run, self.tap) = (Some(rest), rest.tap(0));
                self.place.of_next += events;
                break;
            }
            events -= run.len();
            self.place = Place { run: self.place.run + 1, of_next: 0 };
            self.run = self.passed.run(self.place.run);
            self.tap = self.run.map_or(TapTime::MAX, |run| run.head.tap);
        }
    }

    /// When its first event is at the host that it goes to.
    #[inline]
    pub(super) fn comes(&self) -> StackTime {
        self.tap.at_stack()
    }

    /// The runs from here on.
    pub(super) fn runs(self) -> impl Iterator<Item = Run<'a>> {
        let later = self.place.run + 1..self.passed.which.len();
        self.run.into_iter().chain(later.map_while(move |at| self.passed.run(at)))
    }
}

/// A place among the arrivals, for the newest before a send to be found from the last send's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    pub(super) at: Place,
    /// When the arrival before it passed the tap, if there was one.
    pub(super) before: Option<TapTime>,
}

impl Near {
    /// Goes to `at` if that is further on.
    pub(super) fn skip_to(&mut self, at: Place, arrivals: Passed<'_>) {
        if at > self.at {
            *self = Self { at, before: arrivals.tap_before(at) };
        }
    }
}
