//! How long was something to be sent, and for how much of that did a window or a buffer hold it up?
//!
//! Follows `tcp_chrono_start`, `tcp_chrono_stop`, `tcp_get_info_chrono_stats`: of what holds at once
//! only the most telling counts, in ticks. The kernel misses a buffer that is too small while the
//! last segments are still on their way.

use super::Socket;

/// What time is counted as; the later, the more telling (`enum tcp_chrono`).
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    /// Nothing is to be sent, and all that was is acknowledged.
    #[default]
    Idle,
    Busy,
    WindowLimited,
    BufferLimited,
}

/// The time that was counted so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chrono {
    phase: Phase,
    /// Tick at which this phase began.
    since: u64,
    /// Ticks of each phase that is not idle.
    spent: [u64; 3],
}

impl Socket {
    /// This begins, if nothing more telling holds.
    pub(super) fn begin_phase(&mut self, phase: Phase) {
        if phase > self.chrono.phase {
            self.enter_phase(phase);
        }
    }

    /// This ends; without anything left to do everything does.
    pub(super) fn end_phase(&mut self, phase: Phase) {
        if self.chrono.phase == Phase::Idle {
            return;
        }
        if self.q.len() == 0 {
            self.enter_phase(Phase::Idle);
        } else if phase == self.chrono.phase {
            self.enter_phase(Phase::Busy);
        }
    }

    fn enter_phase(&mut self, phase: Phase) {
        let now = self.jiffies();
        self.chrono = Chrono { phase, since: now, spent: self.phases(now) };
    }

    /// Ticks of each phase up to this one.
    fn phases(&self, now: u64) -> [u64; 3] {
        let mut spent = self.chrono.spent;
        if let Some(running) = (self.chrono.phase as usize).checked_sub(1) {
            spent[running] += now.saturating_sub(self.chrono.since);
        }
        spent
    }

    /// Microseconds in which there was something to do, and the parts of them that the peer's window
    /// and the send buffer limited (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`).
    pub fn limited_us(&self, now_ns: u64) -> (u64, u64, u64) {
        let now = (now_ns + self.config.clock_ns) / self.tick_ns();
        let [busy, window, buffer] = self.phases(now).map(|ticks| self.us_from_jiffies(ticks));
        (busy + window + buffer, window, buffer)
    }
}
