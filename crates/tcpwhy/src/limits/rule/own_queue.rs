//! The queue on the sender's own host: a queueing discipline, a driver's ring.
//!
//! TCP keeps a millisecond's worth or two super-segments there (`tcp_small_queue_check`), and sends more as that leaves.

use super::Verdict;
use crate::limits::near::Near;
use crate::limits::wait::Wait;
use crate::report::State;

/// What was sent last had not left the host when the next came.
pub(super) fn stood_there(wait: &Wait) -> Option<Verdict> {
    wait.in_own_queue.then_some(Verdict::likely(State::LocalQdisc))
}

/// Each send of the round stood in a queue of its own host: a burst's own serialisation does not count. It stays though
/// `make ablation` has none: three of 60 runs of `lab accuracy` wait so for 121 ms.
pub(super) fn stood_all_along(_: &Wait, near: &Near<'_>) -> Option<Verdict> {
    near.own_queue().map(|_| Verdict::likely(State::LocalQdisc))
}
