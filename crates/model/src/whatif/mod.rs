//! "And if I changed it?": the model repeats a captured connection, and then runs it otherwise.
//!
//! ```text
//! Connection -> Fit -> replay on each kernel -> those that repeat it -> with a change -> Answer
//!                      (windows as recorded)     within 5 %              (windows by rules)
//! ```
//!
//! Nothing is answered where no replay repeats what was seen. An answer is a range: over the
//! kernels that repeat the capture, over losses that fall otherwise, and over the room that the path
//! has beyond what it has shown.

mod advise;
mod receiver;
mod remedies;
mod replay;
mod search;

use std::collections::BTreeSet;

use tcpwhy::report::{Connection, State};

use crate::fit::{Account, Fit, Unfit};
use crate::profile::{KernelProfile, KnobError};
use crate::scenario::plan::Plan;
use crate::scenario::{Scenario, ScenarioError};
use crate::world::{Kernels, Recorded, Side};

pub use advise::advise;
pub use remedies::Tried;
pub use replay::Replay;

/// A replay is believed if its time and each state's time come so near, in percent of the busy time
/// seen (`docs/reference/limits-method.md` section 9, which takes the whole lifetime: then a long
/// silence would excuse anything).
const NEAR_PERCENT: i64 = 5;

/// Kernels that repeat a capture and answer: the nearest. Ours: more say the same.
const ANSWERING: usize = 4;

/// Segments that are run for guesses about one connection. Ours: some seconds of work.
const MOST_WORK: u64 = 5_000_000;

/// A connection, and the replays of it.
#[derive(Clone, Debug)]
pub struct Study {
    /// What is repeated.
    pub fit: Fit,
    /// The replays, the nearest to what was seen first.
    pub replays: Vec<Replay>,
    /// How many of them repeat it.
    pub near: usize,
    /// Runs that guesses took.
    pub guesses: u64,
    /// Other causes by which the model repeats it nearly as well, with the kernels that do.
    others: Vec<(Fit, Kernels)>,
}

/// Why a replay that comes near proves nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Doubt {
    /// The receiver's program reads slowly or stopped, and the fit does not have how.
    Reader,
    /// A full queue or a policer dropped packets, and the losses were taken from the capture.
    Losses,
}

impl core::fmt::Display for Doubt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Reader => {
                "the receiver's program reads slowly or stopped reading, and how it reads could not be found out; \
                 with a change that may hold the sender otherwise"
            }
            Self::Losses => {
                "only with the losses of the capture, which a full queue or a policer made; \
                 no such queue or policer was found that makes the same, and with a change others would be lost"
            }
        })
    }
}

/// What comes of a change.
#[derive(Clone, Debug)]
pub struct Answer {
    /// By the nearest replay's kernels, with the fitted path.
    pub best: Account,
    /// The shortest of all, in nanoseconds.
    pub low_ns: i64,
    /// The longest.
    pub high_ns: i64,
    /// What widened the range, if anything did.
    pub because: Vec<Branch>,
    /// What had not come to its end.
    pub unfinished: Vec<String>,
}

/// A way in which it may go otherwise.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Branch {
    /// Another kernel that repeats the capture as well.
    Kernel,
    /// The path has no more room than it has shown.
    NoMoreRoom,
    /// The path is faster than the rate that fits.
    Rate,
    /// Losses fall otherwise, or not at all.
    Losses,
    /// The receiver offers windows as it did, byte by byte.
    Windows,
    /// Another cause repeats the capture nearly as well.
    Cause,
    /// The unchanged replay is off by as much.
    Replay,
}

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The change, or the fitted scenario, makes no sense.
    Scenario(ScenarioError),
    /// The model does not have it.
    Build(KnobError),
    /// The run left no connection that could be explained.
    Nothing,
    /// The run takes many times the work that the capture lets expect.
    TooLong,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Nothing => f.write_str("the run left nothing to explain"),
            Self::TooLong => f.write_str("the run takes many times the packets of the capture"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<ScenarioError> for Refusal {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
    }
}

impl From<KnobError> for Refusal {
    fn from(error: KnobError) -> Self {
        Self::Build(error)
    }
}

