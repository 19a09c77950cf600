//! Carries out plans one after the other: refusals first, then the path, then every run.
//!
//! A run that its backend does not trust is thrown away and made again, as often as [`MOST_ATTEMPTS`] says. It
//! never enters a figure, and the output names it with its reason. Folders of runs lie in a temporary one that
//! is swept at the end, or where `--keep` says.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};

use anyhow::Context;
use tcpwhy_linux::lab::backend::{Backend, LabError, Manifest, Refusal};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::Plan;

use super::modelled::modelled;
use super::outcome::{capture_at, direction, judge};
use super::path::{Measured, probe};
use super::summary::{Answer, FORMAT, Runs, Variant};
use crate::cmd::signals::stop_on_signals;
use crate::options::Surroundings;
use crate::printable;
use crate::run_folder::{self, Held};

/// A backend and a place for its folders.
pub(super) struct Lab<'b> {
    backend: &'b dyn Backend,
    root: Root,
    stop: Arc<AtomicBool>,
    /// Progress overwrites its line.
    on_terminal: bool,
}

enum Root {
    Kept(PathBuf),
    Swept(Held),
}

/// Why an experiment ended without an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// Before anything started.
    #[error("nothing was started")]
    Refused(#[from] Refusal),
    /// On the way.
    #[error("{error}{saved}")]
    Failed {
        /// What failed.
        error: LabError,
        /// What is saved, as the rest of the sentence.
        saved: String,
    },
}

/// A run that was carried out.
pub(super) struct Done {
    /// What its backend says of it.
    pub(super) manifest: Manifest,
    /// Its folder.
    pub(super) folder: PathBuf,
}

/// What is asked of an experiment beside its scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Runs of each variant.
    pub(super) repeats: u32,
    /// The path is measured first.
    pub(super) measures: bool,
}

/// All runs of a scenario, judged.
#[derive(Default)]
struct Carried {
    /// By variant.
    runs: Vec<Runs>,
    /// Of the first run of each variant that a kernel carried out.
    manifests: BTreeMap<String, Manifest>,
    /// The senders' captures of the first runs, with the names of their variants.
    first: Vec<(String, PathBuf)>,
    /// The kernel's name.
    kernel: String,
}

/// What came of a plan, with why runs of it were thrown away.
pub(super) struct Tried {
    /// The run that its backend trusts, if there was one.
    pub(super) done: Option<Done>,
    /// The others.
    pub(super) discarded: Vec<String>,
    /// The kernel's name.
    pub(super) kernel: String,
}

impl<'b> Lab<'b> {
    /// A lab whose runs lie in `keep`, or in a folder that is swept.
    ///
    /// # Errors
    /// The folder cannot be made, or a signal handler cannot be set.
    pub(super) fn open(
        backend: &'b dyn Backend,
        keep: Option<&Path>,
        around: &Surroundings,
    ) -> anyhow::Result<Self> {
        let root = if let Some(path) = keep {
            fs::create_dir_all(path)
                .with_context(|| format!("cannot make the folder {}", path.display()))?;
            Root::Kept(path.to_owned())
        } else {
            let temporary = env::temp_dir();
            for left in run_folder::left(&temporary, SWEPT) {
                // What a killed lab left and nobody can remove is no reason not to run.
                let _ = left.remove();
            }
            Root::Swept(
                Held::create_in(&temporary, SWEPT)
                    .context("cannot make a temporary folder; name one with --keep")?,
            )
        };
        let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
        Ok(Self { backend, root, stop, on_terminal: around.stderr_is_terminal })
    }

