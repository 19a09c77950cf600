//! Pieces of time that are not yet decided.
//!
//! Between two events nothing changes, so time falls into pieces with one base each. What a piece
//! was spent on is often known only later: a wait belongs to what released the next send, a
//! repair is a repair only if something was retransmitted, and two more rounds tell bandwidth from
//! the congestion window. Pieces wait here until that is known.

use crate::clocks::StackTime;
use crate::limits::evidence::Evidence;
use crate::limits::rule::Verdict;
use crate::limits::wait::Wait;
use crate::report::State;

/// What is known of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Base {
    /// Data in flight, the next send not yet seen.
    Flying,
    /// Nothing in flight, the next sender not yet seen.
    Quiet,
    /// The receiver's window takes no segment.
    Shut,
    /// Decided.
    Told(Verdict),
    /// The send that ended it does not tell: decided by the rounds around it.
    Untold(Wait),
}

impl Base {
    /// A decided state without rival.
    pub(crate) const fn shown(state: State) -> Self {
        Self::Told(Verdict::shown(state))
    }

    /// Whether the wait it belongs to is still open.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Flying | Self::Quiet | Self::Shut)
    }
}

/// A piece of time on the sender's timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: StackTime,
    pub(crate) end: StackTime,
    pub(crate) base: Base,
    /// Loss episode it falls into, 0 for none.
    pub(crate) episode: u32,
    /// The receiver's window had no room for a segment.
    pub(crate) at_edge: bool,
    /// In a repair, something was sent behind it that no arrival let out.
    pub(crate) by_itself: bool,
    pub(crate) evidence: Evidence,
}
