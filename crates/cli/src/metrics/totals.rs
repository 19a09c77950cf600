//! What the looks add up to.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use tcpwhy::host::snapshot::{Link, Listener, Socket};
use tcpwhy::live::{Connection, Course, Key};

use super::groups::{Groups, Labels, OTHER, Place};
use super::host::{Devices, Kernels};
use super::rules::Rules;
use super::tally::{Tally, Values, syn_retries};

/// The ports from which Linux chooses where it was not told otherwise (`net.ipv4.ip_local_port_range`).
const EPHEMERAL: [u16; 2] = [32768, 60999];

/// One look at a host.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its connections, to this look.
    pub course: &'a Course,
    /// Those that have ended since the look before.
    pub ended: &'a [Connection],
    /// Its listening sockets.
    pub listeners: &'a [Listener],
    /// How many sockets are in `TIME_WAIT`.
    pub time_wait: Option<u64>,
    /// Paths of control groups, by their numbers.
    pub cgroups: Option<&'a BTreeMap<u64, String>>,
    /// `net.ipv4.ip_local_port_range`.
    pub ephemeral: Option<[u16; 2]>,
    /// As in [`tcpwhy::host::snapshot::Look::counters`].
    pub counters: Option<&'a BTreeMap<String, BTreeMap<String, i64>>>,
    /// Interfaces, with the counters of their drivers.
    pub links: &'a [Link],
    /// When, in nanoseconds since 1970.
    pub t_ns: u64,
}

impl<'a> Seen<'a> {
    /// Connections alone.
    pub const fn new(course: &'a Course, ended: &'a [Connection], t_ns: u64) -> Self {
        Self {
            course,
            ended,
            listeners: &[],
            time_wait: None,
            cgroups: None,
            ephemeral: None,
            counters: None,
            links: &[],
            t_ns,
        }
    }
}

/// Adds looks up.
#[derive(Debug)]
pub struct Metrics {
    rules: Rules,
    groups: Groups,
    pins: HashMap<Key, Pin, RandomState>,
    /// Those that ended in this look and the one before: a dump that was cut short ends what lives on.
    gone: [HashMap<u64, Values>; 2],
    drops: HashMap<(SocketAddr, u64), u32>,
    totals: Totals,
}

/// What is to be shown.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub(super) groups: Vec<(Labels, Tally)>,
    pub(super) groups_limit: usize,
    /// Connections that found no place among the groups.
    pub(super) ungrouped: u64,
    pub(super) looks: u64,
    pub(super) t_ns: u64,
    pub(super) time_wait: Option<u64>,
    /// By the label of the port.
    pub(super) queues: BTreeMap<Arc<str>, Queue>,
    pub(super) kernels: Kernels,
    pub(super) devices: Devices,
}

/// Accept queues of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    pub(super) length: u64,
    pub(super) limit: u64,
    /// The fullest one's length and limit.
    pub(super) fullest: (u64, u64),
    pub(super) drops: u64,
}

/// A connection keeps its group: a sum must not move to another.
#[derive(Clone, Copy, Debug)]
struct Pin {
    group: usize,
    syn: u32,
}

impl Metrics {
    /// With no look yet.
    pub fn new(rules: Rules) -> Self {
        let groups = Groups::new(rules.groups);
        let totals = Totals { groups_limit: rules.groups, ..Totals::default() };
        let (pins, gone, drops) =
            (HashMap::default(), [HashMap::new(), HashMap::new()], HashMap::new());
        let mut all = Self { rules, groups, pins, gone, drops, totals };
        all.fit();
        all
    }

    /// What the looks so far add up to.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Adds a look.
    pub fn take(&mut self, seen: &Seen<'_>) {
        let is_first = self.totals.looks == 0;
        self.totals.looks += 1;
        self.totals.t_ns = seen.t_ns;
        let range = seen.ephemeral.unwrap_or(EPHEMERAL);
        let is_named = |port: &u16| !(range[0]..=range[1]).contains(port);
        let ports = seen.listeners.iter().map(|each| each.local.port()).filter(is_named);
        let place = Ports(ports.collect());
        self.gone.swap(0, 1);
        self.gone[0].clear();
        // What was open before the first look and ended at it was never followed.
        for connection in seen.ended.iter().filter(|_| !is_first) {
            self.end(connection, seen, &place);
        }
        self.totals.groups.iter_mut().for_each(|(_, tally)| tally.begin());
        for connection in seen.course.connections() {
            self.open(connection, seen, &place, is_first);
        }
        self.totals.groups.iter_mut().for_each(|(_, tally)| tally.settle());
        self.listeners(seen.listeners, &place);
        self.totals.time_wait = seen.time_wait;
        if let Some(counters) = seen.counters {
            self.totals.kernels = Kernels::of(counters);
        }
        if !seen.links.is_empty() {
            self.totals.devices = Devices::of(seen.links);
        }
    }

