//! Which scenario repeats a capture: first as its packets show it, then by causes that show in their effects
//! only, each alone, the simplest first.
//!
//! A cause is looked for in steps ([`STORIES`]), each of which keeps the value by which the replay comes nearest
//! to what was seen: in its time, in each state's time, in when the bytes were acknowledged, and in the windows
//! that were offered. Causes that come nearly as near widen the answers.

use super::{Replay, Study, joined, plan, receiver};
use crate::fit::{Fit, STORIES, Story};
use crate::profile::{KernelProfile, Version};
use crate::world::{Kernels, Recorded, Side};

/// A larger transfer is tried on fewer kernels. Ours: a second of work.
const LARGE: u64 = 16 << 20;

/// Guesses come last: a kernel that repeats the capture closely without any is the better account.
pub(super) fn repeat(fit: Fit, mut runs: u64) -> Study {
    let is_large = fit.seen.bytes > LARGE;
    let usual = joined(&fit, KernelProfile::of(USUAL), KernelProfile::of(USUAL));
    if nearer_replay(&fit, usual).is_none() {
        return Study { fit, replays: Vec::new(), near: 0, guesses: 0, others: Vec::new() };
    }
    let receiver = if is_large { KernelProfile::of(USUAL) } else { receiver::by_replay(&fit) };
    let plain = Study::replayed(fit, receiver, is_large);
    if plain.is_close() {
        return plain;
    }
    // Where drivers gather packets, spacing tells nothing.
    let over_rounds = plain.fit.over_rounds();
    let receiver_then = if is_large { receiver } else { receiver::by_replay(&over_rounds) };
    let by_rounds = Study::replayed(over_rounds, receiver_then, is_large);
    // No usual receiver's rules offer such windows: whose do?
    let by_windows = receiver::by_windows(&by_rounds.fit)
        .filter(|_| !is_large)
        .map(|(fit, receiver)| Study::replayed(fit, receiver, is_large));
    // Then no cause has to stand for a kernel or a driver.
    if plain.near == 0
        && let Some(study) = by_windows.as_ref().filter(|study| study.repeats())
    {
        return study.clone();
    }
    let most = runs;
    let mut told: Vec<Told> = Vec::new();
    for version in GENERATIONS {
        let kernels = joined(&plain.fit, KernelProfile::of(version), receiver);
        told.extend(STORIES.iter().map(|story| tell(&plain.fit, story, kernels, &mut runs)));
    }
    // Of the same distance the simpler one comes first.
    told.sort_by_key(|each| each.distance);
    let guessed = told.first().map(|best| Study::replayed(best.fit.clone(), receiver, is_large));
    let all = guessed.into_iter().chain(by_windows).chain([by_rounds, plain.clone()]);
    let mut best = all.min_by_key(Study::rank).unwrap_or(plain);
    best.guesses = most - runs;
    best.others = others(&best.fit, told);
    best
}

/// A cause with the values by which its replay comes nearest.
struct Told {
    distance: i64,
    fit: Fit,
    kernels: Kernels,
}

/// The causes that repeat what was seen, and are not much farther from it than the nearest.
fn others(best: &Fit, told: Vec<Told>) -> Vec<(Fit, Kernels)> {
    let Some(nearest) = told.first().map(|each| each.distance) else { return Vec::new() };
    let most = 2 * nearest + best.seen.busy_ns() / SIMPLER;
    let near = told.into_iter().filter(|each| each.distance <= most && each.fit != *best);
    let repeats = near.filter(|each| {
        distance_and_replay(&each.fit, each.kernels)
            .is_some_and(|(_, replay)| replay.is_near(&each.fit))
    });
    repeats.take(OTHERS).map(|each| (each.fit, each.kernels)).collect()
}

impl Study {
    /// What comes first answers, then what is nearest.
    fn rank(&self) -> (bool, bool, i64) {
        let answers = self.repeats() && self.rules_hold();
        let distance = self.nearest().map_or(i64::MAX, |replay| distance(&self.fit, replay));
        (!answers, !self.repeats(), distance)
    }

    /// It repeats the capture by the rules of its receiver, and hardly differs from it at all.
    fn is_close(&self) -> bool {
        let Some(nearest) = self.nearest() else { return false };
        self.repeats()
            && self.rules_hold()
            && nearest.distance(&self.fit) <= self.fit.seen.busy_ns() / CLOSE
            && self.fit.progress.windows_apart(&nearest.progress) <= CLOSE_WINDOWS
    }