impl Study {
    /// Repeats a connection on the kernels that its hosts may run.
    ///
    /// # Errors
    /// It cannot be fitted.
    pub fn of(connection: &Connection) -> Result<Self, Unfit> {
        Self::within(connection, MOST_WORK)
    }

    /// The same with so much work for guesses, in segments that are run.
    ///
    /// # Errors
    /// It cannot be fitted.
    pub fn within(connection: &Connection, segments: u64) -> Result<Self, Unfit> {
        let fit = Fit::of(connection)?;
        let runs = segments / fit.packets().max(1);
        Ok(search::repeat(fit, runs))
    }

    /// Whether the nearest replay needs no windows of the capture: its receiver's rules make them.
    pub fn rules_hold(&self) -> bool {
        self.nearest().is_some_and(|replay| replay.by_rules)
    }

    /// Whether a replay repeats what was seen, and for reasons that hold with a change, too.
    pub fn repeats(&self) -> bool {
        self.near > 0 && self.has_no_doubt()
    }

    fn has_no_doubt(&self) -> bool {
        self.doubt().is_none()
    }

    /// Why a replay proves nothing though it repeats what was seen: what was taken from the capture would be
    /// otherwise with a change.
    pub fn doubt(&self) -> Option<Doubt> {
        let fit = &self.fit;
        if fit.lacks_reader() {
            return Some(Doubt::Reader);
        }
        (fit.losses_follow_load && fit.repeats_losses()).then_some(Doubt::Losses)
    }

    /// The nearest replay.
    pub fn nearest(&self) -> Option<&Replay> {
        self.replays.first()
    }

    /// Whether the fitted scenario takes these changes.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, changes: &[String]) -> Result<(), Refusal> {
        Ok(plan(&self.fit.scenario(1), changes).map(drop)?)
    }

    /// What would be with these changes, `KEY=VALUE` of the scenario language.
    ///
    /// # Errors
    /// The change makes no sense.
    pub fn ask(&self, changes: &[String]) -> Result<Answer, Refusal> {
        self.answer(changes, &|fit, changes, kernels, recorded| {
            let plan = plan(&fit.scenario(1), changes)?;
            Replay::of(fit, &plan, kernels, recorded)
        })
    }

    /// What the same conversation would take once more, on the connection that it left open.
    ///
    /// # Errors
    /// The model cannot run it.
    pub fn ask_again(&self) -> Result<Answer, Refusal> {
        self.answer(&[], &|fit, changes, kernels, recorded| {
            let once = plan(&fit.scenario(1), changes)?;
            let once = Replay::of(fit, &once, kernels, recorded)?;
            let twice = plan(&fit.scenario(2), changes)?;
            let twice = Replay::of(fit, &twice, kernels, recorded)?;
            Ok(Replay { account: twice.account.less(&once.account), ..twice })
        })
    }

    /// Runs it as it may go, and takes the range.
    fn answer(&self, changes: &[String], run: &Run<'_>) -> Result<Answer, Refusal> {
        if !self.repeats() {
            return Err(Refusal::Nothing);
        }
        let fit = &self.fit;
        let lost =
            if keeps_losses(changes) { fit.recorded.lost.clone() } else { <[_; 2]>::default() };
        let by_rules = Recorded { lost, ..Recorded::default() };
        let answering: Vec<Kernels> =
            self.replays[..self.near].iter().take(ANSWERING).map(|replay| replay.kernels).collect();
        let first = *answering.first().ok_or(Refusal::Nothing)?;
        let best = run(fit, changes, first, &by_rules)?;
        let mut range = Range::around(&best.account);
        for kernels in &answering[1..] {
            range.add(Branch::Kernel, &run(fit, changes, *kernels, &by_rules)?);
        }
        if !self.rules_hold() && !is_about_windows(changes, fit.sender.peer()) {
            let as_seen = Recorded { offered: fit.recorded.offered.clone(), ..by_rules.clone() };
            range.add(Branch::Windows, &run(fit, changes, first, &as_seen)?);
        }
        if let Some(changes) = self.no_more_room(&best.account, changes) {
            range.add(Branch::NoMoreRoom, &run(fit, &changes, first, &by_rules)?);
        }
        if fit.rate_is_guessed && !is_about_path(changes, "rate") {
            let unlimited = [&[format!("path.{}.rate=unlimited", self.way())], changes].concat();
            range.add(Branch::Rate, &run(fit, &unlimited, first, &by_rules)?);
        }
        for (changes, recorded) in self.other_losses(changes, &by_rules) {
            range.add(Branch::Losses, &run(fit, &changes, first, &recorded)?);
        }
        for (other, kernels) in &self.others {
            let lost = if keeps_losses(changes) {
                other.recorded.lost.clone()
            } else {
                Default::default()
            };
            let by_rules = Recorded { lost, ..Recorded::default() };
            if let Ok(replay) = run(other, changes, *kernels, &by_rules) {
                range.add(Branch::Cause, &replay);
            }
        }
        range.widen(self.nearest().map_or(0, |replay| replay.off_permille(fit)));
        Ok(Answer {
            low_ns: range.low,
            high_ns: range.high,
            because: range.because.into_iter().collect(),
            unfinished: best.unfinished,
            best: best.account,
        })
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

    const fn way(&self) -> &'static str {
        match self.fit.sender {
            Side::Client => "up",
            Side::Server => "down",
        }
    }
}

