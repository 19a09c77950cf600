//! How much of a processor the emulator takes, and when it has to take less.
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

/// `sched_rt_period_us`, of which a FIFO thread may have 95 % (sched(7)).
const RT_PERIOD_NS: u64 = 1_000_000_000;

/// Ours: often enough to give way before 95 % are reached.
const LOOK_NS: u64 = 10_000_000;

/// Ours: in percent; the rest is for applications under FIFO on the same processor.
const THRIFT_ON: u64 = 80;
const THRIFT_OFF: u64 = 65;
