//! Does the model do what a script says?
//!
//! Events are taken in order. Before each, time passes up to it: timers of the host run, and what
//! they send is kept, as packetdrill's tap keeps it, until a `>` asks for it. A system call that
//! blocks is tried again after everything that happens, as if its thread were woken.
//!
//! The order of checks and the meaning of times are packetdrill's (gtests/net/packetdrill/run.c):
//! `+t` counts from when the event before was through, between two packets that come in from when
//! the first was due; the time of what is sent may be off by the tolerance. Packets that nobody
//! asks for do no harm.

mod addresses;
mod call;
mod calls;
mod compare;
mod cookies;
mod end;
mod epoll;
mod host;
mod info;
mod names;
mod options;
mod poll;
mod port;
mod ports;
mod sent;
mod settings;
mod stream;
mod zero_copy;

use std::collections::BTreeMap;

use tcpwhy_model::repro::{Tcp, TcpOption};

use crate::error::{Place, ScriptError};
use crate::python::{Fault, Python};
use crate::script::{Action, Body, Call, Command, Event, Packet, Script, When};
use crate::shell::{self, Counters, Setting};
use call::{Operation, Outcome};
use calls::Attempt;
use compare::{Expected, Mapping, Misfit};
use host::Host;
use sent::Sent;
use settings::Settings;

pub use settings::Setup;

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model does what it says.
    Pass,
    /// It does something else.
    Fail {
        /// The event.
        place: Place,
        /// What the script says.
        expected: String,
        /// What the model does.
        got: String,
    },
    /// The script uses what the model does not have.
    Unsupported {
        /// Where.
        place: Place,
        /// What.
        construct: String,
    },
    /// It is no script.
    Broken(ScriptError),
}

/// Runs the script that this text is.
pub fn run(text: &str, setup: &Setup) -> Verdict {
    let script = match Script::parse(text, &setup.definitions(text)) {
        Ok(script) => script,
        Err(ScriptError::Unsupported { place, construct }) => {
            return Verdict::Unsupported { place, construct };
        }
        Err(broken) => return Verdict::Broken(broken),
    };
    match Run::new(&script, setup).and_then(|mut run| run.all(&script)) {
        Ok(()) => Verdict::Pass,
        Err(Stop::Fail { place, expected, got }) => Verdict::Fail { place, expected, got },
        Err(Stop::Unsupported { place, construct }) => Verdict::Unsupported { place, construct },
        Err(Stop::Broken(broken)) => Verdict::Broken(broken),
    }
}

/// Why a script was not run to its end.
enum Stop {
    Fail { place: Place, expected: String, got: String },
    Unsupported { place: Place, construct: String },
    Broken(ScriptError),
}

impl From<ScriptError> for Stop {
    fn from(error: ScriptError) -> Stop {
        match error {
            ScriptError::Unsupported { place, construct } => Stop::Unsupported { place, construct },
            ScriptError::Syntax { .. } => Stop::Broken(error),
        }
    }
}

/// A call that has not returned yet.
struct Pending<'a> {
    place: Place,
    call: &'a Call,
    operation: Operation,
    until_ns: u64,
    /// How far off that its return may be.
    tolerance_ns: u64,
}

struct Run<'a> {
    settings: Settings,
    host: Host,
    mapping: Mapping,
    python: Python,
    pending: Option<Pending<'a>>,
    /// When the packet that came in last was due, if that was the last event.
    last_injected_ns: Option<u64>,
    /// When the event before was due.
    last_event_ns: Option<u64>,
    /// How far off the time of this one may be.
    tolerance_ns: u64,
    /// How often something was due without time passing.
    standing: u32,
    /// What the host's counters were when they were set back.
    counted: BTreeMap<&'static str, u64>,
}

