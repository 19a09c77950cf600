//! Pieces of time that are not yet decided.
//!
//! Between two events nothing changes, so time falls into pieces with one base each. What a piece
//! was spent on is often known only later: a wait belongs to what released the next send, a
//! repair is a repair only if something was sent again, and bandwidth is told from the
//! congestion window only after two more rounds. Pieces wait here until that is known.

use super::evidence::Evidence;
use crate::report::State;

/// How much of the receiver's window was left at a stop. Linux waits for a third to open before it sends less than
/// a super-segment (`tcp_tso_should_defer`, `tcp_tso_win_divisor`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Edge {
    Far,
    /// Less than a third if it is the least window that can be, for its scale is a guess.
    PerhapsNear,
    /// Less than a third, and then it is this.
    Near(State),
}

impl Edge {
    /// What the window is if it may have held the sender.
    pub(super) fn near(self) -> Option<State> {
        match self {
            Self::Near(state) => Some(state),
            Self::Far | Self::PerhapsNear => None,
        }
    }

    pub(super) fn may_be_near(self) -> bool {
        self != Self::Far
    }
}

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
    Fixed { state: State, confidence: u8, alternative: &'static [State] },
    /// An ACK released the next send, the receiver's window was open: decided by rounds.
    /// `edge`: how much of that was left; `past_pulse`: a clock of the sender's own would have let it go before;
    /// `passed_over`: earlier ACKs would have let it go if the congestion window had been full.
    Clocked { round: u64, edge: Edge, by_data: bool, past_pulse: bool, passed_over: bool },
    /// The next send came by itself while data was in flight: decided by rounds. `by_ack`: unless an ACK came late
    /// to the sender, and let it go; `whole`: the send before did not end as writes do, with a short segment.
    Free { round: u64, by_ack: bool, whole: bool },
}

impl Base {
    /// A decided state without rival.
    pub(crate) const fn sure(state: State, confidence: u8) -> Self {
        Self::Fixed { state, confidence, alternative: &[] }
    }

    /// Whether the wait it belongs to is still open.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Flying | Self::Quiet | Self::Shut)
    }
}

/// A piece of time on the sender's timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) base: Base,
    /// Loss episode it falls into, 0 for none.
    pub(crate) episode: u32,
    /// The receiver's window had no room for a segment.
    pub(crate) at_edge: bool,
    pub(crate) evidence: Evidence,
}
