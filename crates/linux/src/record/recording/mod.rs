//! One recording: everything that tells how connections did, taken at once, into one file.
//!
//! ```text
//! packets (any interface) -- spool --+
//! TCP_INFO of our sockets -- spool --+-- narrow --> one pcapng: packets of the recorded connections,
//! tracepoints             -- spool --+              and the rest in blocks of their own
//! counters before, after; host ------+
//! ```
//!
//! Captured is more than is kept: whose a connection is shows only while it lives, so all TCP goes
//! into a spool, and what belongs to others is left out when the file is made ([`owners`]). What
//! cannot be had, for lack of a right or of a kernel's feature, is named and the rest recorded.

mod narrow;
mod owners;
mod processes;
mod sampler;
mod told;
mod traced;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::capture::{self, CaptureError, Only, Taken};
use super::counters::Counters;
use super::pcapng::{self, Interface, Writer};
use super::trace::{self, TraceError, Traced};
use super::{Wanted, host};
use crate::sys::{Clock, Ender, NS_PER_S, Stop};
use narrow::{About, Narrowed, narrow};
use owners::Owners;
use sampler::{Sampled, Sampler};
use traced::Known;

/// Names of what is attached to the packets; the formats are those of the lab's recorders.
pub mod attached {
    /// `TCP_INFO` of the recorded sockets: one JSON object a line.
    pub const TCP_INFO: &str = "tcp_info.jsonl";
    /// The kernel's tracepoints: one JSON object a line.
    pub const TRACE: &str = "tcp_probe.jsonl";
    /// Growth of the counters of this network namespace, as JSON.
    pub const COUNTERS: &str = "counters.json";
    /// Kernel, settings, interfaces, routes to the peers, as JSON.
    pub const HOST: &str = "host.json";
    /// The command, when it began and ended, and how, as JSON.
    pub const COMMAND: &str = "command.json";
    /// What was recorded, and what could not be, as JSON.
    pub const RECORDING: &str = "recording.json";
    /// The programs that hold the recorded sockets.
    pub const PROGRAMS: &str = "programs.json";
}

/// Which connections are recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Scope {
    /// Those of a command that is started later ([`Recording::watch`]) and of its descendants.
    Command,
    /// Those of this process and its descendants.
    Process(u32),
    /// Those with one of these ports and one of these addresses; of an empty list, any.
    Ends {
        /// Ports.
        ports: Vec<u16>,
        /// Addresses.
        hosts: Vec<IpAddr>,
    },
}

impl Scope {
    /// Whether the ends of a connection choose it; those of processes are chosen otherwise.
    fn chooses(&self, ends: [SocketAddr; 2]) -> bool {
        match self {
            Self::Command | Self::Process(_) => false,
            Self::Ends { ports, hosts } => {
                (ports.is_empty() || ends.iter().any(|end| ports.contains(&end.port())))
                    && (hosts.is_empty() || ends.iter().any(|end| hosts.contains(&end.ip())))
            }
        }
    }

    fn wanted(&self) -> Wanted {
        match self {
            Self::Command | Self::Process(_) => Wanted { names: true, ..Wanted::default() },
            Self::Ends { ports, hosts } => {
                let names = ports.is_empty() && hosts.is_empty();
                Wanted { ports: ports.clone(), hosts: hosts.clone(), names }
            }
        }
    }
}

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of an interface, or `any`.
    pub interface: String,
    /// Bytes kept of each packet, from its IP header on; of DNS more.
    pub snap_length: u32,
    /// The capture ends when this many bytes are in the spool; the rest goes on.
    pub max_bytes: u64,
    /// Which connections.
    pub scope: Scope,
    /// An empty folder for what is not yet narrowed.
    pub spool: PathBuf,
}

/// A command that was recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Command {
    /// Its program, without arguments: they may hold private data.
    pub program: String,
    /// Before it was started: ns since 1970.
    pub start: u64,
    /// After it had ended.
    pub end: u64,
    /// Its status, unless a signal ended it, or it did not end.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A recording under way.
pub struct Recording {
    options: Options,
    counters: Option<Counters>,
    begun: u64,
    stop: Arc<Stop>,
    ender: Ender,
    packets: Result<JoinHandle<Result<Taken, CaptureError>>, CaptureError>,
    trace: Result<JoinHandle<Result<Traced, TraceError>>, TraceError>,
    sampler: io::Result<Sampling>,
    live: Arc<AtomicUsize>,
}