    fn open(&mut self, connection: &Connection, seen: &Seen<'_>, ports: &Ports, is_first: bool) {
        let socket = &connection.socket;
        let (key, retries) = (Key::of(socket), syn_retries(socket));
        let (pin, is_new) = self.pin(socket, seen, ports);
        let pin = Pin { syn: pin.syn.max(retries), ..pin };
        self.groups.uses(pin.group, self.totals.looks);
        if is_new || retries > 0 {
            self.pins.insert(key, pin);
        }
        let values = Values::of(socket, pin.syn);
        let tally = &mut self.totals.groups[pin.group].1;
        tally.open(connection, values);
        if is_first {
            tally.take_off(values);
        } else if is_new {
            let gone = self.gone.iter().find_map(|gone| gone.get(&socket.cookie));
            match gone {
                Some(before) => tally.take_off(before.least(values)),
                None => tally.opened += 1,
            }
        }
    }

    fn end(&mut self, connection: &Connection, seen: &Seen<'_>, ports: &Ports) {
        let socket = &connection.socket;
        let (pin, is_new) = self.pin(socket, seen, ports);
        self.pins.remove(&Key::of(socket));
        let values = Values::of(socket, pin.syn.max(syn_retries(socket)));
        let tally = &mut self.totals.groups[pin.group].1;
        tally.opened += u64::from(is_new);
        tally.end(connection, values);
        if socket.cookie != 0 {
            self.gone[0].insert(socket.cookie, values);
        }
    }

    /// The group of a connection, and whether it is new.
    fn pin(&mut self, socket: &Socket, seen: &Seen<'_>, ports: &Ports) -> (Pin, bool) {
        if let Some(pin) = self.pins.get(&Key::of(socket)) {
            return (*pin, false);
        }
        let path =
            socket.cgroup.and_then(|group| seen.cgroups?.get(&group)).map_or("", |path| path);
        let port = ports.label(&self.rules, socket.local.port());
        let labels = Labels::of(&port, self.rules.cgroup(path), self.rules.peer(socket.remote));
        let group = match self.groups.place(labels, self.totals.looks) {
            Place::Known(at) => at,
            Place::New(at) => {
                self.fit();
                self.totals.groups[at] = (self.groups.labels()[at].clone(), Tally::default());
                at
            }
            Place::Full => {
                self.totals.ungrouped += 1;
                0
            }
        };
        (Pin { group, syn: 0 }, true)
    }

    /// Gives each set of labels its tally.
    fn fit(&mut self) {
        let known = self.totals.groups.len();
        let new = self.groups.labels()[known..].iter();
        self.totals.groups.extend(new.map(|labels| (labels.clone(), Tally::default())));
    }

    fn listeners(&mut self, listeners: &[Listener], ports: &Ports) {
        let mut drops = HashMap::new();
        let before = core::mem::take(&mut self.totals.queues);
        let mut queues: BTreeMap<Arc<str>, Queue> = before
            .into_iter()
            .map(|(port, queue)| (port, Queue { drops: queue.drops, ..Queue::default() }))
            .collect();
        for listener in listeners {
            let port: Arc<str> = ports.label(&self.rules, listener.local.port()).into();
            let has_room = queues.len() < self.rules.groups || queues.contains_key(&port);
            let queue = queues.entry(if has_room { port } else { OTHER.into() }).or_default();
            let (length, limit) =
                (u64::from(listener.accept_queue), u64::from(listener.accept_max));
            queue.length += length;
            queue.limit += limit;
            let (most, of) = queue.fullest;
            if length * of.max(1) >= most * limit.max(1) {
                queue.fullest = (length, limit);
            }
            let Some(dropped) = listener.drops else { continue };
            let key = (listener.local, listener.inode);
            // What it dropped before it was first seen is the past.
            let known = self.drops.get(&key).copied().unwrap_or(dropped);
            queue.drops += u64::from(dropped.saturating_sub(known));
            drops.insert(key, dropped);
        }
        self.drops = drops;
        self.totals.queues = queues;
    }
}

/// The ports that are told apart.
struct Ports(BTreeSet<u16>);

impl Ports {
    fn label(&self, rules: &Rules, port: u16) -> String {
        match rules.port(port) {
            Some(name) => name.to_owned(),
            None if self.0.contains(&port) => port.to_string(),
            None => "ephemeral".to_owned(),
        }
    }
}
