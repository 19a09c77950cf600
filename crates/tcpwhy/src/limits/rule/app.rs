//! The sending application: it had written no more.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::wait::{Lull, Wait};
use crate::report::State::{App, IdleAppThink, IdlePeerThink, LastFlight, Receiving};

/// One flight after the other was written late by the same time, as seen from afar; or its
/// buffer was full, and the way of the ACKs is longer than the least that is known. It stays though `make ablation` moves
/// nothing: nothing else says that such a program may be a buffer.
pub(super) fn late_each_time(wait: &Wait) -> Option<Verdict> {
    (wait.is_by_itself_after_all() && wait.late_each_time)
        .then_some(Verdict::likely(App).seen(Seen::LateFromAfar))
}

/// Nothing was in flight, and one flight after the other was written late by the same time, as seen from afar. It stays
/// for the same reason: nothing else says that a full buffer is as late.
pub(super) fn writes_late_each_time(wait: &Wait) -> Option<Verdict> {
    wait.late_each_time.then_some(Verdict::likely(IdleAppThink).seen(Seen::LateFromAfar))
}

/// All was acknowledged, and the next send came by itself: if that goes on with the same transfer, its application had
/// written no more. Away from the sender it may be the tail of the transfer, retransmitted: that was lost before the tap.
pub(super) fn all_acknowledged(wait: &Wait) -> Option<Verdict> {
    let state = if wait.at_sender && wait.goes_on { App } else { LastFlight };
    wait.is_by_itself_after_all().then_some(Verdict::shown(state))
}

/// Nothing was in flight, and nothing that arrived let the next send out.
#[expect(clippy::unnecessary_wraps, reason = "it is a rule as the others are")]
pub(super) fn thinks(_: &Wait) -> Option<Verdict> {
    Some(Verdict::shown(IdleAppThink))
}

/// Data came by a timer that knows no rate and waits for no ACK: a program wrote it so, and neither a buffer nor a window
/// nor a pace does ([`crate::limits::beat`]).
pub(super) fn by_a_timer(_: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let is_open = round.edge_flight == 0 && !round.fills_window();
    (is_open && near.beats_are_written()).then_some(Verdict::likely(App).seen(Seen::Beats))
}

/// A send came by itself while data was in flight. Who fills the receiver's window has more to send, and need not have
/// written it just then; what ends with a whole segment is seldom the end of a write.
pub(super) fn by_itself(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    if !wait.came_free() {
        return None;
    }
    let round = near.this();
    let has_more = round.edge_flight > 0 && round.edge_flight >= round.flight;
    Some(if wait.ended_whole || has_more {
        Verdict::likely(App).seen(Seen::WholeEnd)
    } else {
        Verdict::likely(App)
    })
}

/// What a side waited for that was silent until the peer's data came.
pub(crate) fn silence_of_peer(silence: Lull) -> Verdict {
    match silence {
        Lull::Flow => Verdict::shown(Receiving),
        Lull::Peer => Verdict::shown(IdlePeerThink),
        // A server's handshake may end with this: the capture lacks it.
        Lull::FirstOfCapture => Verdict::likely(IdlePeerThink).seen(Seen::FirstOfCapture),
    }
}