/// The sampler waits for a command before it runs.
enum Sampling {
    Waiting(Box<Sampler>),
    Running(JoinHandle<Sampled>),
}

/// What a recording gave.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Recorded {
    /// Packets in the file, DNS and ICMP errors among them.
    pub packets: u64,
    /// Connections in the file.
    pub connections: u64,
    /// Packets of UDP port 443, which are not in the file: probably QUIC.
    pub quic: u64,
    /// Packets could be captured at all.
    pub has_packets: bool,
    /// What is missing and why, in sentences.
    pub remarks: Vec<String>,
}

impl Recording {
    /// Begins: from now on no packet is missed.
    ///
    /// # Errors
    /// What was asked for is not there, or nothing at all can be recorded: no descriptor is left.
    pub fn begin(options: Options) -> io::Result<Self> {
        let (stop, ender) = Stop::by_hand()?;
        let stop = Arc::new(stop);
        let owners = Owners::new(host::addresses().unwrap_or_default());
        let sampler = File::create(options.spool.join(attached::TCP_INFO))
            .and_then(|file| Sampler::begin(options.scope.clone(), owners, file, MOST_ATTACHED));
        let packets = begin_packets(&options, &stop);
        if let Err(error @ (CaptureError::NoInterface { .. } | CaptureError::TooMuchWanted)) =
            packets
        {
            return Err(io::Error::other(error));
        }
        let mut recording = Self {
            packets,
            trace: begin_trace(&options, &stop),
            counters: Counters::read().ok(),
            begun: Clock::Real.now(),
            stop,
            ender,
            sampler: sampler.map(|sampler| Sampling::Waiting(Box::new(sampler))),
            live: Arc::new(AtomicUsize::new(0)),
            options,
        };
        if recording.options.scope != Scope::Command {
            recording.start_sampler();
        }
        Ok(recording)
    }

    /// Watches the command that this process just started.
    pub fn watch(&mut self) {
        self.start_sampler();
    }

    /// How many recorded sockets there were a moment ago.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    fn start_sampler(&mut self) {
        let was = std::mem::replace(&mut self.sampler, Err(io::ErrorKind::Other.into()));
        self.sampler = was.and_then(|sampling| match sampling {
            Sampling::Waiting(sampler) => {
                let (stop, live) = (Arc::clone(&self.stop), Arc::clone(&self.live));
                let run = move || sampler.run(&stop, &live);
                thread::Builder::new().name("tcp_info".into()).spawn(run).map(Sampling::Running)
            }
            running @ Sampling::Running(_) => Ok(running),
        });
    }

    /// Ends, and makes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self, command: Option<&Command>, output: File) -> io::Result<Recorded> {
        let grown = self.counters.and_then(|before| Some(Counters::read().ok()?.since(&before)));
        drop(self.ender);
        let mut recorded = Recorded::default();
        let remarks = &mut recorded.remarks;
        let taken = self.packets.and_then(|thread| thread.join().unwrap_or_else(|_| gone()));
        recorded.has_packets = taken.is_ok();
        remarks.extend(remark_on_packets(&taken, &self.options));
        let traced = self.trace.and_then(|thread| thread.join().unwrap_or_else(|_| Err(mistake())));
        remarks.extend(remark_on_trace(&traced));
        let sampled = match self.sampler {
            Ok(Sampling::Running(thread)) => thread.join().map_err(|_| io::ErrorKind::Other.into()),
            Ok(Sampling::Waiting(sampler)) => Ok(sampler.run(&self.stop, &self.live)),
            Err(error) => Err(error),
        };
        remarks.extend(remark_on_samples(&sampled));
        if let (false, Ok(sampled)) = (recorded.has_packets, &sampled) {
            remarks.extend(sampled.lives.iter().filter_map(told::Life::sentence));
        }
        let owners = sampled.map(|sampled| sampled.owners).unwrap_or_default();

        let scope = &self.options.scope;
        let want = |about| match (scope, about) {
            (Scope::Ends { .. }, _) => true,
            (_, About::Connection(ends)) => owners.want(ends),
            (_, About::Other) => false,
        };
        let spool = &self.options.spool;
        let mut out = BufWriter::with_capacity(BUFFER, output);
        let narrowed = copy_packets(spool, &mut out, want)?;
        let here = host::addresses().unwrap_or_default();
        let ends = narrowed.connections.ends.iter().flatten().map(SocketAddr::ip);
        let peers = ends.filter(|peer| !here.contains(peer)).collect();
        recorded.packets = narrowed.packets;
        recorded.connections = narrowed.connections.count();
        recorded.quic = narrowed.quic;
        recorded.remarks.extend(remark_on_others(&narrowed));

        if let Some(command) = command {
            attach(&mut out, attached::COMMAND, &told(command))?;
        }
        let recording = json!({
            "from": self.begun,
            "to": Clock::Real.now(),
            "scope": told_scope(scope),
            "remarks": recorded.remarks,
        });
        attach(&mut out, attached::RECORDING, &recording)?;
        attach_programs(&mut out, owners.told(narrowed.connections.ends.iter()))?;
        attach(&mut out, attached::HOST, &host::snapshot(&peers))?;
        if let Some(grown) = grown {
            attach(&mut out, attached::COUNTERS, &serde_json::to_value(grown)?)?;
        }
        attach_file(&mut out, attached::TCP_INFO, spool)?;
        let known = Known {
            scope,
            connections: recorded.has_packets.then_some(&narrowed.connections.ends),
            owners: &owners,
        };
        attach_trace(&mut out, spool, &known)?;
        out.write_all(&narrowed.statistics)?;
        out.flush()?;
        Ok(recorded)
    }
}

