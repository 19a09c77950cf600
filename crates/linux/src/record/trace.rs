//! The kernel's own account of TCP: its tracepoints, one JSON object a line.
//!
//! First by `perf_event_open`, whose events die with the process. Where the kernel refuses that, in
//! an instance of the tracing system of our own; a guardian removes it if we are killed. Either
//! way the kernel filters by port before it records, the ring is read in binary, and what it had
//! no room for is counted. Stamps are of `CLOCK_MONOTONIC`, in nanoseconds, and mapped.
//!
//! A line has `t` (ns since 1970), `event`, and the fields as the event's `format` file names
//! them; see [`event`] for addresses and texts. Lines are in order of time.
//!
//! `tcp_retransmit_skb` fires once for each buffer, while `TCP_INFO` counts the segments in it; with
//! segmentation offload a buffer may hold many.
//!
//! Tracepoints see every network namespace of the machine: choose ports that nobody else uses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use crate::sys::{Clock, NS_PER_S, Stop};

mod event;
mod guardian;
mod instance;
mod pages;
mod perf;
mod tracefs;

use event::Event;
use tracefs::Tracefs;

/// What to record.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only events with one of these ports at either end; empty is all.
    pub ports: Vec<u16>,
    /// Events besides [`EVENTS`], as `tcp_truth` or `qdisc/qdisc_dequeue`; each must exist.
    pub events: Vec<String>,
    /// None but [`Self::events`].
    pub only: bool,
    /// How to get them.
    pub method: Method,
    /// Room in the kernel for each processor, in KiB; rounded up to a power of two.
    pub room_kib: u32,
    /// Time from one look into the rings to the next; 0 is [`LOOK_NS`].
    pub look_ns: u64,
    /// Events are switched off after this many records.
    pub most: Option<u64>,
}

/// How to get events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Method {
    /// By perf if the kernel lets, else by an instance.
    #[default]
    Any,
    /// By `perf_event_open`.
    Perf,
    /// By an instance of the tracing system.
    Instance,
}

/// Events recorded wherever the kernel has them. Only the first is on every kernel.
pub const EVENTS: [&str; 5] = [
    "tcp_probe",
    "tcp_retransmit_skb",
    "tcp_cong_state_set",
    "tcp_rcvbuf_grow",
    "tcp_rcv_space_adjust",
];

/// What was recorded.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Traced {
    /// Lines written.
    pub records: u64,
    /// Records the ring had no room for.
    pub lost: u64,
    /// Records that could not be decoded.
    pub odd: u64,
    /// How they came: `perf` or `instance`.
    pub method: &'static str,
    /// There were as many as were asked for at most: later ones are missing.
    pub full: bool,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The tracing system is not to be had.
    #[error(
        "cannot reach tracefs: {0}; it takes root outside of user namespaces and a kernel with \
         tracing, and before Linux 5.2 somebody who mounts it at /sys/kernel/tracing"
    )]
    NoTracefs(io::Error),
    /// An event that was asked for does not exist here.
    #[error("this kernel has no event {0}; `ls` of tracefs' events/tcp shows those it has")]
    NoEvent(String),
    /// A file of the tracing system is not as expected.
    #[error("cannot understand tracefs' {file}: {why}")]
    Format {
        /// Which.
        file: String,
        /// What is odd.
        why: String,
    },
    /// A call failed.
    #[error("cannot {what}: {source}")]
    Call {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the file after {records} records: {source}")]
    Write {
        /// Records written before.
        records: u64,
        /// Why not.
        source: io::Error,
    },
}

/// Records into a file until `stop`; `ready` is called when no event can be missed any more.
///
/// # Errors
/// The tracing system refuses, an event does not exist, the file cannot be written.
pub fn run(
    output: &Path,
    options: &Options,
    stop: &Stop,
    ready: impl FnOnce(),
) -> Result<Traced, TraceError> {
    let mut file =
        File::create(output).map_err(|source| TraceError::Write { records: 0, source })?;
    run_into(&mut file, options, stop, ready)
}

/// The same, into anything.
///
/// # Errors
/// As [`run`].
pub fn run_into(
    out: &mut dyn io::Write,
    options: &Options,
    stop: &Stop,
    ready: impl FnOnce(),
) -> Result<Traced, TraceError> {
    let tracefs = Tracefs::open().map_err(TraceError::NoTracefs)?;
    let events = chosen(&tracefs, options)?;
    let mut sink = Sink::new(BufWriter::with_capacity(BUFFER, out), events);
    let mut source = Source::open(&tracefs, &sink.events, options)?;
    ready();
    let look_ns = if options.look_ns > 0 { options.look_ns } else { LOOK_NS };
    let most = options.most.unwrap_or(u64::MAX);
    let mut full = false;
    loop {
        // Whatever is stamped before this instant is in the rings when they are read now.
        let until = Clock::Real.now().saturating_sub(COMMIT_NS);
        source.read(&mut sink)?;
        sink.write_until(until)?;
        full = full || sink.records >= most;
        if full {
            break;
        }
        let waited = stop.within(Some(look_ns));
        if waited.map_err(|source| TraceError::Call { what: "wait".to_owned(), source })? {
            break;
        }
    }
    source.stop()?;
    source.read(&mut sink)?;
    let lost = source.lost()?;
    sink.write_until(u64::MAX)?;
    let Sink { mut out, records, odd, .. } = sink;
    out.flush().map_err(|source| TraceError::Write { records, source })?;
    Ok(Traced { records, lost, odd, method: source.name(), full })
}

