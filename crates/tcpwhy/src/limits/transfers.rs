//! The transfers of one direction: data that belongs together, and the time it took.
//!
//! A transfer ends with an idle time, or with data of the peer (design, "Transfers"). Time is
//! shared out to the transfers as it is booked.

use crate::report::{State, TimeIn};
use crate::units::Duration;

/// Most transfers kept of one direction; later ones are counted only.
const MOST: usize = 4096;

/// Tables of times that are kept for the next connection. Ours: most have one or two transfers.
const SPARE: usize = 8;

/// What a transfer is known by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) first_round: u64,
    pub(crate) last_round: u64,
    /// Time since the peer's last data before it.
    pub(crate) after_peer: Option<i64>,
}

impl Run {
    /// A transfer that begins at `start`, with offset `from`, in round `round`.
    pub(crate) fn at(start: i64, from: i64, round: u64) -> Self {
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
    pub(crate) next: usize,
    /// Time booked behind its end in each of [`IDLE`]: its own only if it goes on.
    idle: [Duration; 3],
    pub(crate) dropped: u64,
    /// When the first data byte that the capture meets was sent, and its offset.
    pub(crate) first_at: Option<i64>,
    pub(crate) first_offset: i64,
}

impl Transfers {
    /// Takes over the room of `old`, which is done.
    pub(crate) fn reuse(&mut self, old: &mut Self) {
        self.runs = super::walker::emptied(&mut old.runs);
        core::mem::swap(&mut self.times, &mut old.times);
        self.times.truncate(SPARE);
        self.times.iter_mut().for_each(TimeIn::clear);
    }

    /// Begins `run`, if there is room.
    pub(crate) fn begin(&mut self, run: Run) {
        if self.runs.len() >= MOST {
            self.dropped += 1;
            return;
        }
        self.runs.push(run);
        if self.times.len() < self.runs.len() {
            self.times.push(TimeIn::default());
        }
    }

    /// Adds time booked as `state`, from `start` to `end` of the report, to the transfer it falls
    /// into; `shift` leads from the sender's timeline to the report's. The newest transfer still
    /// grows unless it is `finished`: what is decided of it lies before its last send.
    pub(crate) fn share(&mut self, start: i64, end: i64, state: State, shift: i64, finished: bool) {
        while self.runs.get(self.next + 1).is_some_and(|next| next.start + shift <= start) {
            self.next += 1;
            self.idle = [Duration::ZERO; 3];
        }
        let newest = self.next + 1 == self.runs.len();
        let Some(run) = self.runs.get_mut(self.next) else { return };
        let growing = newest && !finished;
        let start = start.max(run.start + shift);
        let end = if growing { end } else { end.min(run.end + shift) };
        if end <= start {
            return;
        }
        let idle = IDLE.iter().position(|idle| *idle == state);
        if let (true, Some(at)) = (growing, idle) {
            self.idle[at] += Duration(end - start);
            return;
        }
        run.end = run.end.max(end - shift);
        let times = &mut self.times[self.next];
        let before = core::mem::take(&mut self.idle);
        times.add_all(IDLE.into_iter().zip(before));
        times.add(state, Duration(end - start));
    }
}

/// What ends a transfer if it lasts.
const IDLE: [State; 3] = [State::IdleAppThink, State::IdlePeerThink, State::Receiving];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_out_to_the_transfer_it_falls_into() {
        let mut transfers = Transfers::default();
        transfers.share(0, 5, State::Handshake, 0, false);
        transfers.begin(Run { end: 20, ..Run::at(10, 0, 0) });
        transfers.share(5, 12, State::CwndSlowStart, 0, false);
        transfers.begin(Run::at(30, 9, 1));
        transfers.share(12, 30, State::IdleAppThink, 0, false);
        transfers.share(30, 34, State::App, 0, false);
        let times: Vec<Vec<_>> = transfers.times.iter().map(|t| t.iter().collect()).collect();
        let of = |state, ns| (state, Duration(ns));
        assert_eq!(times[0], [of(State::IdleAppThink, 8), of(State::CwndSlowStart, 2)]);
        assert_eq!(times[1], [of(State::App, 4)]);
        assert_eq!(transfers.runs[1].end, 34);
    }

    #[test]
    fn an_idle_time_is_the_transfers_only_if_it_goes_on() {
        let of = |state, ns| (state, Duration(ns));
        for goes_on in [false, true] {
            let mut transfers = Transfers::default();
            transfers.begin(Run { end: 10, ..Run::at(0, 0, 0) });
            transfers.share(0, 10, State::LastFlight, 0, false);
            transfers.share(10, 14, State::IdlePeerThink, 0, false);
            if goes_on {
                transfers.share(14, 20, State::App, 0, false);
            }
            transfers.begin(Run::at(30, 9, 1));
            transfers.share(20, 30, State::IdlePeerThink, 0, false);
            let times: Vec<_> = transfers.times[0].iter().collect();
            let all = [of(State::IdlePeerThink, 4), of(State::App, 6), of(State::LastFlight, 10)];
            let first = if goes_on { (20, all.to_vec()) } else { (10, all[2..].to_vec()) };
            assert_eq!((transfers.runs[0].end, times.len()), (first.0, first.1.len()));
            assert!(first.1.iter().all(|row| times.contains(row)), "{times:?}");
        }
    }

    #[test]
    fn more_transfers_than_kept_are_counted() {
        let mut transfers = Transfers::default();
        (0..MOST + 3).for_each(|_| transfers.begin(Run::at(0, 0, 0)));
        assert_eq!((transfers.runs.len(), transfers.dropped), (MOST, 3));
    }
}
