//! `tcpwhy live`: what holds the connections that are open now.
//!
//! ```text
//! Source (this host, or a file) -> Sample -> Watch (core: Course) -> a screen, text, JSON, a summary, metrics
//! ```
//!
//! A signal ends it as the end of its time does.

mod catch;
mod caught;
mod flags;
mod mlab;
mod save;
mod scrape;
mod screen;
mod source;
mod watch;
mod when;

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy::live::{Connection, Line};
use tcpwhy::units::Time;
use tcpwhy::view::open::{self, Open};
use tcpwhy_linux::collect::Netns;
use tcpwhy_linux::live::Options;
use tcpwhy_linux::record::Stop;

use crate::exit::Exit;
use crate::filter::Filter;
use crate::options::Surroundings;
use crate::{complain, output, printable};
use catch::{Catcher, Limits};
use caught::Caught;
use save::Save;
use screen::{Seen, Tick};
use source::Source;
use watch::{Pace, Watch};
use when::When;

pub use flags::{AFTER, LiveFlags};

/// Looks, judges, prints.
///
/// # Errors
/// What was named cannot be looked at or read, or the answer cannot be written.
pub fn run(flags: &LiveFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    let filter = match flags.filter.as_deref().map(Filter::parse_open).transpose() {
        Ok(filter) => filter,
        Err(error) => {
            complain(&error.to_string());
            return Ok(Exit::Usage);
        }
    };
    let when = match flags.capture_when.as_deref().map(When::parse).transpose() {
        Ok(when) => when,
        Err(why) => {
            complain(&why);
            return Ok(Exit::Usage);
        }
    };
    let stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    let source = match &flags.file {
        Some(path) => Source::file(path)?,
        None => Source::host(&options(flags, filter.as_ref()))?,
    };
    let save = flags.save.as_deref().map(|path| Save::create(path, flags.force)).transpose()?;
    let netns = source.netns().cloned();
    let strip = if flags.metrics.is_some() { 0 } else { STRIP };
    let mut watch = Watch::new(source, filter, save, strip);
    let limits = limits(flags, around);
    watch.catch(when.map(|when| Catcher::new(when, limits, netns.clone())).transpose()?);
    let pace = || Pace::new(flags.interval, flags.duration);
    let on_terminal = around.stdin_is_terminal && around.stdout_is_terminal;
    let written = if let Some(address) = &flags.metrics {
        scrape::serve(watch, (address, netns), flags, &stop)
    } else if flags.json {
        json(watch, pace(), &stop)
    } else if flags.duration.is_some()
        || !flags.once && !on_terminal && (flags.file.is_some() || flags.capture_when.is_some())
    {
        let look = (around.columns(flags.width), around.color(flags.color));
        summary(watch, pace(), &stop, look)
    } else if !flags.once && on_terminal {
        let look = (around.columns(flags.width), around.color(flags.color));
        on_screen(watch, flags, &stop, look)
    } else {
        once(watch, flags, &stop, around)
    };
    written.map(|()| Exit::Analysed)
}

fn limits(flags: &LiveFlags, around: &Surroundings) -> Limits {
    Limits {
        length: flags.capture_for,
        bytes: flags.capture_size,
        at_once: flags.captures,
        folder: flags.capture_to.clone().unwrap_or_else(|| ".".into()),
        look: (around.columns(flags.width), around.color(flags.color)),
    }
}

/// Whether this file holds looks: those of `--save`, or `TCP_INFO` as `record` and the lab write it.
pub(crate) fn is_looks(path: &Path) -> bool {
    let mut line = Vec::new();
    let read = File::open(path).and_then(|file| {
        let mut first = BufReader::new(file).take(FIRST_LINE);
        first.read_until(b'\n', &mut line)
    });
    path.is_file() && read.is_ok() && source::is_looks(&line)
}

