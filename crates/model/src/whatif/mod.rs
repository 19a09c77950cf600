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
mod experiment;
mod near;
mod picture;
mod reads;
mod receiver;
mod remedies;
mod replay;
mod search;
mod throws;
mod told;
mod ways;
mod work;

use std::collections::BTreeSet;

use tcpwhy::report::{Connection, State};

use crate::fit::{Account, Fit, Progress, Unfit};
use crate::profile::{KernelProfile, KnobError};
use crate::scenario::plan::Plan;
use crate::scenario::{Scenario, ScenarioError};
use crate::world::{Kernels, Recorded, Side};

pub use advise::advise;
pub use picture::{Picture, fitted};
pub use remedies::{Remedies, Tried};
pub use replay::Replay;
pub use told::Told;
use work::Work;

/// A replay is believed if its time and each state's time come so near, in percent of the busy time
/// seen (`docs/reference/limits-method.md` section 9, which takes the whole lifetime: then a long
/// silence would excuse anything).
const NEAR_PERCENT: i64 = 5;

/// A replay whose time comes as near, but not each state's, is followed up to a gap of this part: the answer may be off by as
/// much, and its range is wider by it. Ours: what is held otherwise for more than a fifth of the time is another transfer.
const FOLLOWS_PERCENT: i64 = 20;

/// Events that are run at most to repeat one connection, and as many for one answer, or for all remedies together.
/// Ours: of `make whatif EACH=2 SEED=39` no capture took more than 9.8 million, in 1.2 to 5.1 seconds where it was
/// more than 3 million; a download of 190 MiB ends at it.
pub const MOST_WORK: u64 = 15_000_000;

/// A connection, and the replays of it.
#[derive(Clone, Debug)]
pub struct Study {
    /// What is repeated.
    pub fit: Fit,
    /// The replays, the nearest to what was seen first.
    pub replays: Vec<Replay>,
    /// How many of them repeat it.
    pub near: usize,
    /// Events that were run for it.
    pub work: u64,
    /// There was more to try than [`MOST_WORK`] allows.
    pub was_cut_short: bool,
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
    /// How many times the dice were thrown where chance decides, 1 where it does not; `best` is the throw in the middle.
    pub throws: usize,
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
    /// Chance decides after the change: the dice fall otherwise.
    Chance,
    /// The receiver offers windows as it did, byte by byte.
    Windows,
    /// The receiver's driver charges otherwise for what waits to be read.
    Receiver,
    /// The bucket or the queue that drops is a little larger, smaller or faster.
    Drops,
    /// Slow start ends by `HyStart` as soon as it may.
    HyStart,
    /// Another cause repeats the capture nearly as well.
    Cause,
    /// The unchanged replay is off by as much.
    Replay,
    /// What held the unchanged replay was something else for as much of the time.
    Shares,
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
    /// The run takes more than this many events, many times what the capture lets expect.
    TooLong(u64),
    /// The runs take more than [`MOST_WORK`].
    NoWorkLeft,
    /// The receiver's program is to read at once, and the replay has it do so already.
    ReadsAtOnce,
    /// Windows would be smaller, and the capture does not show when the receiver's program read.
    ReaderUnseen,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Nothing => f.write_str("the run left nothing to explain"),
            Self::TooLong(most) => {
                write!(
                    f,
                    "it takes more than {most} events of the model, many times what the capture's packets take; \
                     {ASK_LESS}"
                )
            }
            Self::ReaderUnseen => f.write_str(
                "the windows would be smaller, and when the receiver's program read the last of the data does not \
                 show: the larger ones hid it",
            ),
            Self::ReadsAtOnce => f.write_str(
                "what repeats the capture reads at once already: how its program waited does not show",
            ),
            Self::NoWorkLeft => {
                write!(
                    f,
                    "its runs take more than {} million events of the model; {ASK_LESS}",
                    MOST_WORK / 1_000_000
                )
            }
        }
    }
}

