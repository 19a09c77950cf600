//! What a simulated kernel cannot do, said before anything starts.

use tcpwhy_model::scenario::plan::{Host, Loss, Plan, Socket, Step, Way};

use crate::lab::init::MOST_LOST;
use crate::lab::init::links::metrics;
use crate::lab::layout::Layout;

/// Something in a plan that cannot be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Doubt {
    pub(super) what: String,
    pub(super) why: String,
    pub(super) instead: String,
}

impl Doubt {
    fn new(what: impl Into<String>, why: impl Into<String>, instead: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), instead: instead.into() }
    }
}

/// Finds the first thing in a plan that cannot be done.
pub(super) fn plan(plan: &Plan) -> Result<(), Doubt> {
    if plan.flows.is_empty() {
        return Err(Doubt::new("no flows", "nothing would be sent", "add a flow"));
    }
    if plan.limit_ns == 0 {
        let why = "applications that wait for each other would wait for ever";
        return Err(Doubt::new("`limit = 0`", why, "give the run a limit"));
    }
    for (name, end) in [("client", &plan.client), ("server", &plan.server)] {
        host(name, end)?;
    }
    for flow in &plan.flows {
        for (name, socket) in [("client", &flow.client_socket), ("server", &flow.server_socket)] {
            congestion(name, socket)?;
        }
        if flow.flood > 0 {
            let why = "its routers know no other hosts";
            return Err(Doubt::new("`flood`", why, "use --backend tun"));
        }
        if steps(&flow.client) + steps(&flow.server) == 0 {
            return Err(Doubt::new("a flow without steps", "nothing would be sent", "add a step"));
        }
    }
    if let Some([what, why]) = crate::lab::only_modelled(plan) {
        return Err(Doubt::new(what, why, crate::lab::PREDICT));
    }
    let changed = plan.path.changes.iter().flat_map(|c| c.down.iter().chain(&c.up));
    for part in [&plan.path.down, &plan.path.up].into_iter().chain(changed) {
        way(part)?;
    }
    Layout::of(plan).map(drop).map_err(|unfit| {
        Doubt::new(unfit.what, unfit.why, "keep one unit throughout, or use --backend tun")
    })
}

fn host(name: &str, host: &Host) -> Result<(), Doubt> {
    let now = host.sysctl.iter().map(|(setting, value)| ("sysctl", setting, value));
    let later = host.changes.iter().flat_map(|change| &change.sysctl);
    let settings =
        || now.clone().chain(later.clone().map(|(setting, value)| ("changes", setting, value)));
    if let Some((place, setting, _)) = settings().find(|(_, setting, _)| !is_setting(setting)) {
        let why = "only settings of a network namespace, which begin with `net.`, are a host's own";
        return Err(Doubt::new(format!("`{name}.{place}` {setting}"), why, "leave it out"));
    }
    metrics(&host.route)
        .map_err(|why| Doubt::new(format!("`{name}.route`"), why, "use a metric of ip-route(8)"))?;
    let on_route = host.route.get("congctl").map(|control| ("route.congctl".to_owned(), control));
    let set = settings().filter(|(_, setting, _)| *setting == CONGESTION);
    let set = set.map(|(place, setting, control)| (format!("{place}` `{setting}"), control));
    on_route.into_iter().chain(set).try_for_each(|(place, control)| {
        known(&format!("`{name}.{place}`"), control.trim().trim_start_matches("lock "))
    })
}

/// A name below `net.` that leads nowhere else.
fn is_setting(name: &str) -> bool {
    name.starts_with("net.") && !name.contains('/') && !name.split('.').any(str::is_empty)
}

fn congestion(name: &str, socket: &Socket) -> Result<(), Doubt> {
    socket.congestion.as_ref().map_or(Ok(()), |c| known(&format!("`{name}.socket.congestion`"), c))
}

fn known(what: &str, control: &str) -> Result<(), Doubt> {
    if CONTROLS.contains(&control) {
        return Ok(());
    }
    let why = format!("the simulated kernels are built with {}", CONTROLS.join(", "));
    Err(Doubt::new(format!("{what} = \"{control}\""), why, "use one of these, or --backend tun"))
}

fn way(way: &Way) -> Result<(), Doubt> {
    if let Loss::Exact(lost) = &way.loss
        && lost.len() > MOST_LOST as usize
    {
        let why = format!("the list holds {MOST_LOST} packets");
        return Err(Doubt::new("`path.loss` of a number of packets", why, "lose a share of them"));
    }
    let longest = way.delay_ns.max(way.jitter_ns).max(way.reorder_ns);
    if longest > LONGEST_DELAY_NS {
        let why = "netem holds a packet back for 2 s at most here";
        return Err(Doubt::new("such a delay", why, "use a shorter one, or --backend tun"));
    }
    Ok(())
}

fn steps(list: &[Step]) -> usize {
    list.iter()
        .map(|step| match step {
            Step::Repeat { times, steps: inner } => *times as usize * steps(inner),
            _ => 1,
        })
        .fold(0, usize::saturating_add)
}

const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// Congestion controls of `scripts/kernel/config`.
const CONTROLS: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// netem's spread is a number of 32 bits with a sign (v5.10 `net/sched/sch_netem.c`, `tabledist`).
const LONGEST_DELAY_NS: u64 = 2_000_000_000;
