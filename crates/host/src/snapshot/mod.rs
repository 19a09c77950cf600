//! A host as it stood: what its kernel is set to, what its counters say, what its sockets wait for.
//!
//! Plain data with public fields: `tcpwhy check --save` writes it, pasted output makes a part of it, and
//! the checks judge nothing else. What was not looked at, or could not be, is `None` and never empty or 0;
//! [`Snapshot::unseen`] says why. Names are the kernel's; bytes, nanoseconds and counts are integers.

mod machine;
mod net;
mod said;
mod sockets;
mod traced;

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

pub use machine::{
    Dropped, Drops, Group, Interrupt, Limits, Pressure, Process, Processor, Softnet,
};
pub use net::{
    Bond, ByteQueue, Conntrack, Features, Link, LinkCounters, Neighbours, PeerMetrics, Qdisc,
    Queues, Ring, Route, Rule,
};
pub use said::{Event, Said};
pub use sockets::{
    Bbr, Glimpse, Info, Listener, Locks, Memory, Occupied, Owner, Socket, State, Timer,
};
pub use traced::{CallKind, Failed, Gap, SpeedTest, Traced};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the first line of a saved snapshot says it is.
pub const FORMAT: &str = "tcpwhy-host/1";

/// What was seen of a host: what stays while it is looked at, and what changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the program that took it.
    pub made_by: String,
    /// It was put together from pasted text: what it lacks may well be there.
    pub pasted: bool,
    /// `/proc/sys/kernel/osrelease`.
    pub kernel: Option<String>,
    /// `PRETTY_NAME` of os-release(5).
    pub system: Option<String>,
    /// What `--netns` named; `None` for the caller's own namespace.
    pub netns: Option<String>,
    /// The namespace is that of process 1, as far as that could be compared: settings and counters of
    /// the whole host are at home in it.
    pub initial_netns: Option<bool>,
    /// `_SC_PAGESIZE`: the unit of `tcp_mem`.
    pub page_bytes: Option<u64>,
    /// `MemTotal` of `/proc/meminfo`.
    pub memory_bytes: Option<u64>,
    /// Processors online.
    pub processors: Option<u32>,
    /// Everything below `/proc/sys/net`, and of `/proc/sys/fs` what limits descriptors, under the names
    /// of sysctl(8); blanks between numbers are single. No secrets (`tcp_fastopen_key`).
    pub settings: Option<Settings>,
    /// Where sysctl.d(5) files set a key, in the order in which they are applied: the last one wins.
    pub set_in: Option<BTreeMap<String, Vec<SetIn>>>,
    /// The value each key has in process 1's namespace, where another one was looked at and that was allowed.
    pub host_settings: Option<BTreeMap<String, String>>,
    /// Parameters of loaded modules that concern TCP (`tcp_cubic.hystart_detect`, `nf_conntrack.hashsize`).
    pub module_parameters: Option<BTreeMap<String, String>>,
    /// Routes of all tables, as far as they are not of kind `local`, `broadcast`, `anycast` or `multicast`.
    pub routes: Option<Vec<Route>>,
    /// Rules that choose among the tables.
    pub rules: Option<Vec<Rule>>,
    /// What the kernel remembers about peers (`ip tcp_metrics`).
    pub tcp_metrics: Option<Vec<PeerMetrics>>,
    /// Programs known to change settings or interrupts by themselves (`bpftune`, `tuned`, `irqbalance`)
    /// that are running.
    pub agents: Option<Vec<String>>,
    /// Processors of each NUMA node (`/sys/devices/system/node/nodeN/cpulist`), as a list of the kernel: `0-15,32-47`.
    pub nodes: Option<BTreeMap<u32, String>>,
    /// Clock source (`/sys/devices/system/clocksource/clocksource0/current_clocksource`).
    pub clock_source: Option<String>,
    /// What the kernel said in its log; only pasted text has it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Said>,
    /// Packets dropped between the looks, where that was asked for.
    pub drops: Option<Drops>,
    /// What programs did, as traces of their system calls show; only pasted text has it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Traced>,
    /// Tests of speed (`iperf3`); only pasted text has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speed_tests: Vec<SpeedTest>,
    /// Ends of sockets that were printed by name, by the address that replaces them here; only pasted text has it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<IpAddr, String>,
    /// Looks at what changes, oldest first: at least one.
    pub looks: Vec<Look>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// Settings under the names of sysctl(8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Everything that the kernel shows was read: a key that is not here does not exist in it.
    pub complete: bool,
    /// By name: `net.ipv4.tcp_rmem`.
    pub values: BTreeMap<String, String>,
    /// Those that exist and were not read: secrets, and what was refused.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unread: BTreeSet<String>,
}

/// A line of a file that sets a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetIn {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// The value that it gives.
    pub value: String,
}

/// Something that could not be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unseen {
    /// The source, by the name of [`Source`].
    pub source: String,
    /// The device, process or file, where it is not all of the source.
    pub of: Option<String>,
    /// Why, in words.
    pub why: String,
    /// What would have to be granted or done to see it.
    pub grant: Option<String>,
}

