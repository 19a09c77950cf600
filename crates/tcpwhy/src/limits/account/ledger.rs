//! The books: intervals in, conserved totals out.
//!
//! Question: does every nanosecond of the lifetime belong to exactly one state? The ledger takes
//! decided intervals in order, each starting where the last one ended, and keeps the totals, a
//! strip of at most 512 cells, the transfers' shares, and (when asked for) the intervals
//! themselves, neighbours of one state merged; of very many the longest of each state. It closes
//! whatever gap or overlap its caller leaves, so the sum is the lifetime by construction; the naive
//! twin in the tests checks it.

use core::cmp::Reverse;

use crate::limits::evidence::Evidence;
use crate::limits::sense::{INTERVALS, STRIP_CELLS, STRIP_RUNS, STRIP_SLICES};
use crate::report::{State, Strip as Slices, Sure, TimeIn};
use tcpwhy_words::units::Duration;

/// A decided interval.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) state: State,
    pub(crate) sure: Sure,
    pub(crate) alternative: &'static [State],
    pub(crate) evidence: Evidence,
}

impl Interval {
    fn length(&self) -> i64 {
        self.end - self.start
    }

    /// Goes on with `next`, which is like it and begins where it ends.
    pub(crate) fn join(&mut self, next: &Self) {
        self.end = next.end;
        // What one of them may be otherwise, both may be: the list of the less sure, or the longer.
        let doubt = |of: &Self| (Reverse(of.sure), of.alternative.len());
        if doubt(next) > doubt(self) {
            (self.sure, self.alternative) = (next.sure, next.alternative);
        }
        self.evidence.join(&next.evidence);
    }

    /// Whether both say the same. An undecided state is compared by what it may be.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.state == other.state
            && (self.state != State::Unknown || self.alternative == other.alternative)
    }
}

/// Books of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    keep: bool,
    cursor: i64,
    /// The lifetime, once known: nothing is booked beyond it.
    pub(crate) lifetime: Option<i64>,
    /// State of the newest interval.
    pub(crate) last: State,
    pub(crate) time_in: TimeIn,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) truncated: bool,
    /// Once some were left out: shorter ones of each state are.
    least: [i64; State::COUNT],
    strip: Strip,
}

impl Ledger {
    /// Empty books at time zero; `keep` the intervals too.
    pub(crate) fn new(keep: bool) -> Self {
        Self {
            keep,
            cursor: 0,
            lifetime: None,
            last: State::Unknown,
            time_in: TimeIn::default(),
            intervals: Vec::new(),
            truncated: false,
            least: [0; State::COUNT],
            strip: Strip::default(),
        }
    }

    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.strip.runs = crate::limits::sender::emptied(&mut old.strip.runs);
        core::mem::swap(&mut self.time_in, &mut old.time_in);
        self.time_in.clear();
    }

    /// Up to where time is accounted for.
    pub(crate) fn cursor(&self) -> i64 {
        self.cursor
    }

    /// Books `interval` from the cursor to its end; its start is where the last one ended.
    pub(crate) fn book(&mut self, mut interval: Interval) {
        interval.start = self.cursor;
        interval.end = interval.end.min(self.lifetime.unwrap_or(i64::MAX));
        if interval.end <= self.cursor {
            return;
        }
        self.cursor = interval.end;
        self.last = interval.state;
        self.time_in.add(interval.state, Duration(interval.end - interval.start));
        self.strip.add(interval.start, interval.end, interval.state);
        if self.keep {
            self.list(interval);
        }
    }

    /// Keeps `interval`, the newest: behind the one before it, or as a part of that.
    fn list(&mut self, interval: Interval) {
        let Some(last) = self.intervals.last_mut() else {
            self.intervals.push(interval);
            return;
        };
        if last.end == interval.start && last.is_like(&interval) {
            last.join(&interval);
            return;
        }
        if last.length() < self.least[last.state as usize] {
            self.intervals.pop();
        } else if self.intervals.len() == INTERVALS {
            self.thin();
        }
        self.intervals.push(interval);
    }

    /// Keeps half of the intervals: the longest of each state, of equal ones the earlier, and as many of each as of the
    /// others unless there are fewer. Findings rest on those of one state, however short they are beside others.
    fn thin(&mut self) {
        self.truncated = true;
        let mut by_state: Vec<usize> = (0..self.intervals.len()).collect();
        by_state.sort_unstable_by_key(|at| {
            let interval = &self.intervals[*at];
            (interval.state as usize, Reverse(interval.length()), *at)
        });
        let state_of = |at: &usize| self.intervals[*at].state;
        let mut states: Vec<&[usize]> =
            by_state.chunk_by(|a, b| state_of(a) == state_of(b)).collect();
        states.sort_by_key(|of_one| of_one.len());
        let mut kept = vec![false; self.intervals.len()];
        let (mut room, mut left) = (INTERVALS / 2, states.len());
        for of_one in states {
            let longest = &of_one[..of_one.len().min(room / left)];
            for at in longest {
                kept[*at] = true;
            }
            if let Some(last) = longest.last().filter(|_| longest.len() < of_one.len()) {
                self.least[state_of(last) as usize] = self.intervals[*last].length();
            }
            (room, left) = (room - longest.len(), left - 1);
        }
        let mut kept = kept.into_iter();
        self.intervals.retain(|_| kept.next().unwrap_or(true));
    }

    /// Books what is left of a lifetime of `end` as `state`.
    pub(crate) fn close(&mut self, end: i64, state: State) {
        if end > self.cursor {
            let evidence = Evidence::default();
            self.book(Interval {
                start: 0,
                end,
                state,
                sure: Sure::Possible,
                alternative: &[],
                evidence,
            });
        }
    }

    /// The state that held most time of each of `cells` slices of the lifetime.
    pub(crate) fn strip(&self, lifetime: i64) -> Slices {
        self.strip.slices(lifetime)
    }
}

