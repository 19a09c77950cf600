//! `--capture-when`: where a condition holds of a connection for so long, a bounded recording of it begins, in a thread of its own,
//! and is explained when it ends.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tcpwhy::host::snapshot::Listener;
use tcpwhy::live::{Connection, Key};
use tcpwhy::view::live::sentence;
use tcpwhy_linux::collect::Netns;
use tcpwhy_linux::live::{Catch, may_capture};
use tcpwhy_linux::record::Clock;

use super::caught::{Caught, explained};
use super::when::When;
use crate::recording::{Output, usual_stem};
use crate::{complain, in_words};

/// How much is captured, and where it goes.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) length: Duration,
    pub(super) bytes: u64,
    pub(super) at_once: usize,
    pub(super) folder: PathBuf,
    /// Columns of the explanation, and whether it has colours.
    pub(super) look: (usize, bool),
}

/// One look, as it concerns captures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    pub(super) t_ns: u64,
    pub(super) listeners: &'a [Listener],
}

/// What waits for the condition, and the captures that run.
pub(super) struct Catcher {
    when: When,
    limits: Limits,
    netns: Option<Netns>,
    /// Since when the condition holds of each.
    since: HashMap<Key, u64>,
    /// Those that were captured; a connection is captured once.
    begun: HashSet<Key>,
    running: Vec<Running>,
    tell: Sender<Caught>,
    told: Receiver<Caught>,
    /// Bytes of all files, those that are being written with all they may become.
    bytes: u64,
    has_said_full: bool,
}

struct Running {
    key: Key,
    /// Ends it when it is dropped.
    ender: Option<Sender<()>>,
    thread: JoinHandle<()>,
}

impl Catcher {
    /// Gets ready.
    ///
    /// # Errors
    /// Packets may not be captured, or the folder cannot be written in.
    pub(super) fn new(when: When, limits: Limits, netns: Option<Netns>) -> anyhow::Result<Self> {
        may_capture(netns.as_ref()).context("--capture-when")?;
        Output::create(&limits.folder.join(usual_stem(Clock::Real.now())), false)?;
        let (tell, told) = mpsc::channel();
        Ok(Self {
            when,
            limits,
            netns,
            since: HashMap::new(),
            begun: HashSet::new(),
            running: Vec::new(),
            tell,
            told,
            bytes: 0,
            has_said_full: false,
        })
    }

    /// The condition, for whoever asks whether it holds.
    pub(super) const fn when(&self) -> &When {
        &self.when
    }

    /// Takes in the connections of a look that meet the condition, and those that have ended. What there is to say goes to `said`.
    pub(super) fn take(
        &mut self,
        look: Look<'_>,
        holding: &[&Connection],
        ended: &[Connection],
        said: &mut Vec<String>,
    ) -> Vec<Caught> {
        let key = |each: &Connection| Key::of(&each.socket);
        for gone in ended.iter().map(key) {
            self.begun.remove(&gone);
            self.running.iter_mut().filter(|one| one.key == gone).for_each(|one| one.ender = None);
        }
        let now: HashSet<Key> = holding.iter().map(|each| key(each)).collect();
        self.since.retain(|key, _| now.contains(key));
        let caught = self.ended();
        for each in holding {
            let since = *self.since.entry(key(each)).or_insert(look.t_ns);
            let is_due = look.t_ns.saturating_sub(since) >= self.when.for_ns;
            if is_due
                && self.running.len() < self.limits.at_once
                && !self.begun.contains(&key(each))
                && self.has_room(said)
            {
                said.push(self.begin(each, look.listeners));
            }
        }
        caught
    }

    fn has_room(&mut self, said: &mut Vec<String>) -> bool {
        let has_room = self.bytes + self.limits.bytes <= MOST;
        if !has_room && !self.has_said_full {
            self.has_said_full = true;
            said.push(format!("the captures have {} MiB: no more begin", self.bytes >> 20));
        }
        has_room
    }

