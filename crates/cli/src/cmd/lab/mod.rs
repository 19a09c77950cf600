//! `tcpwhy lab`: experiments with a real kernel's TCP, explained and held against the kernel's own
//! account.
//!
//! ```text
//! scenarios --Plans--> backends --folders--> outcome --> summary --> table / JSON
//!  by name              check, run            explain     variants           answer
//!  or file              (path first)          truth, model  over repeats
//! ```

mod accuracy;
mod answer;
mod backends;
mod calls;
mod counters;
mod expected;
mod gate;
mod links;
mod list;
mod modelled;
mod outcome;
mod path;
mod runs;
mod setup;
mod shell;
mod sockets;
mod spread;
mod summary;
mod verify;
mod words;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use tcpwhy::view::web::PICTURED;
use tcpwhy_model::scenario::random::Kinds;
use tcpwhy_model::scenario::{Scenario, ScenarioError, manual};

pub use backends::{inner, runs_inside};

use super::{one, scenarios};
use crate::exit::Exit;
use crate::options::Surroundings;
use crate::read::Input;
use crate::{complain, in_words, output, page};
use runs::Ended;

/// The subcommands of `tcpwhy lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Name the scenarios that come with tcpwhy
    List {
        /// Only those of this article (as 003), of this subject, or with this in their name
        #[arg(value_name = "WHAT", conflicts_with = "keys")]
        what: Option<String>,
        /// Print every key of the scenario language instead
        #[arg(long)]
        keys: bool,
    },
    /// Say which backends work on this machine and what the others lack; build a simulated kernel
    #[command(after_help = setup::AFTER)]
    Setup(setup::SetupFlags),
    /// Run a scenario: each variant, as often as it says
    #[command(after_help = AFTER_RUN)]
    Run(RunFlags),
    /// Run your own programs on a scenario's hosts, with its path between them
    #[command(after_help = shell::AFTER)]
    Shell(shell::ShellFlags),
    /// Carry a captured connection out on a kernel, as it was and with what would make it faster
    #[command(after_help = verify::AFTER)]
    Verify(verify::VerifyFlags),
    /// Hold what explain says of random runs against the sending kernel's own account
    #[command(after_help = AFTER_ACCURACY)]
    Accuracy(AccuracyFlags),
}

const AFTER_RUN: &str = "\
The path is measured first. Then each variant: the time from the first packet to the last ACK of
data (the median of its runs), segments retransmitted, the most that waited in the path's queue; how
long connections and calls took for the programs; the bytes of each round trip; where the time went:
by explain, from the capture at the sender, by the model of the same kernel, and by the sending
kernel's own records, each in its own words (docs/accuracy.md); which of the kernels' counters
moved; connections that failed; the states of the sockets, where the scenario looks at them, and
what check finds by them; the figure of the article that it repeats; and whether it came as the
scenario expects. What --set changes is another experiment: nothing is expected of it. A run that
the machine disturbed is thrown away and made again; what was thrown away is told.

  tcpwhy lab run slow-start
  tcpwhy lab run slow-start --set path.rtt=80ms --set server.route.initcwnd=30
  tcpwhy lab run mine.toml --backend uml:6.12 --keep runs

The language of scenarios: docs/scenarios.md, or `tcpwhy lab list --keys`.

Exit status: 0 carried out, 1 not as expected or more than --at-most allows, 2 wrong usage or what this backend or machine
cannot do, 3 a scenario that cannot be read or a run that ended early.";

const AFTER_ACCURACY: &str = "\
Each run is a scenario of its own, by its number and the seed. The table's words, and what is known
to be wrong, stand in docs/accuracy.md. The fields of --json follow the code and may change.

  tcpwhy lab accuracy --backend uml --runs 300
  tcpwhy lab accuracy --backend uml --seed 1 --only 17 --keep runs   (one run again, with captures)";

