//! Instants of the two clocks by which packets are judged, so that one is not taken for the other.
//!
//! [`TapTime`] is when a packet passed the tap. [`StackTime`] is a sender's own: what comes to it is there when it passes
//! the tap, and what it sends left one whole way, to the tap and back, before that passed. So the round trip beyond the
//! tap is all that lies between the two. The report adds the constant way from the tap to the sender; there instants are
//! plain nanoseconds.
//!
//! Both count nanoseconds from the connection's first packet. Two instants of one clock differ by a plain span. One
//! clock becomes the other here alone: [`TapTime::at_stack`] and [`TapTime::left`], and back.

use core::ops::{Add, AddAssign, Sub};

macro_rules! clock {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) i64);

        impl $name {
            /// Before all that is seen.
            pub(crate) const MIN: Self = Self(i64::MIN);
            /// After all that is seen.
            pub(crate) const MAX: Self = Self(i64::MAX);

            /// As the sum, up to the end of time.
            #[inline]
            pub(crate) const fn plus(self, span: i64) -> Self {
                Self(self.0.saturating_add(span))
            }

            /// As the difference, at most the longest span there is.
            #[inline]
            pub(crate) const fn since(self, earlier: Self) -> i64 {
                self.0.saturating_sub(earlier.0)
            }
        }

        impl Add<i64> for $name {
            type Output = Self;

            #[inline]
            fn add(self, span: i64) -> Self {
                Self(self.0 + span)
            }
        }

        impl AddAssign<i64> for $name {
            #[inline]
            fn add_assign(&mut self, span: i64) {
                self.0 += span;
            }
        }

        impl Sub<i64> for $name {
            type Output = Self;

            #[inline]
            fn sub(self, span: i64) -> Self {
                Self(self.0 - span)
            }
        }

        impl Sub for $name {
            type Output = i64;

            #[inline]
            fn sub(self, earlier: Self) -> i64 {
                self.0 - earlier.0
            }
        }
    };
}

clock! {
    /// When something passed the tap.
    TapTime
}

clock! {
    /// When something happened at a sender's stack, less the constant way from the tap to there.
    StackTime
}

impl TapTime {
    /// When what passed the tap on its way to the sender was there.
    #[inline]
    pub(crate) const fn at_stack(self) -> StackTime {
        StackTime(self.0)
    }

    /// When what passed the tap left the sender's stack, `way` being that to the tap and back.
    #[inline]
    pub(crate) const fn left(self, way: i64) -> StackTime {
        StackTime(self.0 - way)
    }
}

impl StackTime {
    /// When what then was there had passed the tap.
    #[inline]
    pub(crate) const fn at_tap(self) -> TapTime {
        TapTime(self.0)
    }

    /// In the report's time, `way_in` being the constant way from the tap to the sender.
    #[inline]
    pub(crate) const fn in_report(self, way_in: i64) -> i64 {
        self.0 + way_in
    }

    /// What is at `ns` in the report's time.
    #[inline]
    pub(crate) const fn of_report(ns: i64, way_in: i64) -> Self {
        Self(ns - way_in)
    }

    /// When what then left passes the tap, `way` being that to the tap and back.
    #[inline]
    pub(crate) const fn passes(self, way: i64) -> TapTime {
        TapTime(self.0.saturating_add(way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_there_when_it_passes_and_what_goes_left_a_whole_way_before() {
        let (tap, way) = (TapTime(100), 30);
        assert_eq!((tap.at_stack(), tap.left(way)), (StackTime(100), StackTime(70)));
        assert_eq!((tap.at_stack().at_tap(), tap.left(way).passes(way)), (tap, tap));
        assert_eq!(tap.at_stack() - tap.left(way), way, "an answer at once");
    }

    #[test]
    fn sums_end_where_time_does() {
        let (first, last) = (StackTime::MIN, StackTime::MAX);
        assert_eq!((last.plus(1), last.passes(1)), (last, TapTime::MAX));
        assert_eq!(last.since(first), i64::MAX);
    }
}