/// Time by state in equal cells; the cells double in length when the lifetime outgrows them.
#[derive(Clone, Debug, Default)]
struct Strip {
    runs: Vec<(i64, State)>,
    cells: Vec<TimeIn>,
    cell: i64,
}

impl Strip {
    /// Short lifetimes are kept as runs: cells are laid only once there are more runs than cells.
    fn add(&mut self, start: i64, end: i64, state: State) {
        if self.cells.is_empty() {
            match self.runs.last_mut() {
                Some(last) if last.1 == state => last.0 = end,
                _ => self.runs.push((end, state)),
            }
            if self.runs.len() > STRIP_RUNS {
                self.lay(end);
            }
            return;
        }
        self.spread(start, end, state);
    }

    fn lay(&mut self, upto: i64) {
        self.cell = (upto / STRIP_CELLS as i64 + 1).max(1);
        let mut start = 0;
        for (end, state) in core::mem::take(&mut self.runs) {
            self.spread(start, end, state);
            start = end;
        }
    }

    fn spread(&mut self, mut start: i64, end: i64, state: State) {
        while end > self.cell.saturating_mul(STRIP_CELLS as i64) {
            let pairs = core::mem::take(&mut self.cells);
            self.cells = pairs.chunks(2).map(merge).collect();
            self.cell = self.cell.saturating_mul(2);
        }
        while start < end {
            let at = (start / self.cell) as usize;
            if self.cells.len() <= at {
                self.cells.resize_with(at + 1, TimeIn::default);
            }
            let cell_end = (at as i64 + 1).saturating_mul(self.cell).min(end);
            self.cells[at].add(state, Duration(cell_end - start));
            start = cell_end;
        }
    }

    fn slices(&self, lifetime: i64) -> Slices {
        if !self.cells.is_empty() {
            return self.cells.iter().map(leading).collect();
        }
        // Few runs need few cells: as many as show the shortest of them, up to [`STRIP_SLICES`].
        let cell = (lifetime / STRIP_SLICES + 1).max(1);
        let end = self.runs.last().map_or(0, |run| run.0);
        let mut runs = self.runs.as_slice();
        let mut start = 0;
        let next = || {
            if start >= end {
                return None;
            }
            // Whole cells of one run, or one cell that several runs share.
            let whole = runs.first().map_or(0, |run| match run.0 {
                run_end if run_end == end => (run_end - start + cell - 1) / cell,
                run_end => (run_end - start) / cell,
            });
            let state = match runs.first() {
                Some(run) if whole > 0 => run.1,
                _ => leading_in(runs, start, (start + cell).min(end)),
            };
            start = (start + cell * whole.max(1)).min(end);
            let over = runs.iter().take_while(|run| run.0 <= start).count();
            runs = &runs[over..];
            Some((state, whole.max(1) as usize))
        };
        Slices::of_runs(core::iter::from_fn(next))
    }
}

/// The state that held most time of `start..end`, the first of equals; `runs` are those that end
/// after `start`. They are few: their times are added up without a table.
fn leading_in(runs: &[(i64, State)], start: i64, end: i64) -> State {
    let within = runs.iter().take_while(|run| run.0 < end).count() + 1;
    let runs = &runs[..within.min(runs.len())];
    let time_in = |state: State| -> i64 {
        let begins = core::iter::once(start).chain(runs.iter().map(|run| run.0));
        let spans = runs.iter().zip(begins).filter(|(run, _)| run.1 == state);
        spans.map(|(run, begin)| run.0.min(end) - begin).sum()
    };
    let times = runs.iter().map(|run| (time_in(run.1), Reverse(run.1)));
    times.max().map_or(State::Unknown, |(_, Reverse(state))| state)
}

