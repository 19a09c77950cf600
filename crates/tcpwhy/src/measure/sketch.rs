//! A fixed-size histogram of spans of time that answers for quantiles.
//!
//! Buckets are logarithmic with 32 to an octave, so a quantile is off by at most 1.6 % of itself
//! (the method of `HdrHistogram`). Minimum and maximum are exact. Memory is bounded by the largest
//! span: 4 bytes a bucket, at most 1,200 buckets. The first spans are kept as they are: most
//! connections never get beyond them, and need no buckets.

const SUB_BITS: u32 = 5;
/// Spans below this share bucket 0: 256 ns is finer than any capture clock's meaning.
const UNIT_BITS: u32 = 8;

/// Spans kept before buckets are laid. Ours: more than a request and
/// its response give.
const FEW: usize = 8;

/// A histogram of nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    /// The first spans, in the order they came; of no use once there are more.
    few: [i64; FEW],
    /// Empty while `few` holds all.
    counts: Vec<u32>,
    total: u64,
    least: i64,
    most: i64,
}

impl Sketch {
    /// Adds a span; negative ones count as zero.
    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    pub(crate) fn push(&mut self, ns: i64) {
        let ns = ns.max(0);
        (self.least, self.most) =
            if self.total == 0 { (ns, ns) } else { (self.least.min(ns), self.most.max(ns)) };
        if let Some(place) = self.few.get_mut(self.total as usize) {
            *place = ns;
        } else {
            if self.counts.is_empty() {
                for early in self.few {
                    self.count(early);
                }
            }
            self.count(ns);
        }
        self.total += 1;
    }

    #[expect(clippy::inline_always, reason = "it is called for each packet")]
    #[inline(always)]
    fn count(&mut self, ns: i64) {
        let bucket = bucket_of(ns);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// How many spans were added.
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// The least span.
    pub(crate) fn min(&self) -> Option<i64> {
        (self.total > 0).then_some(self.least)
    }

    /// The span that `per_mille` of a thousand do not exceed.
    pub(crate) fn quantile(&self, per_mille: u64) -> Option<i64> {
        if self.total == 0 {
            return None;
        }
        if self.least == self.most {
            return Some(self.least);
        }
        let rank = (self.total - 1) * per_mille.min(1000) / 1000;
        if self.counts.is_empty() {
            let mut few = self.few;
            let few = few.get_mut(..self.total as usize)?;
            few.sort_unstable();
            return Some(middle_of(bucket_of(few[rank as usize])).clamp(self.least, self.most));
        }
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += u64::from(*count);
            if below > rank {
                return Some(middle_of(bucket).clamp(self.least, self.most));
            }
        }
        Some(self.most)
    }
}

fn bucket_of(ns: i64) -> usize {
    let value = (ns >> (UNIT_BITS - SUB_BITS)) as u64;
    if value < 1 << SUB_BITS {
        return value as usize;
    }
    let octave = value.ilog2();
    let sub = (value >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    (((octave - SUB_BITS + 1) as usize) << SUB_BITS) + sub
}

fn middle_of(bucket: usize) -> i64 {
    let (row, sub) = ((bucket >> SUB_BITS) as u32, (bucket & ((1 << SUB_BITS) - 1)) as i64);
    let shift = UNIT_BITS - SUB_BITS;
    if row == 0 {
        return (sub << shift) + (1 << shift) / 2;
    }
    let low = ((1 << SUB_BITS) + sub) << (row - 1);
    ((low << 1) + (1 << (row - 1))) << shift >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_value_is_every_quantile() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.quantile(500), None);
        sketch.push(7_200_000);
        assert_eq!(
            (sketch.min(), sketch.quantile(0), sketch.quantile(950)),
            (Some(7_200_000), Some(7_200_000), Some(7_200_000))
        );
    }

    proptest! {
        #[test]
        fn quantiles_are_close_to_the_sorted_truth(mut spans in proptest::collection::vec(0i64..1 << 40, 1..300), per_mille in 0u64..=1000) {
            let mut sketch = Sketch::default();
            for ns in &spans {
                sketch.push(*ns);
            }
            spans.sort_unstable();
            let truth = spans[((spans.len() as u64 - 1) * per_mille / 1000) as usize];
            let got = sketch.quantile(per_mille).expect("not empty");
            prop_assert!((got - truth).abs() <= truth / 60 + 16, "{got} for {truth}");
        }
    }
}
