//! What may be tried: changes that answer to what held the transfer.

use tcpwhy::report::State;

use super::reads::AT_ONCE;
use super::work::Work;
use super::{Answer, MOST_WORK, Recorded, Refusal, Replay, Study, plan};

/// A change that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Who changes what, in words.
    pub what: String,
    /// The change, as `--set` takes it; empty where it is none of settings.
    pub changes: Vec<String>,
    /// What comes of it.
    pub answer: Answer,
}

/// What was tried, the best first.
#[derive(Clone, Debug, Default)]
pub struct Remedies {
    /// Each that makes it shorter.
    pub tried: Vec<Tried>,
    /// There was more to try than [`MOST_WORK`] allows.
    pub was_cut_short: bool,
}

/// A larger first flight has to gain at least this much over the next smaller, in percent of the busy time.
const WORTH_PERCENT: i64 = 5;

/// What is shorter by less gains nothing, in thousandths of the busy time: no setting shortens what applications let pass.
/// Ours: as exact as replays are at best.
const GAINS_PERMILLE: i64 = 5;

/// Largest first flight that is tried where the receiver lets more in. Ours: ten times Linux's.
const LARGEST_FLIGHT: u64 = 100;

impl Study {
    /// Everything that may help, the best first; what gains nothing is left out.
    pub fn remedies(&self) -> Remedies {
        let work = Work::of(MOST_WORK);
        if !self.repeats() {
            return Remedies { tried: Vec::new(), was_cut_short: false };
        }
        let (sender, receiver) = (self.fit.sender.name(), self.fit.sender.peer().name());
        let mut tried: Vec<Tried> = Vec::new();
        let mut ask = |what: String, changes: &[String]| {
            if let Ok(answer) = self.ask_within(changes, &work) {
                tried.push(Tried { what, changes: changes.to_vec(), answer });
            }
        };
        if self.fit.is_held(&[State::CwndAfterIdle]) {
            let change = format!("{sender}.sysctl.net.ipv4.tcp_slow_start_after_idle=0");
            ask(format!("{sender}: tcp_slow_start_after_idle 0"), &[change]);
        }
        if !self.fit.reads_at_once() {
            ask(format!("{receiver}: a program that reads at once"), &[AT_ONCE.to_owned()]);
        }
        if self.fit.is_held(&WINDOW) {
            let change = format!("{receiver}.sysctl.net.ipv4.tcp_rmem=4096 1048576 33554432");
            ask(format!("{receiver}: tcp_rmem 4096 1048576 33554432"), &[change]);
        }
        if self.fit.is_held(&[State::Sndbuf]) {
            let change = format!("{sender}.sysctl.net.ipv4.tcp_wmem=4096 1048576 33554432");
            ask(format!("{sender}: tcp_wmem 4096 1048576 33554432"), &[change]);
        }
        if self.fit.is_held(&[State::NagleDelack]) {
            let change = format!("{sender}.socket.nodelay=true");
            ask(format!("{sender}: TCP_NODELAY"), &[change]);
        }
        if self.fit.loss > 0 {
            ask("path: no losses".to_owned(), &["path.loss=none".to_owned()]);
        }
        if let Some(flight) = self.first_flight(&work) {
            tried.push(flight);
        }
        if let Ok(answer) = self.ask_again_within(&work) {
            let what = "application: on a connection that is open already".to_owned();
            tried.push(Tried { what, changes: Vec::new(), answer });
        }
        let most = self.now_ns() - self.fit.seen.busy_ns() / 1000 * GAINS_PERMILLE;
        tried.retain(|each| each.answer.unfinished.is_empty() && each.answer.best.ns < most);
        tried.sort_by_key(|each| each.answer.best.ns);
        Remedies { tried, was_cut_short: work.was_short() }
    }

    /// How long it takes unchanged, as the model has it.
    fn now_ns(&self) -> i64 {
        self.nearest().map_or(self.fit.seen.ns, |replay| replay.account.ns)
    }

    /// The smallest first flight that comes within [`WORTH_PERCENT`] of the best, no larger than the
    /// receiver's first window.
    fn first_flight(&self, work: &Work) -> Option<Tried> {
        if !self.fit.is_held(&[State::CwndSlowStart, State::CwndAfterIdle]) {
            return None;
        }
        let sender = self.fit.sender.name();
        let most = self.fit.first_flight_at_most().min(LARGEST_FLIGHT);
        let change = |size: u64| [format!("{sender}.route.initcwnd={size}")];
        let sizes = core::iter::successors(Some(most), |size| Some(size * 2 / 3))
            .take_while(|size| *size > 10);
        let mut tried: Vec<(u64, i64)> = sizes
            .filter_map(|size| Some((size, self.at_best(&change(size), work).ok()?.account.ns)))
            .collect();
        let best = tried.iter().map(|(_, ns)| *ns).min()?;
        tried.retain(|(_, ns)| *ns <= best + self.fit.seen.busy_ns() / 100 * WORTH_PERCENT);
        let (size, _) = tried.into_iter().min_by_key(|(size, _)| *size)?;
        let answer = self.ask_within(&change(size), work).ok()?;
        let what = format!("{sender}: initcwnd {size}");
        Some(Tried { what, changes: change(size).to_vec(), answer })
    }

    /// One run with changes, by the kernels of the nearest replay.
    fn at_best(&self, changes: &[String], work: &Work) -> Result<Replay, Refusal> {
        let kernels = self.nearest().ok_or(Refusal::Nothing)?.kernels;
        let plan = plan(&self.fit, 1, changes)?;
        let recorded = Recorded { lost: self.fit.recorded.lost.clone(), ..Recorded::default() };
        Replay::of(&self.fit, &plan, kernels, &recorded, work)
    }
}

/// The receiver's window is full.
const WINDOW: [State; 4] =
    [State::RwndCap, State::RwndAutotune, State::RwndReader, State::ZeroWindow];
