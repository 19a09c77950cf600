//! The first process of a simulated machine, and the only one that does not belong to a run.
//!
//! The guest's root is a folder of the host with this program, a plan and an empty folder `out`.
//! It mounts what it needs, seeds the kernel's randomness, builds the plan's path
//! ([`crate::lab::uml::layout`]), starts recorders and applications (this same program), carries
//! out the path's changes, waits, collects, tells in `out/guest.json` how it went, and switches
//! the machine off. Nothing of the host's programs is used: what is needed of iproute2 is spoken
//! here ([`netlink`]), because programs that use the processor's wide registers break in such a
//! guest.
//!
//! Applications start at a fixed simulated time whatever came before it, so that two runs of a
//! plan can be held against each other stamp by stamp.

mod fate;
pub(crate) mod links;
mod netlink;
mod paths;
pub(crate) mod queues;
mod system;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use tcpwhy_model::scenario::plan::Plan;

use self::paths::Paths;
use crate::lab::folder;
use crate::lab::uml::layout::{Layout, Tap};
use crate::record::sys::{Clock, NS_PER_S};

pub(crate) use fate::MOST_LOST;

/// How a run went, as the guest tells the host; JSON in [`REPORT`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Report {
    /// `uname -r`.
    pub(crate) kernel: String,
    /// Why it ended early.
    pub(crate) failed: Option<String>,
    /// Settings of both hosts as they were.
    pub(crate) knobs: BTreeMap<String, String>,
    /// Segments that each host's kernel sent again.
    pub(crate) retransmitted: BTreeMap<String, u64>,
    /// What processes of the run complained of.
    #[serde(skip)]
    pub(crate) complaints: Vec<String>,
}

/// Where the guest tells how it went, in its folder [`OUT`].
pub(crate) const REPORT: &str = "guest.json";

/// Where the guest's processes complain.
pub(crate) const COMPLAINTS: &str = "complaints.txt";

/// The guest's folder of records.
pub(crate) const OUT: &str = "out";

/// Simulated time at which the first application starts: `time-travel-start` of the kernel's
/// command line, and time for everything to be in place.
const START_NS: u64 = BOOT_NS + 10 * NS_PER_S;

/// Simulated time at boot, an instant in October 2025. Ours: any; it is the same in every run.
pub(crate) const BOOT_NS: u64 = 1_760_000_000 * NS_PER_S;

/// Carries a run out and switches the machine off.
///
/// # Errors
/// Called elsewhere than in a guest, or the machine cannot be switched off.
pub(super) fn run() -> Result<(), String> {
    if std::process::id() != 1 {
        return Err("init is for the first process of a simulated machine".to_owned());
    }
    let mut report = Report::default();
    if let Err(why) = carry_out(&mut report) {
        super::complain(&why);
        report.failed = Some(why);
    }
    let written = serde_json::to_vec(&report).map_err(io::Error::from).and_then(|text| {
        fs::create_dir_all(OUT)?;
        fs::write(out(REPORT), text)
    });
    if let Err(error) = written {
        super::complain(&format!("cannot write {REPORT}: {error}"));
    }
    Err(format!("cannot switch the machine off: {}", system::power_off()))
}

fn carry_out(report: &mut Report) -> Result<(), String> {
    std::env::set_current_dir("/").map_err(|e| format!("cannot enter the guest's root: {e}"))?;
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tracefs", "/sys/kernel/tracing")]
    {
        system::mount(kind, place).map_err(|e| format!("cannot mount {kind}: {e}"))?;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().clone_into(&mut report.kernel);
    let text =
        fs::read_to_string(folder::PLAN).map_err(|e| format!("cannot read the plan: {e}"))?;
    let plan: Plan =
        serde_json::from_str(&text).map_err(|e| format!("cannot understand the plan: {e}"))?;
    system::stir(&spread(plan.seed)).map_err(|e| format!("cannot seed the randomness: {e}"))?;
    let layout = Layout::of(&plan).map_err(|e| e.to_string())?;
    let mut paths = Paths::build(&plan, &layout)?;
    report.knobs = paths.knobs()?;

    let mut recorders = Vec::new();
    for tap in &layout.taps {
        recorders.push(paths.within(tap.node, || capture(&plan, tap))??);
    }
    let mut applications = Vec::new();
    for side in ["server", "client"] {
        let node = if side == "server" { 0 } else { layout.nodes.len() - 1 };
        for flow in 0..plan.flows.len() {
            let address = layout.server_address(plan.ipv6).to_string();
            applications.push(paths.within(node, || application(side, flow, &address))??);
        }
    }
    for change in &layout.changes {
        Clock::Real.sleep_until(START_NS + change.at_ns);
        paths.change(change)?;
    }
    let failures: Vec<String> = applications.into_iter().filter_map(|a| a.end().err()).collect();
    Clock::Real.sleep_until(Clock::Real.now() + plan.tail_ns.max(LEAST_TAIL_NS));
    for recorder in recorders {
        recorder.stop()?;
    }
    report.retransmitted = paths.retransmitted()?;
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(first.clone()),
    }
}

