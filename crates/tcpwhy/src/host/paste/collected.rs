//! What was read of each source, and how often: readings are put into looks at the end.
//!
//! A source that was read twice makes two looks, and the host stands as its last reading says. A source read
//! fewer times than another belongs to the last looks: `nstat; ss; nstat` is two looks, of which the last
//! has the sockets. What a later tool says with less detail (`ss -tan` after `ss -tin`) is no reading of
//! its own.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Counts, Form};
use super::names::Names;
use super::settings::Told;
use crate::evidence::stamp::Stamp;
use crate::host::snapshot::{
    Bond, FORMAT, Interrupt, Link, LinkCounters, Listener, Look, Occupied, PeerMetrics, Process,
    Qdisc, Route, Said, SetIn, Settings, Snapshot, Socket, Softnet, Source, SpeedTest, Traced,
    Unseen,
};

/// The most readings of one source that are kept: of more, the last ones replace one another, for growth
/// is told from first to last. Ours: a loop of a second over five minutes fits.
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
    fn at(&self, look: usize, looks: usize) -> Option<&Reading<T>> {
        self.0.get((look + self.0.len()).checked_sub(looks)?)
    }

    fn len(&self) -> usize {
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
    fn drop_copies(&mut self) {
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
    /// The time that stands above, since 1970.
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
    pub(super) listeners: Readings<Vec<Listener>>,
    /// Ends of connections in `TIME_WAIT`.
    pub(super) time_wait: Readings<Vec<(SocketAddr, SocketAddr)>>,
    /// The ports from which the kernel chooses.
    range: Option<[u16; 2]>,
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
    /// Another text begins: commands, dates and traces of the one before do not go on in it.
    pub(super) fn begin_text(&mut self, star_is_v4: bool) {
        self.star_is_v4 = star_is_v4;
        (self.shows_some_lines, self.sets, self.now) = (false, false, None);
        let trace = core::mem::take(&mut self.trace);
        if !trace.is_empty() {
            self.traces.extend(super::programs::traced(&trace));
        }
    }

    /// A time that stands above what follows.
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

    pub(super) fn into_snapshot(mut self) -> Snapshot {
        super::sockets::complete(&mut self);
        let mut traces = core::mem::take(&mut self.traces);
        traces.extend(super::programs::traced(&self.trace));
        for each in self.interrupts.iter_mut().flatten() {
            each.affinity = self.affinity.get(&each.irq).cloned();
        }
        for readings in self.link_counts.values_mut() {
            readings.merge(|before, next| {
                // Another tool tells other counters: ifconfig beside ip.
                if before.keys().all(|name| next.contains_key(name)) {
                    return Some(next);
                }
                for (name, value) in next {
                    before.entry(name).or_insert(value);
                }
                None
            });
        }
        self.drop_copies();
        super::counters::complete(&mut self.counts);
        let settings = self.settings();
        self.range = settings.as_ref().and_then(port_range);
        let count = self.most_readings().max(1);
        let mut looks: Vec<Look> = (0..count).map(|look| self.look(look, count)).collect();
        if let Some(last) = looks.last_mut() {
            last.uptime_ns = self.uptime_ns;
            last.available_bytes = self.available_bytes;
            last.processes = Some(self.processes).filter(|all| !all.is_empty());
        }
        Snapshot {
            format: FORMAT.to_owned(),
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            pasted: true,
            kernel: self.kernel,
            named: self.names.into_named(),
            traces,
            speed_tests: self.speed_tests,
            memory_bytes: self.memory_bytes,
            agents: Some(self.agents.into_iter().collect()).filter(|all: &Vec<_>| !all.is_empty()),
            settings,
            set_in: Some(self.set_in).filter(|all| !all.is_empty()),
            routes: self.routes,
            tcp_metrics: self.tcp_metrics,
            unseen: self.unseen,
            said: self.said,
            looks,
            ..Snapshot::default()
        }
    }

    /// Where a reading holds what moves by itself, a second one that is the same is a copy.
    fn drop_copies(&mut self) {
        self.sockets.drop_copies();
        self.softnet.drop_copies();
        self.interrupts.drop_copies();
        self.counts.iter_mut().for_each(Readings::drop_copies);
        self.link_counts
            .values_mut()
            .chain(self.driver_counts.values_mut())
            .for_each(Readings::drop_copies);
        self.qdiscs.drop_copies();
        self.listeners.drop_copies();
        self.sockstat.drop_copies();
    }

    /// Those that were told with one value.
    fn settings(&mut self) -> Option<Settings> {
        let told = core::mem::take(&mut self.settings);
        let is_any = !told.is_empty();
        let mut values = BTreeMap::new();
        for (key, told) in told {
            match told.doubt() {
                Some(why) => self.could_not(Source::Settings.name(), Some(&key), &why),
                None => drop(values.insert(key, told.value)),
            }
        }
        is_any.then_some(Settings { values, ..Settings::default() })
    }

    fn most_readings(&self) -> usize {
        let counts = self.counts.iter().map(Readings::len);
        let links = self.link_counts.values().chain(self.driver_counts.values()).map(Readings::len);
        let others = [
            self.sockstat.len(),
            self.summary.len(),
            self.sockets.len(),
            self.listeners.len(),
            self.time_wait.len(),
            self.qdiscs.len(),
            self.softnet.len(),
            self.interrupts.len(),
            self.bonds.len(),
            self.states.len(),
        ];
        counts.chain(links).chain(others).max().unwrap_or(0)
    }

    fn look(&self, look: usize, looks: usize) -> Look {
        let mut at = Vec::new();
        let (mut counters, mut counters_cut) = (Grouped::new(), true);
        let mut counters_of_nstat = false;
        for (form, counts) in Form::ALL.into_iter().zip(&self.counts) {
            if let Some(reading) = counts.at(look, looks) {
                at.push(reading.at);
                counters_cut &= reading.what.is_cut();
                // The last of the forms wins.
                counters_of_nstat = form == Form::Nstat;
                for (group, names) in &reading.what.by_group {
                    let into = counters.entry(group.clone()).or_default();
                    into.extend(names.iter().map(|(name, value)| (name.clone(), *value)));
                }
            }
        }
        let (sockets, listeners) = (self.sockets.at(look, looks), self.listeners.at(look, looks));
        let (qdiscs, softnet) = (self.qdiscs.at(look, looks), self.softnet.at(look, looks));
        at.extend(sockets.map(|reading| reading.at));
        at.extend(listeners.map(|reading| reading.at));
        at.extend(qdiscs.map(|reading| reading.at));
        at.extend(softnet.map(|reading| reading.at));
        let links = self.links_at(look, looks, &mut at);
        Look {
            t_ns: at.into_iter().flatten().next(),
            counters_cut: counters_cut && !counters.is_empty(),
            counters_of_nstat,
            counters: Some(counters).filter(|all| !all.is_empty()),
            sockstat: self.sockstat_at(look, looks),
            sockets: sockets.map(|reading| reading.what.clone()),
            time_wait: self.time_wait_at(look, looks),
            listeners: listeners.map(|reading| reading.what.clone()),
            links: Some(links).filter(|all| !all.is_empty()),
            qdiscs: qdiscs.map(|reading| reading.what.clone()),
            softnet: softnet.map(|reading| reading.what.clone()),
            interrupts: self.interrupts.at(look, looks).map(|reading| reading.what.clone()),
            bonds: self.bonds.at(look, looks).map(|reading| reading.what.clone()),
            states: self.states.at(look, looks).map(|reading| reading.what.clone()),
            ..Look::default()
        }
    }

    /// `/proc/net/sockstat`, and what `ss -s` adds to it.
    fn sockstat_at(&self, look: usize, looks: usize) -> Option<Grouped<u64>> {
        let mut all = self.sockstat.at(look, looks).map(|reading| reading.what.clone());
        if let Some(summary) = self.summary.at(look, looks) {
            let tcp = all.get_or_insert_default().entry("TCP".to_owned()).or_default();
            for (name, value) in &summary.what {
                tcp.entry(name.clone()).or_insert(*value);
            }
        }
        all
    }

    /// Connections in `TIME_WAIT` by what would have to differ for a new one; `None` where no listener was
    /// seen, for only they tell which end connected.
    fn time_wait_at(&self, look: usize, looks: usize) -> Option<Vec<Occupied>> {
        let ends = self.time_wait.at(look, looks).filter(|_| !self.listening.is_empty())?;
        let mut all: BTreeMap<_, u32> = BTreeMap::new();
        for (local, remote) in &ends.what {
            let is_server = self.listening.contains(&local.port());
            let key = Occupied::by(*local, *remote, is_server, self.range);
            *all.entry(key).or_default() += 1;
        }
        let occupied = all.into_iter().map(|((local, local_port, remote), count)| Occupied {
            local,
            local_port,
            remote,
            count,
        });
        Some(occupied.collect())
    }

    fn links_at(&self, look: usize, looks: usize, at: &mut Vec<Option<u64>>) -> Vec<Link> {
        let is_last = look + 1 == looks;
        let mut links = Vec::new();
        for (name, facts) in &self.links {
            let counted = self.link_counts.get(name).and_then(|all| all.at(look, looks));
            let driver = self.driver_counts.get(name).and_then(|all| all.at(look, looks));
            if counted.is_none() && driver.is_none() && !is_last {
                continue;
            }
            at.extend(counted.map(|reading| reading.at));
            at.extend(driver.map(|reading| reading.at));
            let counters = counted.and_then(|reading| all_of(&reading.what));
            let some = counted.filter(|_| counters.is_none()).map(|reading| reading.what.clone());
            links.push(Link {
                counters,
                some_counters: some,
                carrier_changes: counted
                    .and_then(|reading| reading.what.get("carrier_changes").copied()),
                driver_counters: driver.map(|reading| reading.what.clone()),
                ..facts.clone()
            });
        }
        links
    }
}

fn port_range(settings: &Settings) -> Option<[u16; 2]> {
    let text = settings.values.get("net.ipv4.ip_local_port_range")?;
    let (low, high) = text.split_once(' ')?;
    Some([low.parse().ok()?, high.parse().ok()?])
}

/// All counters of an interface, if none is missing that every kernel has.
fn all_of(counted: &Counted) -> Option<LinkCounters> {
    let of = |name: &str| counted.get(name).copied();
    Some(LinkCounters {
        rx_packets: of("rx_packets")?,
        tx_packets: of("tx_packets")?,
        rx_bytes: of("rx_bytes")?,
        tx_bytes: of("tx_bytes")?,
        rx_errors: of("rx_errors")?,
        tx_errors: of("tx_errors")?,
        rx_dropped: of("rx_dropped")?,
        tx_dropped: of("tx_dropped")?,
        rx_length_errors: of("rx_length_errors")?,
        rx_over_errors: of("rx_over_errors")?,
        rx_crc_errors: of("rx_crc_errors")?,
        rx_frame_errors: of("rx_frame_errors")?,
        rx_fifo_errors: of("rx_fifo_errors")?,
        rx_missed_errors: of("rx_missed_errors")?,
        tx_aborted_errors: of("tx_aborted_errors")?,
        tx_carrier_errors: of("tx_carrier_errors")?,
        tx_fifo_errors: of("tx_fifo_errors")?,
        rx_nohandler: of("rx_nohandler"),
        rx_otherhost_dropped: of("rx_otherhost_dropped"),
    })
}
