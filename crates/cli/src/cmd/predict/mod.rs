//! `tcpwhy predict`: how long a transfer takes, by the model, for every combination of settings.

pub(super) mod grid;
mod rounds;
mod sizes;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use tcpwhy::view::web::PICTURED;
use tcpwhy_model::chance::Thrown;
use tcpwhy_model::ladder::{Rung, ladder};
use tcpwhy_model::predict::{MOST_WORK, Prediction};
use tcpwhy_model::profile::{KernelProfile, KnobError};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::world::{Keep, Kernels, World};

use super::{one, scenarios};
use crate::exit::{Exit, Refused};
use crate::{complain, output, page, whole};
use grid::Axis;

/// What is shown below the flags.
pub const AFTER: &str = "\
Values may be lists and ranges: --initcwnd 10,20,40..100:20, --rtt 2ms..8ms:2ms.
Every combination is run.

  tcpwhy predict --size 512KiB --rtt 7ms --rate 1gbit --initcwnd 10,20,100
  tcpwhy predict --size 1MB --rtt 20ms,80ms --kernel 4.18,5.10,6.12
  tcpwhy predict mine.toml --set path.queue=20,200 --csv
  tcpwhy predict --sizes --rtt 40ms --rate 100mbit
  tcpwhy predict textbook --rounds

One command runs at most a billion events of the model, some 400 GB of downloads; what was run before is printed.
Keys of --set: `tcpwhy lab list --keys`. What the model follows and what it leaves out: docs/model.md.";

/// Flags of `tcpwhy predict`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct PredictFlags {
    /// A scenario's name (see `tcpwhy lab list`), or a .toml file [default: a download over a path
    /// without loss]
    #[arg(value_name = "NAME|FILE")]
    pub scenario: Option<String>,
    /// How much the client downloads: 512KiB, 10MB
    #[arg(long, value_name = "SIZE,...", allow_hyphen_values = true)]
    pub size: Option<String>,
    /// Download 1 kB to 100 MB in turn: where slow start is felt, and what larger first flights save
    #[arg(long, conflicts_with_all = ["size", "rounds", "plot", "capture", "html"])]
    pub sizes: bool,
    /// The path's round trip: 7ms
    #[arg(long, value_name = "TIME,...", allow_hyphen_values = true)]
    pub rtt: Option<String>,
    /// The path's rate: 100mbit, or unlimited [default: 1gbit]
    #[arg(long, value_name = "RATE,...", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Share of packets lost at random: 1%
    #[arg(long, value_name = "SHARE,...", allow_hyphen_values = true)]
    pub loss: Option<String>,
    /// Initial congestion window of the server's route, in segments
    #[arg(long, value_name = "N,...", allow_hyphen_values = true)]
    pub initcwnd: Option<String>,
    /// The kernel of both hosts: 4.18, 5.4, 5.10, 5.15, 6.1, 6.6, 6.12 or 6.18, or one between
    #[arg(long, value_name = "VERSION,...", default_value = "6.12")]
    pub kernel: String,
    /// Change any key of the scenario, as server.route.congctl=reno,cubic
    #[arg(long, value_name = "KEY=VALUE,...", allow_hyphen_values = true)]
    pub set: Vec<String>,
    /// Write the packets at the sender's host to this file, as a pcapng capture (one run only)
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Write over a capture that is there
    #[arg(long, requires = "capture")]
    pub force: bool,
    /// Print the congestion window of every round, too
    #[arg(long, conflicts_with = "csv")]
    pub rounds: bool,
    /// Draw the congestion window over time, too
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    pub plot: bool,
    /// Print one line of comma-separated values for each run
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print the runs as JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page for the browser with the packets of each run, explained (`-` for standard output)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "json", "plot", "rounds"])]
    pub html: Option<PathBuf>,
}

/// The experiment where none is named.
const DOWNLOAD: &str = "about = \"a download\"\n[application]\ndownload = \"512KiB\"\n";

/// One run: the values of its settings, its variant, and what came of it.
struct Run {
    values: Vec<String>,
    variant: String,
    plan: Plan,
    kernels: Kernels,
    /// Of the throw in the middle, where chance decides.
    prediction: Prediction,
    /// The least and the most time, and of how many throws of the dice.
    range_ns: (u64, u64),
    throws: u32,
    /// Its rounds, if they were asked for.
    ladder: Vec<Rung>,
}

