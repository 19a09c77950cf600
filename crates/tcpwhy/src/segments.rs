//! Counts of segments, so that one is not taken for bytes, for frames or for the number of a round.
//!
//! [`Segments`] counts them as they are on the wire: a captured frame may hold several. [`Segments::bytes`] says how much
//! payload that many full ones have. The report and the windows that `cc` replays are plain numbers: [`Segments::get`] is
//! the one way there.

use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// A number of segments of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct Segments(u64);

impl Segments {
    /// Not one.
    pub(crate) const NONE: Self = Self(0);

    /// This many.
    #[inline]
    pub(crate) const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The plain number, for the report and for replays.
    #[inline]
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The payload of as many full ones.
    #[inline]
    pub(crate) const fn bytes(self, mss: i64) -> i64 {
        self.0.cast_signed() * mss
    }

    /// By how many the two differ.
    #[inline]
    pub(crate) const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// As the difference, at least none.
    #[inline]
    pub(crate) const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Segments {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Segments {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Segments {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Segments {
    type Output = Self;

    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Div<u64> for Segments {
    type Output = Self;

    #[inline]
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl From<Segments> for i128 {
    #[inline]
    fn from(segments: Segments) -> Self {
        Self::from(segments.0)
    }
}