    /// Begins the capture of a connection; the words for it.
    fn begin(&mut self, connection: &Connection, listeners: &[Listener]) -> String {
        let socket = &connection.socket;
        let key = Key::of(socket);
        let (local, remote) = (socket.local, socket.remote);
        let listens = |port: u16| listeners.iter().any(|each| each.local.port() == port);
        let (ender, end) = mpsc::channel();
        let work = Work {
            connection: connection.clone(),
            // Of two ports without a listener the lower one is the service's.
            is_accepted: if listens(local.port()) == listens(remote.port()) {
                local.port() < remote.port()
            } else {
                listens(local.port())
            },
            netns: self.netns.clone(),
            limits: self.limits.clone(),
        };
        let tell = self.tell.clone();
        let run = move || {
            // Nobody may be waiting any more.
            let _ = tell.send(work.done(end));
        };
        let started = thread::Builder::new().name("capture".to_owned()).spawn(run);
        self.begun.insert(key);
        match started {
            Ok(thread) => {
                self.bytes += self.limits.bytes;
                self.running.push(Running { key, ender: Some(ender), thread });
                format!(
                    "{}: capturing {local} -> {remote} for {} s, at most {} MiB",
                    self.when.text,
                    self.limits.length.as_secs_f64(),
                    self.limits.bytes >> 20
                )
            }
            Err(error) => format!("cannot capture {local} -> {remote}: {error}"),
        }
    }

    /// Those that have ended.
    fn ended(&mut self) -> Vec<Caught> {
        let caught: Vec<Caught> = self.told.try_iter().collect();
        self.running.retain(|one| !one.thread.is_finished());
        for one in &caught {
            self.bytes =
                self.bytes.saturating_sub(self.limits.bytes - one.bytes.min(self.limits.bytes));
        }
        caught
    }

    /// Ends all that run, and waits for them.
    pub(super) fn end(mut self) -> Vec<Caught> {
        for one in &mut self.running {
            one.ender = None;
        }
        for one in self.running.drain(..) {
            if one.thread.join().is_err() {
                complain("a capture ended by a mistake of ours");
            }
        }
        self.ended()
    }
}

/// What the thread of a capture does.
struct Work {
    connection: Connection,
    is_accepted: bool,
    netns: Option<Netns>,
    limits: Limits,
}

impl Work {
    /// It ends before its time when the other half of `end` is dropped: the connection has ended, or the looks.
    fn done(self, end: Receiver<()>) -> Caught {
        let socket = &self.connection.socket;
        let mut caught = Caught::of(socket);
        match self.recorded(&mut caught, end) {
            Ok(()) => {
                let held = self
                    .connection
                    .held
                    .as_ref()
                    .map(|held| format!("At its begin: {}", sentence(held.state, held.sure)));
                explained(&mut caught, held, self.limits.look);
            }
            Err(why) => caught.failed = Some(in_words(&why)),
        }
        caught
    }

    fn recorded(&self, caught: &mut Caught, end: Receiver<()>) -> anyhow::Result<()> {
        let (local, remote) = (caught.local, caught.remote);
        let peer: String = remote.ip().to_canonical().to_string().replace(':', "-");
        let stem = usual_stem(Clock::Real.now());
        let name = format!("{stem}-{peer}-{}-{}.pcapng", remote.port(), local.port());
        caught.path = self.limits.folder.join(name);
        let output = Output::create(&caught.path, false)?;
        let catch = Catch {
            netns: self.netns.clone(),
            local,
            remote,
            is_accepted: self.is_accepted,
            max_bytes: self.limits.bytes,
            spool: output.spool().inside(),
        };
        let began = Instant::now();
        let length = self.limits.length;
        let recorded = catch.record(output.file()?, move || {
            if end.recv_timeout(length) == Err(RecvTimeoutError::Disconnected) {
                thread::sleep(TAIL);
            }
        })?;
        anyhow::ensure!(recorded.has_packets, "{}", recorded.remarks.join("; "));
        caught.lasted = began.elapsed();
        caught.packets = recorded.packets;
        output.keep()?;
        caught.bytes = caught.path.metadata().map_or(0, |file| file.len());
        Ok(())
    }
}

/// Bytes of all files at most: as many as `--save` writes. Ours.
const MOST: u64 = 1 << 30;
/// Ours: the last packets of a connection pass before its socket is told to have ended.
const TAIL: Duration = Duration::from_millis(50);