fn begin_packets(
    options: &Options,
    stop: &Arc<Stop>,
) -> Result<JoinHandle<Result<Taken, CaptureError>>, CaptureError> {
    let (interface, output) = (options.interface.clone(), options.spool.join(PACKETS));
    let asked = capture::Options {
        snap_length: options.snap_length,
        only: Only::Recording(options.scope.wanted()),
        max_bytes: Some(options.max_bytes),
    };
    let stop = Arc::clone(stop);
    begin(
        "packets",
        move |ready| capture::run(&interface, &output, &asked, &stop, ready),
        |source| CaptureError::Call { what: "start a thread", source },
    )
}

fn begin_trace(
    options: &Options,
    stop: &Arc<Stop>,
) -> Result<JoinHandle<Result<Traced, TraceError>>, TraceError> {
    let asked = trace::Options {
        ports: match &options.scope {
            Scope::Command | Scope::Process(_) => Vec::new(),
            Scope::Ends { ports, .. } => ports.clone(),
        },
        room_kib: TRACE_ROOM_KIB,
        most: Some(MOST_TRACED),
        // An instance of the tracing system would be a change of the host.
        method: trace::Method::Perf,
        ..trace::Options::default()
    };
    let (stop, output) = (Arc::clone(stop), options.spool.join(attached::TRACE));
    begin(
        "trace",
        move |ready| trace::run(&output, &asked, &stop, ready),
        |source| TraceError::Call { what: "start a thread".to_owned(), source },
    )
}

/// Starts a thread and waits until it is ready, or has ended: then its error.
fn begin<T: Send + 'static, E: Send + 'static>(
    name: &str,
    work: impl FnOnce(Box<dyn FnOnce()>) -> Result<T, E> + Send + 'static,
    refused: impl FnOnce(io::Error) -> E,
) -> Result<JoinHandle<Result<T, E>>, E> {
    let (tell, told) = mpsc::channel::<()>();
    let run = move || {
        work(Box::new(move || {
            // Nobody may be waiting any more.
            let _ = tell.send(());
        }))
    };
    let thread = match thread::Builder::new().name(name.to_owned()).spawn(run) {
        Ok(thread) => thread,
        Err(error) => return Err(refused(error)),
    };
    if told.recv().is_ok() {
        return Ok(thread);
    }
    // Dropped without a word: the thread ended before it was ready, and says why.
    match thread.join() {
        Ok(Err(error)) => Err(error),
        _ => Err(refused(io::ErrorKind::Other.into())),
    }
}

fn gone<T>() -> Result<T, CaptureError> {
    Err(CaptureError::Call { what: "capture", source: io::ErrorKind::Other.into() })
}

fn mistake() -> TraceError {
    TraceError::Call { what: "trace".to_owned(), source: io::ErrorKind::Other.into() }
}

/// The packets of the recorded connections; without a spool a file that holds none.
fn copy_packets(
    spool: &Path,
    out: &mut BufWriter<File>,
    want: impl Fn(About) -> bool,
) -> io::Result<Narrowed> {
    match File::open(spool.join(PACKETS)) {
        Ok(file) if file.metadata()?.len() > 0 => {
            narrow(BufReader::with_capacity(BUFFER, file), out, want)
        }
        _ => {
            let none =
                Interface { name: "any".into(), link_type: LINKTYPE_LINUX_SLL2, snap_length: 0 };
            Writer::begin(out, &none, concat!("tcpwhy ", env!("CARGO_PKG_VERSION")))?.flush()?;
            Ok(Narrowed::default())
        }
    }
}