/// Where the time of the connections in a file of looks went.
///
/// # Errors
/// The file cannot be read, or the answer cannot be written.
pub(crate) fn replayed(path: &Path, is_json: bool, look: (usize, bool)) -> anyhow::Result<Exit> {
    let stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    let watch = Watch::new(Source::file(path)?, None, None, STRIP);
    let pace = Pace::new(Duration::ZERO, None);
    if is_json {
        json(watch, pace, &stop)?;
    } else {
        summary(watch, pace, &stop, look)?;
    }
    Ok(Exit::Analysed)
}

fn options(flags: &LiveFlags, filter: Option<&Filter>) -> Options {
    Options {
        netns: flags.netns.as_deref().map(Netns::parse),
        container: flags.container.clone(),
        pod: flags.pod.clone(),
        ends: filter.and_then(Filter::ends).unwrap_or_default(),
        // No label of metrics is a process; a condition may name one.
        processes: flags.metrics.is_none() || flags.capture_when.is_some(),
    }
}

/// Two looks; of a file, all.
fn once(
    mut watch: Watch,
    flags: &LiveFlags,
    stop: &Stop,
    around: &Surroundings,
) -> anyhow::Result<()> {
    let mut pace = Pace::new(flags.interval, None);
    while watch.look()? {
        say(&watch);
        let is_enough = !watch.is_replay() && (watch.looks == 2 || !pace.wait(stop));
        if is_enough || stop.within(Some(0)).unwrap_or(true) {
            break;
        }
    }
    let text = open::now(&shown(&watch), around.columns(flags.width), around.color(flags.color));
    output::tell(&text, false).context("cannot write the answer")
}

/// Looks until the end, then says where the time went.
fn summary(
    mut watch: Watch,
    mut pace: Pace,
    stop: &Stop,
    (width, color): (usize, bool),
) -> anyhow::Result<()> {
    let mut ended = Ended::default();
    while watch.look()? {
        say(&watch);
        tell(&watch.caught)?;
        ended.take(&mut watch);
        let is_asked =
            if watch.is_replay() { stop.within(Some(0)).unwrap_or(true) } else { !pace.wait(stop) };
        if is_asked {
            break;
        }
    }
    tell(&watch.end())?;
    ended.tell(&watch, (width, color))
}

/// Connections that have ended, for the summary.
#[derive(Default)]
struct Ended {
    kept: Vec<Connection>,
    /// How many more are not kept.
    more: u64,
}

impl Ended {
    /// Those of the last look.
    fn take(&mut self, watch: &mut Watch) {
        let room = MOST_ENDED.saturating_sub(self.kept.len());
        self.more += watch.ended.len().saturating_sub(room) as u64;
        self.kept.extend(watch.ended.drain(..).take(room));
    }

    /// Says where the time of all went.
    fn tell(&self, watch: &Watch, (width, color): (usize, bool)) -> anyhow::Result<()> {
        let shown = Open { ended: &self.kept, ended_more: self.more, ..shown(watch) };
        let text = open::summary(&shown, width, color);
        output::tell(&text, false).context("cannot write the answer")
    }
}

/// On a terminal, until a key or a signal ends it; then says where the time went.
fn on_screen(
    watch: Watch,
    flags: &LiveFlags,
    stop: &Stop,
    look: (usize, bool),
) -> anyhow::Result<()> {
    let whose = match &flags.file {
        Some(path) => printable(&path.display().to_string()),
        None => host(),
    };
    let (said, caught, ended) = (Vec::new(), Vec::new(), Ended::default());
    let mut screen = OnScreen { watch, whose, said, caught, ended, interval: flags.interval };
    let left = screen::run(&mut screen, &|| stop.within(Some(0)).unwrap_or(true));
    screen.caught.extend(screen.watch.end());
    tell(&screen.caught)?;
    screen.ended.tell(&screen.watch, look)?;
    left
}

/// What captures say, on standard output.
fn tell(caught: &[Caught]) -> anyhow::Result<()> {
    for each in caught {
        output::print(&(each.told() + "\n")).context("cannot write the answer")?;
    }
    Ok(())
}

