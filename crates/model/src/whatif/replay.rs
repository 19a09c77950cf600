//! One run of a fitted scenario, told as a capture of it would be.

use tcpwhy::report::{Connection, Report};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;

use super::work::Work;
use super::{Gap, Refusal, is_near, percent};
use crate::fit::{Account, Fit, Progress};
use crate::scenario::plan::Plan;
use crate::world::{Keep, Kernels, Recorded, Tap, Trace, World};

/// A run, and what its packets say.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The hosts' kernels.
    pub kernels: Kernels,
    /// What its packets say of the fitted direction, at the place of the capture.
    pub account: Account,
    /// When its bytes were acknowledged.
    pub progress: Progress,
    /// First windows that its SYN and the answer offered.
    pub first_windows: [u16; 2],
    /// The windows were its receiver's own, not those of the capture.
    pub by_rules: bool,
    /// What had not come to its end.
    pub unfinished: Vec<String>,
}

impl Replay {
    pub(super) fn of(
        fit: &Fit,
        plan: &Plan,
        kernels: Kernels,
        recorded: &Recorded,
        work: &Work,
    ) -> Result<Self, Refusal> {
        let config = Config { detail: true, passed: true, ..Config::default() };
        let (connection, unfinished) = run(fit, plan, kernels, recorded, work, config)?;
        let direction =
            connection.directions[fit.sender.index()].as_deref().ok_or(Refusal::Nothing)?;
        Ok(Self {
            kernels,
            account: Account::of(direction),
            progress: Progress::of(direction),
            first_windows: connection.syns.map(|syn| syn.map_or(0, |syn| syn.window)),
            by_rules: recorded.offered.iter().all(Option::is_none),
            unfinished,
        })
    }

    /// How much longer or shorter than what was seen, in nanoseconds.
    pub const fn difference(&self, fit: &Fit) -> i64 {
        self.account.ns - fit.seen.ns
    }

    /// How far it is off, in its time or on the way, in thousandths of the busy time.
    pub(super) fn off_permille(&self, fit: &Fit) -> i64 {
        let off = self.difference(fit).abs().max(fit.progress.apart(&self.progress));
        let permille = i128::from(off) * 1000;
        let busy = i128::from(fit.seen.busy_ns().max(1));
        // Rounded up, so that a range is never narrower than that.
        i64::try_from(permille.unsigned_abs().div_ceil(busy.unsigned_abs())).unwrap_or(i64::MAX)
    }

    /// The state whose time is furthest from what was seen.
    pub fn gap(&self, fit: &Fit) -> Gap {
        let (state, ns) = fit.seen.widest_gap(&self.account);
        Gap { state, percent: percent(ns, fit.seen.busy_ns()) }
    }

    /// It takes as long as what was seen.
    pub(super) fn takes_as_long(&self, fit: &Fit) -> bool {
        self.unfinished.is_empty() && is_near(self.difference(fit), fit.seen.busy_ns())
    }

    /// It repeats what was seen.
    pub fn is_near(&self, fit: &Fit) -> bool {
        self.takes_as_long(fit) && is_near(fit.seen.widest_gap(&self.account).1, fit.seen.busy_ns())
    }

    /// How far it is from what was seen: other first windows count more than any time.
    pub(super) fn distance(&self, fit: &Fit) -> i64 {
        let windows = self.first_windows.iter().zip(fit.first_windows);
        let other = windows.filter(|(own, seen)| **own != *seen).count() as i64;
        let gap = fit.seen.widest_gap(&self.account).1;
        let rounds = self.account.rounds.abs_diff(fit.seen.rounds) as i64;
        let unfinished = if self.unfinished.is_empty() { 0 } else { fit.seen.ns };
        let apart = fit.progress.apart(&self.progress);
        (other + rounds) * (fit.seen.ns / 100)
            + self.difference(fit).abs()
            + gap
            + apart
            + unfinished
    }
}

/// Events of one run at most, for its packets are kept until they are explained. Ours: 700 MB of memory; none of the runs
/// behind [`super::MOST_WORK`] took a tenth of it.
const MOST_IN_A_RUN: u64 = 4_000_000;

/// What `explain` says of a run's packets, and what had not come to its end.
pub(super) fn run(
    fit: &Fit,
    plan: &Plan,
    kernels: Kernels,
    recorded: &Recorded,
    work: &Work,
    config: Config,
) -> Result<(Connection, Vec<String>), Refusal> {
    let keep = Keep { segments: true, only: Some(fit.tap), ..Keep::default() };
    let own = fit.most_events().min(MOST_IN_A_RUN);
    let most = own.min(work.left());
    let world = World::new(plan, kernels, keep)?.with(recorded).at_most(most);
    let (outcome, trace) = world.run();
    work.spend(outcome.events);
    if work.left() == 0 {
        work.ran_short();
        return Err(Refusal::NoWorkLeft);
    }
    if outcome.events >= most {
        return Err(Refusal::TooLong(own));
    }
    let report = explain(&trace, fit.tap, plan.ipv6, config);
    let connection = report.connections.into_iter().next().ok_or(Refusal::Nothing)?;
    Ok((connection, outcome.waiting))
}

/// What `explain` says of packets at a tap.
fn explain(trace: &Trace, tap: Tap, ipv6: bool, config: Config) -> Report {
    let mut session = Session::new(config);
    session.begin("model");
    let damage = session.push(&trace.pcapng(tap, ipv6)).err().or(session.end().err());
    debug_assert!(damage.is_none(), "{damage:?}");
    session.finish()
}
