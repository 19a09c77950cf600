//! A run of a plan: two hosts, a path, conversations; until all is done or time is over.
//!
//! Events are processed in order of time, and where times are equal in order of their planning,
//! programs last ([`events`]), so that a run is the same everywhere. Hosts compute in no time: an
//! application that is woken acts at the same instant, after the kernel has done its part.

mod app;
mod build;
mod capture;
mod digest;
mod end;
mod events;
mod exit;
mod gather;
mod kept;
mod notes;
mod program;
#[cfg(test)]
mod queues;
mod recorded;
#[cfg(test)]
mod tests;
mod trace;
mod transfer;

pub use build::Kernels;
pub use notes::{Note, Upon};
pub use recorded::Recorded;
pub use trace::{Keep, Limit, LimitSince, Sample, Seen, Tap, Trace, WindowSince};
pub use transfer::{Carried, Transfer};

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::cc::Congestion;
use crate::path::{Device, Way};
use crate::scenario::plan::Plan;
use crate::segment::Segment;
use crate::socket::{Config, Info, Metrics, Socket, State};
use app::Pause;
use end::End;
use events::{Event, Events};
use exit::Packet;
use program::Program;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Side {
    /// Connects.
    Client,
    /// Accepts.
    Server,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// `client` or `server`, as scenarios and reports say.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// 0 for the client, 1 for the server: as in lists of both.
    pub const fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// When the last application was done, or the limit.
    pub end_ns: u64,
    /// Every application came to its end.
    pub done: bool,
    /// What the others waited for.
    pub waiting: Vec<String>,
    /// Events that were processed, or packets delivered and calls made if those were more: what
    /// [`World::at_most`] counts.
    pub events: u64,
    /// Which segments with data of the client and the server were lost as [`Recorded`] has it, counted from 1.
    pub lost: [Vec<u64>; 2],
}

/// A run under way.
pub struct World {
    now: u64,
    limit: u64,
    tail: u64,
    configs: [Config; 2],
    /// What each host remembers of the other.
    kept: [Option<Metrics>; 2],
    ways: [Way<Packet>; 2],
    /// When the next frame of other traffic comes to a link.
    cross_due: [Option<u64>; 2],
    /// The hosts' ways out, where something may wait there.
    devices: [Option<Device<Packet>>; 2],
    device_due: [u64; 2],
    /// What left a device is being told to its sockets.
    departing: bool,
    flows: Vec<FlowState>,
    connections: Vec<Connection>,
    events: Events,
    plan: Plan,
    out: Vec<Segment>,
    trace: Trace,
    processed: u64,
    /// Packets that came to the far end of a way: an instant may have many of them.
    delivered: u64,
    /// Calls of applications.
    calls: u64,
    most_events: u64,
    last_done: u64,
    /// What a capture lost of the client's and the server's stream.
    losses: [recorded::Losses; 2],
}

struct FlowState {
    opened: u32,
    ended: [u32; 2],
    /// What the client and the server do.
    programs: [Arc<Program>; 2],
}

struct Connection {
    flow: usize,
    ends: [Option<End>; 2],
    /// What each side's driver holds until it has waited long enough for more.
    gathered: [Option<Segment>; 2],
}

impl World {
    /// Runs to the end.
    pub fn run(mut self) -> (Outcome, Trace) {
        let end = loop {
            let Some((at, event)) = self.events.next() else { break self.last_done };
            if at > self.limit
                || self.spent() >= self.most_events
                || (self.is_done() && at > self.last_done + self.tail)
            {
                break if self.is_done() { self.last_done } else { self.limit };
            }
            self.now = at;
            self.processed += 1;
            self.handle(event);
        };
        let done = self.is_done();
        let waiting = if done { Vec::new() } else { self.who_waits() };
        self.trace.links = self.ways.each_mut().map(|way| way.work.take().unwrap_or_default());
        let events = self.spent();
        let lost = self.losses.map(|losses| losses.numbers);
        (Outcome { end_ns: end, done, waiting, events, lost }, self.trace)
    }

    /// What the run has taken so far.
    fn spent(&self) -> u64 {
        self.processed.max(self.delivered).max(self.calls / CALLS_AN_EVENT)
    }

