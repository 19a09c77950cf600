//! What the findings about losses share.

use super::case::{Case, Held};
use crate::report::{LossPattern, State};

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