/// The plan's seed as the kernel's randomness takes it.
fn spread(seed: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (k, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&seed.wrapping_add(k as u64).to_le_bytes());
    }
    bytes
}

fn out(name: &str) -> String {
    format!("/{OUT}/{name}")
}

fn capture(plan: &Plan, tap: &Tap) -> Result<Process, String> {
    let file = format!("{}.pcapng", tap.name);
    let mut arguments = vec!["capture".to_owned(), "--interface".to_owned(), tap.device.clone()];
    arguments.extend(["--output".to_owned(), out(&file)]);
    if plan.records.snap_length > 0 {
        arguments.extend(["--snap-length".to_owned(), plan.records.snap_length.to_string()]);
    }
    for flow in &plan.flows {
        arguments.extend(["--port".to_owned(), flow.port.to_string()]);
    }
    Process::start(format!("the capture at the {}", tap.name), &arguments)
}

fn application(side: &str, flow: usize, address: &str) -> Result<Process, String> {
    let mut arguments = [
        ["app".to_owned(), "--side".to_owned()],
        [side.to_owned(), "--flow".to_owned()],
        [flow.to_string(), "--address".to_owned()],
        [address.to_owned(), "--plan".to_owned()],
        [format!("/{}", folder::PLAN), "--start".to_owned()],
        [START_NS.to_string(), "--log".to_owned()],
    ]
    .concat();
    arguments.push(out(folder::APPLICATIONS));
    Process::start(format!("the {side} of flow {flow}"), &arguments)
}

/// A process of the run.
struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts this program with other arguments and waits until it says that it is ready.
    fn start(name: String, arguments: &[String]) -> Result<Self, String> {
        let error = |e: io::Error| format!("cannot start {name}: {e}");
        let complaints =
            File::options().append(true).create(true).open(out(COMPLAINTS)).map_err(error)?;
        let mut child = Command::new("/agent")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(error)?;
        let mut line = String::new();
        if let Some(told) = child.stdout.take() {
            BufReader::new(told).read_line(&mut line).map_err(error)?;
        }
        let process = Self { name, child };
        if line.trim() == "ready" { Ok(process) } else { Err(process.failed("did not start")) }
    }

    /// Waits until it ends by itself.
    fn end(mut self) -> Result<(), String> {
        let status =
            self.child.wait().map_err(|e| format!("cannot wait for {}: {e}", self.name))?;
        if status.success() { Ok(()) } else { Err(self.failed("failed")) }
    }

    /// Tells it to end and waits until it has.
    fn stop(self) -> Result<(), String> {
        system::signal(self.child.id(), libc::SIGTERM)
            .map_err(|e| format!("cannot stop {}: {e}", self.name))?;
        self.end()
    }

    /// With the last that anybody complained of.
    fn failed(&self, how: &str) -> String {
        let complaints = fs::read_to_string(out(COMPLAINTS)).unwrap_or_default();
        let last = complaints.lines().last().unwrap_or("it did not say why");
        format!("{} {how}: {}", self.name, last.trim_start_matches("tcpwhy-agent: "))
    }
}

/// Ours: ACKs and FINs are over by then at any delay of the Internet.
const LEAST_TAIL_NS: u64 = NS_PER_S;
