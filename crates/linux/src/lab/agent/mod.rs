//! The small program that runs beside real TCP: applications and recorders.
//!
//! It reads a plan and does one thing in the network namespace it is started in; backends start
//! as many of it as a run needs. It runs on a live kernel and, linked statically, in a simulated
//! one, where processes take no time. When it is ready it says so on standard output by the line
//! `ready`; it ends on SIGTERM or SIGINT with all records complete. Exit status: 0 done, 1 an error
//! (standard error says which), 2 usage.

mod app;
mod changes;
mod flood;
mod log;
mod looks;
mod socket;
mod steps;

use std::ffi::OsString;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tcpwhy_model::scenario::plan::Plan;

pub use app::{AppError, Role};
pub use log::{Entry, Side, SocketFacts};

pub(super) use flood::NETWORK as FLOOD;

use super::backend::KERNEL_GAP;
use super::complain::complain;
use super::init;
use crate::record::clock::ClockMap;
use crate::record::counters::Counters;
use crate::record::{capture, tcp_info, trace};
use crate::sys::{self, Clock, Stop};

/// Runs the program with these arguments; the first is its name.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let asked = match Asked::try_parse_from(arguments) {
        Ok(asked) => asked,
        Err(error) => {
            let status = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    match asked.carry_out() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            complain(&sentence);
            ExitCode::FAILURE
        }
    }
}

/// Applications and recorders of the lab.
#[derive(Parser)]
#[command(name = "tcpwhy-agent", version = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TCPWHY_LAB_STAMP")))]
struct Asked {
    /// Run under `SCHED_FIFO` with this priority; where that is refused, a warning says so.
    #[arg(long, global = true, value_name = "PRIORITY")]
    fifo: Option<i32>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Plays one end of one flow of a plan.
    App(App),
    /// Writes the packets of an interface to a pcapng file.
    Capture(Capture),
    /// Writes the kernel's TCP tracepoints.
    Trace(Trace),
    /// Writes `TCP_INFO` of all sockets again and again.
    TcpInfo(TcpInfo),
    /// Looks at the states of all sockets, at given times.
    Sockets(looks::Asked),
    /// Changes the host, at the times of a plan.
    Changes(changes::Asked),
    /// Prints the counters of this network namespace, or how much they have grown.
    Counters(CountersOf),
    /// Prints how `CLOCK_MONOTONIC` maps to `CLOCK_REALTIME`.
    Clock,
    /// Carries a run out as the first process of a simulated machine.
    #[command(hide = true)]
    Init {
        /// What the kernel adds of its own, as `console=tty0`.
        #[arg(hide = true)]
        kernel_words: Vec<OsString>,
    },
}

#[derive(Args)]
struct App {
    /// The plan, as JSON.
    #[arg(long)]
    plan: PathBuf,
    /// Which of its flows, from 0.
    #[arg(long, default_value_t = 0)]
    flow: usize,
    /// Which end of it.
    #[arg(long)]
    side: Side,
    /// The server's address.
    #[arg(long)]
    address: IpAddr,
    /// When the first application of the run starts: ns since 1970; absent means at once.
    #[arg(long, value_name = "NS")]
    start: Option<u64>,
    /// Log file; lines are added to it.
    #[arg(long, default_value = crate::lab::folder::APPLICATIONS)]
    log: PathBuf,
}

#[derive(Args)]
struct Capture {
    /// Name of the interface, or `any`.
    #[arg(long)]
    interface: String,
    /// The pcapng file to write.
    #[arg(long)]
    output: PathBuf,
    /// Bytes kept of each packet.
    #[arg(long, default_value_t = 262_144, value_name = "BYTES")]
    snap_length: u32,
    /// Only TCP from or to this port; may be given several times.
    #[arg(long = "port")]
    ports: Vec<u16>,
    /// End when the file has reached this size.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
}

#[derive(Args)]
struct Trace {
    /// The file to write, one JSON object a line.
    #[arg(long, default_value = crate::lab::folder::KERNEL)]
    output: PathBuf,
    /// Only events with this port at either end; may be given several times.
    #[arg(long = "port")]
    ports: Vec<u16>,
    /// An event besides the usual ones, as `tcp_truth` or `qdisc/qdisc_dequeue`; may be given
    /// several times.
    #[arg(long = "event")]
    events: Vec<String>,
    /// How to get events.
    #[arg(long, value_enum, default_value_t = trace::Method::Any)]
    method: trace::Method,
    /// Room in the kernel for each processor.
    #[arg(long, value_name = "KIB", default_value_t = 4096)]
    room: u32,
    /// Time from one look at what was recorded to the next.
    #[arg(long, value_name = "NS", default_value_t = trace::LOOK_NS)]
    look: u64,
}

#[derive(Args)]
struct TcpInfo {
    /// The file to write, one JSON object a line.
    #[arg(long, default_value = crate::lab::folder::TCP_INFO)]
    output: PathBuf,
    /// Time from one look to the next.
    #[arg(long, value_name = "NS", default_value_t = 10_000_000)]
    every: u64,
    /// Only sockets with this port at either end; may be given several times.
    #[arg(long = "port")]
    ports: Vec<u16>,
}

