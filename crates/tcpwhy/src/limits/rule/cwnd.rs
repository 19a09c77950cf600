//! The congestion window: what is left when nothing else held the sender. Its phase is told by how flights grew.

use super::Verdict;
use crate::limits::near::Near;
use crate::limits::round::Phase;
use crate::limits::sense::{LID_ROUNDS, MAY_BE_LID, PLATEAU_NS};
use crate::limits::wait::Wait;
use crate::report::State::{
    App, AppWindow, CwndAfterIdle, CwndAvoidance, CwndCachedSsthresh, CwndClamp, CwndPostLoss,
    CwndSlowStart, Sndbuf,
};

/// The congestion window held the round.
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
            return Some(Verdict::possible(CwndCachedSsthresh, &[CwndAvoidance, Sndbuf]));
        }
        // A pacing sender fills its window and its buffer alike: with pauses of its clock.
        Phase::Avoidance | Phase::Uncut if wait.is_past_pulse && near.is_paced(false) => {
            return Some(Verdict::likely(CwndAvoidance, &[Sndbuf]));
        }
        // It stands for longer than CUBIC's plateau does in most of its rounds: there may be a lid.
        Phase::Avoidance | Phase::Uncut
            if round.still.0 > MAY_BE_LID.of(PLATEAU_NS) && round.still.1 >= LID_ROUNDS as u32 =>
        {
            return Some(Verdict::likely(CwndAvoidance, &[Sndbuf, CwndClamp, AppWindow, App]));
        }
        Phase::Avoidance | Phase::Uncut => CwndAvoidance,
        Phase::Unseen => return Some(Verdict::unknown(&[CwndSlowStart, CwndAvoidance])),
    };
    Some(if round.rtt_count > 0 { Verdict::shown(state) } else { Verdict::likely(state, &[]) })
}
