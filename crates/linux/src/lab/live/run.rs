//! The stage: builds the namespaces, plays the plan in them, brings the records home.
//!
//! ```text
//!   namespaces, devices, settings      nothing of the plan has started: a refusal costs nothing
//!   emulator, captures                 all say that they are ready
//!   servers, clients                   wait for one common instant
//!   ... until the last application ends, or the first fails ...
//!   the tail                           captures stay open
//!   captures end, emulator ends        how late was it, what was lost
//! ```
//!
//! It runs as the first process of a process namespace ([`super::keeper`]), so it need not tidy up
//! when it fails; it only sees to it that records are complete.

use std::ffi::OsString;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tcpwhy_model::scenario::plan::{Host, Plan};

use super::between::Between;
use super::clock::Clocks;
use super::journal::Tap;
use super::netem;
use super::players::{self, Player};
use super::programs::{Again, LOOK, Program, one_line};
use super::pump::End;
use super::records::{HostCounters, client_ports, join_tcp_info, keep_own_events, tcp_info_of};
use super::report::{Doors, Report};
use super::setup::{self, Act, Node};
use super::stage::{Stage, Trouble};
use super::sys;
use crate::lab::backend::{LabError, Manifest};
use crate::lab::folder;

/// What joins the hosts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Joint {
    /// Our own emulator between two TUN devices.
    Tun,
    /// Routers with netem and tbf.
    Netem,
}

impl Joint {
    /// Its name as a backend.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tun => "tun",
            Self::Netem => "netem",
        }
    }
}

/// Plays the stage's part: the joint's name, `check`, `run` or `hold`, and the folder; the plan is on
/// standard input.
pub(super) fn main(again: &Again, words: &[OsString]) -> ExitCode {
    let report = match perform(again, words) {
        Ok(report) => report,
        Err(trouble) => Report::Trouble(trouble),
    };
    report.tell();
    if matches!(report, Report::Trouble(_)) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn perform(again: &Again, words: &[OsString]) -> Result<Report, Trouble> {
    let plan = read_plan()?;
    let (stage, ends) = if words.first().is_some_and(|word| word == Joint::Netem.name()) {
        (netem_stage(&plan)?, None)
    } else {
        let stage = Stage::build(&HOSTS)?;
        let ends = [
            open_end(&stage, Node::Client, &plan.client)?,
            open_end(&stage, Node::Server, &plan.server)?,
        ];
        for node in HOSTS {
            stage.carry_out(node, &setup::host(&plan, node))?;
        }
        (stage, Some(ends))
    };
    let (task, folder) = match words {
        [_, task, folder] => (task.to_str(), PathBuf::from(folder)),
        _ => (None, PathBuf::new()),
    };
    let run = Run { plan: &plan, folder: &folder, again, stage: &Arc::new(stage) };
    Ok(match task {
        Some("run") => Report::Done(Box::new(run.play(ends)?)),
        Some("hold") => return Err(run.hold(ends)),
        _ => {
            // These hosts are for the check alone: what changes later may change at once.
            for node in HOSTS {
                run.stage.carry_out(node, &setup::changes(&plan, node))?;
            }
            Report::Possible
        }
    })
}

fn netem_stage(plan: &Plan) -> Result<Stage, Trouble> {
    let stage = Stage::build(&netem::NODES)?;
    let carry_out = |acts: Vec<(Node, Act)>| {
        acts.into_iter().try_for_each(|(node, act)| stage.carry_out(node, &[act]))
    };
    carry_out(netem::build(plan, |node| stage.path_of(node)))?;
    for node in HOSTS {
        stage.carry_out(node, &setup::host(plan, node))?;
        stage.carry_out(node, &[netem::host_neighbour(plan.ipv6, node)])?;
    }
    carry_out(netem::path(plan))?;
    Ok(stage)
}

fn read_plan() -> Result<Plan, Trouble> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let parsed = read.and_then(|_| Ok(serde_json::from_str(&line)?));
    parsed.map_err(|error| Trouble::Ended {
        why: format!("the plan did not reach the stage: {error}"),
        advice: "this is an error in tcpwhy, please report it".to_owned(),
    })
}