    /// Runs every variant, and what a kernel ran in the model, too; beside the answer the senders' captures of the first runs, with the names of
    /// their variants.
    ///
    /// # Errors
    /// [`Ended`], or a run's records cannot be read.
    pub(super) fn answer(
        &self,
        scenario: &Scenario,
        asked: Asked,
    ) -> anyhow::Result<(Answer, Vec<(String, PathBuf)>)> {
        let repeats = asked.repeats;
        let first = scenario.variants.first().context("a scenario has a variant")?;
        let side = direction(first);
        self.check(&scenario.variants)?;
        let paths = if asked.measures { self.measure(scenario, side)? } else { Vec::new() };
        let mut carried = self.carry_out(scenario, repeats, side)?;
        for (plan, runs) in scenario.variants.iter().zip(&mut carried.runs) {
            if let Some(manifest) = carried.manifests.remove(&plan.variant) {
                self.tell(&format!("in the model: {}", shown(&plan.variant)));
                runs.model = Some(modelled(plan, &manifest, self.root(), &self.stop)?);
            }
        }
        self.tell("");
        let rows = scenario.variants.iter().zip(&scenario.told).zip(carried.runs);
        let variants =
            rows.map(|((plan, told), runs)| Variant::of(&plan.variant, told, runs, side));
        let answer = Answer {
            format: FORMAT.to_owned(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            backend: self.backend.name(),
            kernel: carried.kernel,
            sender: ["client", "server"][side],
            paths,
            variants: variants.collect(),
        };
        Ok((answer, carried.first))
    }

    /// Runs and judges every variant `repeats` times.
    fn carry_out(&self, scenario: &Scenario, repeats: u32, side: usize) -> anyhow::Result<Carried> {
        let count = scenario.variants.len();
        let backend = self.backend.name();
        let is_model = backend.starts_with("model");
        let is_live = matches!(backend.as_str(), "tun" | "netem");
        let runs = || Runs { is_live, ..Runs::default() };
        let mut carried =
            Carried { runs: (0..count).map(|_| runs()).collect(), ..Carried::default() };
        for (number, plan) in scenario.plans(repeats).enumerate() {
            let of = count * repeats as usize;
            self.tell(&format!("run {} of {of}: {}", number + 1, shown(&plan.variant)));
            let tried = self.trusted(&plan)?;
            let runs = &mut carried.runs[number % count];
            runs.discarded.extend(tried.discarded);
            carried.kernel = tried.kernel;
            let Some(done) = tried.done else {
                runs.invalid += 1;
                continue;
            };
            if runs.outcomes.is_empty() {
                let name = format!("{}: {}", scenario.name, shown(&plan.variant));
                carried.first.push((name, done.folder.join(capture_at(side))));
            }
            runs.outcomes.push(judge(&plan, &done.folder, &self.stop)?);
            if !is_model {
                carried.manifests.entry(plan.variant).or_insert(done.manifest);
            }
        }
        Ok(carried)
    }

    /// Whether the user asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks for refusals of every variant, before anything starts.
    pub(super) fn check(&self, plans: &[Plan]) -> Result<(), Ended> {
        plans.iter().try_for_each(|plan| Ok(self.backend.check(plan)?))
    }

    /// Measures each path once.
    fn measure(&self, scenario: &Scenario, side: usize) -> anyhow::Result<Vec<Measured>> {
        let mut probes: Vec<(Plan, Vec<String>)> = Vec::new();
        for plan in &scenario.variants {
            let probe = Plan { repeat: 0, ..probe(plan, side) };
            let same = |other: &Plan| {
                (&other.path, other.ipv6) == (&probe.path, probe.ipv6)
                    && other.client.stack_to_tap_ns == probe.client.stack_to_tap_ns
                    && other.server.stack_to_tap_ns == probe.server.stack_to_tap_ns
                    && other.client.egress == probe.client.egress
                    && other.server.egress == probe.server.egress
            };
            match probes.iter_mut().find(|(other, _)| same(other)) {
                Some((_, names)) => names.push(plan.variant.clone()),
                None => probes.push((probe, vec![plan.variant.clone()])),
            }
        }
        let all = probes.len() == 1;
        let mut paths = Vec::new();
        for (number, (plan, names)) in probes.into_iter().enumerate() {
            self.tell(&format!("measuring the path of {}", shown(&names[0])));
            let mut measured = Measured::asked(&plan, side);
            let plan = Plan { variant: format!("path {number}"), ..plan };
            let done = self.run(&plan)?;
            measured.read(&done.folder, side);
            measured.variants = if all { Vec::new() } else { names };
            paths.push(measured);
        }
        Ok(paths)
    }

    /// A run that its backend trusts, at one of several attempts.
    pub(super) fn trusted(&self, plan: &Plan) -> anyhow::Result<Tried> {
        let mut discarded: Vec<String> = Vec::new();
        let mut kernel = String::new();
        for _ in 0..MOST_ATTEMPTS {
            let done = self.run(plan)?;
            kernel.clone_from(&done.manifest.kernel);
            if done.manifest.valid {
                return Ok(Tried { done: Some(done), discarded, kernel });
            }
            let why = done.manifest.problems.join("; ");
            // What says the same to the nanosecond is no accident, and would say it again.
            let again = discarded.last() == Some(&why);
            discarded.push(why);
            if again {
                break;
            }
        }
        Ok(Tried { done: None, discarded, kernel })
    }

    /// Carries one plan out.
    ///
    /// # Errors
    /// [`Ended`], or its folder cannot be made.
    pub(super) fn run(&self, plan: &Plan) -> anyhow::Result<Done> {
        let folder = vacant(self.root(), plan)?;
        let ran = self.backend.run(plan, &folder);
        let stopped = self.stop.load(Ordering::Relaxed);
        match ran {
            _ if stopped => Err(self.failed(LabError::Interrupted).into()),
            Ok(manifest) => Ok(Done { manifest, folder }),
            Err(error) => Err(self.failed(error).into()),
        }
    }

    /// Where the folders of runs lie.
    fn root(&self) -> &Path {
        match &self.root {
            Root::Kept(path) => path.as_path(),
            Root::Swept(folder) => folder.path(),
        }
    }

    fn failed(&self, error: LabError) -> Ended {
        self.tell("");
        let saved = match &self.root {
            Root::Kept(path) => format!("\n  what was recorded is in {}", path.display()),
            Root::Swept(_) => "\n  nothing was kept; --keep DIR would keep the records".to_owned(),
        };
        Ended::Failed { error, saved }
    }

    /// Progress: one line that is overwritten on a terminal, a line each elsewhere.
    pub(super) fn tell(&self, line: &str) {
        let line = printable(line);
        let mut out = io::stderr().lock();
        // A closed standard error leaves nobody to tell.
        let _ = match (self.on_terminal, line.is_empty()) {
            (true, _) => write!(out, "\r{line}\x1b[K").and_then(|()| out.flush()),
            (false, true) => Ok(()),
            (false, false) => writeln!(out, "tcpwhy: {line}"),
        };
    }

    /// Whether the user has asked to stop.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Removes a run's folder if nobody asked to keep it: a set of runs fills no disk.
    pub(super) fn sweep(&self, folder: &Path) {
        if matches!(self.root, Root::Swept(_)) {
            // What cannot be removed now goes with the temporary folder.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn shown(variant: &str) -> &str {
    if variant.is_empty() { "the scenario" } else { variant }
}

/// An empty folder for a run; a number is added to the name of one that is taken.
fn vacant(root: &Path, plan: &Plan) -> anyhow::Result<PathBuf> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let variant: String = plan.variant.chars().map(plain).collect();
    let name = format!("{}-{variant}-{}", plan.scenario, plan.repeat);
    for number in 1..=MOST_FOLDERS {
        let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        let path = root.join(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot make the folder {}", path.display()));
            }
        }
    }
    anyhow::bail!("{} is full of runs of {name}; name another folder with --keep", root.display())
}

/// What the names of swept folders begin with.
pub(super) const SWEPT: &str = "tcpwhy-lab-";
/// Ours: with a load of 8 on two processors one run of nine was late (`slow-start` by `tun`); even where every
/// second one is, 97 repeats of 100 get their run.
const MOST_ATTEMPTS: usize = 5;

/// Ours: nobody repeats an experiment into one folder more often.
const MOST_FOLDERS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_folder_of_its_own() {
        let root = tempfile::tempdir().expect("a folder");
        let plan =
            Plan { scenario: "s".to_owned(), variant: "1 % / x".to_owned(), ..Plan::default() };
        let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(name(vacant(root.path(), &plan).expect("made")), "s-1-----x-0");
        assert_eq!(name(vacant(root.path(), &plan).expect("made")), "s-1-----x-0-2");
    }
}
