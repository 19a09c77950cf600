//! What the scheduler does to the emulator: how much of a processor it takes and when it has to
//! take less, and how long it usually takes to be woken.
//!
//! The kernel stops a real-time thread that takes more than its share of a period (`sched(7)`), for
//! 50 ms at a time. Work cannot be given up, but waiting on the processor can.

use std::collections::VecDeque;

use super::sys;

/// Gives up spinning before the kernel takes the processor away.
#[derive(Debug, Default)]
pub(super) struct Thrift {
    /// Spinning is given up.
    pub(super) on: bool,
    /// Time and time busy, over the last second.
    looks: VecDeque<(u64, u64)>,
    /// Share of a period that the thread was busy, lately.
    pub(super) percent: u64,
}

impl Thrift {
    /// Looks at the time that this thread has used; to be called often.
    pub(super) fn look(&mut self, now: u64) {
        if self.looks.back().is_some_and(|(last, _)| now - last < LOOK_NS) {
            return;
        }
        let busy = sys::thread_busy_ns();
        self.looks.push_back((now, busy));
        while self.looks.front().is_some_and(|(first, _)| now - first > RT_PERIOD_NS) {
            self.looks.pop_front();
        }
        if let Some((first, busy_then)) = self.looks.front()
            && now - first >= RT_PERIOD_NS / 2
        {
            // Per whole period, because that is how the kernel counts.
            self.percent = (busy - busy_then) * 100 / RT_PERIOD_NS;
            self.on = self.percent > if self.on { THRIFT_OFF } else { THRIFT_ON };
        }
    }
}

/// How long after the instant a sleeper usually runs: the median of what was learnt.
///
/// A packet that wakes the emulator carries no time of its own, so it is taken to have come as long
/// before as an alarm would have rung. On virtual machines that is 50 us, each way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waking {
    /// The median up to now, but at most [`MOST_USUAL_NS`].
    pub(super) usual_ns: u64,
}

impl Waking {
    /// Learns from an alarm that came so late.
    ///
    /// Half of all steps go up and half go down where the median is (Ma, Muthukrishnan, Sandler:
    /// Frugal streaming for estimating quantiles, 2013).
    pub(super) fn learn(&mut self, late_ns: u64) {
        self.usual_ns = if late_ns > self.usual_ns {
            (self.usual_ns + STEP_NS).min(MOST_USUAL_NS)
        } else {
            self.usual_ns.saturating_sub(STEP_NS)
        };
    }
}

/// `sched_rt_period_us`: a FIFO thread may have 95 % of it (sched(7)).
const RT_PERIOD_NS: u64 = 1_000_000_000;

/// Ours: often enough to give way before 95 % are reached.
const LOOK_NS: u64 = 10_000_000;

/// Ours: in percent; the rest is for applications under FIFO on the same processor.
const THRIFT_ON: u64 = 80;
const THRIFT_OFF: u64 = 65;

/// Ours: from nothing to 50 us within 200 alarms, which is before the first application starts.
const STEP_NS: u64 = 250;

/// Ours: whoever is usually later than that has no business to guess.
const MOST_USUAL_NS: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_delay_is_the_median_whatever_the_worst_are() {
        let mut waking = Waking::default();
        for turn in 0..3_000_u64 {
            // 40 us to 60 us, and one in ten 5 ms.
            waking.learn(if turn % 10 == 0 { 5_000_000 } else { 40_000 + turn * 7919 % 20_000 });
        }
        assert!((48_000..56_000).contains(&waking.usual_ns), "{}", waking.usual_ns);
    }

    #[test]
    fn a_machine_that_is_always_late_is_not_guessed_about() {
        let mut waking = Waking::default();
        (0..3_000).for_each(|_| waking.learn(4_000_000));
        assert_eq!(waking.usual_ns, MOST_USUAL_NS);
    }
}