fn open_end(stage: &Stage, node: Node, host: &Host) -> Result<End, Trouble> {
    let open = || -> io::Result<End> {
        let open = |name| sys::open_tun(name, host.offload);
        let device = open(node.name())?;
        let way_out = if host.second_nic { open(node.second())? } else { device.try_clone()? };
        Ok(End { device, way_out, offload: host.offload })
    };
    stage.inside(node, open).and_then(|end| end).map_err(|error| Trouble::Missing {
        doing: "open a TUN device".to_owned(),
        why: error.to_string(),
        advice: match error.kind() {
            io::ErrorKind::NotFound => "load the module tun (modprobe tun)",
            io::ErrorKind::PermissionDenied => {
                "let this user read and write /dev/net/tun, or run it as root"
            }
            _ => "the kernel may lack CONFIG_TUN",
        }
        .to_owned()
            + "; or use --backend uml",
    })
}

struct Run<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    again: &'a Again,
    stage: &'a Arc<Stage>,
}

impl Run<'_> {
    fn play(&self, ends: Option<[End; 2]>) -> Result<Manifest, Trouble> {
        let mut manifest = Manifest {
            kernel: read_line("/proc/sys/kernel/osrelease"),
            valid: true,
            knobs: self.knobs(),
            ..Manifest::default()
        };
        if std::env::var_os(super::ORDINARY_USER).is_none() {
            // Without it a page may have to be fetched on time, which lateness would show.
            let _ = sys::lock_memory();
        }
        let between = Between::start(self.plan, self.folder, self.stage, ends)?;
        let counters = HostCounters::begin(self.stage);
        let mut recorders = Vec::new();
        let played = self
            .start_recorders(&between, &mut recorders, &mut manifest)
            .and_then(|()| self.applications(&between, &mut recorders, &mut manifest));
        if played.is_ok() {
            thread::sleep(Duration::from_nanos(self.plan.tail_ns));
        }
        let recorded = stop_recorders(&mut recorders, &mut manifest);
        // The emulator's own end says best why it, or its disk, gave up.
        let emulated = between.stop(self.plan, &mut manifest);
        let finished = || -> Result<(), Trouble> {
            counters.finish(self.stage, self.folder)?;
            self.finish_records(&recorders)
        };
        let all = emulated.and(played).and(recorded).and_then(|()| finished());
        all.map_err(|trouble| self.with_saved(trouble))?;
        Ok(manifest)
    }

    /// Lets the hosts and the path stand until the lab ends, which ends this process; or why they do not.
    fn hold(&self, ends: Option<[End; 2]>) -> Trouble {
        let between = match Between::start(self.plan, self.folder, self.stage, ends) {
            Ok(between) => between,
            Err(trouble) => return trouble,
        };
        between.begin(sys::monotonic_ns());
        let [client, server] = HOSTS.map(|node| PathBuf::from(self.stage.path_of(node)));
        let is_ordinary = std::env::var_os(super::ORDINARY_USER).is_some();
        let users = is_ordinary.then(|| PathBuf::from(sys::own_users()));
        Report::Open(Doors { users, client, server }).tell();
        while between.alive() {
            thread::sleep(LOOK);
        }
        Trouble::Ended { why: "the path gave up".to_owned(), advice: String::new() }
    }

    fn start_recorders(
        &self,
        between: &Between,
        recorders: &mut Vec<Program>,
        manifest: &mut Manifest,
    ) -> Result<(), Trouble> {
        let own = between.own_taps(self.plan);
        for (node, tap) in [(Node::Client, Tap::Client), (Node::Server, Tap::Server)] {
            let every_ns = self.plan.records.tcp_info_every_ns;
            if every_ns > 0 {
                let mut words = words(["tcp-info", "--every", &every_ns.to_string(), "--output"]);
                words.push(tcp_info_of(self.folder, node).into_os_string());
                let name = format!("the record of TCP_INFO at the {}", node.name());
                recorders.push(self.start(node, name, RECORDER_PRIORITY, &words)?);
            }
            if !own.contains(&tap) {
                // Of two interfaces, each has half of it.
                let device = if node.host(self.plan).second_nic { "any" } else { node.name() };
                recorders.push(self.capture(node, device, tap)?);
            }
        }
        if self.plan.records.middle && !own.contains(&Tap::Middle) {
            let (node, device) = netem::MIDDLE;
            recorders.push(self.capture(node, device, Tap::Middle)?);
        }
        recorders.iter_mut().try_for_each(Program::wait_ready)?;
        // By perf alone: an instance of tracefs would outlive us, for whoever is to remove it dies
        // with our process namespace.
        let mut words = words(["trace", "--method", "perf", "--output"]);
        words.push(self.folder.join(folder::KERNEL).into_os_string());
        for flow in &self.plan.flows {
            words.extend(["--port".into(), flow.port.to_string().into()]);
        }
        let mut trace = self.start(Node::Server, TRACE.to_owned(), RECORDER_PRIORITY, &words)?;
        match trace.wait_ready() {
            Ok(()) => recorders.push(trace),
            Err(trouble) => {
                let why = trouble.why();
                manifest.problems.push(format!("there is no {}: {why}", folder::KERNEL));
            }
        }
        Ok(())
    }

    fn capture(&self, node: Node, device: &str, tap: Tap) -> Result<Program, Trouble> {
        let mut words = words(["capture", "--interface", device, "--output"]);
        words.push(self.folder.join(tap.file()).into_os_string());
        if self.plan.records.snap_length > 0 {
            words.push("--snap-length".into());
            words.push(self.plan.records.snap_length.to_string().into());
        }
        self.start(node, format!("the capture at {device}"), RECORDER_PRIORITY, &words)
    }

    /// Puts together what several recorders have written.
    fn finish_records(&self, recorders: &[Program]) -> Result<(), Trouble> {
        if self.plan.records.tcp_info_every_ns > 0 {
            join_tcp_info(self.folder)?;
        }
        let path = self.folder.join(folder::PACKETS);
        if path.exists() && recorders.iter().any(|recorder| recorder.name == TRACE) {
            let clients =
                client_ports(self.folder).map_err(|source| LabError::reading(&path, source))?;
            keep_own_events(self.folder, &clients)?;
        }
        Ok(())
    }

    /// Starts all applications and waits for their end.
    fn applications(
        &self,
        between: &Between,
        recorders: &mut [Program],
        manifest: &mut Manifest,
    ) -> Result<(), Trouble> {
        let (clocks, now) = (Clocks::new(), sys::monotonic_ns());
        let all = |start| players::groups(self.plan, self.folder, start);
        let count = all(0).iter().map(Vec::len).sum::<usize>();
        let origin = now + START_NS + START_NS_PER_PLAYER * count as u64;
        let (mut players, mut staying) = (Vec::new(), Vec::new());
        for group in all(clocks.real(origin)) {
            for Player { node, name, words, stays } in group {
                if stays {
                    staying.push(players.len());
                }
                players.push(self.start(node, name, APPLICATION_PRIORITY, &words)?);
            }
            players.iter_mut().try_for_each(Program::wait_ready)?;
        }
        between.begin(origin);
        if sys::monotonic_ns() > origin {
            manifest.distrust(
                "the applications were not ready at their common start: repeat the run on a \
                 quieter machine"
                    .to_owned(),
            );
        }
        self.wait_for(&mut players, &staying, recorders, between)?;
        for at in staying {
            match players[at].stop() {
                Some(status) if status.success() => {}
                _ => return Err(failed(&mut players[at])),
            }
        }
        Ok(())
    }

    /// Waits until all applications but those that stay are done; the first failure of anything is the end.
    fn wait_for(
        &self,
        players: &mut [Program],
        staying: &[usize],
        recorders: &mut [Program],
        between: &Between,
    ) -> Result<(), Trouble> {
        let limit = Duration::from_nanos(self.plan.limit_ns) + LIMIT_GRACE;
        let limit = (self.plan.limit_ns > 0).then(|| Instant::now() + limit);
        let mut done: Vec<bool> = (0..players.len()).map(|at| staying.contains(&at)).collect();
        while done.contains(&false) {
            for (player, done) in players.iter_mut().zip(&mut done) {
                match player.ended() {
                    Some(status) if !status.success() => return Err(failed(player)),
                    Some(_) => *done = true,
                    None => {}
                }
            }
            if let Some(gone) = recorders.iter_mut().find_map(|one| one.ended().and(Some(one))) {
                return Err(failed(gone));
            }
            if !between.alive() {
                return Err(Trouble::Ended {
                    why: "the path gave up".to_owned(),
                    advice: String::new(),
                });
            }
            if limit.is_some_and(|limit| Instant::now() > limit) {
                return Err(Trouble::Ended {
                    why: format!("it took longer than its limit of {} s", self.plan.limit_ns / NS),
                    advice: "raise the scenario's limit".to_owned(),
                });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn start(
        &self,
        node: Node,
        name: String,
        priority: i32,
        words: &[OsString],
    ) -> Result<Program, Trouble> {
        Program::start(self.again, self.stage, node, name, priority, words)
    }

    fn knobs(&self) -> std::collections::BTreeMap<String, String> {
        let asked = |host: &Host| host.sysctl.keys().cloned().collect::<Vec<_>>();
        let mut knobs = std::collections::BTreeMap::new();
        for (node, host) in HOSTS.into_iter().zip([&self.plan.client, &self.plan.server]) {
            let asked = asked(host);
            let names = KNOBS.iter().copied().chain(asked.iter().map(String::as_str));
            knobs.extend(self.stage.settings(node, names));
        }
        knobs
    }

    /// Adds to a failure what is left of the run.
    fn with_saved(&self, trouble: Trouble) -> Trouble {
        let Trouble::Ended { why, advice } = trouble else { return trouble };
        let names = folder::CAPTURES.into_iter().chain([folder::APPLICATIONS, folder::PACKETS]);
        let is_saved = |name: &&str| {
            std::fs::metadata(self.folder.join(name)).is_ok_and(|file| file.len() > 0)
        };
        let saved: Vec<&str> = names.filter(is_saved).collect();
        let kept = if saved.is_empty() {
            "nothing was recorded".to_owned()
        } else {
            format!("recorded until then: {}", saved.join(", "))
        };
        let advice = if advice.is_empty() { kept } else { format!("{advice}; {kept}") };
        Trouble::Ended { why, advice }
    }
}

/// Ends recorders; what they complained about goes into the manifest.
fn stop_recorders(recorders: &mut [Program], manifest: &mut Manifest) -> Result<(), Trouble> {
    let mut outcome = Ok(());
    for recorder in recorders {
        let status = recorder.stop();
        let said = one_line(&recorder.complaints());
        let name = &recorder.name;
        match status {
            Some(status) if status.success() && said.is_empty() => {}
            Some(status) if status.success() && said.contains("dropped") => {
                manifest.distrust(format!("{name}: {said}"));
            }
            Some(status) if status.success() => manifest.problems.push(format!("{name}: {said}")),
            _ if outcome.is_ok() => {
                let why = format!("{name} failed: {said}");
                outcome = Err(Trouble::Ended { why, advice: String::new() });
            }
            _ => {}
        }
    }
    outcome
}

fn failed(program: &mut Program) -> Trouble {
    let said = one_line(&program.complaints());
    let name = &program.name;
    Trouble::Ended { why: format!("{name} failed: {said}"), advice: String::new() }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

fn read_line(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

const HOSTS: [Node; 2] = [Node::Client, Node::Server];

const NS: u64 = 1_000_000_000;

/// Who records the kernel's tracepoints, in sentences.
const TRACE: &str = "the record of the kernel's tracepoints";

/// Ours: programs of a debug build start in 10 ms each.
const START_NS: u64 = 200_000_000;
const START_NS_PER_PLAYER: u64 = 20_000_000;

/// Ours: applications keep the limit themselves; this is for those that cannot.
const LIMIT_GRACE: Duration = Duration::from_secs(2);

/// Ours: recorders come before applications, the emulator before both.
const RECORDER_PRIORITY: i32 = 20;
const APPLICATION_PRIORITY: i32 = 10;

/// Settings that decide how TCP behaves, kept with every run.
const KNOBS: [&str; 16] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_fastopen",
];
