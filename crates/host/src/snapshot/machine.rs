//! Processes, processors and what they wait for.

use serde::{Deserialize, Serialize};

/// A process that owns sockets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// `comm`.
    pub name: String,
    /// `R`, `S`, `D`, `T`, `Z` of `proc_pid_stat(5)`, the worst of its threads: `D` waits for a disk.
    pub state: Option<char>,
    /// Path of its control group (version 2).
    pub group: Option<String>,
    /// Descriptors that it has open.
    pub files: Option<u64>,
    /// Its limits.
    pub limits: Option<Limits>,
}

/// Limits of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `RLIMIT_NOFILE`, the soft one.
    pub files: u64,
}

/// A row of `/proc/net/softnet_stat`. Counters are of 32 bits and wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Softnet {
    /// The processor.
    pub cpu: u32,
    /// Packets.
    pub processed: u32,
    /// Dropped because the backlog was full.
    pub dropped: u32,
    /// Times that work was left when budget or time ran out.
    pub time_squeeze: u32,
    /// Interrupts from other processors for RPS.
    pub received_rps: u32,
    /// Dropped by the flow limit.
    pub flow_limit: Option<u32>,
    /// Packets waiting.
    pub backlog: Option<u32>,
}

/// An interrupt of a network device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupt {
    /// Its number.
    pub irq: u32,
    /// The device whose it is.
    pub dev: String,
    /// Its name.
    pub name: String,
    /// How often it came, on each processor in their order.
    pub counts: Vec<u64>,
    /// `smp_affinity_list`.
    pub affinity: Option<String>,
    /// `effective_affinity_list`.
    pub effective: Option<String>,
}

/// A processor's time in ticks (`/proc/stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// The processor.
    pub cpu: u32,
    /// In programs, with the nice ones.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
    /// Doing nothing.
    pub idle: u64,
    /// Doing nothing while a disk was waited for.
    pub iowait: u64,
    /// In interrupts.
    pub irq: u64,
    /// In what they leave behind: the network mostly.
    pub softirq: u64,
    /// Taken by other guests of the machine.
    pub steal: u64,
}

/// A file of `/proc/pressure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// Share of ten seconds in which some task waited, in hundredths of a percent.
    pub some_avg10: u32,
    /// The same in which all did.
    pub full_avg10: Option<u32>,
    /// Total time in which some task waited.
    pub some_total_ns: u64,
}

/// A control group of version 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// `memory.stat` `sock`: bytes of socket buffers.
    pub sock_bytes: Option<u64>,
    /// `memory.current`.
    pub memory_bytes: Option<u64>,
    /// `memory.max`; `None` also where it is `max`.
    pub memory_max: Option<u64>,
    /// `memory.high`, above which it is slowed; `None` also where it is `max`.
    pub memory_high: Option<u64>,
    /// `memory.events` `max`: how often the limit was met.
    pub memory_events_max: Option<u64>,
    /// `memory.events` `high`: how often it was slowed.
    pub memory_events_high: Option<u64>,
    /// `cpu.stat` `nr_throttled`.
    pub cpu_throttled: Option<u64>,
    /// `cpu.stat` `throttled_usec`, in nanoseconds.
    pub cpu_throttled_ns: Option<u64>,
    /// `memory.pressure` and `io.pressure`, `some avg10`, in hundredths of a percent.
    pub memory_some_avg10: Option<u32>,
    /// See above.
    pub io_some_avg10: Option<u32>,
}

/// Packets that the kernel dropped between the looks (`skb:kfree_skb`), of all namespaces and protocols.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drops {
    /// How long they were counted.
    pub over_ns: u64,
    /// By reason and function, most first.
    pub by: Vec<Dropped>,
    /// Dropped, and not told apart for lack of room.
    pub missed: u64,
    /// There were too many: later ones were not counted.
    pub cut: bool,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// The kernel's word (`enum skb_drop_reason` without `SKB_DROP_REASON_`).
    pub reason: String,
    /// The function that dropped them; `None` where the kernel does not tell.
    pub function: Option<String>,
    /// How many.
    pub packets: u64,
}
