//! When packets of another host left it, by its time stamps.
//!
//! A stamp tells the time of its host's clock; the least difference between that and the time at which packets pass the
//! tap is the way that nothing holds up (RFC 7323 section 5.4: the clock beats evenly, once in 1 ms to 1 s). What comes later than that was
//! held up on its way. A stamp is up to a tick older than its packet.

use crate::clocks::TapTime;

/// Two clocks run apart by one part in so many: quartz is off by up to 100 ppm.
const DRIFT: i64 = 10_000;

/// One host's stamps as its packets pass the tap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    /// The newest stamp, and how long after the first one it was made.
    last: Option<(u32, i64)>,
    /// The least difference, and when it was met.
    least: (i64, TapTime),
}

impl Stamps {
    /// When a packet that passed at `tap` would have passed if nothing had held it up, to the length of a `tick`.
    pub(crate) fn unhindered(&mut self, tap: TapTime, stamp: u32, tick: i64) -> TapTime {
        let made = match self.last {
            Some((before, made)) => {
                let ticks = i64::from(stamp.wrapping_sub(before).cast_signed());
                made.saturating_add(ticks.saturating_mul(tick))
            }
            None => 0,
        };
        let way = tap.0.saturating_sub(made);
        let (least, at) = self.least;
        // A queue cannot be told from a clock that falls behind: it is taken to fall as far as clocks do.
        let least = least.saturating_add(tap.since(at).max(0) / DRIFT);
        let is_new = self.last.is_none() || way <= least;
        if is_new {
            self.least = (way, tap);
        }
        self.last = Some((stamp, made));
        TapTime(made.saturating_add(if is_new { way } else { least }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn what_was_held_up_would_have_passed_before() {
        let mut stamps = Stamps::default();
        assert_eq!(stamps.unhindered(TapTime(50 * MS), 7_000, MS), TapTime(50 * MS));
        let drift = 10 * MS / DRIFT;
        assert_eq!(
            stamps.unhindered(TapTime(60 * MS), 7_003, MS),
            TapTime(53 * MS + drift),
            "7 ms in a queue"
        );
        assert_eq!(
            stamps.unhindered(TapTime(61 * MS), 7_012, MS),
            TapTime(61 * MS),
            "a shorter way than the first"
        );
        assert_eq!(stamps.unhindered(TapTime(66 * MS), 7_016, MS).0 / MS, 65);
    }

    #[test]
    fn stamps_wrap_and_clocks_drift() {
        let mut stamps = Stamps::default();
        stamps.unhindered(TapTime(0), u32::MAX - 9, MS);
        assert_eq!(stamps.unhindered(TapTime(25 * MS), 10, MS).0 / MS, 20);
        let mut slow = Stamps::default();
        // A clock that loses 50 us a second looks like a queue that grows, and is none.
        for second in 0..100_i64 {
            let tap = second * 1_000 * MS + second * MS / 20;
            assert_eq!(slow.unhindered(TapTime(tap), second as u32 * 1_000, MS), TapTime(tap));
        }
    }
}
