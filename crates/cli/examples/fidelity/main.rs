//! Holds the model against kernels in simulated time: `make fidelity`.
//!
//! Seeded random experiments run on a kernel (`make uml` builds it) and in the model; compared are
//! what each side's TCP handed down (order, sizes, flags, acknowledgments) and, ACK by ACK, the
//! sender's window, threshold and the peer's window. The model is given the phase of the kernel's
//! clock, nothing else. Printed are the equal runs, and the first difference of each other one
//! with its class.
//!
//!     cargo run --release -p tcpwhy-cli --example fidelity -- --runs 20 --kernel 6.1 --keep DIR
//!
//! With `--keep` the kernels' runs are kept and taken from there the next time.

mod compare;
mod kernel;
mod scenarios;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser;
use tcpwhy_linux::lab::backend::Backend as _;
use tcpwhy_linux::lab::uml::Uml;
use tcpwhy_model::profile::{KernelProfile, Memory, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::world::{Keep, Kernels, World};

use compare::Verdict;

/// Holds the model against kernels in simulated time.
#[derive(Parser)]
struct Options {
    /// How many experiments.
    #[arg(long, default_value_t = 20)]
    runs: u32,
    /// Seed of the set.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this one of the set.
    #[arg(long)]
    only: Option<u32>,
    /// Kernels. Each runs all of them.
    #[arg(long, value_delimiter = ',', default_value = "6.1,5.10,6.12")]
    kernel: Vec<String>,
    /// With exact losses.
    #[arg(long)]
    lossy: bool,
    /// A scenario of one's own instead of the set.
    #[arg(long)]
    scenario: Option<PathBuf>,
    /// Keep the kernels' runs here, and take from here what is kept.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Print both sides' events around the first difference.
    #[arg(long)]
    show: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let temporary = tempfile::tempdir()?;
    let keep = options.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    let mut tally = Tally::default();
    for (name, text) in experiments(&options)? {
        let scenario =
            Scenario::read(&name, &text, &[]).map_err(|e| anyhow::anyhow!("{e}\n{text}"))?;
        for plan in scenario.plans(1) {
            let variant = plan.variant.replace([' ', ',', '/'], "-");
            let name = if variant.is_empty() { name.clone() } else { format!("{name}-{variant}") };
            for version in &options.kernel {
                let verdict = one(&options, &keep, &name, &plan, version)
                    .with_context(|| format!("{name} on {version}"))?;
                tally.add(&name, version, &verdict);
            }
        }
    }
    tally.print();
    Ok(())
}

/// Names and texts of the experiments.
fn experiments(options: &Options) -> anyhow::Result<Vec<(String, String)>> {
    if let Some(path) = &options.scenario {
        let text = std::fs::read_to_string(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![(name, text)]);
    }
    let numbers = options.only.map_or(0..options.runs, |only| only..only + 1);
    let kind = if options.lossy { "lossy" } else { "clean" };
    Ok(numbers
        .map(|number| {
            let name = format!("{kind}-{}-{number}", options.seed);
            (name, scenarios::random(options.seed, number, options.lossy))
        })
        .collect())
}

fn one(
    options: &Options,
    keep: &std::path::Path,
    name: &str,
    plan: &Plan,
    version: &str,
) -> anyhow::Result<Verdict> {
    let folder = keep.join(format!("{name}-{version}"));
    if !folder.join("kernel.jsonl").exists() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        Uml::new(Some(version)).run(plan, &folder)?;
    }
    let recorded = kernel::read(&folder)?;
    let began = Instant::now();
    let modelled = model(plan, version, &recorded)?;
    let took = began.elapsed();
    let mut verdict = compare::compare(&recorded, &modelled, options.show);
    verdict.took = took;
    Ok(verdict)
}

/// Runs the plan in the model, with the phase of the recorded kernel's clock.
fn model(
    plan: &Plan,
    version: &str,
    recorded: &kernel::Recorded,
) -> anyhow::Result<compare::Modelled> {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u16>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        anyhow::bail!("{version} is no version of a kernel");
    };
    let mut kernel = KernelProfile::of(Version::new(major, minor));
    kernel.memory = Memory { headers: Memory::PLAIN.headers, ..kernel.memory };
    let kernels = Kernels {
        clock_ns: recorded.start_ns,
        rmem_most: recorded.rmem_most,
        ..Kernels::both(kernel)
    };
    let keep = Keep { handed_down: true, states: true, ..Keep::default() };
    let (outcome, trace) = World::new(plan, kernels, keep)?.run();
    Ok(compare::Modelled { outcome, trace })
}

/// What came out of all runs.
#[derive(Default)]
struct Tally {
    equal: u32,
    runs: u32,
    classes: BTreeMap<&'static str, u32>,
    durations: Vec<f64>,
}

impl Tally {
    fn add(&mut self, name: &str, version: &str, verdict: &Verdict) {
        self.runs += 1;
        self.durations.push((verdict.duration_ratio - 1.0).abs());
        let percent = (verdict.duration_ratio - 1.0) * 100.0;
        let words = match &verdict.difference {
            None => {
                self.equal += 1;
                "equal".to_owned()
            }
            Some(difference) => {
                *self.classes.entry(difference.class).or_default() += 1;
                format!("{}: {}", difference.class, difference.text)
            }
        };
        say(&format!(
            "{name} {version}: {} packets, {} ACKs, time {percent:+.2} %, {:.1} ms: {words}",
            verdict.packets,
            verdict.acks,
            verdict.took.as_secs_f64() * 1000.0
        ));
    }

    fn print(&mut self) {
        self.durations.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = self.durations.len().saturating_sub(1);
            let place = (last as f64 * share).round() as usize;
            self.durations.get(place).copied().unwrap_or(0.0) * 100.0
        };
        say(&format!(
            "{} of {} equal; duration off by {:.2} % in the median, {:.2} % at p95",
            self.equal,
            self.runs,
            at(0.5),
            at(0.95)
        ));
        for (class, count) in &self.classes {
            say(&format!("  {count:4} {class}"));
        }
    }
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn say(line: &str) {
    println!("{line}");
}
