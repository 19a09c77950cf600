//! Which scenario repeats a capture: first as its packets show it, then by causes that show in their effects
//! only, each alone, the simplest first.
//!
//! A cause is looked for in steps ([`STORIES`]). Each step keeps the value by which the replay comes nearest to what
//! was seen: in its time, in each state's time, in when the bytes were acknowledged, and in the windows that were
//! offered. Causes that come nearly as near widen the answers.
//!
//! Of the thresholds here and in `fit` that say so each was halved and doubled, alone, on the captures of
//! `make whatif EACH=2 SEED=39` (Linux 6.1): the same 15 of 22 were repeated, with 31 of 34 answers in range (before
//! drops and drivers had ranges of their own). Far from what they are they matter: with `CLOSE` 1 and `WORTH` 3 it
//! is 12 captures.

use super::near::{GENERATIONS, USUAL, distance, nearer_replay};
use super::work::Work;
use super::{Replay, Study, joined, plan, receiver};
use crate::fit::{Fit, STORIES, Story};
use crate::profile::KernelProfile;
use crate::world::{Kernels, Recorded, Side};

/// A larger transfer is tried on fewer kernels. Ours: a second of work.
const LARGE: u64 = 16 << 20;

/// Guesses come last: a kernel that repeats the capture closely without any is the better account.
pub(super) fn repeat(fit: Fit, work: &Work) -> Study {
    let is_large = fit.seen.bytes > LARGE;
    let usual = joined(&fit, KernelProfile::of(USUAL), KernelProfile::of(USUAL));
    if nearer_replay(&fit, usual, work).is_none() {
        return Study::without_replays(fit);
    }
    let a_replay = work.spent();
    let receiver_of = |fit: &Fit| {
        if is_large { KernelProfile::of(USUAL) } else { receiver::by_replay(fit, work) }
    };
    let receiver = receiver_of(&fit);
    let plain = Study::replayed(fit, receiver, is_large, work);
    if plain.is_close() {
        return plain;
    }
    // Where drivers gather packets, spacing tells nothing.
    let over_rounds = plain.fit.over_rounds();
    let receiver_then = receiver_of(&over_rounds);
    let by_rounds = Study::replayed(over_rounds, receiver_then, is_large, work);
    // No usual receiver's rules offer such windows: whose do?
    let by_windows = if is_large { None } else { receiver::by_windows(&by_rounds.fit, work) };
    let by_windows =
        by_windows.map(|(fit, receiver)| Study::replayed(fit, receiver, is_large, work));
    // Then no cause has to stand for a kernel or a driver.
    if plain.near == 0
        && let Some(study) = by_windows.as_ref().filter(|study| study.repeats_closely())
    {
        return study.clone();
    }
    let reserve = a_replay * AFTER_GUESSES;
    let mut told = work.but(reserve, |work| told(&plain.fit, receiver, work));
    let best = told.first().map(|best| best.fit.clone());
    let guessed = best.map(|fit| Study::replayed(fit, receiver, is_large, work));
    let all: Vec<Study> =
        guessed.into_iter().chain(by_windows).chain([by_rounds, plain.clone()]).collect();
    told.extend(all.iter().filter_map(Study::told));
    let mut best = all.into_iter().min_by_key(Study::rank).unwrap_or(plain);
    best.others = others(&best, told, work);
    best
}

/// A cause with the values by which its replay comes nearest.
struct Told {
    distance: i64,
    fit: Fit,
    kernels: Kernels,
}

/// Each cause alone, the one whose replay comes nearest first.
fn told(fit: &Fit, receiver: KernelProfile, work: &Work) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    for version in GENERATIONS {
        let kernels = joined(fit, KernelProfile::of(version), receiver);
        told.extend(STORIES.iter().map(|story| tell(fit, story, kernels, work)));
    }
    told.retain(|each| each.distance < FAR);
    // Of the same distance the simpler one comes first.
    told.sort_by_key(|each| each.distance);
    told
}

/// The accounts that repeat what was seen, and are not much farther from it than the nearest; of the same fit
/// the nearest.
fn others(best: &Study, mut told: Vec<Told>, work: &Work) -> Vec<(Fit, Kernels)> {
    told.sort_by_key(|each| each.distance);
    let Some(nearest) = told.first().map(|each| each.distance) else { return Vec::new() };
    let most = 2 * nearest + best.fit.seen.busy_ns() / SIMPLER;
    let mut others: Vec<(Fit, Kernels)> = Vec::new();
    for Told { fit, kernels, .. } in told.into_iter().filter(|each| each.distance <= most) {
        let is_known = fit == best.fit || others.iter().any(|(other, _)| *other == fit);
        if others.len() < OTHERS
            && !is_known
            && distance_and_replay(&fit, kernels, work).is_some_and(|(_, own)| own.is_near(&fit))
        {
            others.push((fit, kernels));
        }
    }
    others
}

