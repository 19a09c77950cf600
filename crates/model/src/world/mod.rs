//! A run of a plan: two hosts, a path, conversations; until all is done or time is over.
//!
//! Events are processed in order of time, and in order of their planning where times are equal, so
//! that a run is the same everywhere. Hosts compute in no time: an application that is woken acts
//! at the same instant, after the kernel has done its part.

mod app;
mod build;
mod capture;
mod end;
mod gather;
mod kept;
mod recorded;
#[cfg(test)]
mod tests;
mod trace;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use build::{BuildError, Kernels};
pub use recorded::Recorded;
pub use trace::{Keep, Limit, LimitSince, Sample, Seen, Tap, Trace};

use crate::path::{OnWire, Way};
use crate::scenario::plan::Plan;
use crate::segment::Segment;
use crate::socket::{Config, Metrics, Socket, State};
use app::Pause;
use end::End;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
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

    pub(crate) const fn index(self) -> usize {
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
    /// Events that were processed.
    pub events: u64,
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
    way_due: [u64; 2],
    flows: Vec<FlowState>,
    connections: Vec<Connection>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    plan: Plan,
    out: Vec<Segment>,
    trace: Trace,
    processed: u64,
    last_done: u64,
    /// What a host's `fq` holds until it is time, and whose it is.
    held: Vec<Option<(u32, Side, Segment)>>,
    /// Bytes of the client's and the server's stream that a capture lost.
    lost: [Vec<u64>; 2],
}

/// A segment on the wire, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Packet {
    connection: u32,
    segment: Segment,
    wire: u32,
}

impl OnWire for Packet {
    fn wire_bytes(&self) -> u32 {
        self.wire
    }

    fn has_data(&self) -> bool {
        self.segment.len > 0
    }
}

struct FlowState {
    opened: u32,
    ended: [u32; 2],
}

struct Connection {
    flow: usize,
    ends: [Option<End>; 2],
    /// What each side's driver holds until it has waited long enough for more.
    gathered: [Option<Segment>; 2],
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Open(u32),
    Way(Side),
    Timer(u32, Side),
    App(u32, Side),
    Change(u32),
    Depart(u32),
    Gathered(u32, Side),
}

impl World {
    /// Runs to the end.
    pub fn run(mut self) -> (Outcome, Trace) {
        let end = loop {
            let Some(Reverse((at, _, event))) = self.events.pop() else { break self.last_done };
            if at > self.limit || (self.is_done() && at > self.last_done + self.tail) {
                break if self.is_done() { self.last_done } else { self.limit };
            }
            self.now = at;
            self.processed += 1;
            self.handle(event);
        };
        let done = self.is_done();
        let waiting = if done { Vec::new() } else { self.who_waits() };
        (Outcome { end_ns: end, done, waiting, events: self.processed }, self.trace)
    }

    fn is_done(&self) -> bool {
        self.flows
            .iter()
            .zip(&self.plan.flows)
            .all(|(state, flow)| state.ended.iter().all(|ended| *ended >= flow.connections))
    }

    fn plan_event(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
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
            Event::Depart(index) => self.on_departure(index),
            Event::Gathered(connection, to) => self.hand_up_gathered(connection, to),
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
                self.plan_way(Side::Server);
                self.plan_way(Side::Client);
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
        let config = self.config_for(flow, Side::Client, connection);
        let mut out = std::mem::take(&mut self.out);
        let socket = Socket::connect(config, self.now, &mut out);
        let ends =
            [socket.ok().map(|socket| End::new(socket, &self.plan, flow, Side::Client)), None];
        self.connections.push(Connection { flow, ends, gathered: [None, None] });
        self.send_all(connection, Side::Client, &mut out);
        self.out = out;
        // With Fast Open the application may go on at once.
        self.with_socket(connection, Side::Client, |_, _, _| {});
    }

    fn config_for(&self, flow: usize, side: Side, connection: u32) -> Config {
        let mut config = self.configs[side.index()].clone();
        build::apply_socket(&mut config, &self.plan.flows[flow], side);
        config.isn = recorded::isn(side, connection);
        config.metrics = self.kept[side.index()];
        config
    }

    /// Something happens on a way.
    fn on_way(&mut self, from: Side) {
        if self.way_due[from.index()] != self.now {
            return;
        }
        self.way_due[from.index()] = u64::MAX;
        while self.ways[from.index()].next().is_some_and(|at| at <= self.now) {
            if let Some(packet) = self.ways[from.index()].advance(self.now) {
                self.deliver(packet, from.peer());
            }
        }
        self.plan_way(from);
    }

    fn plan_way(&mut self, from: Side) {
        if let Some(at) = self.ways[from.index()].next()
            && at < self.way_due[from.index()]
        {
            self.way_due[from.index()] = at;
            self.plan_event(at, Event::Way(from));
        }
    }

