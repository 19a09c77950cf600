//! A capture of `--capture-when` that has ended, and what its packets say.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use tcpwhy::host::snapshot::Socket;
use tcpwhy::report::{Report, Totals};
use tcpwhy::tracker::Config;
use tcpwhy::{answer, evidence, view};

use crate::printable;
use crate::read::{Input, read_attached};

/// A capture that has ended.
#[derive(Debug)]
pub(crate) struct Caught {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) cookie: u64,
    pub(super) path: PathBuf,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) lasted: Duration,
    /// The answer of `tcpwhy FILE`, in a sentence or two.
    pub(super) verdict: String,
    /// Its first screen.
    pub(super) text: String,
    /// Why there is no file.
    pub(super) failed: Option<String>,
}

/// The same, for programs.
#[derive(Serialize)]
struct Told<'a> {
    t_ns: u64,
    local: SocketAddr,
    remote: SocketAddr,
    cookie: u64,
    capture: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome<'a> {
    Kept { file: String, packets: u64, bytes: u64, verdict: &'a str },
    Failed { error: &'a str },
}

impl Caught {
    pub(super) const fn of(socket: &Socket) -> Self {
        Self {
            local: socket.local,
            remote: socket.remote,
            cookie: socket.cookie,
            path: PathBuf::new(),
            packets: 0,
            bytes: 0,
            lasted: Duration::ZERO,
            verdict: String::new(),
            text: String::new(),
            failed: None,
        }
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let Self { local, remote, verdict, .. } = self;
        if let Some(why) = &self.failed {
            return format!("cannot capture {local} -> {remote}: {why}");
        }
        let file = printable(&self.path.display().to_string());
        format!("{local} -> {remote} is in {file}: {verdict}")
    }

    /// With the first screen of its explanation.
    pub(super) fn told(&self) -> String {
        format!("{}\n\n{}", self.line(), self.text)
    }

    /// As a line of JSON.
    pub(super) fn json(&self, t_ns: u64, mut out: impl Write) -> io::Result<()> {
        let capture = match &self.failed {
            Some(error) => Outcome::Failed { error },
            None => Outcome::Kept {
                file: self.path.display().to_string(),
                packets: self.packets,
                bytes: self.bytes,
                verdict: &self.verdict,
            },
        };
        let Self { local, remote, cookie, .. } = *self;
        serde_json::to_writer(&mut out, &Told { t_ns, local, remote, cookie, capture })?;
        out.write_all(b"\n")
    }
}

/// Reads the file as `tcpwhy FILE` does, and takes what it says of this connection; `held` is what its socket said.
pub(super) fn explained(caught: &mut Caught, held: Option<String>, (width, color): (usize, bool)) {
    let config = Config { detail: true, ..Config::default() };
    let inputs = [Input::File(caught.path.clone())];
    let never = AtomicBool::new(false);
    let (mut report, evidence) = read_attached(&inputs, &config, 1, &[], &never, &mut |_, _| {});
    evidence::apply(&mut report, &evidence);
    keep(&mut report, caught.local, caught.remote);
    answer::fill(&mut report);
    let first = report.connections.first();
    let said = first.map_or_else(
        || format!("No packet passed in {:.1} s.", caught.lasted.as_secs_f64()),
        |connection| connection.answer.clone(),
    );
    // What stands still sends nothing that could be explained.
    let held = held.filter(|_| first.is_none_or(|connection| connection.bytes() == 0));
    caught.verdict = core::iter::once(said).chain(held).collect::<Vec<_>>().join(" ");
    if first.is_some() {
        caught.text =
            view::render(&report, &view::Options { width, color, ..view::Options::default() });
    }
}

/// Keeps this connection alone: another may share its port and peer.
fn keep(report: &mut Report, local: SocketAddr, remote: SocketAddr) {
    let end = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let (local, remote) = (end(local), end(remote));
    report.connections.retain(|each| {
        let ends = (each.client, each.server);
        ends == (local, remote) || ends == (remote, local)
    });
    report.totals = Totals::of(&report.connections);
}
