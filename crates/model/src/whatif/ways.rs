//! In which ways a change may come out otherwise than on the nearest replay's kernels and path: what the capture
//! leaves open, each as a run of its own. An answer's range is over all of them.

use std::borrow::Cow;

use super::search::CLOSE_WINDOWS;
use super::{Branch, Refusal, Run, Study, plan, reads, receiver};
use crate::fit::{Account, Fit};
use crate::world::{Kernels, Recorded, Side};

/// One run.
pub(super) struct Way<'a> {
    pub(super) branch: Branch,
    pub(super) fit: Cow<'a, Fit>,
    pub(super) changes: Vec<String>,
    pub(super) kernels: Kernels,
    pub(super) recorded: Recorded,
}

/// Kernels that repeat a capture and answer: the nearest. Ours: more say the same.
const ANSWERING: usize = 4;

impl Study {
    /// All of them, for changes by which the nearest kernels come to `best`.
    ///
    /// # Errors
    /// It takes too much work to find out.
    pub(super) fn ways(
        &self,
        best: &Account,
        changes: &[String],
        run: &Run<'_>,
    ) -> Result<Vec<Way<'_>>, Refusal> {
        let fit = &self.fit;
        let first = self.replays[0].kernels;
        let by_rules = by_rules(fit, changes);
        let way = |branch, changes: Vec<String>, kernels, recorded: &Recorded| Way {
            branch,
            fit: Cow::Borrowed(fit),
            changes,
            kernels,
            recorded: recorded.clone(),
        };
        let near = self.replays[1..self.near.max(1)].iter().take(ANSWERING - 1);
        let mut ways: Vec<Way<'_>> = near
            .map(|replay| way(Branch::Kernel, changes.to_vec(), replay.kernels, &by_rules))
            .collect();
        let is_about_windows = is_about_windows(changes, fit.sender.peer());
        if !self.rules_hold() && !is_about_windows {
            let as_seen = Recorded { offered: fit.recorded.offered.clone(), ..by_rules.clone() };
            ways.push(way(Branch::Windows, changes.to_vec(), first, &as_seen));
        }
        if is_about_windows {
            let others = self.other_receivers(run)?.into_iter();
            ways.extend(
                others.map(|kernels| way(Branch::Receiver, changes.to_vec(), kernels, &by_rules)),
            );
        }
        if let Some(changes) = self.no_more_room(best, changes) {
            ways.push(way(Branch::NoMoreRoom, changes, first, &by_rules));
        }
        if fit.rate_is_guessed && !is_about_path(changes, "rate") {
            let unlimited = [&[format!("path.{}.rate=unlimited", self.way())], changes].concat();
            ways.push(way(Branch::Rate, unlimited, first, &by_rules));
        }
        if self.may_end_slow_start(changes) {
            let side = fit.sender.name();
            let early = [
                format!("{side}.route.ssthresh={HYSTART_FROM}"),
                format!("{side}.sysctl.net.ipv4.tcp_no_ssthresh_metrics_save=0"),
            ];
            let early = [&early[..], changes].concat();
            ways.push(way(Branch::HyStart, early, first, &by_rules));
        }
        let losses = self.other_losses(changes, &by_rules).into_iter();
        ways.extend(
            losses.map(|(changes, recorded)| way(Branch::Losses, changes, first, &recorded)),
        );
        ways.extend(self.other_fits(changes));
        Ok(ways)
    }

    /// Other causes that repeat the capture, and the same cause with a bucket or a queue a little different where
    /// that drops.
    fn other_fits(&self, changes: &[String]) -> Vec<Way<'_>> {
        let of = |branch, fit: Cow<'static, Fit>, kernels| Way {
            branch,
            changes: changes.to_vec(),
            kernels,
            recorded: by_rules(&fit, changes),
            fit,
        };
        let others = self.others.iter();
        let others =
            others.map(|(fit, kernels)| of(Branch::Cause, Cow::Owned(fit.clone()), *kernels));
        let alike = self.fit.dropping_alike().into_iter();
        let first = self.replays[0].kernels;
        others.chain(alike.map(|fit| of(Branch::Drops, Cow::Owned(fit), first))).collect()
    }

    /// The receiver with other drivers, by which the unchanged replay is as near and its windows are, too.
    fn other_receivers(&self, run: &Run<'_>) -> Result<Vec<Kernels>, Refusal> {
        let (fit, nearest) = (&self.fit, &self.replays[0]);
        let unchanged = by_rules(fit, &[]);
        let most = fit.progress.windows_apart(&nearest.progress) + CLOSE_WINDOWS;
        let mut others = Vec::new();
        for kernels in receiver::other_drivers(fit, nearest.kernels) {
            let replay = run(fit, &[], kernels, &unchanged)?;
            if replay.is_near(fit) && fit.progress.windows_apart(&replay.progress) <= most {
                others.push(kernels);
            }
        }
        Ok(others)
    }

    /// The changes on a path that has just the room it has shown, where more than that is asked of it.
    fn no_more_room(&self, best: &Account, changes: &[String]) -> Option<Vec<String>> {
        let (rate, queue) = self.fit.proven?;
        let way = self.way();
        if self.fit.has_bucket() {
            return None;
        }
        let is_told = ["rate", "queue", "bucket"].iter().any(|part| is_about_path(changes, part));
        let asks_more = best.ns < self.fit.seen.ns;
        (asks_more && !is_told).then(|| {
            let path = [format!("path.{way}.rate={rate}bit"), format!("path.{way}.queue={queue}B")];
            [&path[..], changes].concat()
        })
    }

    /// Whether slow start may end sooner over this path than it did: `HyStart` looks for trains of ACKs that last half a
    /// round trip, and how dense ACKs come from hosts and links does not shrink with the distance.
    fn may_end_slow_start(&self, changes: &[String]) -> bool {
        let is_about_distance = is_about_path(changes, "rtt") || is_about_path(changes, "delay");
        let trip = |changes: &[String]| {
            let plan = plan(&self.fit, 1, changes).ok()?;
            Some(plan.path.up.delay_ns.saturating_add(plan.path.down.delay_ns))
        };
        is_about_distance && trip(changes) < trip(&[])
    }

    /// The same with other losses: none, and as many by chance.
    fn other_losses(
        &self,
        changes: &[String],
        recorded: &Recorded,
    ) -> Vec<(Vec<String>, Recorded)> {
        if recorded.lost.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        let chance = format!("path.{}.loss={}ppm", self.way(), self.fit.loss);
        let by_chance = (1..=CHANCES).map(|seed| {
            let dice = [chance.clone(), format!("seed={seed}")];
            [&dice[..], changes].concat()
        });
        let all = [changes.to_vec()].into_iter().chain(by_chance);
        all.map(|changes| (changes, Recorded::default())).collect()
    }
}