/// The standard events that exist here, and those asked for.
fn chosen(tracefs: &Tracefs, options: &Options) -> Result<BTreeMap<u16, Event>, TraceError> {
    let mut events = BTreeMap::new();
    let standard = if options.only { &[][..] } else { &EVENTS[..] };
    let extra = options.events.iter().map(|name| (name.as_str(), true));
    for (name, must) in standard.iter().map(|&name| (name, name == EVENTS[0])).chain(extra) {
        let path = if name.contains('/') { name.to_owned() } else { format!("tcp/{name}") };
        match format_of(tracefs, &path) {
            Ok(text) => {
                let event = Event::parse(&path, &text).map_err(|why| TraceError::Format {
                    file: format!("events/{path}/format"),
                    why,
                })?;
                events.insert(event.id, event);
            }
            Err(_) if !must => {}
            Err(error) => return Err(error),
        }
    }
    Ok(events)
}

fn format_of(tracefs: &Tracefs, path: &str) -> Result<String, TraceError> {
    tracefs.read(&format!("events/{path}/format")).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => TraceError::NoEvent(path.to_owned()),
        _ => TraceError::Call { what: format!("read the format of {path}"), source },
    })
}

/// The names that an event prints for numbers (`__print_symbolic`); of an event that has several such fields,
/// those of all.
///
/// # Errors
/// The tracing system refuses, or has no such event.
pub fn symbols(path: &str) -> Result<BTreeMap<u64, String>, TraceError> {
    let tracefs = Tracefs::open().map_err(TraceError::NoTracefs)?;
    Ok(event::symbols(&format_of(&tracefs, path)?))
}

/// Where events come from.
enum Source {
    Perf(perf::Perf),
    Instance(instance::Instance),
}

impl Source {
    fn open(
        tracefs: &Tracefs,
        events: &BTreeMap<u16, Event>,
        options: &Options,
    ) -> Result<Self, TraceError> {
        if options.method != Method::Instance {
            match perf::Perf::open(events, options) {
                Ok(perf) => return Ok(Self::Perf(perf)),
                Err(error) if options.method == Method::Perf => return Err(error),
                Err(_) => {}
            }
        }
        instance::Instance::open(tracefs, events, options).map(Self::Instance)
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Perf(_) => "perf",
            Self::Instance(_) => "instance",
        }
    }

    /// Hands on all records that are there.
    fn read(&mut self, sink: &mut Sink<'_>) -> Result<(), TraceError> {
        match self {
            Self::Perf(perf) => perf.read(sink),
            Self::Instance(instance) => instance.read(sink)?,
        }
        Ok(())
    }

    /// No more records come.
    fn stop(&mut self) -> Result<(), TraceError> {
        match self {
            Self::Perf(perf) => perf.stop(),
            Self::Instance(instance) => instance.stop(),
        }
    }

    /// Records that found no room; to be asked after the last read.
    fn lost(&self) -> Result<u64, TraceError> {
        match self {
            Self::Perf(perf) => perf.lost(),
            Self::Instance(instance) => instance.lost(),
        }
    }
}

/// Decodes records and writes them in order.
struct Sink<'a> {
    out: BufWriter<&'a mut dyn io::Write>,
    events: BTreeMap<u16, Event>,
    /// Read and not yet written.
    waiting: Vec<(u64, String)>,
    records: u64,
    odd: u64,
}

impl<'a> Sink<'a> {
    const fn new(out: BufWriter<&'a mut dyn io::Write>, events: BTreeMap<u16, Event>) -> Self {
        Self { out, events, waiting: Vec::new(), records: 0, odd: 0 }
    }

    /// Takes a record as the kernel wrote it, its common fields first.
    fn take(&mut self, t: u64, record: &[u8]) {
        let id = record.first_chunk().map(|&id| u16::from_ne_bytes(id));
        match id.and_then(|id| self.events.get(&id)).and_then(|event| event.line(t, record)) {
            Some((t, line)) => self.waiting.push((t, line)),
            None => self.odd += 1,
        }
    }

    /// Writes what is stamped before `until`. Nothing earlier can come any more.
    fn write_until(&mut self, until: u64) -> Result<(), TraceError> {
        self.waiting.sort_by_key(|&(t, _)| t);
        let whole = self.waiting.partition_point(|&(t, _)| t < until);
        for (_, line) in self.waiting.drain(..whole) {
            self.out
                .write_all(line.as_bytes())
                .map_err(|source| TraceError::Write { records: self.records, source })?;
            self.records += 1;
        }
        Ok(())
    }
}

/// Ours: at 300,000 events a second, a ring of 1 MiB is then half full.
pub const LOOK_NS: u64 = NS_PER_S / 100;
/// Ours: a record is stamped before it is in the ring; an interrupt may lie between.
const COMMIT_NS: u64 = 1_000_000;
/// Ours: goes to the file in pieces of this size.
const BUFFER: usize = 256 << 10;
