//! From a plan to a world: hosts with their kernels and settings, the path, the first events.

use std::sync::Arc;

use super::events::{Event, Events};
use super::program::Program;
use super::{FlowState, Keep, Side, Trace, World};
use crate::path::{Chance, Device, Driver, Way, Work};
use crate::profile::{KernelProfile, KnobError, Version};
use crate::scenario::plan::{self, Accept, Egress, Flow, Host, Plan, keeps_open};
use crate::socket::{Config, Link};

/// Which kernels the hosts run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kernels {
    /// The client's.
    pub client: KernelProfile,
    /// The server's.
    pub server: KernelProfile,
    /// What their monotonic clocks show at time zero: the phase of ticks and timestamps.
    pub clock_ns: u64,
    /// Most bytes of buffers that a machine's memory leaves (`tcp_init`); `None` bounds nothing.
    pub rmem_most: Option<u32>,
}

impl Kernels {
    /// The same on both hosts.
    pub const fn both(kernel: KernelProfile) -> Self {
        Self { client: kernel, server: kernel, clock_ns: 0, rmem_most: None }
    }
}

impl World {
    /// Builds what a plan asks for.
    ///
    /// # Errors
    /// It has a setting that the model does not take.
    pub fn new(plan: &Plan, kernels: Kernels, keep: Keep) -> Result<Self, KnobError> {
        let client = host(&plan.client, kernels.client, &kernels, plan.ipv6)?;
        let server = host(&plan.server, kernels.server, &kernels, plan.ipv6)?;
        check(plan, [&client, &server])?;
        let mut up = plan.path.up.clone();
        let mut down = plan.path.down.clone();
        for way in [&mut up, &mut down] {
            way.delay_ns += plan.client.stack_to_tap_ns + plan.server.stack_to_tap_ns;
        }
        let clock_ns = kernels.clock_ns;
        let mut ways = [
            Way::new(up, plan.seed, clock_ns),
            Way::new(down, plan.seed.rotate_left(32) ^ 1, clock_ns),
        ];
        for way in ways.iter_mut().filter(|_| keep.links) {
            way.work = Some(Work::default());
        }
        let devices = [
            Device::of(&plan.client, driver(&plan.client, kernels.client, clock_ns, plan.seed ^ 2)),
            Device::of(&plan.server, driver(&plan.server, kernels.server, clock_ns, plan.seed ^ 3)),
        ];
        let flows = plan.flows.iter().map(FlowState::of).collect();
        let mut world = Self {
            now: 0,
            limit: plan.limit_ns,
            tail: plan.tail_ns,
            configs: [client, server],
            kept: [None; 2],
            ways,
            cross_due: [None; 2],
            devices,
            device_due: [u64::MAX; 2],
            departing: false,
            flows,
            connections: Vec::new(),
            events: Events::new(),
            plan: plan.clone(),
            out: Vec::new(),
            trace: Trace { keep, ..Trace::default() },
            processed: 0,
            delivered: 0,
            calls: 0,
            most_events: u64::MAX,
            last_done: 0,
            losses: Default::default(),
        };
        if (0..plan.flows.len()).any(|flow| world.is_lesson(flow)) {
            world.remember_route(Side::Client);
            world.remember_route(Side::Server);
        }
        world.plan_what_is_asked(plan);
        world.plan_cross(Side::Client);
        world.plan_cross(Side::Server);
        Ok(world)
    }

    /// Connections, and changes of the path and of hosts, at their instants.
    fn plan_what_is_asked(&mut self, plan: &Plan) {
        for (index, flow) in plan.flows.iter().enumerate() {
            self.events.plan(flow.start_ns, Event::Open(index as u32));
        }
        for (index, change) in plan.path.changes.iter().enumerate() {
            self.events.plan(change.at_ns, Event::Change(index as u32));
        }
        for (side, host) in [(Side::Client, &plan.client), (Side::Server, &plan.server)] {
            for change in host.changes.iter().filter(|change| change.flush_metrics) {
                self.events.plan(change.at_ns, Event::Forget(side));
            }
        }
    }
}

impl FlowState {
    fn of(flow: &Flow) -> Self {
        let program = |side| Arc::new(Program::of(flow, side));
        Self { opened: 0, ended: [0; 2], programs: [Side::Client, Side::Server].map(program) }
    }
}

/// Whether the model has what is asked for.
fn check(plan: &Plan, [client, server]: [&Config; 2]) -> Result<(), KnobError> {
    for flow in &plan.flows {
        only_kernels(flow)?;
        check_congestion(client, flow, Side::Client)?;
        check_congestion(server, flow, Side::Server)?;
    }
    if !plan.records.sockets_at_ns.is_empty() {
        let why = "the model keeps no ports, no orphans and no sockets in TIME-WAIT".to_owned();
        return Err(KnobError { name: "records.sockets".to_owned(), why });
    }
    has_one_way_out(plan)?;
    keeps_settings(plan)?;
    takes_time(plan)
}

