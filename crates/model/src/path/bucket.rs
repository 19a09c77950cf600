//! A token bucket: credit grows with time and is spent by packets (`net/sched/sch_tbf.c`,
//! `net/sched/act_police.c`). With a queue it shapes, without one it polices.

use crate::scenario::plan::TokenBucket;

/// Credit, counted in the time that the rate takes for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    rate: u64,
    /// Most credit.
    burst_ns: i64,
    credit_ns: i64,
    updated: u64,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn full(settings: TokenBucket, now: u64) -> Self {
        let rate = settings.rate.max(1);
        // Less than a frame would never let a full one pass.
        let burst_ns = span(settings.burst.max(LEAST_BURST), rate);
        Self { rate, burst_ns, credit_ns: burst_ns, updated: now }
    }

    /// A full bucket of just so much, as `act_police` has it.
    pub(super) fn exact(settings: TokenBucket) -> Self {
        let rate = settings.rate.max(1);
        let burst_ns = span(settings.burst, rate);
        Self { rate, burst_ns, credit_ns: burst_ns, updated: 0 }
    }

    /// The same bucket with other settings from now on.
    pub(super) fn change(&mut self, settings: TokenBucket, now: u64) {
        self.refill(now);
        let new = Self::full(settings, now);
        *self = Self { credit_ns: self.credit_ns.min(new.burst_ns), ..new };
    }

    /// Takes the credit for this many bytes, or says when it will be there.
    pub(super) fn take(&mut self, bytes: u32, now: u64) -> Result<(), u64> {
        self.refill(now);
        let left = self.credit_ns - span(u64::from(bytes), self.rate);
        if left < 0 {
            return Err(now + left.unsigned_abs());
        }
        self.credit_ns = left;
        Ok(())
    }

    /// Bytes that find credit now.
    pub(super) fn credit(&self, now: u64) -> u64 {
        let mut now_full = *self;
        now_full.refill(now);
        let credit_ns = u128::from(now_full.credit_ns.max(0).cast_unsigned());
        let bytes = credit_ns * u128::from(self.rate);
        (bytes / 8_000_000_000) as u64
    }

    fn refill(&mut self, now: u64) {
        let grown = i64::try_from(now - self.updated).unwrap_or(i64::MAX);
        self.credit_ns = self.credit_ns.saturating_add(grown).min(self.burst_ns);
        self.updated = now;
    }
}

/// Time that a rate takes for this many bytes.
fn span(bytes: u64, rate: u64) -> i64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate);
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// A frame of 1514 bytes and what the kernel's rounding takes, as the lab sets its buckets.
pub(super) const LEAST_BURST: u64 = 1600;

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: TokenBucket = TokenBucket { rate: 1_000_000, burst: 3_000, queue: 0 };

    #[test]
    fn credit_is_spent_and_grows_again_up_to_the_burst() {
        let mut bucket = Bucket::full(MBIT, 0);
        assert_eq!(bucket.take(1500, 0), Ok(()));
        assert_eq!(bucket.take(1500, 0), Ok(()));
        // 1500 bytes at 1 Mbit/s take 12 ms.
        assert_eq!(bucket.take(1500, 0), Err(12_000_000));
        assert_eq!(bucket.take(1500, 12_000_000), Ok(()));
        assert_eq!(bucket.take(3000, 1_000_000_000), Ok(()));
        assert_eq!(bucket.take(1, 1_000_000_000), Err(1_000_008_000));
    }
}