#[derive(Args)]
struct CountersOf {
    /// What this command printed earlier: print only what has grown since.
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
}

impl Asked {
    fn carry_out(self) -> Result<(), String> {
        let stop = Stop::listen().map_err(|e| format!("cannot listen for signals: {e}"))?;
        if let Some(priority) = self.fifo
            && let Err(error) = sys::run_first(priority)
        {
            complain(&format!(
                "warning: SCHED_FIFO is refused ({error}); times may be late by a scheduler's slice"
            ));
        }
        match self.what {
            What::App(app) => app.carry_out(stop),
            What::Capture(capture) => capture.carry_out(&stop),
            What::Trace(trace) => trace.carry_out(&stop),
            What::TcpInfo(tcp_info) => tcp_info.carry_out(&stop),
            What::Sockets(asked) => looks::run(&asked, &stop, ready),
            What::Changes(asked) => changes::run(&asked, &stop, ready),
            What::Counters(counters) => counters.carry_out(),
            What::Clock => {
                let map = ClockMap::of(Clock::Monotonic);
                print_json(&serde_json::json!({
                    "mono_to_real_ns": map.to_real_ns,
                    "error_ns": map.error_ns,
                }))
            }
            What::Init { kernel_words: _ } => init::run(),
        }
    }
}

impl App {
    fn carry_out(self, stop: Stop) -> Result<(), String> {
        let plan = read_plan(&self.plan)?;
        sys::name_process(match self.side {
            Side::Server => c"server",
            Side::Client => c"client",
        });
        let role = Role {
            plan: &plan,
            flow: self.flow,
            side: self.side,
            address: self.address,
            start: self.start,
            log: &self.log,
        };
        app::run(role, stop, ready).map_err(|e| e.to_string())
    }
}

impl Capture {
    fn carry_out(self, stop: &Stop) -> Result<(), String> {
        let all = self.ports.is_empty();
        let options = capture::Options {
            snap_length: self.snap_length,
            only: if all { capture::Only::All } else { capture::Only::Ports(self.ports) },
            max_bytes: self.max_bytes,
        };
        let (interface, output) = (&self.interface, self.output.display());
        let taken = capture::run(interface, &self.output, &options, stop, ready)
            .map_err(|e| format!("cannot capture {interface} to {output}: {e}"))?;
        if taken.dropped > 0 {
            complain(&format!(
                "warning: the kernel dropped {} of {} packets of {interface} for lack of room",
                taken.dropped,
                taken.dropped + taken.packets
            ));
        }
        Ok(())
    }
}

impl Trace {
    fn carry_out(self, stop: &Stop) -> Result<(), String> {
        let options = trace::Options {
            ports: self.ports,
            events: self.events,
            method: self.method,
            room_kib: self.room,
            look_ns: self.look,
            ..trace::Options::default()
        };
        let output = self.output.display();
        let traced = trace::run(&self.output, &options, stop, ready)
            .map_err(|e| format!("cannot trace the kernel to {output}: {e}"))?;
        if traced.lost + traced.odd > 0 {
            complain(&format!(
                "warning: {} {KERNEL_GAP} and {} were odd, of {} (by {}); --room \
                 gives more room, and --method instance loses none for other reasons",
                traced.lost,
                traced.odd,
                traced.records + traced.lost + traced.odd,
                traced.method
            ));
        }
        print_json(&serde_json::json!({
            "records": traced.records,
            "lost": traced.lost,
            "odd": traced.odd,
            "method": traced.method,
        }))
    }
}

impl TcpInfo {
    fn carry_out(self, stop: &Stop) -> Result<(), String> {
        let options = tcp_info::Options { every_ns: self.every, ports: self.ports };
        let output = self.output.display();
        let sampled = tcp_info::run(&self.output, &options, stop, ready)
            .map_err(|e| format!("cannot record TCP_INFO to {output}: {e}"))?;
        if sampled.missed > 0 {
            complain(&format!(
                "warning: {} looks of {} were left out: one takes longer than {} ns",
                sampled.missed,
                sampled.missed + sampled.looks,
                self.every
            ));
        }
        Ok(())
    }
}

impl CountersOf {
    fn carry_out(self) -> Result<(), String> {
        let now = Counters::read().map_err(|e| e.to_string())?;
        let Some(earlier) = self.since else { return print_json(&now) };
        let name = earlier.display();
        let text = std::fs::read_to_string(&earlier)
            .map_err(|e| format!("cannot read the earlier counters {name}: {e}"))?;
        let earlier = serde_json::from_str(&text)
            .map_err(|e| format!("cannot understand the earlier counters {name}: {e}"))?;
        print_json(&now.since(&earlier))
    }
}

fn read_plan(path: &Path) -> Result<Plan, String> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("cannot read the plan {name}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("cannot understand the plan {name}: {e}"))
}

fn print_json(value: &impl serde::Serialize) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, value)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|e| format!("cannot write to standard output: {e}"))
}

/// Tells whoever started us that it may go on.
fn ready() {
    let mut out = std::io::stdout().lock();
    // Nobody may be listening, which is no fault.
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}
