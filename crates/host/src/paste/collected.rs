//! What was read of each source, and how often: readings are put into looks at the end.
//!
//! A source that was read twice makes two looks, and the host is as its last reading says. A source read fewer times
//! than another belongs to the last looks: `nstat; ss; nstat` is two looks, and the last has the sockets. What a
//! later tool says with less detail (`ss -tan` after `ss -tin`) is no reading of its own.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

use super::names::Names;
use crate::snapshot::{
    Bond, Interrupt, Link, Listener, PeerMetrics, Process, Qdisc, Route, Said, SetIn, Socket,
    Softnet, SpeedTest, Traced, Unseen,
};
use tcpwhy_words::printed::stamp::Stamp;

/// The most readings of one source that are kept: of more, the last ones replace one another, for growth is counted
/// from first to last. Ours: a loop of a second over five minutes fits.
const MOST: usize = 300;

/// One reading, and when it was taken, in nanoseconds since 1970.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading<T> {
    pub(super) at: Option<u64>,
    pub(super) what: T,
}

/// The readings of one source.
#[derive(Clone, Debug)]
pub(super) struct Readings<T>(Vec<Reading<T>>);

impl<T> Default for Readings<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Readings<T> {
    pub(super) fn push(&mut self, at: Option<u64>, what: T) {
        if self.0.len() >= MOST {
            self.0.pop();
        }
        self.0.push(Reading { at, what });
    }

    pub(super) fn last(&mut self) -> Option<&mut T> {
        self.0.last_mut().map(|reading| &mut reading.what)
    }

    /// The reading that belongs to look `look` of `looks`.
    pub(super) fn at(&self, look: usize, looks: usize) -> Option<&Reading<T>> {
        self.0.get((look + self.0.len()).checked_sub(looks)?)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|reading| &mut reading.what)
    }

    /// Offers each reading to the one before it, which takes it in or gives it back.
    pub(super) fn merge(&mut self, mut offer: impl FnMut(&mut T, T) -> Option<T>) {
        let mut all: Vec<Reading<T>> = Vec::with_capacity(self.0.len());
        for Reading { at, what } in self.0.drain(..) {
            let kept = match all.last_mut() {
                Some(before) => offer(&mut before.what, what),
                None => Some(what),
            };
            all.extend(kept.map(|what| Reading { at, what }));
        }
        self.0 = all;
    }
}

impl<T: PartialEq> Readings<T> {
    /// Takes out a reading that repeats the one before it, but for another time: what is quoted in two mails is no
    /// second look, in which nothing happened.
    pub(super) fn drop_copies(&mut self) {
        let is_copy = |next: &mut Reading<T>, before: &mut Reading<T>| {
            next.what == before.what && (next.at.is_none() || next.at == before.at)
        };
        self.0.dedup_by(is_copy);
    }
}

impl<T> Readings<Vec<T>> {
    /// Takes back the last reading if there is nothing in it.
    pub(super) fn take_back_empty(&mut self) -> bool {
        self.0.pop_if(|reading| reading.what.is_empty()).is_some()
    }
}

impl<T: Default> Readings<T> {
    /// The last reading; an empty one if there is none yet.
    pub(super) fn open(&mut self, at: Option<u64>) -> &mut T {
        if self.0.is_empty() {
            self.push(at, T::default());
        }
        let last = self.0.last_mut().expect("one was pushed");
        &mut last.what
    }
}

/// By group and name.
pub(super) type Grouped<T> = BTreeMap<String, BTreeMap<String, T>>;

/// What passed through an interface, as far as a tool said it.
pub(super) type Counted = BTreeMap<String, u64>;

/// Which tool wrote it, the most exact last: it wins where several did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Sentences,
    Nstat,
    Files,
}

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::Sentences, Self::Nstat, Self::Files];
}

/// Counters of one reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) by_group: Grouped<i64>,
    /// Some lines were chosen from it by a command.
    pub(super) is_chosen: bool,
}

/// A setting as it was pasted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) value: String,
    /// The line that told it.
    pub(super) line: u64,
    /// When, in nanoseconds since 1970.
    pub(super) at: Option<u64>,
    /// Another value and its line, where nothing tells which of them is the later.
    pub(super) against: Option<(String, u64)>,
}

