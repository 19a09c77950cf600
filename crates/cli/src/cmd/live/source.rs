//! Where looks come from: this host, or a file that holds them.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tcpwhy::host::shown;
use tcpwhy::host::snapshot::Socket;
use tcpwhy::live::{Recorded, recorded};
use tcpwhy_linux::collect::Netns;
use tcpwhy_linux::live::{Options, Sample, Sampler};

use super::mlab::{self, MLab};

/// What the first line of a file of looks says it is.
pub(super) const FORMAT: &str = "tcpwhy-live/1";

/// The first line of a file of looks. Behind it, each line is a [`Sample`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) made_by: String,
}

/// Where looks come from.
pub(crate) enum Source {
    /// This host: a look is taken whenever one is asked for.
    Host(Box<Sampler>),
    /// A file: looks are handed out as they were taken.
    File(Box<Replay>),
}

impl Source {
    /// This host, or another namespace of it.
    pub(crate) fn host(options: &Options) -> anyhow::Result<Self> {
        Ok(Self::Host(Box::new(Sampler::open(options)?)))
    }

    /// A file that `--save` wrote.
    pub(crate) fn file(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::File(Box::new(Replay::open(path)?)))
    }

    /// The namespace that is looked at, where it is not ours.
    pub(crate) fn netns(&self) -> Option<&Netns> {
        match self {
            Self::Host(sampler) => sampler.netns(),
            Self::File(_) => None,
        }
    }

    /// The next look, with all its sockets; `None` behind the last of a file.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Sample>> {
        match self {
            Self::Host(sampler) => Ok(Some(sampler.sample()?)),
            Self::File(replay) => replay.next(),
        }
    }

    /// The next look, whose sockets are handed out one after the other with its time.
    pub(crate) fn look(
        &mut self,
        take: &mut dyn FnMut(u64, Socket),
    ) -> anyhow::Result<Option<Sample>> {
        match self {
            Self::Host(sampler) => Ok(Some(sampler.look(take)?)),
            Self::File(replay) => {
                let Some(mut sample) = replay.next()? else { return Ok(None) };
                let t_ns = sample.t_ns;
                sample.sockets.drain(..).for_each(|socket| take(t_ns, socket));
                Ok(Some(sample))
            }
        }
    }
}

/// A file of looks.
pub(crate) struct Replay {
    path: PathBuf,
    lines: BufReader<File>,
    line: u64,
    last_ns: u64,
    is_over: bool,
    /// Of the end, to be said with the last look.
    ready: VecDeque<Sample>,
    /// It has a line for each socket (`TCP_INFO` as `record` and the lab write it), and this is the next one.
    pending: Option<(u64, Recorded)>,
    is_of_sockets: bool,
    /// How many lines say nothing of a socket, and which is the first of them.
    odd: (u64, u64),
    /// The last line does not end, and says nothing.
    is_cut: bool,
}

/// Whether this is the first line of a file that can be shown as looks.
pub(crate) fn is_looks(line: &[u8]) -> bool {
    is_head(line) || socket_in(line).is_some() || matches!(mlab::read(line), Some(MLab::Head))
}

/// The socket that a line is about, in our own words or M-Lab's.
fn socket_in(line: &[u8]) -> Option<(u64, Recorded)> {
    let ours = std::str::from_utf8(line).ok().and_then(recorded);
    ours.or_else(|| match mlab::read(line)? {
        MLab::Socket(t_ns, socket) => Some((t_ns, Recorded::Connection(*socket))),
        MLab::Head => None,
    })
}

fn is_head(line: &[u8]) -> bool {
    serde_json::from_slice::<Head>(line).is_ok_and(|head| head.format == FORMAT)
}