/// What to try where a run is too long.
const ASK_LESS: &str =
    "change it by less, or run the scenario that --scenario prints with `tcpwhy predict`";

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

    /// The same with at most this many events of the model.
    ///
    /// # Errors
    /// It cannot be fitted.
    pub fn within(connection: &Connection, events: u64) -> Result<Self, Unfit> {
        Self::by(connection, &Work::of(events))
    }

    /// The same of a connection that was fitted before.
    pub fn of_fit(fit: Fit) -> Self {
        Self::fitted(fit, &Work::of(MOST_WORK))
    }

    fn by(connection: &Connection, work: &Work) -> Result<Self, Unfit> {
        Ok(Self::fitted(Fit::of(connection)?, work))
    }

    fn fitted(fit: Fit, work: &Work) -> Self {
        let mut study = search::repeat(fit, work);
        (study.work, study.was_cut_short) = (work.spent(), work.was_short());
        study
    }

    /// Whether the nearest replay needs no windows of the capture: its receiver's rules make them.
    pub fn rules_hold(&self) -> bool {
        self.nearest().is_some_and(|replay| replay.by_rules)
    }

    /// Whether a replay repeats what was seen, in each state's time or but for [`Self::parts`], and for reasons that hold
    /// with a change, too.
    pub fn repeats(&self) -> bool {
        (self.near > 0 || self.parts().is_some()) && self.has_no_doubt()
    }

    /// The same in each state's time.
    fn repeats_closely(&self) -> bool {
        self.near > 0 && self.has_no_doubt()
    }

    /// Where the nearest replay takes as long as what was seen, but was held by something else for more than a replay may
    /// be that repeats it: by what, and for how much of the time.
    pub fn parts(&self) -> Option<Gap> {
        let nearest = self.nearest().filter(|_| self.near == 0)?;
        let gap = nearest.gap(&self.fit);
        (nearest.takes_as_long(&self.fit) && gap.percent <= FOLLOWS_PERCENT).then_some(gap)
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
        Ok(plan(&self.fit, 1, changes).map(drop)?)
    }

    /// What would be with these changes, `KEY=VALUE` of the scenario language.
    ///
    /// # Errors
    /// The change makes no sense.
    pub fn ask(&self, changes: &[String]) -> Result<Answer, Refusal> {
        self.ask_within(changes, &Work::of(MOST_WORK))
    }

    /// The same, as one of several questions that share the events `left`; what it takes is taken off.
    ///
    /// # Errors
    /// The change makes no sense, or there is no answer within these.
    pub fn ask_of(&self, left: &mut u64, changes: &[String]) -> Result<Answer, Refusal> {
        let work = Work::of(MOST_WORK.min(*left));
        let answer = self.ask_within(changes, &work);
        *left -= work.spent();
        answer
    }

    fn ask_within(&self, changes: &[String], work: &Work) -> Result<Answer, Refusal> {
        self.answer(changes, work, &|fit, changes, kernels, recorded| {
            let plan = plan(fit, 1, changes)?;
            Replay::of(fit, &plan, kernels, recorded, work)
        })
    }

    /// What the same conversation would take once more, on the connection that it left open.
    ///
    /// # Errors
    /// The model cannot run it.
    pub fn ask_again(&self) -> Result<Answer, Refusal> {
        self.ask_again_within(&Work::of(MOST_WORK))
    }

    fn ask_again_within(&self, work: &Work) -> Result<Answer, Refusal> {
        self.answer(&[], work, &|fit, changes, kernels, recorded| {
            let once = plan(fit, 1, changes)?;
            let once = Replay::of(fit, &once, kernels, recorded, work)?;
            let twice = plan(fit, 2, changes)?;
            let twice = Replay::of(fit, &twice, kernels, recorded, work)?;
            Ok(Replay { account: twice.account.less(&once.account), ..twice })
        })
    }

    /// Runs it as it may go, and takes the range.
    fn answer(&self, changes: &[String], work: &Work, run: &Run<'_>) -> Result<Answer, Refusal> {
        if !self.repeats() {
            return Err(Refusal::Nothing);
        }
        let fit = &self.fit;
        if reads::is_at_once(changes) && fit.reads_at_once() {
            return Err(Refusal::ReadsAtOnce);
        }
        let by_rules = ways::by_rules(fit, changes);
        let first = self.replays[0].kernels;
        let mut thrown = self.throws(changes, (first, &by_rules), run, work)?;
        let throws = thrown.len();
        let best = thrown.swap_remove(throws / 2);
        let windows = [&best.progress, &fit.progress].map(Progress::largest_window);
        if ways::is_about_windows(changes, fit.sender.peer())
            && windows[0] < windows[1]
            && fit.hides_reader()
        {
            return Err(Refusal::ReaderUnseen);
        }
        let mut range = Range::around(&best);
        for replay in &thrown {
            range.add(Branch::Chance, replay);
        }
        for way in self.ways(&best.account, changes, run)? {
            match run(&way.fit, &way.changes, way.kernels, &way.recorded) {
                Ok(mut replay) => {
                    // A shorter path is no slower than it was.
                    if way.branch == Branch::HyStart {
                        let most = fit.seen.ns.max(best.account.ns);
                        replay.account.ns = replay.account.ns.min(most);
                    }
                    range.add(way.branch, &replay);
                }
                // Another cause may not have what is changed; without what takes too long the range would be
                // too narrow.
                Err(Refusal::Scenario(_) | Refusal::Build(_)) if way.branch == Branch::Cause => {}
                Err(why) => return Err(why),
            }
        }
        let silence = best.account.ns - best.account.busy_ns();
        range.widen(Branch::Replay, self.nearest().map_or(0, |own| own.off_permille(fit)), silence);
        range.widen(Branch::Shares, self.parts().map_or(0, |gap| gap.percent * 10), silence);
        let account =
            if self.remembers(changes) { best.account } else { best.account.without_remembered() };
        Ok(Answer {
            low_ns: range.low,
            high_ns: range.high,
            because: range.because.into_iter().collect(),
            unfinished: range.unfinished.into_iter().collect(),
            best: account,
            throws,
        })
    }

    /// Whether the fitted scenario with these changes has the sender remember a threshold.
    fn remembers(&self, changes: &[String]) -> bool {
        plan(&self.fit, 1, changes).is_ok_and(|plan| {
            let hosts = [&plan.client, &plan.server];
            hosts[self.fit.sender.index()].route.contains_key("ssthresh")
        })
    }

    const fn way(&self) -> &'static str {
        match self.fit.sender {
            Side::Client => "up",
            Side::Server => "down",
        }
    }
}