/// All that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    /// `*` as an address is all of IPv4.
    pub(super) star_is_v4: bool,
    /// The command above shows only some lines.
    pub(super) shows_some_lines: bool,
    /// The command above sets what it prints.
    pub(super) sets: bool,
    /// The line that is read, from 1.
    pub(super) line: u64,
    /// The time that is above, since 1970.
    pub(super) now: Option<u64>,
    pub(super) settings: BTreeMap<String, Told>,
    pub(super) set_in: BTreeMap<String, Vec<SetIn>>,
    pub(super) kernel: Option<String>,
    pub(super) routes: Option<Vec<Route>>,
    pub(super) tcp_metrics: Option<Vec<PeerMetrics>>,
    pub(super) unseen: Vec<Unseen>,
    pub(super) said: Vec<Said>,
    pub(super) processes: BTreeMap<u32, Process>,
    /// A form's readings: [`Form`] as index.
    pub(super) counts: [Readings<Counts>; Form::ALL.len()],
    pub(super) sockstat: Readings<Grouped<u64>>,
    /// What `ss -s` sums up.
    pub(super) summary: Readings<BTreeMap<String, u64>>,
    pub(super) sockets: Readings<Vec<Socket>>,
    /// Ends of those of the open reading.
    pub(super) ends: BTreeSet<(SocketAddr, SocketAddr)>,
    pub(super) listeners: Readings<Vec<Listener>>,
    /// Ends of connections in `TIME_WAIT`.
    pub(super) time_wait: Readings<Vec<(SocketAddr, SocketAddr)>>,
    /// The ports from which the kernel chooses.
    pub(super) range: Option<[u16; 2]>,
    /// Ports that something listens on.
    pub(super) listening: BTreeSet<u16>,
    pub(super) links: BTreeMap<String, Link>,
    pub(super) link_counts: BTreeMap<String, Readings<Counted>>,
    pub(super) driver_counts: BTreeMap<String, Readings<Counted>>,
    pub(super) qdiscs: Readings<Vec<Qdisc>>,
    /// Where those of the open reading are: device, handle and parent.
    pub(super) places: BTreeSet<(String, u32, u32)>,
    pub(super) softnet: Readings<Vec<Softnet>>,
    pub(super) interrupts: Readings<Vec<Interrupt>>,
    pub(super) uptime_ns: Option<u64>,
    /// Ends of sockets that are printed by name.
    pub(super) names: Names,
    pub(super) bonds: Readings<Vec<Bond>>,
    /// Processors on which an interrupt may come, by its number.
    pub(super) affinity: BTreeMap<u32, String>,
    /// Sockets by their state.
    pub(super) states: Readings<BTreeMap<String, u64>>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) available_bytes: Option<u64>,
    /// Programs that change settings or interrupts, and run.
    pub(super) agents: BTreeSet<String>,
    /// Interfaces that no command named.
    pub(super) unnamed: u32,
    /// Lines of a trace of system calls.
    pub(super) trace: String,
    pub(super) traces: Vec<Traced>,
    pub(super) speed_tests: Vec<SpeedTest>,
}

impl Collected {
    /// A time that is above what follows.
    pub(super) fn at(&mut self, stamp: Stamp) {
        self.now = match stamp {
            Stamp::Unix(ns) => u64::try_from(ns).ok(),
            Stamp::OfDay(_) | Stamp::Since(_) => None,
        };
    }

    /// The interface of this name; a new one is only supposed to be up.
    pub(super) fn link(&mut self, name: &str) -> &mut Link {
        self.links.entry(name.to_owned()).or_insert_with(|| Link {
            name: name.to_owned(),
            up: true,
            carrier: true,
            flags_unseen: true,
            loopback: name == "lo",
            ..Link::default()
        })
    }

    /// Notes that a source of a device could not be read.
    pub(super) fn could_not(&mut self, source: &str, of: Option<&str>, why: &str) {
        let unseen = Unseen {
            source: source.to_owned(),
            of: of.map(str::to_owned),
            why: why.chars().take(200).collect(),
            grant: None,
        };
        // Ours: a loop over interfaces says it a few hundred times at most.
        if self.unseen.len() < 1000 && !self.unseen.contains(&unseen) {
            self.unseen.push(unseen);
        }
    }
}
