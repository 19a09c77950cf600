//! The first process of a simulated machine, and the only one that does not belong to a run.
//!
//! The guest's root is a folder of the host with this program, a plan and an empty folder `out`.
//! It mounts what it needs, seeds the kernel's randomness, builds the plan's path
//! ([`crate::lab::layout`]), starts recorders and applications (this same program), carries
//! out the path's changes, waits, collects, tells in `out/guest.json` how it went, and switches
//! the machine off. Nothing of the host's programs is used: what is needed of iproute2 is spoken
//! here (`crate::netlink`), because programs that use the processor's wide registers break in such a
//! guest.
//!
//! Applications start at a fixed simulated time whatever came before it, so that two runs of a
//! plan can be held against each other stamp by stamp.

mod fate;
pub(crate) mod links;
mod paths;
mod processes;
pub(crate) mod queues;
mod system;

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use tcpwhy_model::scenario::plan::Plan;

use self::paths::Paths;
use self::processes::{
    Process, application, capture, changes, looks, tcp_info, tcp_info_of, trace,
};
use crate::lab::complain::complain;
use crate::lab::folder;
use crate::lab::layout::Layout;
use crate::record::counters::Counters;
use crate::sys::{Clock, NS_PER_S};

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
    /// Segments that each host's kernel retransmitted.
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
        complain(&why);
        report.failed = Some(why);
    }
    let written = serde_json::to_vec(&report).map_err(io::Error::from).and_then(|text| {
        fs::create_dir_all(OUT)?;
        fs::write(out(REPORT), text)
    });
    if let Err(error) = written {
        complain(&format!("cannot write {REPORT}: {error}"));
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

    // From here on every simulated second is recorded, which takes the host's time.
    Clock::Real.sleep_until(START_NS - LEAD_NS);
    let before = paths.counters()?;
    let recorders = recorders(&plan, &layout, &paths)?;
    let applications = applications(&plan, &layout, &paths)?;
    for change in &layout.changes {
        Clock::Real.sleep_until(START_NS + change.at_ns);
        paths.change(change)?;
    }
    let (staying, ending): (Vec<_>, Vec<_>) =
        applications.into_iter().partition(|(_, stays)| *stays);
    let ended = ending.into_iter().map(|(process, _)| process.end()).collect::<Vec<_>>();
    let stopped = staying.into_iter().map(|(process, _)| process.stop());
    let failures: Vec<String> = ended.into_iter().chain(stopped).filter_map(Result::err).collect();
    Clock::Real.sleep_until(Clock::Real.now() + plan.tail_ns.max(LEAST_TAIL_NS));
    for recorder in recorders {
        recorder.stop()?;
    }
    count(report, before, paths.counters()?)?;
    if plan.records.tcp_info_every_ns > 0 {
        merge(&paths.hosts().map(|(host, _)| out(&tcp_info_of(host))))
            .map_err(|e| format!("cannot merge the records of TCP_INFO: {e}"))?;
    }
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(first.clone()),
    }
}

/// Starts the applications, the looks at their sockets, and what changes their hosts; whether each stays until it is told to end.
fn applications(
    plan: &Plan,
    layout: &Layout,
    paths: &Paths,
) -> Result<Vec<(Process, bool)>, String> {
    let mut applications = Vec::new();
    for (side, node) in paths.hosts() {
        for (number, flow) in plan.flows.iter().enumerate() {
            let address = layout.server_address(plan.ipv6).to_string();
            let stays = if side == "server" { flow.server_stays() } else { flow.client_stays() };
            let process = paths.within(node, || application(side, number, &address))??;
            applications.push((process, stays));
        }
        if !plan.records.sockets_at_ns.is_empty() {
            applications.push((paths.within(node, || looks(plan, side))??, false));
        }
        let host = if side == "server" { &plan.server } else { &plan.client };
        if !host.changes.is_empty() {
            applications.push((paths.within(node, || changes(side))??, true));
        }
    }
    Ok(applications)
}

/// Starts everything that records, in the order in which it is to end.
fn recorders(plan: &Plan, layout: &Layout, paths: &Paths) -> Result<Vec<Process>, String> {
    let mut recorders = vec![trace(plan)?];
    if plan.records.tcp_info_every_ns > 0 {
        for (host, node) in paths.hosts() {
            recorders.push(paths.within(node, || tcp_info(plan, host))??);
        }
    }
    for tap in &layout.taps {
        recorders.push(paths.within(tap.node, || capture(plan, tap))??);
    }
    Ok(recorders)
}

/// Writes the counters down.
fn count(
    report: &mut Report,
    mut before: BTreeMap<&str, Counters>,
    after: BTreeMap<&str, Counters>,
) -> Result<(), String> {
    let mut both = BTreeMap::new();
    for (host, after) in after {
        let before = before.remove(host).unwrap_or_default();
        let again = after.since(&before).of("Tcp", "RetransSegs").unwrap_or(0);
        report.retransmitted.insert(host.to_owned(), again.unsigned_abs());
        both.insert(host, BTreeMap::from([("before", before), ("after", after)]));
    }
    serde_json::to_vec_pretty(&both)
        .map_err(io::Error::from)
        .and_then(|text| fs::write(out(folder::COUNTERS), text))
        .map_err(|e| format!("cannot write {}: {e}", folder::COUNTERS))
}

/// Makes one record of `TCP_INFO` of both hosts', in order of time.
fn merge(files: &[String]) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Stamp {
        t: u64,
    }
    let mut lines = Vec::new();
    for file in files {
        for line in fs::read_to_string(file)?.lines() {
            lines.push((serde_json::from_str::<Stamp>(line)?.t, line.to_owned()));
        }
        fs::remove_file(file)?;
    }
    lines.sort_by_key(|(t, _)| *t);
    let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
    fs::write(out(folder::TCP_INFO), text)
}

/// A record's place.
fn out(name: &str) -> String {
    format!("/{OUT}/{name}")
}

/// The plan's seed as the kernel's randomness takes it.
fn spread(seed: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (k, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&seed.wrapping_add(k as u64).to_le_bytes());
    }
    bytes
}

/// Ours: time for recorders and servers to be in place.
const LEAD_NS: u64 = NS_PER_S / 10;

/// Ours: ACKs and FINs are over by then at any delay of the Internet.
const LEAST_TAIL_NS: u64 = NS_PER_S;