/// The answer as JSON, for a program that asks.
///
/// # Errors
/// What was asked for makes no sense.
pub(crate) fn asked(
    flags: &PredictFlags,
    remarked: &mut dyn FnMut(&str),
) -> Result<String, Refused> {
    let (text, stopped) = answer(flags, MOST_WORK).map_err(|error| Refused {
        exit: scenarios::exit(&error),
        ..Refused::usage(format!("{error:#}"))
    })?;
    stopped.as_deref().into_iter().for_each(remarked);
    Ok(text)
}

/// Predicts and prints.
pub fn run(flags: &PredictFlags) -> Exit {
    let (text, stopped) = match answer(flags, MOST_WORK) {
        Ok(told) => told,
        Err(error) => {
            complain(&format!("{error:#}"));
            return scenarios::exit(&error);
        }
    };
    let told = match &flags.html {
        Some(_) => Ok(()),
        None => output::tell(&text, flags.json || flags.csv),
    };
    if let Err(error) = told {
        complain(&format!("cannot write the answer: {error}"));
        return Exit::Unreadable;
    }
    match stopped {
        None => Exit::Analysed,
        Some(why) => {
            complain(&why);
            Exit::Usage
        }
    }
}

/// The answer as it is printed, and why not all was run, if so. The model runs at most `most` events.
fn answer(flags: &PredictFlags, most: u64) -> anyhow::Result<(String, Option<String>)> {
    let has_size = flags.size.is_some() || flags.sizes;
    if flags.scenario.is_none() && !(has_size && flags.rtt.is_some()) {
        bail!("name a scenario, or say --size and --rtt, as --size 512KiB --rtt 7ms");
    }
    let axes = axes(flags)?;
    let (runs, stopped) = all_runs(flags, &axes, most)?;
    if runs.is_empty() {
        bail!("{}", stopped.unwrap_or_default());
    }
    if let Some(path) = &flags.capture {
        let ([run], None) = (&runs[..], &stopped) else {
            bail!("--capture writes the packets of one run, and these are more");
        };
        whole::may_replace(path, flags.force)?;
        write_capture(path, run)?;
    }
    if let Some(path) = &flags.html {
        in_a_page(path, &axes, &runs)?;
        return Ok((String::new(), stopped));
    }
    let text = match () {
        () if flags.json => table::json(&axes, &runs)?,
        () if flags.csv => table::csv(&axes, &runs),
        () if flags.sizes => sizes::text(&axes, &runs)?,
        () => {
            let mut text = table::text(&axes, &runs);
            if flags.rounds {
                text += &rounds::ladders(&runs);
            }
            if flags.plot {
                text += &rounds::plots(&runs);
            }
            text
        }
    };
    Ok((text, stopped))
}

/// Every combination with every variant, as far as the work goes; if that is not to the end, why.
fn all_runs(
    flags: &PredictFlags,
    axes: &[Axis],
    most: u64,
) -> anyhow::Result<(Vec<Run>, Option<String>)> {
    let keeps = flags.rounds || flags.plot || flags.capture.is_some() || flags.html.is_some();
    let has_own_seed = axes.iter().any(|axis| axis.key == "seed");
    let (mut runs, mut left) = (Vec::new(), most);
    for values in grid::combinations(axes)? {
        let kernels = kernels(axes, &values)?;
        for plan in scenario(flags, axes, &values)?.variants {
            if runs.len() == grid::MOST_RUNS {
                let why = format!(
                    "stopped after {} runs, the most of one command; take fewer values or variants",
                    grid::MOST_RUNS
                );
                return Ok((runs, Some(why)));
            }
            let within = if keeps { left.min(MOST_KEPT) } else { left };
            let predicted = predicted(&plan, kernels, within, has_own_seed);
            let Some(thrown) = predicted.context("the model cannot run it")? else {
                let why = too_much(&values, &plan, runs.len(), within < left, most);
                return Ok((runs, Some(why)));
            };
            left -= thrown.events;
            let Thrown { plan, prediction, range_ns, throws, .. } = thrown;
            let (values, variant) = (owned(&values), plan.variant.clone());
            let ladder =
                if flags.rounds || flags.plot { ladder(&plan, kernels)? } else { Vec::new() };
            runs.push(Run { values, variant, plan, kernels, prediction, range_ns, throws, ladder });
        }
    }
    Ok((runs, None))
}