    /// The replays of a fit on each kernel.
    pub(super) fn replayed(fit: Fit, receiver: KernelProfile, is_large: bool) -> Self {
        let senders = KernelProfile::KNOWN.into_iter();
        let senders = senders
            .filter(|version| !is_large || KernelProfile::HELD_AGAINST_KERNELS.contains(version));
        let run = |version| nearer_replay(&fit, joined(&fit, KernelProfile::of(version), receiver));
        let mut replays: Vec<Replay> = senders.filter_map(run).collect();
        // Of those that are as near the one that was held against its kernel comes first.
        let noise = (fit.seen.busy_ns() / SAME).max(1);
        replays.sort_by_key(|replay| {
            let distance = replay.distance(&fit);
            let sender = match fit.sender {
                Side::Client => replay.kernels.client.version,
                Side::Server => replay.kernels.server.version,
            };
            (distance / noise, !KernelProfile::HELD_AGAINST_KERNELS.contains(&sender), distance)
        });
        let near = replays.iter().take_while(|replay| replay.is_near(&fit)).count();
        Self { fit, replays, near, guesses: 0, others: Vec::new() }
    }
}

/// A run by the receiver's rules, or with the windows of the capture if only that repeats it.
pub(super) fn nearer_replay(fit: &Fit, kernels: Kernels) -> Option<Replay> {
    let plan = &plan(&fit.scenario(1), &[]).ok()?;
    let by_rules = Recorded { offered: [None, None], ..fit.recorded.clone() };
    let by_rules = Replay::of(fit, plan, kernels, &by_rules).ok();
    if by_rules.as_ref().is_some_and(|replay| replay.is_near(fit)) {
        return by_rules;
    }
    let as_seen = Replay::of(fit, plan, kernels, &fit.recorded).ok();
    by_rules.into_iter().chain(as_seen).min_by_key(|replay| replay.distance(fit))
}

/// The fit by one cause, as far as the runs go that are left.
fn tell(fit: &Fit, story: Story, kernels: Kernels, runs: &mut u64) -> Told {
    let mut distance = |fit: &Fit| {
        let Some(left) = runs.checked_sub(1) else { return FAR };
        *runs = left;
        distance_by_rules(fit, kernels)
    };
    let plain = (distance(fit), fit.clone());
    let (distance, fit) = story.iter().fold(plain, |(without, fit), group| {
        let tried = group(&fit).into_iter().map(|guess| fit.with(guess));
        let best = tried.map(|fit| (distance(&fit), fit)).min_by_key(|(distance, _)| *distance);
        match best {
            Some((with, better)) if with < without - fit.seen.busy_ns() / WORTH => (with, better),
            _ => (without, fit),
        }
    });
    let is_simplest = core::ptr::eq(story, STORIES[0]);
    let more = if is_simplest { 0 } else { fit.seen.busy_ns() / SIMPLER };
    Told { distance: distance.saturating_add(more), fit, kernels }
}

/// How far a replay by the receiver's rules is from what was seen. Losses of the capture that a full queue or
/// a policer made explain nothing.
fn distance_by_rules(fit: &Fit, kernels: Kernels) -> i64 {
    let unexplained = fit.losses_follow_load && fit.repeats_losses();
    let more = if unexplained { fit.seen.busy_ns() } else { 0 };
    distance_and_replay(fit, kernels).map_or(FAR, |(distance, _)| distance + more)
}

fn distance_and_replay(fit: &Fit, kernels: Kernels) -> Option<(i64, Replay)> {
    let plan = plan(&fit.scenario(1), &[]).ok()?;
    let by_rules = Recorded { offered: [None, None], ..fit.recorded.clone() };
    let replay = Replay::of(fit, &plan, kernels, &by_rules).ok()?;
    Some((distance(fit, &replay), replay))
}

/// With the windows that were offered.
pub(super) fn distance(fit: &Fit, replay: &Replay) -> i64 {
    let windows = fit.progress.windows_apart(&replay.progress).min(1_000_000) as i64;
    replay.distance(fit) + fit.seen.busy_ns() / 1_000_000 * windows / WINDOWS
}

/// What has no replay.
const FAR: i64 = i64::MAX / 4;

/// Other causes that answer, too. Ours: more say the same.
const OTHERS: usize = 3;

/// Replays whose distances differ by less than this part of the busy time are as near. Ours.
const SAME: i64 = 200;

/// A replay that differs by less than this part of the busy time leaves nothing to guess. Ours.
const CLOSE: i64 = 50;

/// The same of its windows, in millionths. Ours: what kernels and drivers do differently.
const CLOSE_WINDOWS: u64 = 100_000;

/// A guess has to bring the replay nearer by more than this part of the busy time. Ours: less is
/// noise of the clocks.
const WORTH: i64 = 500;

/// Windows that have nothing to do with those seen weigh this part of the busy time. Ours.
const WINDOWS: i64 = 4;

/// A cause besides the link has to bring it nearer by more than this part. Ours.
const SIMPLER: i64 = 100;

/// Where nothing tells which kernel it is.
pub(super) const USUAL: Version = Version::new(6, 1);

/// Senders before and after the change to the growth of windows (v6.1), with which guesses are tried.
pub(super) const GENERATIONS: [Version; 2] = [USUAL, Version::new(4, 18)];
