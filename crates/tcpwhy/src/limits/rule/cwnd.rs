//! The congestion window: what is left when nothing else held the sender. Growth of the flights shows its phase.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::round::Phase;
use crate::limits::sense::{LID_ROUNDS, MAY_BE_LID, PLATEAU_NS, UNCUT_LID_ROUNDS};
use crate::limits::wait::Wait;
use crate::report::State::{
    CwndAfterIdle, CwndAvoidance, CwndCachedSsthresh, CwndPostLoss, CwndSlowStart,
};

/// Nothing else is left, so the congestion window held the round. How flights grew tells its phase: slow start,
/// avoidance, and growing back after a loss, after a pause or to a remembered threshold.
#[expect(clippy::unnecessary_wraps, reason = "it is a rule as the others are")]
pub(super) fn holds(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let state = match round.phase {
        Phase::SlowStart => CwndSlowStart,
        Phase::AfterLoss => CwndPostLoss,
        Phase::AfterIdle => CwndAfterIdle,
        // Told by elimination: no loss, no delay, no train of ACKs ended slow start. Linux since
        // 5.6 remembers no threshold unless asked to (`tcp_no_ssthresh_metrics_save`).
        Phase::Cached => {
            return Some(Verdict::possible(CwndCachedSsthresh).seen(Seen::NoSign));
        }
        // A pacing sender fills its window and its buffer alike: with pauses of its clock.
        Phase::Avoidance | Phase::Uncut if wait.is_past_pulse && near.is_paced(false) => {
            return Some(Verdict::likely(CwndAvoidance).seen(Seen::PacedFlight));
        }
        // It stays the same for longer than CUBIC's plateau does in most of its rounds, or for as many as would be a lid
        // if no loss had cut it: there may be one.
        Phase::Avoidance | Phase::Uncut if may_have_lid(round.still) => {
            return Some(Verdict::likely(CwndAvoidance).seen(Seen::StillFlight));
        }
        Phase::Avoidance | Phase::Uncut => CwndAvoidance,
        Phase::Unseen => return Some(Verdict::unknown().seen(Seen::NoPhase)),
    };
    Some(if round.rtt_count > 0 { Verdict::shown(state) } else { Verdict::likely(state) })
}

/// Whether a flight that has stood still for this time, and these rounds, may have another lid.
fn may_have_lid((span, rounds): (i64, u32)) -> bool {
    let is_long = span > MAY_BE_LID.of(PLATEAU_NS) && rounds >= LID_ROUNDS as u32;
    is_long || rounds >= UNCUT_LID_ROUNDS
}