    fn is_done(&self) -> bool {
        self.flows
            .iter()
            .zip(&self.plan.flows)
            .all(|(state, flow)| state.ended.iter().all(|ended| *ended >= flow.connections))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Open(flow) => self.open(flow as usize),
            Event::Way(from) => self.on_way(from),
            Event::Timer(connection, side) => self.on_timer_event(connection, side),
            Event::App(connection, side) => {
                let now = self.now;
                if self.end(connection, side).is_some_and(|end| end.pause == now) {
                    self.run_app(connection, side);
                }
            }
            Event::Gathered(connection, to) => self.hand_up_gathered(connection, to),
            Event::Device(side) => self.on_device(side),
            Event::Cross(from) => self.on_cross(from),
            Event::TooLong(connection, side, mtu, seq) => {
                self.with_socket(connection, side, |socket, now, out| {
                    socket.on_mtu(now, mtu, seq, out);
                });
            }
            Event::Forget(side) => self.kept[side.index()] = None,
            Event::Change(index) => {
                let change = self.plan.path.changes[index as usize].clone();
                if let Some(down) = change.down {
                    let now = self.now;
                    self.ways[Side::Server.index()].change(down, now);
                }
                if let Some(up) = change.up {
                    let now = self.now;
                    self.ways[Side::Client.index()].change(up, now);
                }
                // A wait may have become shorter.
                for from in [Side::Server, Side::Client] {
                    self.plan_way(from);
                    self.plan_cross(from);
                }
            }
        }
    }

    fn end(&mut self, connection: u32, side: Side) -> Option<&mut End> {
        self.connections.get_mut(connection as usize)?.ends[side.index()].as_mut()
    }

    /// A client opens the next connection of its flow.
    fn open(&mut self, flow: usize) {
        self.flows[flow].opened += 1;
        let connection = self.connections.len() as u32;
        let port = self.plan.flows[flow].port;
        self.trace.open(self.now, port);
        let config = self.config_for(flow, Side::Client, connection);
        let mut out = std::mem::take(&mut self.out);
        let socket = Socket::connect(config, self.now, &mut out);
        let ends =
            [socket.ok().map(|socket| End::new(socket, self.program(flow, Side::Client))), None];
        self.connections.push(Connection { flow, ends, gathered: [None, None] });
        self.send_all(connection, Side::Client, &mut out);
        self.out = out;
        // With Fast Open the application may go on at once.
        self.with_socket(connection, Side::Client, |_, _, _| {});
    }

    fn program(&self, flow: usize, side: Side) -> Arc<Program> {
        Arc::clone(&self.flows[flow].programs[side.index()])
    }

    fn config_for(&self, flow: usize, side: Side, connection: u32) -> Config {
        let mut config = self.configs[side.index()].clone();
        build::apply_socket(&mut config, &self.plan.flows[flow], side);
        if self.is_lesson(flow) {
            config.teach();
        }
        config.isn = recorded::isn(side, connection);
        config.metrics = self.kept[side.index()];
        config
    }

    /// Whether one end of a flow follows a textbook: both then leave out what books leave out.
    pub(super) fn is_lesson(&self, flow: usize) -> bool {
        [Side::Client, Side::Server].into_iter().any(|side| {
            let mut config = self.configs[side.index()].clone();
            build::apply_socket(&mut config, &self.plan.flows[flow], side);
            Congestion::is_textbook(config.controller())
        })
    }

    /// Something happens on a way.
    fn on_way(&mut self, from: Side) {
        while self.ways[from.index()].next().is_some_and(|at| at <= self.now)
            && self.delivered < self.most_events
        {
            if let Some(packet) = self.ways[from.index()].advance(self.now) {
                self.delivered += 1;
                self.deliver(packet, from.peer());
            }
        }
        self.plan_way(from);
    }

    fn plan_way(&mut self, from: Side) {
        if let Some(at) = self.ways[from.index()].next() {
            self.events.plan_way(from, at);
        }
    }

    fn accept(&mut self, connection: u32, syn: &Segment) {
        let flow = self.connections[connection as usize].flow;
        let config = self.config_for(flow, Side::Server, connection);
        let mut out = std::mem::take(&mut self.out);
        if let Ok(socket) = Socket::accept(config, self.now, syn, &mut out) {
            let end = End::new(socket, self.program(flow, Side::Server));
            self.connections[connection as usize].ends[Side::Server.index()] = Some(end);
        }
        self.send_all(connection, Side::Server, &mut out);
        self.out = out;
        self.with_socket(connection, Side::Server, |_, _, _| {});
    }

    /// Does something to a socket, sends what it says, and lets its application go on.
    fn with_socket(
        &mut self,
        connection: u32,
        side: Side,
        act: impl FnOnce(&mut Socket, u64, &mut Vec<Segment>),
    ) {
        let mut out = std::mem::take(&mut self.out);
        let (now, passes) = (self.now, self.passes(side));
        self.share_metrics(connection, side);
        let Some(end) = self.end(connection, side) else { return };
        end.socket.set_passes(passes);
        act(&mut end.socket, now, &mut out);
        let events = end.socket.take_events();
        let woken = end.app.is_woken_by(events);
        self.trace_window(connection, side);
        self.share_metrics(connection, side);
        self.send_all(connection, side, &mut out);
        self.out = out;
        if woken && !self.is_put_off(connection, side) {
            self.run_app(connection, side);
        }
        self.plan_timer(connection, side);
    }

    /// An application goes on until it has to wait.
    fn run_app(&mut self, connection: u32, side: Side) {
        let mut out = std::mem::take(&mut self.out);
        let (now, passes) = (self.now, self.passes(side));
        let Some(end) = self.end(connection, side) else { return };
        end.socket.set_passes(passes);
        let was_done = end.app.is_done();
        end.pause = u64::MAX;
        let pause = end.app.run(&mut end.socket, now, &mut out);
        if let Pause::Until(at) = pause {
            end.pause = at;
        }
        let (is_done, calls) = (end.app.is_done(), end.app.take_calls());
        self.calls += calls;
        self.share_metrics(connection, side);
        self.send_all(connection, side, &mut out);
        self.out = out;
        if let Pause::Until(at) = pause {
            self.events.plan(at, Event::App(connection, side));
        }
        if is_done && !was_done {
            self.on_app_done(connection, side);
        }
        self.plan_timer(connection, side);
    }

    fn on_app_done(&mut self, connection: u32, side: Side) {
        let flow = self.connections[connection as usize].flow;
        let state = &mut self.flows[flow];
        state.ended[side.index()] += 1;
        self.last_done = self.now;
        self.trace.done(self.now, connection);
        if side == Side::Client && state.opened < self.plan.flows[flow].connections {
            let at = self.now + self.plan.flows[flow].gap_ns;
            self.events.plan(at, Event::Open(flow as u32));
        }
    }

    /// Notes what a sender waits for, if that has changed.
    fn trace_limit(&mut self, connection: u32, side: Side) {
        if !self.trace.keep.limits && !self.trace.keep.transfers {
            return;
        }
        let at_ns = self.now;
        let Some(end) = self.end(connection, side) else { return };
        let limit = end.limit();
        if end.limit.replace(limit) != Some(limit) {
            self.trace.limit(at_ns, connection, side, limit);
        }
    }

    /// Notes a sender's congestion window, if that has changed.
    fn trace_window(&mut self, connection: u32, side: Side) {
        if !self.trace.keep.windows {
            return;
        }
        let at_ns = self.now;
        let Some(end) = self.end(connection, side) else { return };
        let Info { cwnd, ssthresh, ca_state, retransmits: timeouts, .. } = end.socket.info();
        let window = (cwnd, ssthresh, ca_state);
        if end.window.replace(window) != Some(window) {
            let sends = self.trace.handed_down.len();
            let since =
                WindowSince { at_ns, connection, side, cwnd, ssthresh, ca_state, timeouts, sends };
            self.trace.windows.push(since);
        }
    }

    fn plan_timer(&mut self, connection: u32, side: Side) {
        self.trace_limit(connection, side);
        self.note(connection, side, Upon::Turn);
        self.trace_window(connection, side);
        let now = self.now;
        let Some(end) = self.end(connection, side) else { return };
        let due = end.socket.next_timer().map_or(u64::MAX, |at| at.max(now));
        if due < end.due {
            end.due = due;
            self.events.plan(due, Event::Timer(connection, side));
        }
    }

    /// A timer may be due, or was put off since its event was planned.
    fn on_timer_event(&mut self, connection: u32, side: Side) {
        let now = self.now;
        let Some(end) = self.end(connection, side).filter(|end| end.due == now) else { return };
        end.due = u64::MAX;
        if end.socket.next_timer().is_some_and(|at| at <= now) {
            self.note_timer(connection, side);
            self.with_socket(connection, side, Socket::on_timer);
        } else {
            self.plan_timer(connection, side);
        }
    }

    fn trace_state(&mut self, connection: u32, side: Side) {
        if !self.trace.keep.states {
            return;
        }
        let now = self.now;
        if let Some(end) = self.end(connection, side) {
            let sample = Sample {
                at_ns: now,
                connection,
                side,
                info: end.socket.info(),
                wait: end.socket.wait(),
            };
            self.trace.samples.push(sample);
        }
    }

    fn who_waits(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for (index, connection) in self.connections.iter().enumerate() {
            for (side, end) in [("client", 0), ("server", 1)] {
                let Some(end) = &connection.ends[end] else { continue };
                if !end.app.is_done() {
                    let state = end.socket.state();
                    let step = end.app.place();
                    waiting.push(format!(
                        "the {side} of connection {index} is in {}, at step {step} of its application",
                        state.name()
                    ));
                }
            }
        }
        if waiting.is_empty() {
            waiting.push("a connection that was not opened in time".to_owned());
        }
        waiting
    }
}

/// Whether a connection is over for good.
pub(crate) const fn is_over(state: State) -> bool {
    matches!(state, State::Closed | State::TimeWait)
}

/// Calls of applications that take as long as an event. Ours: writing a byte takes 32 ns, an event some 130.
const CALLS_AN_EVENT: u64 = 4;