/// Throws of the dice for losses. Ours: three say whether chance matters.
const CHANCES: u32 = 3;

/// Whether the losses seen are lost again: not where a change is about losses.
fn keeps_losses(changes: &[String]) -> bool {
    !is_about_path(changes, "loss")
}

/// Whether a change is to this part of the path, both ways or one.
fn is_about_path(changes: &[String], part: &str) -> bool {
    changes.iter().any(|change| {
        let mut key = change.split('=').next().unwrap_or_default().split('.');
        key.next() == Some("path") && key.any(|word| word.trim() == part)
    })
}

/// Whether a change is to the receiver's side of windows.
fn is_about_windows(changes: &[String], receiver: Side) -> bool {
    let of_host = format!("{}.", receiver.name());
    changes.iter().any(|change| {
        let key = change.split('=').next().unwrap_or_default();
        key.starts_with(&of_host) || key.starts_with("application.")
    })
}

/// Runs the conversation with changes, on these kernels, with what is taken from the capture.
type Run<'a> = dyn Fn(&Fit, &[String], Kernels, &Recorded) -> Result<Replay, Refusal> + 'a;

/// The plan of a fitted scenario with changes.
fn plan(scenario: &str, changes: &[String]) -> Result<Plan, ScenarioError> {
    let mut scenario = Scenario::read("capture", scenario, changes)?;
    Ok(scenario.variants.swap_remove(0))
}

fn joined(fit: &Fit, sender: KernelProfile, receiver: KernelProfile) -> Kernels {
    let (client, server) = match fit.sender {
        Side::Client => (sender, receiver),
        Side::Server => (receiver, sender),
    };
    Kernels { client, server, ..Kernels::both(receiver) }
}

struct Range {
    low: i64,
    high: i64,
    because: BTreeSet<Branch>,
}

impl Range {
    fn around(best: &Account) -> Self {
        Self { low: best.ns, high: best.ns, because: BTreeSet::new() }
    }

    /// By so many thousandths at either end.
    fn widen(&mut self, permille: i64) {
        if permille > 0 {
            self.because.insert(Branch::Replay);
        }
        self.low -= self.low / 1000 * permille;
        self.high += self.high / 1000 * permille;
    }

    fn add(&mut self, branch: Branch, replay: &Replay) {
        let ns = replay.account.ns;
        if ns < self.low || ns > self.high {
            self.because.insert(branch);
        }
        self.low = self.low.min(ns);
        self.high = self.high.max(ns);
    }
}

/// In percent of `whole`, rounded up.
fn percent(part: i64, whole: i64) -> i64 {
    (i128::from(part) * 100).div_euclid(i128::from(whole.max(1))) as i64
}

/// Whether two times lie within [`NEAR_PERCENT`] of `seen`.
fn is_near(difference: i64, seen: i64) -> bool {
    difference.abs() <= seen / 100 * NEAR_PERCENT
}

/// The widest gap of a replay, told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// The state.
    pub state: State,
    /// Its time apart, in percent of the busy time seen.
    pub percent: i64,
}