impl<'a> Run<'a> {
    fn new(script: &'a Script, setup: &Setup) -> Result<Run<'a>, Stop> {
        let settings = Settings::of(script, setup)?;
        let host = Host::new(&settings);
        Ok(Run {
            settings,
            host,
            mapping: Mapping::default(),
            python: Python::default(),
            pending: None,
            last_injected_ns: None,
            last_event_ns: None,
            tolerance_ns: 0,
            standing: 0,
            counted: BTreeMap::new(),
        })
    }

    fn all(&mut self, script: &'a Script) -> Result<(), Stop> {
        for event in &script.events {
            self.event(event)?;
            self.pass_time(self.host.now_ns + EVENT_NS)?;
        }
        self.finish_pending()
    }

    fn event(&mut self, event: &'a Event) -> Result<(), Stop> {
        let is_injection = matches!(event.action, Action::Inject(_));
        let base = self.last_injected_ns.filter(|_| is_injection).unwrap_or(self.host.now_ns);
        let (start, end) = match event.when {
            When::At(at) => (at, at),
            When::After(after) => (base + after, base + after),
            When::Between(from, to) => (from, to),
            When::AfterBetween(from, to) => (base + from, base + to),
            When::Any => (base, u64::MAX),
        };
        if start > LONGEST_NS {
            let construct = "a script that lasts for years".into();
            return Err(Stop::Unsupported { place: event.place, construct });
        }
        self.last_injected_ns = is_injection.then_some(start);
        let since = start.saturating_sub(self.last_event_ns.replace(start).unwrap_or(start));
        self.tolerance_ns = self.settings.tolerance_ns(since);
        match &event.action {
            Action::Expect(packet) => return self.expect(event, packet, start, end),
            Action::Call(_) => self.finish_pending()?,
            _ => {}
        }
        self.pass_time(start)?;
        if self.host.now_ns > end.saturating_add(self.tolerance_ns) {
            let got = format!("the events before it last until {}", said(self.host.now_ns));
            return Err(fail(event.place, &format!("an event at {}", said(end)), &got));
        }
        match &event.action {
            Action::Inject(packet) => self.inject(event.place, packet)?,
            Action::Call(call) => self.call(event, call, base)?,
            Action::Shell(command) => self.shell(command)?,
            Action::Code(command) => self.code(command)?,
            Action::Expect(_) => {}
        }
        self.try_pending()
    }

    /// Lets time pass up to this instant, with all that is due in it.
    fn pass_time(&mut self, to: u64) -> Result<(), Stop> {
        while let Some(at) = self.host.next_due().filter(|at| *at <= to) {
            self.step(at)?;
            self.try_pending()?;
        }
        self.host.now_ns = self.host.now_ns.max(to);
        Ok(())
    }

    /// Lets the instant come at which something is due.
    fn step(&mut self, at: u64) -> Result<(), Stop> {
        self.standing = if at > self.host.now_ns { 0 } else { self.standing + 1 };
        if self.standing > MOST_AT_ONCE {
            let place = Place { line: 1, column: 1 };
            return Err(fail(place, "time to pass", "a timer that is due for ever"));
        }
        self.host.advance(at);
        Ok(())
    }

    fn inject(&mut self, place: Place, packet: &Packet) -> Result<(), Stop> {
        let tcp = match &packet.body {
            Body::Tcp(tcp) => tcp,
            Body::Icmp(icmp) => {
                let seq = self.mapping.live_seq(icmp.about.map_or(0, |(seq, _)| seq));
                return self
                    .host
                    .receive_error(icmp, seq)
                    .map_err(|construct| Stop::Unsupported { place, construct });
            }
        };
        if packet.ports.is_some() {
            return Err(Stop::Unsupported {
                place,
                construct: "a packet with ports of its own".into(),
            });
        }
        if tcp.flags.syn && !tcp.flags.ack && self.host.is_connecting() {
            let construct = "a SYN that crosses ours (simultaneous opening)".into();
            return Err(Stop::Unsupported { place, construct });
        }
        if tcp.flags.syn && (!tcp.flags.ack || self.host.is_connecting()) {
            self.mapping.on_remote_syn(tcp);
        }
        let segment =
            self.mapping.live(tcp, packet.ecn, &mut self.host.cookies).map_err(|misfit| {
                match misfit {
                    Misfit::Unsupported(construct) => Stop::Unsupported { place, construct },
                    Misfit::Script(what) => Stop::Broken(ScriptError::syntax(place, &what, "none")),
                }
            })?;
        self.host.receive(segment, self.settings.injected_piece);
        Ok(())
    }

    fn expect(&mut self, event: &Event, packet: &Packet, start: u64, end: u64) -> Result<(), Stop> {
        let place = event.place;
        let tcp = match &packet.body {
            Body::Tcp(tcp) => tcp,
            Body::Icmp(_) => {
                return Err(Stop::Unsupported { place, construct: "ICMP that goes out".into() });
            }
        };
        let time = said_range(event.when, start, end);
        let expected = || {
            format!("{time}{}{tcp}", packet.ecn.map(|ecn| format!("[{ecn}] ")).unwrap_or_default())
        };
        let mut sent = match self.next_sent(end) {
            Ok(sent) => sent,
            Err(Waiting::Stopped(stop)) => return Err(stop),
            Err(Waiting::Vain) => return Err(fail(place, &expected(), &self.said_later())),
        };
        if sent.segment.flags.has(tcpwhy_model::segment::Flags::SYN) && tcp.flags.syn {
            self.mapping.on_local_syn(sent.owner, tcp, &sent.segment);
        }
        while sent.segment.len < tcp.length && !self.settings.strict {
            let Ok(more) = self.next_sent(end) else { break };
            let is_last = sent.segment.len + more.segment.len >= tcp.length;
            if !compare::continues(&sent.last, &more.segment, is_last) {
                self.host.untake(more);
                break;
            }
            sent.join(&more);
        }
        self.note_stamps(tcp, &sent);
        let actual = self.mapping.script(&sent.segment, &self.host.cookies);
        let got = |why: &str| {
            let ecn = if packet.ecn.is_some() {
                format!("[{:?}] ", sent.segment.ecn).to_lowercase()
            } else {
                String::new()
            };
            format!("{}{ecn}{actual} ({why} differs)", said(sent.at_ns))
        };
        let check = Expected {
            packet,
            tcp,
            stamp_tick_us: self.settings.stamp_tick_us,
            tolerance_us: self.settings.tolerance_us,
        };
        check
            .meets(&actual, sent.segment.ecn)
            .map_err(|why| fail(place, &expected(), &got(why)))?;
        let tolerance = self.tolerance_ns;
        let in_time = start.saturating_sub(tolerance)..=end.saturating_add(tolerance);
        if !matches!(event.when, When::Any) && !in_time.contains(&sent.at_ns) {
            return Err(fail(place, &expected(), &got("time")));
        }
        Ok(())
    }

    /// What a timestamp that went out is called in the script.
    fn note_stamps(&mut self, tcp: &Tcp, sent: &Sent) {
        let scripted = tcp.options.iter().flatten().find_map(|option| match option {
            TcpOption::Timestamps(value, _) => Some(*value),
            _ => None,
        });
        if let (Some(script), Some(live)) = (scripted, sent.segment.options.stamps) {
            self.mapping.on_stamp(script, live.value);
        }
    }

    /// The next segment on the tap, waiting for it as long as the script may.
    fn next_sent(&mut self, end: u64) -> Result<Sent, Waiting> {
        let last =
            end.saturating_add(self.tolerance_ns).min(self.host.now_ns.saturating_add(PATIENCE_NS));
        loop {
            if let Some(sent) = self.host.take_sent() {
                return Ok(sent);
            }
            match self.host.next_due() {
                Some(at) if at <= last => {
                    self.step(at).map_err(Waiting::Stopped)?;
                    self.try_pending().map_err(Waiting::Stopped)?;
                }
                _ => return Err(Waiting::Vain),
            }
        }
    }

    /// That no packet came in time, and which would come later if nothing else happened.
    fn said_later(&mut self) -> String {
        let next = self.next_sent(self.host.now_ns.saturating_add(PATIENCE_NS));
        match next {
            Ok(later) => {
                format!(
                    "no packet; the next is at {}{}",
                    said(later.at_ns),
                    self.mapping.script(&later.segment, &self.host.cookies)
                )
            }
            Err(_) => "no packet".into(),
        }
    }

    fn call(&mut self, event: &Event, call: &'a Call, base: u64) -> Result<(), Stop> {
        let place = event.place;
        let unsupported = |construct| Stop::Unsupported { place, construct };
        let operation = Operation::of(call, &mut self.host).map_err(unsupported)?;
        let until_ns = match (call.until_ns, event.when) {
            (None, _) => self.host.now_ns,
            (Some(until), When::At(_)) => until,
            (Some(until), _) => base + until,
        };
        // What may be off depends on how long the call lasts (`system_call_thread` of
        // `run_system_call.c`).
        let tolerance_ns = self.settings.tolerance_ns(until_ns.saturating_sub(self.host.now_ns));
        self.pending = Some(Pending { place, call, operation, until_ns, tolerance_ns });
        self.try_pending()?;
        match &self.pending {
            Some(pending) if call.until_ns.is_none() => {
                let got = "it blocks";
                Err(fail(pending.place, &call::said(call), got))
            }
            _ => Ok(()),
        }
    }

    /// Tries the pending call again; holds what it returns against the script.
    fn try_pending(&mut self) -> Result<(), Stop> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        match pending.operation.attempt(&mut self.host) {
            Attempt::Blocks => self.pending = Some(pending),
            Attempt::Done(outcome) => self.judge(&pending, &outcome)?,
        }
        Ok(())
    }

