//! Places in a stream of bytes, so that a place is not taken for a length.
//!
//! An [`Offset`] counts bytes of one direction from the first behind its SYN. Two offsets differ by a plain count of
//! bytes. An offset and a count make an offset. Two offsets make no sum. The report has plain numbers: [`Offset::get`]
//! is the one way there.

use core::ops::{Add, AddAssign, Sub};

/// A place in one direction's stream: the first byte behind the SYN is at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct Offset(i64);

impl Offset {
    /// Before all bytes.
    pub(crate) const MIN: Self = Self(i64::MIN);
    /// Behind all bytes.
    pub(crate) const MAX: Self = Self(i64::MAX);
    /// The first byte's.
    pub(crate) const FIRST: Self = Self(0);

    /// The offset behind the first `bytes` of the stream.
    #[inline]
    pub(crate) const fn at(bytes: i64) -> Self {
        Self(bytes)
    }

    /// As the sum, up to the last offset there is.
    #[inline]
    pub(crate) const fn plus(self, bytes: i64) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// As the difference, at most the most bytes there are.
    #[inline]
    pub(crate) const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// As the difference, if it can be told.
    #[inline]
    pub(crate) const fn checked_since(self, earlier: Self) -> Option<i64> {
        self.0.checked_sub(earlier.0)
    }

    /// The plain number, for the report.
    #[inline]
    pub(crate) const fn get(self) -> i64 {
        self.0
    }
}

impl Add<i64> for Offset {
    type Output = Self;

    #[inline]
    fn add(self, bytes: i64) -> Self {
        Self(self.0 + bytes)
    }
}

impl AddAssign<i64> for Offset {
    #[inline]
    fn add_assign(&mut self, bytes: i64) {
        self.0 += bytes;
    }
}

impl Sub<i64> for Offset {
    type Output = Self;

    #[inline]
    fn sub(self, bytes: i64) -> Self {
        Self(self.0 - bytes)
    }
}

impl Sub for Offset {
    type Output = i64;

    #[inline]
    fn sub(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}
