//! What the findings about losses share.

use super::case::{Case, Held};
use crate::report::{LossPattern, RepeatCause, State, Vantage};

/// Repairs, the window cut for them, and its slow growth after the first of them (not because of a
/// loss that comes later); and what is `wanted` besides.
pub(super) fn after_losses<'a>(case: &Case<'a>, wanted: impl Fn(State) -> bool) -> Held<'a> {
    let first = case.direction.in_flight_at_loss.iter().map(|loss| loss.at_ns).min();
    let mut held = case.held(|state| {
        wanted(state)
            || matches!(state, State::RecoveryLoss | State::CwndPostLoss | State::CwndAvoidance)
    });
    held.limits.retain(|each| {
        each.state != State::CwndAvoidance || first.is_some_and(|first| each.start_ns >= first)
    });
    held
}

/// Whether the losses keep a beat.
pub(super) fn has_period(pattern: &LossPattern) -> bool {
    pattern.period_ns.is_some() || pattern.period_segments.is_some()
}

/// Losses far apart that the capture saw nothing of: one gap of a capture may lie over a loss by chance.
const FEWEST: usize = 2;

/// As many times the losses have to have passed: then a capture that misses what was lost would miss more.
const PASSED: u64 = 10;

/// Whether the capture was taken where the data comes from, and from the beginning on.
fn is_at_sender(case: &Case<'_>) -> bool {
    let connection = case.connection;
    let is_there =
        matches!((connection.vantage, case.at), (Vantage::Client, 0) | (Vantage::Server, 1));
    is_there && connection.syns.iter().all(Option::is_some)
}

/// How many repairs were the first that the capture saw of their bytes, and of how many, if that proves where the
/// originals were lost.
pub(super) fn unseen_at_sender(case: &Case<'_>) -> Option<(u64, u64)> {
    if !is_at_sender(case) {
        return None;
    }
    let direction = case.direction;
    let repairs = direction.retransmissions.iter();
    let repairs = repairs.filter(|each| !each.spurious && each.cause != RepeatCause::Syn);
    let all = repairs.clone().count() as u64;
    let unseen = repairs.filter(|each| each.originals.is_empty()).count() as u64;
    let apart = direction.in_flight_at_loss.iter().filter(|loss| loss.frame.is_none()).count();
    let is_proven = direction.events.not_captured == 0
        && apart >= FEWEST
        && unseen >= FEWEST as u64
        && unseen * 4 >= all * 3
        && direction.segments >= all * PASSED;
    is_proven.then_some((unseen, all))
}
