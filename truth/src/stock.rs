//! Does the truth from a stock kernel's records ever say what an observed kernel's denies?
//!
//! A run of an observed kernel has both: its own reasons, and what any kernel's tracepoints and the
//! applications' log tell. The second may be silent ([`State::Unrecorded`]), but where it speaks it
//! must not contradict the first, or what is found with it on the running kernel is worth nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::states::State;
use crate::truth::{Direction, Truth};

/// What both say of the same time. All times in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Held {
    /// Time that the observed kernel judges, from the first stock event to the last.
    pub whole_ns: u64,
    /// Of it: the stock records say something.
    pub told_ns: u64,
    /// Of that: something else than the observed kernel.
    pub against_ns: u64,
    /// The latter by the observed kernel's state and that of the stock records.
    pub pairs: BTreeMap<State, BTreeMap<State, u64>>,
    /// By the observed kernel's state: time, and how much of it the stock records tell.
    pub coverage: BTreeMap<State, (u64, u64)>,
}

impl Held {
    /// Adds that of another run.
    pub fn add(&mut self, other: &Self) {
        self.whole_ns += other.whole_ns;
        self.told_ns += other.told_ns;
        self.against_ns += other.against_ns;
        for (exact, (whole, told)) in &other.coverage {
            let sum = self.coverage.entry(*exact).or_default();
            *sum = (sum.0 + whole, sum.1 + told);
        }
        for (exact, row) in &other.pairs {
            for (stock, ns) in row {
                *self.pairs.entry(*exact).or_default().entry(*stock).or_default() += ns;
            }
        }
    }

    fn book(&mut self, exact: State, stock: State, ns: u64) {
        self.whole_ns += ns;
        let coverage = self.coverage.entry(exact).or_default();
        coverage.0 += ns;
        if stock == State::Unrecorded {
            return;
        }
        self.told_ns += ns;
        coverage.1 += ns;
        if stock != exact {
            self.against_ns += ns;
            *self.pairs.entry(exact).or_default().entry(stock).or_default() += ns;
        }
    }
}

/// Holds the truth from the stock records of a run against that of its observed kernel; `directions`
/// as in [`crate::compare::compare`].
pub fn hold(exact: &Truth, stock: &Truth, directions: &[usize]) -> Held {
    let mut held = Held::default();
    for one in &exact.connections {
        let same = stock.connections.iter().find(|other| {
            (other.client_port, other.server_port) == (one.client_port, one.server_port)
        });
        let Some(same) = same else { continue };
        for &side in directions {
            if let (Some(exact), Some(stock)) = (&one.directions[side], &same.directions[side]) {
                walk(&mut held, exact, stock);
            }
        }
    }
    held
}

/// Books what overlaps; time within calls of the kernel is not judged.
fn walk(held: &mut Held, exact: &Direction, stock: &Direction) {
    let mut others = stock.intervals.iter().peekable();
    for one in &exact.intervals {
        while let Some(other) = others.peek() {
            let (from, to) = (one.start_ns.max(other.start_ns), one.end_ns.min(other.end_ns));
            if from < to && one.state != State::Busy {
                held.book(one.state, other.state, to - from);
            }
            if other.end_ns > one.end_ns {
                break;
            }
            others.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Connection, Interval};

    fn truth(rows: &[(u64, u64, State)]) -> Truth {
        let interval = |&(start_ns, end_ns, state): &(u64, u64, State)| Interval {
            start_ns,
            end_ns,
            state,
            cwnd: None,
            ssthresh: None,
        };
        let intervals = rows.iter().map(interval).collect();
        let direction = Direction { intervals, ..Direction::default() };
        let connection = Connection {
            client_port: 5000,
            server_port: 80,
            directions: [None, Some(direction)],
            ..Connection::default()
        };
        Truth { connections: vec![connection], ..Truth::default() }
    }

    #[test]
    fn silence_contradicts_nothing_and_what_is_told_must_be_the_same() {
        let exact = truth(&[
            (0, 40, State::Tsq),
            (40, 50, State::Busy),
            (50, 90, State::Rwnd),
            (90, 100, State::Closing),
        ]);
        let stock =
            truth(&[(10, 20, State::Unrecorded), (20, 45, State::Sndbuf), (45, 100, State::Rwnd)]);
        let mut held = hold(&exact, &stock, &[0, 1]);
        assert_eq!((held.whole_ns, held.told_ns, held.against_ns), (80, 70, 30));
        assert_eq!(held.pairs[&State::Tsq][&State::Sndbuf], 20);
        assert_eq!(held.pairs[&State::Closing][&State::Rwnd], 10);
        assert_eq!(held.coverage[&State::Tsq], (30, 20));
        held.add(&held.clone());
        assert_eq!((held.against_ns, held.coverage[&State::Rwnd]), (60, (80, 80)));
    }
}