    fn judge(&self, pending: &Pending<'_>, outcome: &Outcome) -> Result<(), Stop> {
        let expected = call::said(pending.call);
        if let Some(got) = outcome.against(pending.call) {
            return Err(fail(pending.place, &expected, &got));
        }
        let now = self.host.now_ns;
        if pending.until_ns.abs_diff(now) > pending.tolerance_ns && pending.call.until_ns.is_some()
        {
            let expected = format!("{expected} to return at {}", said(pending.until_ns));
            return Err(fail(pending.place, &expected, &format!("it returned at {}", said(now))));
        }
        Ok(())
    }

    /// Waits for the pending call, as the next one and the script's end do.
    fn finish_pending(&mut self) -> Result<(), Stop> {
        while let Some(pending) = &self.pending {
            let last = pending.until_ns.saturating_add(pending.tolerance_ns);
            match self.host.next_due() {
                Some(at) if at <= last => {
                    self.step(at)?;
                    self.try_pending()?;
                }
                _ => {
                    let expected = format!(
                        "{} to return at {}",
                        call::said(pending.call),
                        said(pending.until_ns)
                    );
                    return Err(fail(pending.place, &expected, "it blocks"));
                }
            }
        }
        Ok(())
    }

    fn shell(&mut self, command: &Command) -> Result<(), Stop> {
        self.settings.apply(command)?;
        self.host.configure(&self.settings);
        for setting in shell::settings(command)? {
            if let Setting::Counters(counters) = setting {
                self.look_at(&counters, command)?;
            }
        }
        Ok(())
    }

