//! What a wait is asked with, and what is answered.

use super::piece::Edge;
use crate::report::State;

/// What a send waited behind that an ACK released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) edge: Edge,
    /// The ACK came on data of the peer.
    pub(crate) by_data: bool,
    /// A clock of the sender's own would have let it go before.
    pub(crate) past_pulse: bool,
    /// ACKs before that would have let it go if the congestion window had been full.
    pub(crate) passed_over: bool,
}

/// What the packets of a round allow to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision {
    pub(crate) state: State,
    pub(crate) confidence: u8,
    pub(crate) alternative: &'static [State],
    pub(crate) queue: i64,
}

pub(super) fn decision(
    state: State,
    confidence: u8,
    alternative: &'static [State],
    queue: i64,
) -> Decision {
    Decision { state, confidence, alternative, queue }
}
