//! The transfers of one direction: data that belongs together, and the time it took.
//!
//! A transfer ends with an idle time, or with data of the peer (design, "Transfers"): with its last send or
//! the last ACK of its data, whichever is later, or where the next begins with data of it in flight. Time is
//! shared out to the transfers as it is booked, which is at any time after it passed: what lies behind the
//! end that is known so far waits for whether the transfer goes on.

use crate::clocks::StackTime;
use crate::limits::sense::{SPARE_TABLES, TRANSFERS};
use crate::offsets::Offset;
use crate::report::{State, TimeIn};
use tcpwhy_words::units::Duration;

/// What a transfer is known by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) start: StackTime,
    pub(crate) end: StackTime,
    pub(crate) from: Offset,
    pub(crate) to: Offset,
    pub(crate) first_round: u64,
    pub(crate) last_round: u64,
    /// Time since the peer's last data before it.
    pub(crate) after_peer: Option<i64>,
}

impl Run {
    /// A transfer that begins at `start`, with offset `from`, in round `round`.
    pub(crate) fn at(start: StackTime, from: Offset, round: u64) -> Self {
        Self {
            start,
            end: start,
            from,
            to: from,
            first_round: round,
            last_round: round,
            after_peer: None,
        }
    }
}

/// The transfers of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    pub(crate) runs: Vec<Run>,
    /// Time in each state of each; behind those of `runs`, room for more of them.
    pub(crate) times: Vec<TimeIn>,
    /// The one that time is booked to.
    next: usize,
    /// The end of that one as far as it was known when time was booked to it.
    known_end: Option<StackTime>,
    /// Time booked behind that end: its own only if it goes on.
    behind: TimeIn,
    pub(crate) dropped: u64,
    /// When the first data byte that the capture meets was sent, and its offset.
    pub(crate) first_at: Option<StackTime>,
    pub(crate) first_offset: Offset,
}

