//! How other clocks of the kernel map to `CLOCK_REALTIME`.
//!
//! Both clocks are read in turn, other, real, other, and again; the tightest bracket wins. The
//! true difference lies within half the bracket's width of what is returned: about 0.1 us on an
//! idle machine. `CLOCK_REALTIME` may be set or slewed, so a map is good for the moment it was
//! made at; whoever records for long makes new ones.

use crate::sys::Clock;

/// What to add to a clock to get `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockMap {
    /// Nanoseconds to add.
    pub to_real_ns: i64,
    /// The truth is at most so far from it.
    pub error_ns: u64,
}

impl ClockMap {
    /// Maps `clock` as it is now.
    pub fn of(clock: Clock) -> Self {
        let tries = (0..TRIES).map(|_| {
            let before = clock.now();
            let real = Clock::Real.now();
            let after = clock.now();
            Self::bracket(before, real, after)
        });
        tries.min_by_key(|map| map.error_ns).unwrap_or(Self { to_real_ns: 0, error_ns: u64::MAX })
    }

    /// The map that follows from a reading of `CLOCK_REALTIME` between two of the other clock.
    fn bracket(before: u64, real: u64, after: u64) -> Self {
        let width = after.saturating_sub(before);
        let middle = before + width / 2;
        Self {
            to_real_ns: real.wrapping_sub(middle).cast_signed(),
            // Half of the width, and what the division lost.
            error_ns: width.div_ceil(2),
        }
    }

    /// The same instant on `CLOCK_REALTIME`.
    pub const fn real(self, other: u64) -> u64 {
        other.wrapping_add_signed(self.to_real_ns)
    }
}

/// Ours: of 20 brackets the best is as tight as of 1000 on an idle machine.
const TRIES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_in_the_middle_of_a_bracket_is_right_to_half_of_it() {
        let map = ClockMap::bracket(100, 1_000_000_110, 121);
        assert_eq!(map, ClockMap { to_real_ns: 1_000_000_000, error_ns: 11 });
        assert_eq!(map.real(100), 1_000_000_100);
    }

    #[test]
    fn a_clock_maps_to_itself_within_its_error() {
        let map = ClockMap::of(Clock::Real);
        assert!(map.to_real_ns.unsigned_abs() <= map.error_ns, "{map:?}");
    }

    #[test]
    fn the_monotonic_clock_maps_to_now() {
        let map = ClockMap::of(Clock::Monotonic);
        let (early, now, late) = (Clock::Real.now(), Clock::Monotonic.now(), Clock::Real.now());
        let mapped = map.real(now);
        assert!(
            early - map.error_ns - SLEW_NS <= mapped && mapped <= late + map.error_ns + SLEW_NS
        );
    }

    /// The kernel may slew the real clock by 500 ppm; a preempted test takes 10 ms at most.
    const SLEW_NS: u64 = 5_000;
}