impl Replay {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        let mut replay = Self {
            path: path.to_owned(),
            lines: BufReader::with_capacity(1 << 16, file),
            line: 0,
            last_ns: 0,
            is_over: false,
            ready: VecDeque::new(),
            pending: None,
            is_of_sockets: false,
            odd: (0, 0),
            is_cut: false,
        };
        let head =
            replay.line().with_context(|| format!("cannot read {name}"))?.unwrap_or_default();
        replay.is_of_sockets = !is_head(&head) && is_looks(&head);
        replay.pending = socket_in(&head);
        if replay.is_of_sockets && replay.pending.is_none() {
            replay.pending = replay.socket().with_context(|| format!("cannot read {name}"))?;
        }
        anyhow::ensure!(
            replay.is_of_sockets || is_head(&head),
            "{name} holds no looks of `tcpwhy live --save`; what ss or other tools printed is explained by `tcpwhy {name}`"
        );
        Ok(replay)
    }

    /// A look, once it is known whether it is the last: then the reason of the end is said with it.
    fn next(&mut self) -> anyhow::Result<Option<Sample>> {
        while self.ready.len() < 2 && !self.is_over {
            match self.read() {
                Ok(Some(sample)) => self.ready.push_back(sample),
                Ok(None) => {
                    self.is_over = true;
                    let cut = self.is_cut.then(|| {
                        format!(
                            "{} was cut short in its last line; what came before it was read",
                            self.path.display()
                        )
                    });
                    let said = self.passed_over().into_iter().chain(cut);
                    if let Some(last) = self.ready.back_mut() {
                        last.said.extend(said);
                    }
                }
                Err(why) => {
                    self.is_over = true;
                    let said = format!(
                        "{} was cut short or damaged in line {}: {why:#}; what came before it was read",
                        self.path.display(),
                        self.line
                    );
                    match self.ready.back_mut() {
                        Some(last) => last.said.push(said),
                        None => anyhow::bail!(said),
                    }
                }
            }
        }
        Ok(self.ready.pop_front())
    }

    fn read(&mut self) -> anyhow::Result<Option<Sample>> {
        if self.is_of_sockets {
            return self.gather();
        }
        let Some(line) = self.line()? else { return Ok(None) };
        anyhow::ensure!(line.ends_with(b"\n"), "the line does not end");
        let mut sample: Sample = serde_json::from_slice(&line).context("no look")?;
        // Times of a file that was put together may go back.
        sample.t_ns = sample.t_ns.max(self.last_ns);
        self.last_ns = sample.t_ns;
        make_harmless(&mut sample);
        Ok(Some(sample))
    }

    /// The sockets of a look: those up to the line at which one comes again.
    fn gather(&mut self) -> anyhow::Result<Option<Sample>> {
        let Some(first) = self.pending.take() else { return Ok(None) };
        let mut sample = Sample { t_ns: first.0.max(self.last_ns), ..Sample::default() };
        let mut seen = HashSet::new();
        let mut next = Some(first);
        while let Some((t_ns, each)) = next {
            let ends = match &each {
                Recorded::Connection(socket) => (socket.local, Some(socket.remote)),
                Recorded::Listener(listener) => (listener.local, None),
            };
            if !seen.insert(ends) {
                self.pending = Some((t_ns, each));
                break;
            }
            match each {
                Recorded::Connection(socket) => sample.sockets.push(socket),
                Recorded::Listener(listener) => sample.listeners.push(listener),
            }
            next = self.socket()?;
        }
        self.last_ns = sample.t_ns;
        make_harmless(&mut sample);
        Ok(Some(sample))
    }

    /// The next line that is about a socket: others are counted.
    fn socket(&mut self) -> anyhow::Result<Option<(u64, Recorded)>> {
        loop {
            let Some(line) = self.line()? else { return Ok(None) };
            match socket_in(&line) {
                Some(found) => return Ok(Some(found)),
                None if line.trim_ascii().is_empty() => {}
                None if !line.ends_with(b"\n") => self.is_cut = true,
                None if self.odd.0 == 0 => self.odd = (1, self.line),
                None => self.odd.0 += 1,
            }
        }
    }

    /// What is said of lines that were passed over.
    fn passed_over(&self) -> Option<String> {
        let (lines, first) = self.odd;
        let name = self.path.display();
        (lines > 0).then(|| {
            format!(
                "{name}: lines without a socket are passed over: {lines}, the first is line {first}"
            )
        })
    }

    fn line(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.line += 1;
        let read = self.lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        anyhow::ensure!(
            (read as u64) < LONGEST_LINE,
            "a line of more than {} MiB",
            LONGEST_LINE >> 20
        );
        Ok((read > 0).then_some(line))
    }
}

/// A file may have been written by anyone.
fn make_harmless(sample: &mut Sample) {
    let harmless = |text: &mut String| {
        if text.chars().any(|c| !c.is_ascii_graphic() && c != ' ') {
            *text = shown(text.as_bytes());
        }
    };
    sample.processes.values_mut().chain(&mut sample.said).for_each(harmless);
    let sockets = sample.sockets.iter_mut().chain(&mut sample.ended);
    sockets.filter_map(|socket| socket.congestion.as_mut()).for_each(harmless);
}

/// Ours: 200,000 sockets are 300 MiB.
const LONGEST_LINE: u64 = 1 << 30;
