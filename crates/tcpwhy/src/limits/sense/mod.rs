//! Every threshold that judges, once: its value, where it comes from, and who reads it.
//!
//! A source is a kernel's function and version, a section of an RFC or of limits-method; a number of ours says `Ours:`
//! and what speaks for it, or that nothing was measured. Its readers come last, behind `For`; `tests/rooms.rs` holds
//! that line to the code, and finds numbers that are elsewhere in `limits`.
//!
//! ```text
//! timers   when a timer ran out, what is at once, what a receiver may delay
//! windows  the receiver's window, its reader, the congestion window and its growth
//! link     queues, rates, spacing
//! program  pulses, writes, pauses
//! kept     how much is remembered, so that memory is bounded
//! ```

mod kept;
mod link;
mod program;
mod timers;
mod windows;

pub(crate) use self::kept::*;
pub(crate) use self::link::*;
pub(crate) use self::program::*;
pub(crate) use self::timers::*;
pub(crate) use self::windows::*;

use crate::clocks::StackTime;
use crate::offsets::Offset;
use core::ops::{Div, Mul};

/// Before any offset of a connection ([`crate::flow::connection::Flow`] clamps them to a quarter of this),
/// and far enough from the end of the numbers for sums and percentages. For `quick/burst`, `quick/turns`, `sender`,
/// `sender/book`, `sender/sends`, `sender/silence`, `sender/window`.
pub(crate) const NOWHERE: Offset = Offset::at(-(1 << 55));

/// Before any time of a connection, as far from it. For `pulse`, `quick/burst`, `sender`, `sender/book`, `sender/sends`,
/// `sender/silence`, `sender/timers`, `sender/window`.
pub(crate) const NEVER: StackTime = StackTime(-(1 << 55));

/// Nanoseconds in a second: a rate is in bytes per second. For `near/rate`, `near/spacing`, `round`.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// A share of a whole: the first number of parts of the second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(u32, u32);

impl Share {
    /// Whether `part` is no less than this share of `whole`.
    #[inline]
    pub(crate) fn is_reached(self, part: impl Into<i128>, whole: impl Into<i128>) -> bool {
        part.into() * i128::from(self.1) >= whole.into() * i128::from(self.0)
    }

    /// Whether `part` is no more than this share of `whole`.
    #[inline]
    pub(crate) fn is_kept(self, part: impl Into<i128>, whole: impl Into<i128>) -> bool {
        part.into() * i128::from(self.1) <= whole.into() * i128::from(self.0)
    }

    /// This share of `whole`, rounded towards zero.
    #[inline]
    pub(crate) fn of<T: From<u32> + Mul<Output = T> + Div<Output = T>>(self, whole: T) -> T {
        whole * T::from(self.0) / T::from(self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_reached_and_kept_at_its_border() {
        let third = Share(1, 3);
        let told = |part: i64| (third.is_reached(part, 9), third.is_kept(part, 9));
        assert_eq!([2, 3, 4].map(told), [(false, true), (true, true), (true, false)]);
        assert_eq!((third.of(11_i64), third.of(-11_i64), third.of(11_u64)), (3, -3, 3));
        assert!(third.is_kept(i64::MAX, i128::MAX / 4), "no product overflows");
    }
}
