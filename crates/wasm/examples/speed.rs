//! How fast the model is on one core, and what memory it takes.
//!
//!     cargo run --release -p tcpwhy-wasm --example speed [CASE...]
//!
//! Cases are printed a line each: name, data segments a second and milliseconds a run, both of the
//! processor's time (other programs may run meanwhile), most memory of this process until then. `questions` prints the thousand settings that `bench/model` has the
//! module answer, too.

use std::error::Error;
use std::time::Instant;

use tcpwhy_model::predict::Prediction;
use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::world::{Keep, Kernels, World};
use tcpwhy_wasm::answer_to;

/// A case: path, bytes, how often.
type Case = (&'static str, &'static str, u64, u32);

const CASES: [Case; 4] = [
    // First, for the peak of memory only rises.
    ("10 GB", "rtt = \"20ms\"\nrate = \"1gbit\"", 10_000_000_000, 1),
    ("long", "rtt = \"20ms\"\nrate = \"1gbit\"", 1 << 30, 1),
    ("lossy", "rtt = \"20ms\"\nrate = \"100mbit\"\ndown.loss = \"0.5%\"", 100 << 20, 1),
    ("512 KiB", "rtt = \"6ms\"\nrate = \"1gbit\"", 512 << 10, 1000),
];

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|each| each == name);
    for case in CASES.into_iter().filter(|case| is_asked(case.0)) {
        run(case)?;
    }
    if is_asked("predict") {
        predict(CASES[3])?;
    }
    if is_asked("settings") {
        settings()?;
    }
    if asked.iter().any(|each| each == "questions") {
        for question in questions() {
            say(&question);
        }
    }
    Ok(())
}

fn plan((name, path, bytes, _): Case) -> Result<Plan, Box<dyn Error>> {
    let text = format!("limit = \"1h\"\n[path]\n{path}\n[application]\ndownload = \"{bytes}B\"\n");
    let scenario = Scenario::read("speed", &text, &[]).map_err(|e| format!("{name}: {e}"))?;
    Ok(scenario.plans(1).next().ok_or("no plan")?)
}

fn kernels() -> Kernels {
    Kernels::both(KernelProfile::of(Version::new(6, 12)))
}

/// The bare run. Nothing of it is kept.
fn run(case: Case) -> Result<(), Box<dyn Error>> {
    let (name, _, bytes, times) = case;
    let plan = plan(case)?;
    let began = Began::now();
    for _ in 0..times {
        let (outcome, _) = World::new(&plan, kernels(), Keep::default())?.run();
        if !outcome.done {
            return Err(format!("{name}: {:?}", outcome.waiting).into());
        }
    }
    tell(name, bytes, times, &began);
    Ok(())
}

/// The same with all that `tcpwhy predict` tells.
fn predict(case: Case) -> Result<(), Box<dyn Error>> {
    let (_, _, bytes, times) = case;
    let plan = plan(case)?;
    let began = Began::now();
    for _ in 0..times {
        let told = Prediction::of(&plan, kernels())?;
        if !told.unfinished.is_empty() {
            return Err(format!("{:?}", told.unfinished).into());
        }
    }
    tell("predict", bytes, times, &began);
    Ok(())
}

/// A thousand settings from their text to JSON.
fn settings() -> Result<(), Box<dyn Error>> {
    let questions = questions();
    let began = Began::now();
    for question in &questions {
        let told = answer_to(question.as_bytes());
        if !told.contains("\"runs\"") {
            return Err(told.into());
        }
    }
    tell("settings", CASES[3].2, questions.len() as u32, &began);
    Ok(())
}

fn questions() -> Vec<String> {
    let scenario = "[path]\nrate = \"1gbit\"\n[application]\ndownload = \"512KiB\"\n";
    let question = |number: u32| {
        let (initcwnd, rtt_ms) = (1 + number % 100, 2 + 3 * (number / 100));
        let set = [format!("server.route.initcwnd={initcwnd}"), format!("path.rtt={rtt_ms}ms")];
        serde_json::json!({ "scenario": scenario, "set": set }).to_string()
    };
    (0..1000).map(question).collect()
}

fn tell(name: &str, bytes: u64, times: u32, began: &Began) {
    let took = began.seconds();
    let segments = bytes as f64 * f64::from(times) / PAYLOAD;
    let memory = peak_kb().map_or_else(|| "-".to_owned(), |kb| format!("{:.1}", kb / 1024.0));
    say(&format!(
        "{name:<9} {:.2} M segments/s {:>10.3} ms a run {memory:>8} MiB",
        segments / took / 1e6,
        took * 1000.0 / f64::from(times)
    ));
}

/// When a case began.
struct Began {
    clock: Instant,
    processor_ns: Option<u64>,
}

impl Began {
    fn now() -> Self {
        Self { clock: Instant::now(), processor_ns: processor_ns() }
    }

    /// Of the processor's time, or else of the clock's.
    fn seconds(&self) -> f64 {
        let on_processor = self.processor_ns.zip(processor_ns()).map(|(from, to)| to - from);
        on_processor.map_or_else(|| self.clock.elapsed().as_secs_f64(), |ns| ns as f64 / 1e9)
    }
}

/// Time that this thread had a processor, where Linux tells it.
fn processor_ns() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split_whitespace().next()?.parse().ok()
}

/// The peak of this process's memory, where Linux tells it.
fn peak_kb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn say(line: &str) {
    println!("{line}");
}

/// Payload of a segment: MTU 1500 less headers and timestamps.
const PAYLOAD: f64 = 1448.0;
