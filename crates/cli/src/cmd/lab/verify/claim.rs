//! What was said of a change, held against what a kernel took.

use serde::Serialize;
use tcpwhy_model::fit::Account;
use tcpwhy_model::whatif::Tried;

/// A kernel repeats a capture if its time comes so near, in percent of the busy time: as near as the model has to.
const NEAR_PERCENT: i64 = 5;

/// So near to an end of a range is in it, in thousandths. Ours: two runs of one kernel differ by as much (`bench/whatif.py`).
const SLACK_PERMILLE: i64 = 20;

/// What saves less is no gain, in thousandths of the busy time. Ours: as `whatif` leaves out what gains less.
const GAINS_PERMILLE: i64 = 5;

/// What runs of one plan came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    /// By their time.
    runs: Vec<Account>,
    /// Why other runs were thrown away.
    pub(super) discarded: Vec<String>,
}

impl Kernel {
    pub(super) fn push(&mut self, run: Account) {
        let at = self.runs.partition_point(|other| other.ns <= run.ns);
        self.runs.insert(at, run);
    }

    /// The run in the middle, if any counts.
    pub(super) fn middle(&self) -> Option<&Account> {
        self.runs.get(self.runs.len() / 2)
    }

    /// The same runs without what they begin with.
    pub(super) fn behind(self, beginning: &Self) -> Self {
        let Some(beginning) = beginning.middle() else { return Self::default() };
        let runs = self.runs.iter().map(|run| run.less(beginning)).collect();
        Self { runs, ..self }
    }

    /// Whether it takes as long as what was seen.
    pub(super) fn repeats(&self, seen: &Account) -> bool {
        self.middle().is_some_and(|middle| {
            (middle.ns - seen.ns).abs() <= seen.busy_ns() / 100 * NEAR_PERCENT
        })
    }

    /// The shortest and the longest.
    pub(super) fn range(&self) -> Option<[i64; 2]> {
        Some([self.runs.first()?.ns, self.runs.last()?.ns])
    }

    pub(super) const fn count(&self) -> usize {
        self.runs.len()
    }
}

/// Whether a kernel has what was said.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Its time lies in the range.
    Held,
    /// It is faster than the range.
    Faster,
    /// It is slower than the range, and faster than unchanged.
    LessGain,
    /// It is no faster than unchanged.
    NoGain,
    /// It does not repeat the capture unchanged; or no run counts.
    Unknown,
}

impl Verdict {
    /// Its words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Held => "as said",
            Self::Faster => "faster than said",
            Self::LessGain => "a smaller gain than said",
            Self::NoGain => "no gain",
            Self::Unknown => "not known",
        }
    }

    pub(super) const fn is_held(self) -> bool {
        matches!(self, Self::Held)
    }
}

/// A change, what was said of it, and what came.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) tried: Tried,
    pub(super) kernel: Kernel,
    pub(super) verdict: Verdict,
}

impl Claim {
    pub(super) fn of(tried: Tried, kernel: Kernel, as_it_was: &Kernel, seen: &Account) -> Self {
        let said = [tried.answer.low_ns, tried.answer.high_ns];
        let verdict = judged(said, &kernel, as_it_was, seen);
        Self { tried, kernel, verdict }
    }
}

/// Whether `kernel` has what was `said`. Where it does something else unchanged, what it does with a change is of no use.
fn judged(said: [i64; 2], kernel: &Kernel, as_it_was: &Kernel, seen: &Account) -> Verdict {
    match (kernel.middle(), as_it_was.middle()) {
        (Some(kernel), Some(now)) if as_it_was.repeats(seen) => {
            verdict(said, [now.ns, kernel.ns], now.busy_ns())
        }
        _ => Verdict::Unknown,
    }
}

/// `said` is a range; `now` and `then` are the kernel's times without the change and with it.
const fn verdict([low, high]: [i64; 2], [now, then]: [i64; 2], busy: i64) -> Verdict {
    if then < low - low / 1000 * SLACK_PERMILLE {
        Verdict::Faster
    } else if then <= high + high / 1000 * SLACK_PERMILLE {
        Verdict::Held
    } else if then < now - busy / 1000 * GAINS_PERMILLE {
        Verdict::LessGain
    } else {
        Verdict::NoGain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn told(then: i64) -> Verdict {
        // Said: 40 to 50 ms of the 100 ms that it takes.
        verdict([40 * MS, 50 * MS], [100 * MS, then], 100 * MS)
    }

    #[test]
    fn a_time_in_the_range_is_as_said() {
        for then in [40 * MS, 45 * MS, 50 * MS] {
            assert_eq!(told(then), Verdict::Held, "{then}");
        }
    }

    #[test]
    fn two_runs_of_one_kernel_differ_by_a_fiftieth() {
        assert_eq!([told(39_200_000), told(39_199_999)], [Verdict::Held, Verdict::Faster]);
        assert_eq!([told(51 * MS), told(51 * MS + 1)], [Verdict::Held, Verdict::LessGain]);
    }

    #[test]
    fn what_is_no_faster_than_before_is_no_gain() {
        assert_eq!(told(99_499_999), Verdict::LessGain);
        assert_eq!([told(99_500_000), told(120 * MS)], [Verdict::NoGain; 2]);
    }

    #[test]
    fn a_kernel_that_does_not_repeat_the_capture_proves_nothing() {
        let took = |ns| {
            let mut kernel = Kernel::default();
            kernel.push(Account { ns, ..Account::default() });
            kernel
        };
        let seen = Account { ns: 100 * MS, ..Account::default() };
        let judged = |now| judged([40 * MS, 50 * MS], &took(45 * MS), &took(now), &seen);
        assert_eq!([95 * MS, 105 * MS].map(judged), [Verdict::Held; 2]);
        assert_eq!([94 * MS, 106 * MS].map(judged), [Verdict::Unknown; 2]);
    }

    #[test]
    fn the_run_in_the_middle_counts() {
        let mut kernel = Kernel::default();
        for ns in [90, 10, 30] {
            kernel.push(Account { ns, ..Account::default() });
        }
        assert_eq!(kernel.middle().map(|run| run.ns), Some(30));
        assert_eq!(kernel.range(), Some([10, 90]));
    }
}
