//! Applications and recorders: our own executable again, each in a node's namespace.
//!
//! Each says `ready` on standard output when it is, ends on SIGTERM with its records complete, and
//! tells on standard error what went wrong ([`crate::lab::agent`]).

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::setup::Node;
use super::stage::{Stage, Trouble};
use super::sys;

/// How our own executable is started again: what it is and the words that lead to
/// [`super::inner`].
#[derive(Clone, Debug)]
pub struct Again {
    /// The executable.
    pub program: PathBuf,
    /// Words before those of [`super::inner`].
    pub lead: Vec<OsString>,
}

impl Again {
    /// The executable that runs now, if `lead` brings it to [`super::inner`].
    pub fn same(lead: &[&str]) -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            lead: lead.iter().map(OsString::from).collect(),
        }
    }

    /// It, about to be started.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.lead);
        command
    }
}

/// A program of the run.
#[derive(Debug)]
pub(super) struct Program {
    /// Who it is in sentences, as `the server of flow 0`.
    pub(super) name: String,
    child: Child,
    ready: Receiver<()>,
    is_ready: bool,
    complaints: Option<JoinHandle<String>>,
}

impl Program {
    /// Starts one in a node, under FIFO with this priority.
    pub(super) fn start(
        again: &Again,
        stage: &Stage,
        node: Node,
        name: String,
        priority: i32,
        words: &[OsString],
    ) -> Result<Self, Trouble> {
        let mut command = again.command();
        command.arg("agent").arg("--fifo").arg(priority.to_string()).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::start_in(&mut command, stage.namespace(node));
        let mut child = command.spawn().map_err(|error| Trouble::Missing {
            doing: format!("start {name}"),
            why: error.to_string(),
            advice: "nothing of the run is left behind; try again".to_owned(),
        })?;
        let (tell, ready) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if line == "ready" {
                        let _ = tell.send(());
                    }
                }
            });
        }
        let complaints = child.stderr.take().map(|stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.take(MOST_COMPLAINTS).read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Self { name, child, ready, is_ready: false, complaints })
    }

    /// Waits until it says that it is ready.
    pub(super) fn wait_ready(&mut self) -> Result<(), Trouble> {
        self.is_ready = self.is_ready || self.ready.recv_timeout(START_LIMIT).is_ok();
        if self.is_ready {
            return Ok(());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = one_line(&self.complaints());
        let why = if said.is_empty() { "it never said that it was ready".to_owned() } else { said };
        Err(Trouble::Ended {
            why: format!("{} did not start: {why}", self.name),
            advice: String::new(),
        })
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end, and sees to it.
    pub(super) fn stop(&mut self) -> Option<ExitStatus> {
        if self.ended().is_none() {
            sys::ask_to_end(self.child.id());
        }
        let limit = Instant::now() + STOP_LIMIT;
        while Instant::now() < limit {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }

    /// What it said on standard error, once it has ended.
    pub(super) fn complaints(&mut self) -> String {
        self.complaints.take().and_then(|reader| reader.join().ok()).unwrap_or_default()
    }
}

/// Several lines as one sentence. The refusal of FIFO is left out: it is reported once for all.
pub(super) fn one_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("tcpwhy-agent: "));
    let told = lines.filter(|line| !line.is_empty() && !line.contains("SCHED_FIFO is refused"));
    told.collect::<Vec<_>>().join("; ")
}

/// How often a program is asked whether it has ended.
pub(super) const LOOK: Duration = Duration::from_millis(2);

/// Ours: a cold start from a slow disk.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Ours: a recorder with a full ring and a slow disk.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Ours: nobody reads more of what a program complains about.
const MOST_COMPLAINTS: u64 = 64 << 10;