/// What changes while the host is looked at, read as nearly at once as can be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// When, in nanoseconds since 1970.
    pub t_ns: Option<u64>,
    /// Since the kernel started.
    pub uptime_ns: Option<u64>,
    /// `/proc/net/snmp`, `snmp6` and `netstat`: group (`Tcp`, `TcpExt`, `IpExt`, `Ip`, `Icmp`), name, value.
    pub counters: Option<BTreeMap<String, BTreeMap<String, i64>>>,
    /// Only some were pasted: one that is not there may well be counted.
    #[serde(skip_serializing_if = "is_false")]
    pub counters_cut: bool,
    /// They are from nstat, which without `-a` shows what grew since it was last run; its text does not say so.
    #[serde(skip_serializing_if = "is_false")]
    pub counters_of_nstat: bool,
    /// `/proc/net/sockstat`: group (`TCP`), name (`mem`, in pages), value.
    pub sockstat: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    /// TCP sockets but listeners and those in `TIME_WAIT`.
    pub sockets: Option<Vec<Socket>>,
    /// How many sockets are in each state, by the names of ss(8), where only these counts were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<BTreeMap<String, u64>>,
    /// How many are in `TIME_WAIT`, by what would have to differ for a new connection.
    pub time_wait: Option<Vec<Occupied>>,
    /// Listening sockets.
    pub listeners: Option<Vec<Listener>>,
    /// Processes that own sockets, by number.
    pub processes: Option<BTreeMap<u32, Process>>,
    /// Interfaces, with what passed through them.
    pub links: Option<Vec<Link>>,
    /// Queueing disciplines.
    pub qdiscs: Option<Vec<Qdisc>>,
    /// Classes of those that have some (`htb`, `hfsc`, `drr`), told in the same words: the handle is the
    /// class's, and a rate has its `ceil` among the options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<Qdisc>>,
    /// Bonds.
    pub bonds: Option<Vec<Bond>>,
    /// `/proc/net/softnet_stat`, a row a processor.
    pub softnet: Option<Vec<Softnet>>,
    /// Lines of `/proc/interrupts` that belong to network devices.
    pub interrupts: Option<Vec<Interrupt>>,
    /// `/proc/stat`, a row a processor.
    pub processors: Option<Vec<Processor>>,
    /// `/proc/vmstat`: what tells of reclaim (`allocstall_*`, `pgscan_direct`).
    pub vmstat: Option<BTreeMap<String, u64>>,
    /// `MemAvailable` of `/proc/meminfo`.
    pub available_bytes: Option<u64>,
    /// `/proc/pressure`: by resource (`cpu`, `memory`, `io`, `irq`).
    pub pressure: Option<BTreeMap<String, Pressure>>,
    /// Control groups of version 2 that own sockets, by path.
    pub groups: Option<BTreeMap<String, Group>>,
    /// Connection tracking; `None` within if its module is not loaded.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    pub conntrack: Option<Option<Conntrack>>,
    /// Neighbour tables: `arp_cache`, `ndisc_cache`.
    pub neighbours: Option<BTreeMap<String, Neighbours>>,
    /// `/proc/sys/fs/file-nr`: descriptors in use, and the most there may be.
    pub files: Option<[u64; 2]>,
}

/// What is there is known, even if it is `null`.
fn told<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Where something is read, as people know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// `/proc/sys`.
    Settings,
    /// `/proc/net/snmp` and `netstat`.
    Counters,
    /// `/proc/net/sockstat`.
    Sockstat,
    /// `sock_diag(7)`.
    Sockets,
    /// `/proc/PID`.
    Processes,
    /// rtnetlink(7): links.
    Links,
    /// ethtool(8).
    Ethtool,
    /// rtnetlink(7): queueing disciplines.
    Qdiscs,
    /// rtnetlink(7): routes.
    Routes,
    /// `ip tcp_metrics`.
    TcpMetrics,
    /// `/proc/net/softnet_stat`.
    Softnet,
    /// `/proc/interrupts`.
    Interrupts,
    /// `/proc/stat`.
    Processors,
    /// `/proc/vmstat` and `/proc/meminfo`.
    Reclaim,
    /// `/proc/pressure`.
    Pressure,
    /// Control groups.
    Groups,
    /// `/proc/net/stat/nf_conntrack`.
    Conntrack,
    /// `/proc/net/stat/arp_cache`.
    Neighbours,
    /// `/proc/net/bonding`.
    Bonds,
    /// Byte queue limits in `/sys/class/net`.
    ByteQueues,
    /// `/etc/sysctl.d` and its kin.
    SettingFiles,
    /// A second look, some seconds after the first.
    SecondLook,
    /// Buffer locks and options of sockets, by `pidfd_getfd`.
    Locks,
    /// What the host is: kernel, memory, processors.
    Machine,
    /// Packets dropped by the kernel's reasons.
    Drops,
    /// A trace of system calls: strace(1), perf-trace(1).
    Traces,
    /// A test of speed: `iperf3`.
    SpeedTests,
}

impl Source {
    /// How a report names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Counters => "counters",
            Self::Sockstat => "sockstat",
            Self::Sockets => "sockets",
            Self::Processes => "processes",
            Self::Links => "links",
            Self::Ethtool => "ethtool",
            Self::Qdiscs => "qdiscs",
            Self::Routes => "routes",
            Self::TcpMetrics => "tcp_metrics",
            Self::Softnet => "softnet_stat",
            Self::Interrupts => "interrupts",
            Self::Processors => "processor times",
            Self::Reclaim => "memory reclaim",
            Self::Pressure => "pressure",
            Self::Groups => "control groups",
            Self::Conntrack => "conntrack",
            Self::Neighbours => "neighbours",
            Self::Bonds => "bonds",
            Self::ByteQueues => "byte queue limits",
            Self::SettingFiles => "sysctl files",
            Self::SecondLook => "a second look",
            Self::Locks => "socket options",
            Self::Machine => "machine",
            Self::Drops => "drop reasons",
            Self::Traces => "system calls",
            Self::SpeedTests => "a speed test",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_module_is_not_loaded_is_known_and_kept() {
        for conntrack in [None, Some(None), Some(Some(Conntrack::default()))] {
            let look = Look { conntrack, ..Look::default() };
            let text = serde_json::to_string(&look).expect("plain data");
            assert_eq!(serde_json::from_str::<Look>(&text).expect("its own text"), look);
        }
    }
}