fn merge(pair: &[TimeIn]) -> TimeIn {
    let mut sum = pair[0].clone();
    for (state, span) in pair.get(1).into_iter().flat_map(TimeIn::iter) {
        sum.add(state, span);
    }
    sum
}

/// The state that held most time of `cell`, the first of equals.
fn leading(cell: &TimeIn) -> State {
    let longer = |a: (State, Duration), b: (State, Duration)| if b.1 > a.1 { b } else { a };
    cell.iter().reduce(longer).map_or(State::Unknown, |row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is booked of neighbours with these states, words and alternatives.
    fn booked(rows: &[(State, Sure, &'static [State])]) -> Vec<(State, Sure, &'static [State])> {
        let mut ledger = Ledger::new(true);
        for (number, &(state, sure, alternative)) in rows.iter().enumerate() {
            let end = (number as i64 + 1) * 10;
            let evidence = Evidence::default();
            ledger.book(Interval { start: 0, end, state, sure, alternative, evidence });
        }
        let intervals = ledger.intervals.iter();
        intervals.map(|each| (each.state, each.sure, each.alternative)).collect()
    }

    /// Books that were given intervals of these states and lengths one behind the other.
    fn books_of(rows: impl Iterator<Item = (State, i64)>) -> Ledger {
        let mut ledger = Ledger::new(true);
        let mut end = 0;
        for (state, length) in rows {
            end += length;
            let evidence = Evidence::default();
            ledger.book(Interval {
                start: 0,
                end,
                state,
                sure: Sure::Likely,
                alternative: &[],
                evidence,
            });
        }
        ledger
    }

    #[test]
    fn of_very_many_intervals_the_longest_of_each_state_are_kept_as_they_were() {
        use State::{App, CwndAvoidance, RtoWait};
        // Turns of short and longer waits; timeouts before and behind them.
        let turns = (0..50_000).flat_map(|n| [(CwndAvoidance, 1000 + n), (App, 10 + n % 7)]);
        let few = [(RtoWait, 9), (App, 500), (RtoWait, 1)];
        let ledger = books_of([(RtoWait, 5)].into_iter().chain(turns).chain(few));
        assert!(ledger.truncated);
        let kept = |state| ledger.intervals.iter().filter(move |each| each.state == state);
        assert_eq!(
            kept(RtoWait).map(Interval::length).collect::<Vec<_>>(),
            [5, 9, 1],
            "all of a few"
        );
        let longest = kept(CwndAvoidance).map(Interval::length).max();
        assert_eq!(longest, Some(50_999), "also what came when the list was full before");
        assert_eq!(kept(App).map(Interval::length).max(), Some(500));
        assert!(kept(App).count() > 2_000 && ledger.intervals.len() <= INTERVALS);
        assert!(kept(App).take(1_000).all(|each| each.length() == 16), "the longest of them");
        let in_order = ledger.intervals.windows(2).all(|pair| pair[0].end <= pair[1].start);
        assert!(in_order);
    }

    #[test]
    fn a_list_that_is_just_full_lacks_nothing() {
        let turns = |count: usize| {
            let states = [State::App, State::CwndAvoidance];
            books_of((0..count).map(move |n| (states[n % 2], 5)))
        };
        let full = turns(INTERVALS);
        assert!(!full.truncated && full.intervals.len() == INTERVALS);
        let cut = turns(INTERVALS + 1);
        assert!(cut.truncated && cut.intervals.len() == INTERVALS / 2 + 1);
        let spans: i64 = cut.intervals.iter().map(Interval::length).sum();
        assert_eq!(spans, 5 * cut.intervals.len() as i64, "none grew over those left out");
    }

    #[test]
    fn neighbours_of_one_state_are_as_sure_as_the_less_sure_one_and_may_be_what_that_may_be() {
        use State::{Sndbuf, Unknown};
        const OTHERS: &[State] = &[State::App];
        let unsure = (Sndbuf, Sure::Likely, OTHERS);
        assert_eq!(booked(&[(Sndbuf, Sure::Shown, &[]), unsure]), [unsure]);
        assert_eq!(booked(&[unsure, (Sndbuf, Sure::Shown, &[])]), [unsure]);
        let longer: (_, _, &[State]) = (Sndbuf, Sure::Likely, &[State::App, State::Pacing]);
        assert_eq!(booked(&[unsure, longer]), [longer], "as sure, and the longer list");
        assert_eq!(booked(&[longer, unsure]), [longer]);
        let unknown: [(State, Sure, &[State]); 2] =
            [(Unknown, Sure::Possible, &[]), (Unknown, Sure::Possible, OTHERS)];
        assert_eq!(booked(&unknown), unknown, "told apart by what they may be");
    }
}