    fn accept(&mut self, connection: u32, syn: &Segment) {
        let flow = self.connections[connection as usize].flow;
        let config = self.config_for(flow, Side::Server, connection);
        let mut out = std::mem::take(&mut self.out);
        if let Ok(socket) = Socket::accept(config, self.now, syn, &mut out) {
            let end = End::new(socket, &self.plan, flow, Side::Server);
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
        let now = self.now;
        self.share_metrics(connection, side);
        let Some(end) = self.end(connection, side) else { return };
        act(&mut end.socket, now, &mut out);
        let events = end.socket.take_events();
        let woken = end.app.is_woken_by(events);
        self.share_metrics(connection, side);
        self.send_all(connection, side, &mut out);
        self.out = out;
        if woken {
            self.run_app(connection, side);
        }
        self.plan_timer(connection, side);
    }

    /// An application goes on until it has to wait.
    fn run_app(&mut self, connection: u32, side: Side) {
        let mut out = std::mem::take(&mut self.out);
        let now = self.now;
        let Some(end) = self.end(connection, side) else { return };
        let was_done = end.app.is_done();
        end.pause = u64::MAX;
        let pause = end.app.run(&mut end.socket, now, &mut out);
        if let Pause::Until(at) = pause {
            end.pause = at;
        }
        let is_done = end.app.is_done();
        self.share_metrics(connection, side);
        self.send_all(connection, side, &mut out);
        self.out = out;
        if let Pause::Until(at) = pause {
            self.plan_event(at, Event::App(connection, side));
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
        if side == Side::Client && state.opened < self.plan.flows[flow].connections {
            let at = self.now + self.plan.flows[flow].gap_ns;
            self.plan_event(at, Event::Open(flow as u32));
        }
    }

    /// Cuts what a socket handed down and puts it on its way.
    fn send_all(&mut self, connection: u32, side: Side, out: &mut Vec<Segment>) {
        if out.is_empty() {
            return;
        }
        let mut gone = 0;
        for segment in out.drain(..) {
            self.trace.hand_down(self.now, connection, side, &segment);
            let paces = self.configs[side.index()].link.paces;
            if paces && segment.departs_ns > self.now {
                self.hold(connection, side, segment);
            } else {
                gone += segment.truesize;
                self.put_on_way(connection, side, segment);
            }
        }
        self.plan_way(side);
        if gone > 0 && self.configs[side.index()].link.holds {
            self.with_socket(connection, side, |socket, now, out| {
                socket.on_departed(now, gone, out);
            });
        }
    }

    /// `fq` keeps a segment until its time.
    fn hold(&mut self, connection: u32, side: Side, segment: Segment) {
        let free = self.held.iter().position(Option::is_none).unwrap_or(self.held.len());
        if free == self.held.len() {
            self.held.push(None);
        }
        self.held[free] = Some((connection, side, segment));
        self.plan_event(segment.departs_ns, Event::Depart(free as u32));
    }

    fn on_departure(&mut self, index: u32) {
        let Some((connection, side, segment)) = self.held[index as usize].take() else { return };
        self.put_on_way(connection, side, segment);
        self.plan_way(side);
        self.with_socket(connection, side, |socket, now, out| {
            socket.on_departed(now, segment.truesize, out);
        });
    }

    /// A segment leaves its host, in pieces.
    fn put_on_way(&mut self, connection: u32, side: Side, segment: Segment) {
        for piece in segment.pieces() {
            self.trace.see(Tap::from(side), self.now, connection, side, &piece);
            if self.is_recorded_as_lost(connection, side, &piece) {
                continue;
            }
            let wire = self.configs[side.index()].link.ip_header()
                + piece.header_bytes()
                + piece.len
                + ETHERNET;
            self.ways[side.index()].offer(self.now, Packet { connection, segment: piece, wire });
        }
    }

    /// Notes what a sender waits for, if that has changed.
    fn trace_limit(&mut self, connection: u32, side: Side) {
        if !self.trace.keep.limits {
            return;
        }
        let at_ns = self.now;
        let Some(end) = self.end(connection, side) else { return };
        let limit = end.limit();
        if end.limit.replace(limit) != Some(limit) {
            self.trace.limits.push(LimitSince { at_ns, connection, side, limit });
        }
    }

    fn plan_timer(&mut self, connection: u32, side: Side) {
        self.trace_limit(connection, side);
        let now = self.now;
        let Some(end) = self.end(connection, side) else { return };
        let due = end.socket.next_timer().map_or(u64::MAX, |at| at.max(now));
        if due < end.due {
            end.due = due;
            self.plan_event(due, Event::Timer(connection, side));
        }
    }

    /// A timer may be due, or was put off since its event was planned.
    fn on_timer_event(&mut self, connection: u32, side: Side) {
        let now = self.now;
        let Some(end) = self.end(connection, side).filter(|end| end.due == now) else { return };
        end.due = u64::MAX;
        if end.socket.next_timer().is_some_and(|at| at <= now) {
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

/// Bytes of an Ethernet header, which layer 2 counts.
const ETHERNET: u32 = 14;
