//! What the capture does not show.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::wait::{Release, Wait};
use crate::report::State::{self, App, CaptureGap, Handshake, RtoWait, SynRetry, TlpWait};

/// What may have held a sender whose flight fills the least that a window can be.
pub(super) const MAY_BE_FULL: Verdict = Verdict::unknown().seen(Seen::LeastWindow);

/// The capture lacks packets, and no ACK has come since: what is in flight is not known.
pub(super) fn blind(wait: &Wait) -> Option<Verdict> {
    wait.is_blind.then_some(Verdict::unknown())
}

/// The round of the wait is not closed, and none before it: nothing tells how flights grow. It stays though `make ablation`
/// moves nothing: the rules behind it look at rounds, and there is none.
pub(super) fn round_unknown(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    (!near.is_known()).then_some(if wait.ended_by == Release::Free {
        Verdict::likely(App).seen(Seen::NoRound)
    } else {
        Verdict::unknown().seen(Seen::NoRound)
    })
}

/// A send that seems to have come by itself, where the ACK before it may have been late at the sender, which this tap
/// does not see.
pub(super) fn late_ack(wait: &Wait, _: &Near<'_>) -> Option<Verdict> {
    (wait.came_free() && wait.ack_may_be_late).then_some(Verdict::unknown().seen(Seen::LateAck))
}

/// The verdict on a wait that seems to be `state`, if the capture lacks all that the receiver sent: only repeats of
/// SYNs and the fact of a retransmission show. `is_client`: the sender is; `repairs`: the wait belongs to a loss
/// episode.
pub(crate) fn alone(state: State, is_client: bool, repairs: bool) -> Verdict {
    match state {
        CaptureGap | SynRetry => Verdict::shown(state),
        // The client's own ACK ends its handshake. What the server gets next may be late.
        Handshake if is_client => Verdict::shown(state),
        Handshake => Verdict::unknown().seen(Seen::HalfHandshake),
        _ if repairs || matches!(state, RtoWait | TlpWait) => {
            Verdict::unknown().seen(Seen::RepeatUnanswered)
        }
        _ => Verdict::unknown(),
    }
}
