//! From the clock that only runs forward to the one that captures are stamped with.

use super::sys;
use crate::lab::backend::ClockMap;

/// How the two clocks stand to each other, looked at again and again, for one of them is steered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    first: ClockMap,
    now: ClockMap,
    looked_at: u64,
    /// Largest way that the map went from the first one.
    drift_ns: u64,
    worst_ns: u64,
}

impl Clocks {
    pub(super) fn new() -> Self {
        let first = sample();
        let worst_ns = first.error_ns;
        Self { first, now: first, looked_at: sys::monotonic_ns(), drift_ns: 0, worst_ns }
    }

    /// Compares the clocks again if it is time to.
    pub(super) fn look(&mut self) {
        let now = sys::monotonic_ns();
        if now.saturating_sub(self.looked_at) >= LOOK_NS {
            self.looked_at = now;
            self.now = sample();
            let drift_ns = self.now.mono_to_real_ns.abs_diff(self.first.mono_to_real_ns);
            self.drift_ns = self.drift_ns.max(drift_ns);
            self.worst_ns = self.worst_ns.max(self.now.error_ns);
        }
    }

    /// The other clock at an instant of `CLOCK_MONOTONIC`.
    pub(super) fn real(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_add_signed(self.now.mono_to_real_ns)
    }

    /// The map of the whole run: the first one, and by how much any later one differs from it.
    pub(super) fn finish(mut self) -> ClockMap {
        self.looked_at = 0;
        self.look();
        ClockMap { error_ns: self.worst_ns + self.drift_ns, ..self.first }
    }
}

/// The tightest of a few readings: monotonic, real, monotonic.
fn sample() -> ClockMap {
    let read = || {
        let before = sys::monotonic_ns();
        let real = sys::real_ns();
        let after = sys::monotonic_ns();
        let middle = before + (after - before) / 2;
        ClockMap {
            mono_to_real_ns: real.wrapping_sub(middle).cast_signed(),
            error_ns: (after - before).div_ceil(2),
        }
    };
    (0..TRIES).map(|_| read()).min_by_key(|map| map.error_ns).unwrap_or_default()
}

/// Ours: one of a few is not interrupted.
const TRIES: u32 = 16;

/// Ours: a clock steered at the most that is allowed, 500 ppm (adjtimex(2)), moves 50 us in it.
const LOOK_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_instant_is_the_other_clocks_now() {
        let clocks = Clocks::new();
        let real = clocks.real(sys::monotonic_ns());
        assert!(real.abs_diff(sys::real_ns()) < 1_000_000_000);
        assert!(clocks.finish().error_ns < 1_000_000);
    }
}
