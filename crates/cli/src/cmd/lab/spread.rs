//! Figures over repeats and over calls.

use serde::Serialize;

/// A figure over repeats.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) struct Spread {
    /// Least.
    pub(super) min: i64,
    /// The middle one; the lower of two.
    pub(super) median: i64,
    /// Greatest.
    pub(super) max: i64,
}

impl Spread {
    /// Over `values`; all zero if there are none.
    pub(super) fn of(values: impl IntoIterator<Item = i64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_unstable();
        match (sorted.first(), sorted.last()) {
            (Some(&min), Some(&max)) => Self { min, median: sorted[(sorted.len() - 1) / 2], max },
            _ => Self::default(),
        }
    }
}

/// How long things took that were done one after the other, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) struct Times {
    /// How many, in all runs.
    pub(super) count: usize,
    /// The middle one; the lower of two.
    pub(super) median_ns: i64,
    /// Of a hundred, 95 take no longer.
    pub(super) p95_ns: i64,
}

impl Times {
    /// Of all `values`; none of none.
    pub(super) fn of(values: impl IntoIterator<Item = i64>) -> Option<Self> {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        // The nearest rank.
        let p95 = (sorted.len() * 95).div_ceil(100).saturating_sub(1);
        Some(Self { count: sorted.len(), median_ns: sorted[last / 2], p95_ns: sorted[p95] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_lower_of_two_and_one_in_twenty_takes_longer() {
        assert_eq!(Spread::of([4, 1, 3, 2]), Spread { min: 1, median: 2, max: 4 });
        assert_eq!(Times::of([]), None);
        assert_eq!(Times::of([7]), Some(Times { count: 1, median_ns: 7, p95_ns: 7 }));
        let of_40 = Times::of((1..=40).rev());
        assert_eq!(of_40, Some(Times { count: 40, median_ns: 20, p95_ns: 38 }));
    }
}
