//! Where looks come from: this host, or a file that holds them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tcpwhy::host::shown;
use tcpwhy_linux::collect::Netns;
use tcpwhy_linux::live::{Options, Sample, Sampler};

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

    /// The next look; `None` behind the last of a file.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Sample>> {
        match self {
            Self::Host(sampler) => Ok(Some(sampler.sample()?)),
            Self::File(replay) => replay.next(),
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
        };
        let head =
            replay.line().with_context(|| format!("cannot read {name}"))?.unwrap_or_default();
        let head = serde_json::from_slice::<Head>(&head).ok().filter(|head| head.format == FORMAT);
        anyhow::ensure!(
            head.is_some(),
            "{name} holds no looks of `tcpwhy live --save`; what ss or other tools printed is explained by `tcpwhy {name}`"
        );
        Ok(replay)
    }

    /// A look, once it is known whether it is the last: then the reason of the end is said with it.
    fn next(&mut self) -> anyhow::Result<Option<Sample>> {
        while self.ready.len() < 2 && !self.is_over {
            match self.read() {
                Ok(Some(sample)) => self.ready.push_back(sample),
                Ok(None) => self.is_over = true,
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
        let Some(line) = self.line()? else { return Ok(None) };
        anyhow::ensure!(line.ends_with(b"\n"), "the line does not end");
        let mut sample: Sample = serde_json::from_slice(&line).context("no look")?;
        // Times of a file that was put together may go back.
        sample.t_ns = sample.t_ns.max(self.last_ns);
        self.last_ns = sample.t_ns;
        make_harmless(&mut sample);
        Ok(Some(sample))
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