impl Transfers {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.runs = super::emptied(&mut old.runs);
        core::mem::swap(&mut self.times, &mut old.times);
        self.times.truncate(SPARE_TABLES);
        self.times.iter_mut().for_each(TimeIn::clear);
    }

    /// Whether the open transfer began before `at`.
    pub(crate) fn goes_on(&self, at: StackTime) -> bool {
        self.runs.last().is_some_and(|run| run.start < at)
    }

    /// Begins `run`, if there is room: the one before it has ended.
    pub(crate) fn begin(&mut self, run: Run) {
        if self.runs.len() >= TRANSFERS {
            self.dropped += 1;
            return;
        }
        self.runs.push(run);
        if self.times.len() < self.runs.len() {
            self.times.push(TimeIn::default());
        }
    }

    /// The newest transfer lasts until `at` at least.
    pub(crate) fn last_until(&mut self, at: StackTime) {
        if let Some(run) = self.runs.last_mut() {
            run.end = run.end.max(at);
        }
    }

    /// Adds time booked as `state`, from `start` to `end` of the report, to the transfers it falls into;
    /// `shift` leads from the sender's timeline to the report's.
    pub(crate) fn share(&mut self, start: i64, end: i64, state: State, shift: i64) {
        let mut from = start;
        while from < end {
            self.settle();
            if self.runs.get(self.next + 1).is_some_and(|next| next.start.in_report(shift) <= from)
            {
                self.next += 1;
                (self.known_end, self.behind) = (None, TimeIn::default());
                continue;
            }
            let Some(run) = self.runs.get(self.next) else { return };
            let next = self
                .runs
                .get(self.next + 1)
                .map_or(end, |next| end.min(next.start.in_report(shift)));
            let (first, last) =
                (from.max(run.start.in_report(shift)), next.min(run.end.in_report(shift)));
            if first < last {
                self.times[self.next].add(state, Duration(last - first));
            }
            if first.max(last) < next {
                self.behind.add(state, Duration(next - first.max(last)));
            }
            from = next;
        }
    }

    /// Gives the transfer that time is booked to what was booked behind its end, if it has gone on since.
    pub(crate) fn settle(&mut self) {
        let end = self.runs.get(self.next).map(|run| run.end);
        if end <= self.known_end {
            return;
        }
        self.known_end = end;
        self.times[self.next].add_all(self.behind.iter());
        self.behind.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(state: State, ns: i64) -> (State, Duration) {
        (state, Duration(ns))
    }

    fn times(transfers: &Transfers) -> Vec<Vec<(State, Duration)>> {
        transfers.times.iter().map(|times| times.iter().collect()).collect()
    }

    #[test]
    fn time_is_shared_out_to_the_transfers_it_falls_into() {
        let mut transfers = Transfers::default();
        transfers.share(0, 5, State::Handshake, 0);
        transfers.begin(Run { end: StackTime(20), ..Run::at(StackTime(10), Offset::FIRST, 0) });
        transfers.share(5, 12, State::CwndSlowStart, 0);
        transfers.begin(Run::at(StackTime(30), Offset::at(9), 1));
        transfers.last_until(StackTime(34));
        transfers.share(12, 32, State::App, 0);
        transfers.share(32, 40, State::LastFlight, 0);
        assert_eq!(times(&transfers)[0], [of(State::App, 8), of(State::CwndSlowStart, 2)]);
        assert_eq!(times(&transfers)[1], [of(State::LastFlight, 2), of(State::App, 2)]);
    }

    #[test]
    fn what_lies_behind_its_end_is_the_transfers_only_if_it_goes_on() {
        for goes_on in [false, true] {
            let mut transfers = Transfers::default();
            transfers.begin(Run { end: StackTime(10), ..Run::at(StackTime(0), Offset::FIRST, 0) });
            transfers.share(0, 10, State::LastFlight, 0);
            transfers.share(10, 14, State::IdlePeerThink, 0);
            if goes_on {
                transfers.last_until(StackTime(14));
            }
            transfers.begin(Run::at(StackTime(30), Offset::at(9), 1));
            transfers.share(14, 30, State::IdlePeerThink, 0);
            transfers.share(30, 31, State::App, 0);
            let all = [of(State::LastFlight, 10), of(State::IdlePeerThink, 4)];
            assert_eq!(times(&transfers)[0], all[..=usize::from(goes_on)]);
        }
    }

    /// A far sender's timeline begins before the report's, which is `shift` ahead of it.
    #[test]
    fn when_time_is_booked_makes_no_difference() {
        let shift = 20;
        let shared = |late: bool| {
            let mut transfers = Transfers::default();
            transfers.begin(Run::at(StackTime(-shift), Offset::FIRST, 0));
            let share = |transfers: &mut Transfers, due: &[(i64, i64, State)]| {
                for (start, end, state) in due {
                    transfers.share(*start, *end, *state, shift);
                }
            };
            let early = [(0, 4, State::LastFlight), (4, 9, State::IdleAppThink)];
            transfers.last_until(StackTime(4 - shift));
            if !late {
                share(&mut transfers, &early);
            }
            transfers.last_until(StackTime(9 - shift));
            if late {
                share(&mut transfers, &early);
            }
            share(&mut transfers, &[(9, 12, State::Closing)]);
            transfers.settle();
            times(&transfers)
        };
        assert_eq!(shared(true), shared(false));
        assert_eq!(shared(true)[0].iter().map(|row| row.1.0).sum::<i64>(), 9);
    }

    #[test]
    fn more_transfers_than_kept_are_counted() {
        let mut transfers = Transfers::default();
        (0..TRANSFERS + 3).for_each(|_| transfers.begin(Run::at(StackTime(0), Offset::FIRST, 0)));
        assert_eq!((transfers.runs.len(), transfers.dropped), (TRANSFERS, 3));
    }
}