/// This host's name, where it has one.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    printable(name.trim())
}

/// What the screen shows of a watch.
struct OnScreen {
    watch: Watch,
    /// A host's name, or a file's.
    whose: String,
    said: Vec<String>,
    /// Explained when the screen is left.
    caught: Vec<Caught>,
    ended: Ended,
    interval: Duration,
}

impl Tick for OnScreen {
    fn look(&mut self) -> anyhow::Result<bool> {
        let goes_on = self.watch.look()?;
        if goes_on {
            self.said.append(&mut self.watch.said);
            self.said.extend(self.watch.caught.iter().map(Caught::line));
            self.caught.append(&mut self.watch.caught);
            self.ended.take(&mut self.watch);
        }
        Ok(goes_on)
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn seen(&self) -> Seen<'_> {
        let at = Time(self.watch.t_ns.cast_signed()).rfc3339();
        let clock = at.get(11..19).unwrap_or_default();
        Seen {
            connections: self.watch.ranked(),
            listeners: &self.watch.listeners,
            processes: &self.watch.processes,
            title: format!("{}  {clock} UTC", self.whose),
            said: &self.said,
        }
    }
}

fn shown(watch: &Watch) -> Open<'_> {
    Open {
        connections: watch.ranked(),
        ended: &[],
        ended_more: 0,
        processes: watch.processes.iter().map(|(pid, name)| (*pid, &**name)).collect(),
        listeners: &watch.listeners,
        time_wait: watch.time_wait,
        now_ns: watch.t_ns,
        first_ns: watch.first_ns,
        looks: watch.looks,
    }
}

fn say(watch: &Watch) {
    watch.said.iter().for_each(|said| complain(said));
}

/// A connection at a look, as a program reads it.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    /// This look is the last at it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    ended: bool,
}

/// One line for each connection at each look.
fn json(mut watch: Watch, mut pace: Pace, stop: &Stop) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    while watch.look()? {
        say(&watch);
        let open = watch.connections().map(|each| (each, false));
        let all = watch.ended.iter().map(|each| (each, true)).chain(open);
        let written = captures(&mut out, watch.t_ns, &watch.caught)
            .and_then(|()| lines(&mut out, &watch, all));
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // What is left in it cannot be written either.
                let _ = out.into_parts();
                return Ok(());
            }
            other => other.context("cannot write the answer")?,
        }
        let is_asked =
            if watch.is_replay() { stop.within(Some(0)).unwrap_or(true) } else { !pace.wait(stop) };
        if is_asked {
            break;
        }
    }
    let (caught, t_ns) = (watch.end(), watch.t_ns);
    captures(&mut out, t_ns, &caught)
        .and_then(|()| out.flush())
        .or_else(|error| (error.kind() == io::ErrorKind::BrokenPipe).then_some(()).ok_or(error))
        .context("cannot write the answer")
}

fn captures(out: &mut impl io::Write, t_ns: u64, caught: &[Caught]) -> io::Result<()> {
    caught.iter().try_for_each(|each| each.json(t_ns, &mut *out))
}

fn lines<'a>(
    out: &mut impl io::Write,
    watch: &Watch,
    all: impl Iterator<Item = (&'a Connection, bool)>,
) -> io::Result<()> {
    for (connection, ended) in all {
        let line = connection.line(watch.process(connection), true);
        serde_json::to_writer(&mut *out, &Told { line, ended })?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Bytes of a first line that are looked at. Ours: a line of `TCP_INFO` has some 1,500.
const FIRST_LINE: u64 = 1 << 16;
/// Looks that are kept of each connection. Ours: a line of a terminal.
const STRIP: usize = 60;
/// Ended connections that a summary tells of one by one. Ours.
const MOST_ENDED: usize = 100_000;
/// Bytes of JSON written at a time. Ours: not measured.
const BUFFER: usize = 1 << 16;