/// Flags of `tcpwhy lab run`.
#[derive(Args, Debug)]
pub struct RunFlags {
    /// A scenario's name (see `tcpwhy lab list`), or a .toml file
    #[arg(value_name = "NAME|FILE")]
    pub scenario: String,
    /// What carries it out: tun (the running kernel, our own path), netem (the running kernel, `tc
    /// netem` as the path), uml or uml:VERSION (a kernel in simulated time, see `tcpwhy lab setup`), model
    /// or model:VERSION (the model of Linux TCP, no kernel)
    /// [default: uml if one is built, else tun]
    #[arg(long, value_name = "NAME", value_parser = backends::known)]
    pub backend: Option<String>,
    /// Change a key of the scenario, as path.rtt=20ms
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs of each variant [default: what the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: Option<u32>,
    /// End with status 1 if a run takes more: time=120ms, rounds=3, retransmitted=0; may be given several times
    #[arg(long, value_name = "LIMIT", value_parser = gate::limit)]
    pub at_most: Vec<gate::Limit>,
    /// Do not measure the path first
    #[arg(long)]
    pub unmeasured: bool,
    /// Keep captures and records in this folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print the answer as JSON, in the form of docs/lab.schema.json
    #[arg(long)]
    pub json: bool,
    /// Write a page for the browser, too, with the first run of each variant
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Flags of `tcpwhy lab accuracy`.
#[derive(Args, Debug)]
pub struct AccuracyFlags {
    /// How many runs
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub runs: u32,
    /// Of the set: the same seed makes the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Another set: what real networks have (competing flows, cross traffic, jitter, reordering, thin and
    /// lossy ways of ACKs, rate steps, policers, data both ways, `fq_codel`)
    #[arg(long)]
    pub networks: bool,
    /// Make this run of the set only
    #[arg(long, value_name = "N")]
    pub only: Option<u32>,
    /// Begin no run later than this many seconds after the first
    #[arg(long, value_name = "SECONDS")]
    pub within: Option<u64>,
    /// End with status 1 if the lenient error of time at the sender is above this, or if what a stock
    /// kernel records contradicts an observed one for more than a thousandth of the time
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<u64>,
    /// As in `lab run`
    #[arg(long, value_name = "NAME", value_parser = backends::known)]
    pub backend: Option<String>,
    /// Keep captures, records and scenarios in this folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print all figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// Carries out a subcommand.
pub fn run(command: &LabCommand, around: &Surroundings) -> Exit {
    let done = match command {
        LabCommand::List { keys: true, .. } => print(&manual()),
        LabCommand::List { what, .. } => list::list(what.as_deref()).and_then(|text| print(&text)),
        LabCommand::Setup(flags) => setup::run(flags),
        LabCommand::Run(flags) => run_scenario(flags, around),
        LabCommand::Shell(flags) => shell::run(flags),
        LabCommand::Verify(flags) => verify::run(flags, around),
        LabCommand::Accuracy(flags) => run_accuracy(flags, around),
    };
    done.unwrap_or_else(|error| {
        complain(&in_words(&error));
        match error.downcast_ref::<Ended>() {
            Some(Ended::Refused(_)) => Exit::Usage,
            None if error.is::<scenarios::Unknown>() => Exit::Usage,
            None if error.is::<ScenarioError>() => scenarios::exit(&error),
            _ => Exit::Unreadable,
        }
    })
}

fn run_scenario(flags: &RunFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    let scenario: Scenario = scenarios::open(&flags.scenario, &flags.set)?;
    let backend = backends::open(flags.backend.as_deref());
    let asked = runs::Asked {
        repeats: flags.repeat.unwrap_or(scenario.repeats),
        measures: !flags.unmeasured,
    };
    let lab = runs::Lab::open(backend.as_ref(), flags.keep.as_deref(), around)?;
    let (answer, first) = lab.answer(&scenario, asked)?;
    if let Some(path) = &flags.html {
        in_a_page(path, &first)?;
    }
    let text = if flags.json {
        let json = serde_json::to_string_pretty(&answer).context("an answer is plain data")?;
        json + "\n"
    } else {
        answer::render(&answer)
    };
    print(&text)?;
    let broken = gate::broken(&flags.at_most, &answer);
    for sentence in &broken {
        complain(sentence);
    }
    let is_fine = broken.is_empty() && answer.variants.iter().all(summary::Variant::is_as_expected);
    Ok(if is_fine { Exit::Analysed } else { Exit::Found })
}

/// Writes a page of captures, each with the name that it is to have there.
fn in_a_page(path: &Path, captures: &[(String, PathBuf)]) -> anyhow::Result<()> {
    let stop = AtomicBool::new(false);
    let reports = captures.iter().take(PICTURED).map(|(name, capture)| {
        let read = one::for_page(&Input::named(capture), &stop, &mut complain);
        let mut report = read.with_context(|| format!("cannot show the capture of {name}"))?;
        report.captures.iter_mut().for_each(|capture| capture.source.clone_from(name));
        Ok(report)
    });
    let report = page::side_by_side(reports.collect::<anyhow::Result<_>>()?);
    output::unless_seen_enough(page::write(page::shown(&report), path))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn run_accuracy(flags: &AccuracyFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    let backend = backends::open(flags.backend.as_deref());
    let lab = runs::Lab::open(backend.as_ref(), flags.keep.as_deref(), around)?;
    let kinds = if flags.networks { Kinds::Networks } else { Kinds::Plain };
    let set = accuracy::Set {
        kinds,
        seed: flags.seed,
        runs: flags.runs,
        only: flags.only,
        within: flags.within.map(Duration::from_secs),
    };
    let accuracy = accuracy::measure(&lab, backend.as_ref(), set)?;
    let text = if flags.json {
        serde_json::to_string(&accuracy).context("figures are plain data")? + "\n"
    } else {
        accuracy.render()
    };
    print(&text)?;
    let too_wrong = flags
        .fail_above
        .is_some_and(|most| accuracy.lenient().is_none_or(|error| error > most.saturating_mul(10)));
    Ok(if too_wrong || (flags.fail_above.is_some() && accuracy.stock_lies()) {
        Exit::Found
    } else {
        Exit::Analysed
    })
}

fn print(text: &str) -> anyhow::Result<Exit> {
    output::print(text).context("cannot write the answer")?;
    Ok(Exit::Analysed)
}