/// Refuses what takes a kernel's table of routes.
fn has_one_way_out(plan: &Plan) -> Result<(), KnobError> {
    let hosts = [("client", &plan.client), ("server", &plan.server)];
    hosts.into_iter().find(|(_, host)| host.second_nic).map_or(Ok(()), |(name, _)| {
        let why = "the model's hosts have one interface, and no filter of reverse paths".to_owned();
        Err(KnobError { name: format!("{name}.second_nic"), why })
    })
}

/// Refuses settings that change while a run goes on: which of them a kernel looks up again for a connection that is
/// open differs from one to the next.
fn keeps_settings(plan: &Plan) -> Result<(), KnobError> {
    for (name, host) in [("client", &plan.client), ("server", &plan.server)] {
        if let Some(setting) = host.changes.iter().find_map(|change| change.sysctl.keys().next()) {
            let why = format!("the model's hosts keep their settings, and {setting} is to change");
            return Err(KnobError { name: format!("{name}.changes"), why });
        }
    }
    Ok(())
}

/// Refuses what takes a kernel's queues of connections.
fn only_kernels(flow: &Flow) -> Result<(), KnobError> {
    let asked = [
        (flow.together, "application.together"),
        (flow.accept != Accept::AtOnce, "application.accept"),
        (flow.may_fail, "application.may_fail"),
        (flow.flood > 0, "application.flood"),
    ];
    if keeps_open(&flow.client) || keeps_open(&flow.server) {
        let why = "the model closes each connection when its steps are over".to_owned();
        return Err(KnobError { name: "the step `keep open`".to_owned(), why });
    }
    let missing = asked.into_iter().find(|(is_asked, _)| *is_asked);
    missing.map_or(Ok(()), |(_, name)| {
        let why = "the model has no queues of connections: each opens, and is accepted at once"
            .to_owned();
        Err(KnobError { name: name.to_owned(), why })
    })
}

/// Refuses a path on which nothing takes any time: what is said of it would be 0 ns, whatever is asked.
fn takes_time(plan: &Plan) -> Result<(), KnobError> {
    let hosts = [&plan.client, &plan.server];
    let is_slow = |host: &&Host| host.device.is_some() || host.stack_to_tap_ns > 0;
    let ways = [&plan.path.up, &plan.path.down];
    let takes = |way: &&plan::Way| {
        way.delay_ns > 0 || way.jitter_ns > 0 || way.rate > 0 || way.bucket.is_some()
    };
    if hosts.iter().any(is_slow) || ways.iter().any(takes) {
        return Ok(());
    }
    let why = "0 on a path without a rate takes no time at all; there it lies between 1ns and 60s"
        .to_owned();
    Err(KnobError { name: "path.rtt".to_owned(), why })
}

fn driver(host: &Host, kernel: KernelProfile, clock_ns: u64, seed: u64) -> Driver {
    Driver {
        hz: kernel.hz,
        clock_ns,
        timer_slack: kernel.version >= Version::new(5, 8),
        offload: host.offload,
        seed: Chance::new(seed).draw(),
    }
}

fn host(
    host: &Host,
    kernel: KernelProfile,
    kernels: &Kernels,
    ipv6: bool,
) -> Result<Config, KnobError> {
    let mut config = Config::of(kernel);
    config.clock_ns = kernels.clock_ns;
    if let Some(most) = kernels.rmem_most {
        config.sysctl.rmem[2] = config.sysctl.rmem[2].min(most);
    }
    for (name, value) in &host.sysctl {
        config.sysctl.set(name, value)?;
    }
    for (word, value) in &host.route {
        config.route.set(word, value)?;
    }
    let paces = host.egress == Some(Egress::Fq);
    let holds = host.egress.is_some() || host.device.is_some();
    config.link = Link { ipv6, paces, holds, ..Link::default() };
    Ok(config)
}

/// Puts a flow's options over a host's configuration.
pub(super) fn apply_socket(config: &mut Config, flow: &Flow, side: Side) {
    let socket = match side {
        Side::Client => &flow.client_socket,
        Side::Server => &flow.server_socket,
    };
    let options = &mut config.options;
    options.sndbuf = socket.sndbuf;
    options.rcvbuf = socket.rcvbuf;
    options.nodelay = socket.nodelay;
    options.cork = socket.cork;
    options.congestion.clone_from(&socket.congestion);
    options.notsent_lowat = socket.notsent_lowat;
    options.max_pacing = socket.max_pacing;
    options.window_clamp = socket.window_clamp;
    match side {
        Side::Client => options.fast_open_connect = socket.fast_open,
        Side::Server => options.fast_open = socket.fast_open,
    }
}

fn check_congestion(config: &Config, flow: &Flow, side: Side) -> Result<(), KnobError> {
    let mut config = config.clone();
    apply_socket(&mut config, flow, side);
    let mut nothing = Vec::new();
    crate::socket::Socket::connect(config, 0, &mut nothing)?;
    Ok(())
}