/// Throws of the dice for losses. Ours: three say whether chance matters.
const CHANCES: u32 = 3;

/// `HyStart` leaves smaller congestion windows alone, in segments (Linux `hystart_low_window`).
const HYSTART_FROM: u32 = 16;

/// What is taken from the capture where the receiver's own rules make its windows: losses, unless they change.
pub(super) fn by_rules(fit: &Fit, changes: &[String]) -> Recorded {
    let is_kept = !is_about_path(changes, "loss");
    let lost = if is_kept { fit.recorded.lost.clone() } else { <[_; 2]>::default() };
    Recorded { lost, ..Recorded::default() }
}

/// Whether a change is to this part of the path, both ways or one.
fn is_about_path(changes: &[String], part: &str) -> bool {
    changes.iter().any(|change| {
        let mut key = change.split('=').next().unwrap_or_default().split('.');
        key.next() == Some("path") && key.any(|word| word.trim() == part)
    })
}

/// Whether a change is to the receiver's side of windows.
pub(super) fn is_about_windows(changes: &[String], receiver: Side) -> bool {
    let of_host = format!("{}.", receiver.name());
    changes.iter().any(|change| {
        let key = change.split('=').next().unwrap_or_default();
        key.starts_with(&of_host) || key.starts_with("application.") || key.trim() == reads::KEY
    })
}