    /// Holds the host's counters against what a script wants of them.
    fn look_at(&mut self, counters: &Counters, command: &Command) -> Result<(), Stop> {
        let place = command.place;
        let now = self.host.counters();
        if let Some((name, wanted)) = &counters.wanted {
            let Some(count) = now.get(name.as_str()) else {
                return Err(Stop::Unsupported { place, construct: format!("the counter {name}") });
            };
            let count = count - self.counted.get(name.as_str()).copied().unwrap_or(0);
            if count == 0 || wanted.is_some_and(|wanted| wanted != count) {
                let wanted = wanted.map_or("some".into(), |wanted| wanted.to_string());
                return Err(fail(place, &format!("{name} {wanted}"), &count.to_string()));
            }
        }
        if counters.resets {
            self.counted = now;
        }
        Ok(())
    }

    fn code(&mut self, command: &Command) -> Result<(), Stop> {
        let place = command.place;
        let known = self
            .host
            .known_to_code()
            .ok_or_else(|| fail(place, "a connection that code can judge", "none"))?;
        let lookup = |name: &str| names::of_tcp_info(name).or_else(|| known.get(name).copied());
        self.python.run(&command.text, &lookup).map_err(|fault| match fault {
            Fault::Unsupported(construct) => Stop::Unsupported { place, construct },
            Fault::Assertion { line, text, said } => {
                let place = Place { line: place.line + line - 1, ..place };
                fail(place, &text, if said.is_empty() { "it does not hold" } else { &said })
            }
        })
    }
}

/// What an event takes, a system call as well as reading a packet: nothing in the model, but scripts
/// were made where it does, and a round trip without any time decides otherwise (`tcp_rack_advance`,
/// `tcp_tso_should_defer`). Ours: the order of such calls; not measured.
const EVENT_NS: u64 = 10_000;

/// More than three years; with the longest times that can be written behind it, far from the end of
/// what a number holds.
const LONGEST_NS: u64 = 100_000_000_000_000_000;

/// Ours: far more than there are timers.
const MOST_AT_ONCE: u32 = 100_000;

/// How long a packet is waited for that may come at any time: longer than any timer (`TCP_RTO_MAX`
/// of include/net/tcp.h).
const PATIENCE_NS: u64 = 120_000_000_000;

/// Why no packet came.
enum Waiting {
    Vain,
    Stopped(Stop),
}

fn fail(place: Place, expected: &str, got: &str) -> Stop {
    Stop::Fail { place, expected: expected.into(), got: got.into() }
}

/// A time as scripts write it, with a blank behind.
fn said(ns: u64) -> String {
    format!("{}.{:06} ", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

fn said_range(when: When, start: u64, end: u64) -> String {
    match when {
        When::Any => "* ".into(),
        _ if start == end => said(start),
        _ => format!("{}~{}", said(start).trim_end(), said(end)),
    }
}