/// Runs the conversation with changes, on these kernels, with what is taken from the capture.
type Run<'a> = dyn Fn(&Fit, &[String], Kernels, &Recorded) -> Result<Replay, Refusal> + 'a;

/// The plan of a fitted scenario with changes, its conversation repeated `times` times.
fn plan(fit: &Fit, times: u32, changes: &[String]) -> Result<Plan, ScenarioError> {
    let (fit, changes) = reads::split(fit, changes);
    let fit = if fit.gives_way(&changes) { &fit.without_rcvbuf() } else { &*fit };
    let mut scenario = Scenario::read("capture", &fit.scenario(times), &changes)?;
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
    unfinished: BTreeSet<String>,
}

impl Range {
    fn around(best: &Replay) -> Self {
        let ns = best.account.ns;
        let unfinished = best.unfinished.iter().cloned().collect();
        Self { low: ns, high: ns, because: BTreeSet::new(), unfinished }
    }

    /// By this many thousandths at either end, but for what applications let pass: it is the same whatever is
    /// changed.
    fn widen(&mut self, branch: Branch, permille: i64, silence: i64) {
        if permille > 0 {
            self.because.insert(branch);
        }
        let part = |whole: i64| (whole - silence).max(0) / 1000;
        self.low -= part(self.low) * permille.min(1000);
        self.high = self.high.saturating_add(part(self.high).saturating_mul(permille));
    }

    fn add(&mut self, branch: Branch, replay: &Replay) {
        let ns = replay.account.ns;
        if ns < self.low || ns > self.high {
            self.because.insert(branch);
        }
        self.low = self.low.min(ns);
        self.high = self.high.max(ns);
        self.unfinished.extend(replay.unfinished.iter().cloned());
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