impl Study {
    /// What comes first answers, then what is nearest.
    fn rank(&self) -> (bool, bool, i64) {
        let answers = self.repeats_closely() && self.rules_hold();
        let distance = self.nearest().map_or(i64::MAX, |replay| distance(&self.fit, replay));
        (!answers, !self.repeats_closely(), distance)
    }

    /// Its nearest replay, as a cause among others.
    fn told(&self) -> Option<Told> {
        let nearest = self.nearest().filter(|_| self.repeats_closely() && self.rules_hold())?;
        let (fit, kernels) = (self.fit.clone(), nearest.kernels);
        Some(Told { distance: distance(&fit, nearest), fit, kernels })
    }

    /// It repeats the capture by the rules of its receiver, and hardly differs from it at all.
    fn is_close(&self) -> bool {
        let Some(nearest) = self.nearest() else { return false };
        self.repeats_closely()
            && self.rules_hold()
            && nearest.distance(&self.fit) <= self.fit.seen.busy_ns() / CLOSE
            && self.fit.progress.windows_apart(&nearest.progress) <= CLOSE_WINDOWS
    }

    /// The replays of a fit on each kernel.
    pub(super) fn replayed(fit: Fit, receiver: KernelProfile, is_large: bool, work: &Work) -> Self {
        let senders = KernelProfile::KNOWN.into_iter();
        let senders = senders
            .filter(|version| !is_large || KernelProfile::HELD_AGAINST_KERNELS.contains(version));
        let kernels = |version| joined(&fit, KernelProfile::of(version), receiver);
        let run = |version| nearer_replay(&fit, kernels(version), work);
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
        Self { replays, near, ..Self::without_replays(fit) }
    }

    const fn without_replays(fit: Fit) -> Self {
        Self {
            fit,
            replays: Vec::new(),
            near: 0,
            work: 0,
            was_cut_short: false,
            others: Vec::new(),
        }
    }
}

/// The fit by one cause, as far as the work goes that is left.
fn tell(fit: &Fit, story: Story, kernels: Kernels, work: &Work) -> Told {
    let distance = |fit: &Fit| distance_by_rules(fit, kernels, work);
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
fn distance_by_rules(fit: &Fit, kernels: Kernels, work: &Work) -> i64 {
    let unexplained = fit.losses_follow_load && fit.repeats_losses();
    let more = if unexplained { fit.seen.busy_ns() } else { 0 };
    distance_and_replay(fit, kernels, work).map_or(FAR, |(distance, _)| distance + more)
}

fn distance_and_replay(fit: &Fit, kernels: Kernels, work: &Work) -> Option<(i64, Replay)> {
    let plan = plan(fit, 1, &[]).ok()?;
    let by_rules = Recorded { offered: [None, None], ..fit.recorded.clone() };
    let replay = Replay::of(fit, &plan, kernels, &by_rules, work).ok()?;
    Some((distance(fit, &replay), replay))
}

/// Work that is kept for what follows guesses, in replays by the rules and with the windows seen: eight kernels
/// of the sender with the values that were found, and the other causes once more.
const AFTER_GUESSES: u64 = 10;

/// What has no replay.
const FAR: i64 = i64::MAX / 4;

/// Other causes that answer, too. Ours: more say the same.
const OTHERS: usize = 3;

/// Replays whose distances differ by less than this part of the busy time are as near. Ours: half
/// and twice as much change nothing.
const SAME: i64 = 200;

/// A replay that differs by less than this part of the busy time leaves nothing to guess. Ours:
/// half and twice as much change nothing.
const CLOSE: i64 = 50;

/// The same of its windows, in millionths. Ours: what kernels and drivers do differently; half and twice
/// as much change nothing.
pub(super) const CLOSE_WINDOWS: u64 = 100_000;

/// A guess has to bring the replay nearer by more than this part of the busy time. Ours: less is
/// noise of the clocks; half and twice as much change nothing.
const WORTH: i64 = 500;

/// A cause besides the link has to bring it nearer by more than this part. Ours: half and twice as much
/// change nothing.
const SIMPLER: i64 = 100;
