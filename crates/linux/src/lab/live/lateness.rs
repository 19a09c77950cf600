//! How late the emulator is, and whether a run may be believed.
//!
//! Two things are counted in buckets of at most 1/32 relative width, so that memory does not grow:
//! packets that left after they were due, and beats of a regular alarm that came late. The beats
//! are what tells of a thread that slept while packets *arrived*: those carry no time of their own.
//! A packet found behind a late beat is taken to be as late as that; a pause counts once for every
//! beat it swallowed.

use crate::lab::backend::Lateness;

/// Ours: with this much of jitter added, the order of events within a round trip of 2 ms and the
/// length of bursts stay as they are without (lab-facts: FIFO gives 0.03 ms, a plain thread 4 ms).
pub(super) const LIMIT_NS: u64 = 300_000;

/// The same for beats; most beats meet no packet. Ours: three times that, so that what is lost on a
/// machine at work by code of the kernel that cannot be interrupted is not held against a run.
pub(super) const BEAT_LIMIT_NS: u64 = 1_000_000;

/// Time between beats. Ours: a fifth of a scheduler's slice at HZ=250, for 0.1 % of a processor.
pub(super) const BEAT_NS: u64 = 1_000_000;

const FINE_BITS: u32 = 5;
const FINE: usize = 1 << FINE_BITS;
const BUCKETS: usize = (64 - FINE_BITS as usize + 1) * FINE;

/// Counted delays.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    counts: Box<[u64]>,
    all: u64,
    max_ns: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), all: 0, max_ns: 0 }
    }
}

impl Delays {
    /// Counts one.
    pub(super) fn add(&mut self, delay_ns: u64) {
        self.counts[bucket(delay_ns)] += 1;
        self.all += 1;
        self.max_ns = self.max_ns.max(delay_ns);
    }

    /// Counts an alarm that came `delay_ns` late, and each that should have come meanwhile.
    pub(super) fn add_beat(&mut self, delay_ns: u64) {
        self.add(delay_ns);
        for missed in 1..=(delay_ns / BEAT_NS).min(MOST_MISSED) {
            self.add(delay_ns - missed * BEAT_NS);
        }
    }

    /// The figures; a quantile is the upper end of its bucket, so never too small.
    pub(super) fn lateness(&self) -> Lateness {
        Lateness {
            p50_ns: self.quantile(1, 2),
            p99_ns: self.quantile(99, 100),
            max_ns: self.max_ns,
        }
    }

    fn quantile(&self, part: u64, of: u64) -> u64 {
        let rank = (self.all * part).div_ceil(of);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && *count > 0 {
                return upper_end(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// Ours: after a pause of ten minutes nobody needs more counts to distrust the run.
const MOST_MISSED: u64 = 600_000;

fn bucket(value: u64) -> usize {
    let shift = (64 - FINE_BITS).saturating_sub(value.leading_zeros() + 1) as usize;
    let shift = if value < FINE as u64 { 0 } else { shift + 1 };
    // Above the first row, the leading bit is implied by the row.
    let fine = if shift == 0 { value as usize } else { (value >> (shift - 1)) as usize - FINE };
    shift * FINE + fine
}

fn upper_end(bucket: usize) -> u64 {
    let (shift, fine) = (bucket / FINE, bucket % FINE);
    if shift == 0 {
        return fine as u64;
    }
    let start = ((FINE + fine) as u64) << (shift - 1);
    start + ((1_u64 << (shift - 1)) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn buckets_are_narrow(value: u64) {
            let end = upper_end(bucket(value));
            prop_assert!(end >= value);
            prop_assert!(end - value <= value / FINE as u64);
        }

        #[test]
        fn buckets_are_in_order(value in 0_u64..u64::MAX) {
            prop_assert!(bucket(value) <= bucket(value + 1));
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_delays(
            delays in proptest::collection::vec(0_u64..10_000_000, 1..300),
        ) {
            let mut counted = Delays::default();
            for delay in &delays {
                counted.add(*delay);
            }
            let mut sorted = delays;
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() * 99).div_ceil(100) - 1];
            let told = counted.lateness();
            prop_assert!(told.p99_ns >= exact && told.p99_ns <= exact + exact / 32);
            prop_assert_eq!(told.max_ns, sorted[sorted.len() - 1]);
        }
    }

    #[test]
    fn a_long_pause_outweighs_many_punctual_beats() {
        // 1 s of beats, one pause of 20 ms in it: 2 % of the time.
        let mut beats = Delays::default();
        (0..980).for_each(|_| beats.add_beat(1_000));
        beats.add_beat(20 * BEAT_NS);
        assert!(beats.lateness().p99_ns > BEAT_LIMIT_NS, "{:?}", beats.lateness());
    }

    #[test]
    fn nothing_counted_is_not_late() {
        assert_eq!(Delays::default().lateness(), Lateness::default());
    }
}
