//! The processes of a run: this same program, as recorders and applications.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use tcpwhy_model::scenario::plan::Plan;

use super::{COMPLAINTS, START_NS, out, system};
use crate::lab::folder;
use crate::lab::layout::Tap;

/// Captures at a tap.
pub(super) fn capture(plan: &Plan, tap: &Tap) -> Result<Process, String> {
    let mut words = words(&["capture", "--interface", &tap.device]);
    words.extend(["--output".to_owned(), out(&format!("{}.pcapng", tap.name))]);
    if plan.records.snap_length > 0 {
        words.extend(["--snap-length".to_owned(), plan.records.snap_length.to_string()]);
    }
    Process::start(format!("the capture at the {}", tap.name), with_ports(words, plan))
}

/// Records what the kernel's tracepoints tell, ours among them where they are built in.
pub(super) fn trace(plan: &Plan) -> Result<Process, String> {
    let mut words = words(&[
        "trace",
        "--method",
        "instance",
        "--room",
        TRACE_ROOM_KIB,
        "--look",
        TRACE_LOOK_NS,
    ]);
    words.extend(["--output".to_owned(), out(folder::KERNEL)]);
    for event in ["tcp/tcp_truth", "tcp/tcp_segment", "qdisc/qdisc_backlog"] {
        if Path::new("/sys/kernel/tracing/events").join(event).exists() {
            words.extend(["--event".to_owned(), event.to_owned()]);
        }
    }
    Process::start("the trace".to_owned(), with_ports(words, plan))
}

/// Looks at `TCP_INFO` of a host's sockets.
pub(super) fn tcp_info(plan: &Plan, host: &str) -> Result<Process, String> {
    let mut words = words(&["tcp-info", "--every", &plan.records.tcp_info_every_ns.to_string()]);
    words.extend(["--output".to_owned(), out(&tcp_info_of(host))]);
    Process::start(format!("the record of TCP_INFO at the {host}"), with_ports(words, plan))
}

/// The file of one host's `TCP_INFO`, until both become one.
pub(super) fn tcp_info_of(host: &str) -> String {
    format!("{host}.{}", folder::TCP_INFO)
}

/// Plays one end of a flow.
pub(super) fn application(side: &str, flow: usize, address: &str) -> Result<Process, String> {
    let mut words = words(&["app", "--side", side, "--flow", &flow.to_string()]);
    words.extend(["--plan".to_owned(), format!("/{}", folder::PLAN)]);
    words.extend(["--address".to_owned(), address.to_owned()]);
    words.extend(["--start".to_owned(), START_NS.to_string()]);
    words.extend(["--log".to_owned(), out(folder::APPLICATIONS)]);
    Process::start(format!("the {side} of flow {flow}"), words)
}

/// Looks at the sockets of a host.
pub(super) fn looks(plan: &Plan, host: &str) -> Result<Process, String> {
    let mut words = words(&["sockets", "--start", &START_NS.to_string()]);
    for at in &plan.records.sockets_at_ns {
        words.extend(["--at".to_owned(), at.to_string()]);
    }
    words.extend(["--output".to_owned(), out(folder::SOCKETS[usize::from(host == "server")])]);
    Process::start(format!("the looks at the sockets of the {host}"), words)
}

/// Changes a host while the run goes on.
pub(super) fn changes(host: &str) -> Result<Process, String> {
    let mut words = words(&["changes", "--side", host, "--start", &START_NS.to_string()]);
    words.extend(["--plan".to_owned(), format!("/{}", folder::PLAN)]);
    Process::start(format!("what changes the {host}"), words)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn with_ports(mut words: Vec<String>, plan: &Plan) -> Vec<String> {
    for flow in &plan.flows {
        words.extend(["--port".to_owned(), flow.port.to_string()]);
    }
    words
}

/// A process of the run.
pub(super) struct Process {
    name: String,
    child: Child,
    /// What it prints; closed, it would fail to print.
    _told: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts this program with other arguments and waits until it says that it is ready.
    fn start(name: String, arguments: Vec<String>) -> Result<Self, String> {
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
        let mut told = child.stdout.take().map(BufReader::new);
        if let Some(told) = &mut told {
            told.read_line(&mut line).map_err(error)?;
        }
        let process = Self { name, child, _told: told };
        if line.trim() == "ready" { Ok(process) } else { Err(process.failed("did not start")) }
    }

    /// Waits until it ends by itself.
    pub(super) fn end(mut self) -> Result<(), String> {
        let status =
            self.child.wait().map_err(|e| format!("cannot wait for {}: {e}", self.name))?;
        if status.success() { Ok(()) } else { Err(self.failed("failed")) }
    }

    /// Tells it to end and waits until it has.
    pub(super) fn stop(self) -> Result<(), String> {
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

/// Ours: room for all records between two looks at 1 Gbit/s, some 80,000; more room takes longer
/// to set up than all else.
const TRACE_ROOM_KIB: &str = "16384";

/// Ours: a look takes some milliseconds of the host's time.
const TRACE_LOOK_NS: &str = "100000000";