fn attach(out: &mut BufWriter<File>, name: &str, content: &Value) -> io::Result<()> {
    pcapng::attach(out, name, content.to_string().as_bytes())
}

fn attach_programs(out: &mut BufWriter<File>, programs: Vec<Value>) -> io::Result<()> {
    if programs.is_empty() {
        Ok(())
    } else {
        attach(out, attached::PROGRAMS, &Value::from(programs))
    }
}

fn attach_file(out: &mut BufWriter<File>, name: &str, spool: &Path) -> io::Result<()> {
    match fs::read(spool.join(name)) {
        Ok(content) if !content.is_empty() => pcapng::attach(out, name, &content),
        _ => Ok(()),
    }
}

fn attach_trace(out: &mut BufWriter<File>, spool: &Path, known: &Known<'_>) -> io::Result<()> {
    let Ok(text) = fs::read_to_string(spool.join(attached::TRACE)) else { return Ok(()) };
    let records = known.records_in(&text);
    if records.is_empty() {
        Ok(())
    } else {
        pcapng::attach(out, attached::TRACE, records.as_bytes())
    }
}

fn told(command: &Command) -> Value {
    let Command { program, start, end, status, signal } = command;
    json!({
        "program": program,
        "start": start,
        "end": end,
        "status": status,
        "signal": signal,
    })
}

fn told_scope(scope: &Scope) -> Value {
    match scope {
        Scope::Command => json!({"command": true}),
        Scope::Process(process) => json!({"process": process}),
        Scope::Ends { ports, hosts } => json!({"ports": ports, "hosts": hosts}),
    }
}

fn remark_on_packets(taken: &Result<Taken, CaptureError>, options: &Options) -> Option<String> {
    match taken {
        Ok(taken) if taken.full => Some(format!(
            "the capture ended when it had {} bytes, as much as was asked for; what came later is \
             missing (--max-size)",
            options.max_bytes
        )),
        Ok(_) => None,
        Err(error) => Some(format!("packets: {error}")),
    }
}

fn remark_on_trace(traced: &Result<Traced, TraceError>) -> Option<String> {
    match traced {
        Ok(traced) if traced.full => Some(format!(
            "the kernel's tracepoints were switched off after {} records, as many as one recording holds",
            traced.records
        )),
        Ok(traced) if traced.lost > 0 => {
            Some(format!("{} records of the kernel's tracepoints were lost", traced.lost))
        }
        Ok(_) => None,
        Err(error) => Some(format!("no tracepoints (tcp_probe): {error}")),
    }
}

fn remark_on_samples(sampled: &io::Result<Sampled>) -> Option<String> {
    match sampled {
        Ok(Sampled { failure: Some(error), .. }) => {
            Some(format!("samples of TCP_INFO ended early: {error}"))
        }
        Ok(Sampled { full: true, lines, .. }) => {
            Some(format!("samples of TCP_INFO ended after {lines}, as many as one recording holds"))
        }
        Ok(_) => None,
        Err(error) => {
            Some(format!("no samples of TCP_INFO, and no program's connections known: {error}"))
        }
    }
}

fn remark_on_others(narrowed: &Narrowed) -> Option<String> {
    (narrowed.left_out > 0).then(|| {
        format!(
            "{} packets of {} connections of other processes were left out",
            narrowed.left_out,
            narrowed.others.count()
        )
    })
}

/// The spool of packets: what a killed recording leaves.
pub const PACKETS: &str = "packets.pcapng";
/// Ours: samples and records are each at most a tenth of what a reader holds of all.
const MOST_ATTACHED: u64 = 6 << 20;
/// Ours: two seconds of a connection at 1 Gbit/s. A record costs 4 us of a processor: 50,000 of them
/// took 2 % of one over ten seconds (`bench/record-cost`).
const MOST_TRACED: u64 = 20_000;
/// Ours: at 100,000 events a second and a look each 10 ms a tenth full.
const TRACE_ROOM_KIB: u32 = 1024;
/// Ours: copied in pieces of this size.
const BUFFER: usize = 256 << 10;
/// LINKTYPE registry of the tcpdump group.
const LINKTYPE_LINUX_SLL2: u16 = 276;
/// Ours: how long the sockets of a command that has ended get to close.
pub const TAIL_NS: u64 = NS_PER_S;