/// One run, or the one in the middle of many if chance decides and no seed was asked for.
fn predicted(
    plan: &Plan,
    kernels: Kernels,
    most: u64,
    has_own_seed: bool,
) -> Result<Option<Thrown>, KnobError> {
    if !has_own_seed {
        return Thrown::within(plan, kernels, most);
    }
    let run = Prediction::within(plan, kernels, most)?;
    Ok(run.map(|prediction| Thrown {
        plan: plan.clone(),
        range_ns: (prediction.time_ns, prediction.time_ns),
        throws: 1,
        events: prediction.events,
        prediction,
    }))
}

/// Why a run was broken off: its packets would not fit into memory, or all runs take too long.
fn too_much(values: &[&str], plan: &Plan, done: usize, is_kept: bool, most: u64) -> String {
    let variant =
        if plan.variant.is_empty() { String::new() } else { format!(", {}", plan.variant) };
    let settings = format!("{}{variant}", values.join(", "));
    let (limit, advice) = if is_kept {
        let limit = format!(
            "takes more than {} million events of the model, and --rounds, --plot and --capture keep all its packets",
            MOST_KEPT / 1_000_000
        );
        (limit, "leave them out, or take a smaller size")
    } else {
        let all = if done > 0 { " with the runs before it" } else { "" };
        let most = if most < 1_000_000 {
            most.to_string()
        } else {
            format!("{} million", most / 1_000_000)
        };
        let limit =
            format!("takes{all} more than {most} events of the model, the most of one command");
        (limit, "take a smaller size, fewer values, or a shorter `limit`")
    };
    format!("stopped after {done} runs: the next ({settings}) {limit}; {advice}")
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

/// Writes a page with a connection for each run.
fn in_a_page(path: &Path, axes: &[Axis], runs: &[Run]) -> anyhow::Result<()> {
    if runs.len() > PICTURED {
        bail!("a page shows {PICTURED} runs, and these are {}: take fewer values", runs.len());
    }
    let reports = runs.iter().map(|run| {
        let named = axes.iter().zip(&run.values);
        let named: Vec<_> = named.map(|(axis, value)| format!("{} {value}", axis.title)).collect();
        let config = Config { detail: true, predicts: true, trails: true, ..Config::default() };
        let mut session = Session::new(config);
        let name = format!("model: {} {}", named.join(", "), run.variant);
        session.begin(name.trim_end());
        session.push(&packets(run)?).and_then(|()| session.end()).context("the model's packets")?;
        let mut report = session.finish();
        one::fill(&mut report);
        Ok(report)
    });
    let report = page::side_by_side(reports.collect::<anyhow::Result<_>>()?);
    output::unless_seen_enough(page::write(page::shown(&report), path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The packets of a run at its sender's host, as a capture.
fn packets(run: &Run) -> anyhow::Result<Vec<u8>> {
    let tap = run.prediction.sender.into();
    let keep = Keep { segments: true, only: Some(tap), ..Keep::default() };
    let (_, trace) = World::new(&run.plan, run.kernels, keep)?.run();
    Ok(trace.pcapng(tap, run.plan.ipv6))
}

fn write_capture(path: &Path, run: &Run) -> anyhow::Result<()> {
    let file = packets(run)?;
    let written = whole::write(path, |out| std::io::Write::write_all(out, &file));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// What was asked for, in the order of the columns.
fn axes(flags: &PredictFlags) -> anyhow::Result<Vec<Axis>> {
    let [size, initcwnd] = &sizes::axes(flags);
    let named = [
        ("size", "application.download", size),
        ("rtt", "path.rtt", &flags.rtt),
        ("rate", "path.rate", &flags.rate),
        ("loss", "path.loss", &flags.loss),
        ("initcwnd", "server.route.initcwnd", initcwnd),
    ];
    let mut axes = Vec::new();
    for (title, key, typed) in named {
        axes.extend(typed.as_ref().map(|typed| Axis::read(title, key, typed)).transpose()?);
    }
    for set in &flags.set {
        let (key, typed) = set
            .split_once('=')
            .with_context(|| format!("`--set {set}` has no `=`; write it as path.rtt=20ms"))?;
        axes.push(Axis::read(key, key, typed)?);
    }
    axes.push(Axis::read(KERNEL, KERNEL, &flags.kernel)?);
    Ok(axes)
}

/// Events of a run whose packets are kept in memory. Ours: a download of 1 GB takes 2 million of them, and 300 MB;
/// where packets come many at once, 2 GB take 760 MB.
const MOST_KEPT: u64 = 3_000_000;

/// The axis that is no key of a scenario.
const KERNEL: &str = "kernel";

/// The scenario with these values.
fn scenario(flags: &PredictFlags, axes: &[Axis], values: &[&str]) -> anyhow::Result<Scenario> {
    let keys = axes.iter().zip(values).filter(|(axis, _)| axis.key != KERNEL);
    let overrides: Vec<_> = keys.map(|(axis, value)| format!("{}={value}", axis.key)).collect();
    match &flags.scenario {
        Some(name) => scenarios::open(name, &overrides),
        None => Scenario::read("download", DOWNLOAD, &overrides).context("cannot predict that"),
    }
}

fn kernels(axes: &[Axis], values: &[&str]) -> anyhow::Result<Kernels> {
    let typed = axes.iter().zip(values).find(|(axis, _)| axis.key == KERNEL);
    let typed = typed.map_or("", |(_, value)| *value);
    let kernel = typed.parse().ok().and_then(KernelProfile::known);
    kernel.map(Kernels::both).with_context(|| {
        format!("`{typed}` is no kernel that the model knows; it knows 4.18 to 6.18")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        flags: PredictFlags,
    }

    fn within(words: &str, most: u64) -> anyhow::Result<(String, Option<String>)> {
        let words = ["predict"].into_iter().chain(words.split_whitespace());
        answer(&Typed::parse_from(words).flags, most)
    }

    #[test]
    fn sizes_tell_where_slow_start_is_felt_and_what_a_larger_first_flight_saves() {
        let told = |words: &str| within(words, MOST_WORK).expect("a table").0;
        // 20 ms at 100 Mbit/s hold 250 kB.
        let text = told("--sizes --rtt 20ms --rate 100mbit --initcwnd 10,40");
        assert!(
            text.contains("slow start is felt from 20kB to 5MB: it takes 10 % of the time"),
            "{text}"
        );
        assert!(text.contains("initcwnd 40 saves up to 2 round trips ("), "{text}");
        // A round trip holds no packet.
        let text = told("--sizes --rtt 1ms --rate 1mbit");
        assert!(text.contains("slow start is felt nowhere"), "{text}");
        assert!(text.contains("initcwnd 32 saves nothing that counts at any size"), "{text}");
        let error = within("--sizes --rtt 5ms,20ms", MOST_WORK).expect_err("two paths");
        assert!(error.to_string().contains("one value each"), "{error}");
    }

    #[test]
    fn what_was_run_before_the_work_was_done_is_told_with_why_it_is_not_all() {
        let few = "--size 100kB,900kB,200kB --rtt 7ms --csv";
        let (text, stopped) = within(few, MOST_WORK).expect("three runs");
        assert_eq!((text.lines().count(), stopped), (4, None));
        let (text, stopped) = within(few, 1500).expect("one run");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(
            stopped.as_deref(),
            Some(
                "stopped after 1 runs: the next (900kB, 7ms, 6.12) takes with the runs before it more than 1500 events \
                 of the model, the most of one command; take a smaller size, fewer values, or a shorter `limit`"
            )
        );
        let error = within("--size 900kB --rtt 7ms", 1500).expect_err("nothing to tell");
        assert!(error.to_string().starts_with("stopped after 0 runs: "), "{error}");
        let error = within("--size 100kB,900kB --rtt 7ms --capture x", 1500).expect_err("two");
        assert!(error.to_string().contains("these are more"), "{error}");
    }
}
