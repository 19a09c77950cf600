//! How near a replay comes to what was seen.

use super::work::Work;
use super::{Replay, plan};
use crate::fit::Fit;
use crate::profile::Version;
use crate::world::{Kernels, Recorded};

/// A run by the receiver's rules, or with the windows of the capture if only that repeats it.
pub(super) fn nearer_replay(fit: &Fit, kernels: Kernels, work: &Work) -> Option<Replay> {
    let plan = &plan(fit, 1, &[]).ok()?;
    let by_rules = Recorded { offered: [None, None], ..fit.recorded.clone() };
    let by_rules = Replay::of(fit, plan, kernels, &by_rules, work).ok();
    if by_rules.as_ref().is_some_and(|replay| replay.is_near(fit)) {
        return by_rules;
    }
    let as_seen = Replay::of(fit, plan, kernels, &fit.recorded, work).ok();
    by_rules.into_iter().chain(as_seen).min_by_key(|replay| replay.distance(fit))
}

/// How far a replay is from what was seen, with the windows that were offered.
pub(super) fn distance(fit: &Fit, replay: &Replay) -> i64 {
    let windows = fit.progress.windows_apart(&replay.progress).min(1_000_000) as i64;
    replay.distance(fit) + fit.seen.busy_ns() / 1_000_000 * windows / WINDOWS
}

/// Windows that have nothing to do with those seen weigh this part of the busy time. Ours: half and twice as
/// much change nothing.
const WINDOWS: i64 = 4;

/// Where nothing tells which kernel it is.
pub(super) const USUAL: Version = Version::new(6, 1);

/// Senders before and after the change to the growth of windows (v6.1), with which guesses are tried.
pub(super) const GENERATIONS: [Version; 2] = [USUAL, Version::new(4, 18)];
