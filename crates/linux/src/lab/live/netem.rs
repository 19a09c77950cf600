//! The same plan with the kernel's own parts: veth pairs, two routers, `tc netem` and `tbf`.
//!
//! ```text
//!   server --- to-server [near] to-far --- to-near [far] to-client --- client
//!    way down:                  link, queue            loss, delay
//!    way up:   loss, delay                 link, queue
//! ```
//!
//! Everything is a list of acts for each node, made without touching anything. The middle of the
//! path is the wire between the routers. Neighbours are fixed, so nothing is ever asked for by ARP,
//! and routers need no addresses.
//!
//! Left out, because netem has it not or in another sense: exact losses, a flipped bit of the
//! payload alone, packets held back, policers, a distance between stack and tap; [`cannot`] says
//! so. Its random choices follow no seed.

use std::net::IpAddr;

use tcpwhy_model::scenario::plan::{Loss, Plan, Ppm, Queue, Way};

use super::setup::{self, Act, Node};

/// All nodes.
pub(super) const NODES: [Node; 4] = [Node::Client, Node::Server, Node::Near, Node::Far];

/// Where the middle of the path is looked at: behind the link of the way down.
pub(super) const MIDDLE: (Node, &str) = (Node::Near, TO_FAR);

/// What a plan asks that netem cannot do: what, why, and what would do.
pub(super) fn cannot(plan: &Plan) -> Option<[String; 3]> {
    let tell = |what: &str, why: &str| {
        Some([what.to_owned(), why.to_owned(), "use --backend tun".to_owned()])
    };
    for (name, host) in [("client", &plan.client), ("server", &plan.server)] {
        if host.second_nic {
            let why = "its hosts are joined to their routers by one wire each";
            return tell(&format!("`{name}.second_nic`"), why);
        }
        if host.stack_to_tap_ns > 0 {
            return tell(&format!("`{name}.stack_to_tap`"), "taps are at the hosts' interfaces");
        }
        if host.offload {
            let why = "super-packets would meet its queues and losses whole";
            return tell(&format!("`{name}.offload`"), why);
        }
    }
    if plan.flows.iter().any(|flow| flow.flood > 0) {
        return tell("`flood`", "its routers know no other hosts");
    }
    for (name, way, later) in ways(plan) {
        let tell = |what: &str, why: &str| tell(&format!("`path.{name}.{what}`"), why);
        if matches!(way.loss, Loss::Exact(_)) {
            return tell("loss", "netem counts no packets");
        }
        if way.corrupt > 0 {
            return tell("corrupt", "netem flips bits of headers, too");
        }
        if !way.overhead.is_none() {
            return tell("overhead", "netem and tbf would count it each in its own way");
        }
        if way.reorder > 0 {
            return tell("reorder", "netem lets others go early instead of holding some back");
        }
        if way.bucket.is_some_and(|bucket| bucket.queue == 0) {
            return tell("bucket", "tbf has to have a queue");
        }
        if later.is_some_and(|before| kind(before) != kind(way)) {
            return tell("rate", "a change between kinds of links would lose what waits");
        }
    }
    None
}

/// Every way that the plan has at some time, by name, and what it was at first if that differs.
fn ways(plan: &Plan) -> Vec<(&'static str, &Way, Option<&Way>)> {
    let path = &plan.path;
    let mut all = vec![("down", &path.down, None), ("up", &path.up, None)];
    for change in &path.changes {
        all.extend(change.down.as_ref().map(|way| ("down", way, Some(&path.down))));
        all.extend(change.up.as_ref().map(|way| ("up", way, Some(&path.up))));
    }
    all
}

/// What builds the nodes and the wires between them; `path_of` names a node's namespace.
pub(super) fn build(plan: &Plan, path_of: impl Fn(Node) -> String) -> Vec<(Node, Act)> {
    let mut acts = Vec::new();
    for node in NODES {
        acts.extend(setup::quiet(plan.ipv6).into_iter().map(|act| (node, act)));
    }
    for [(one, device), (other, peer)] in WIRES {
        let words = format!(
            "ip link add {device} address {} netns {} type veth peer name {peer} address {} netns {}",
            hardware(device),
            path_of(one),
            hardware(peer),
            path_of(other),
        );
        acts.push((one, Act::run(&words)));
    }
    for router in [Node::Near, Node::Far] {
        acts.extend(setup::forwarding().into_iter().map(|act| (router, act)));
    }
    for (node, device) in WIRES.into_iter().flatten() {
        acts.push((node, setup::plain_segments(device)));
        if matches!(node, Node::Near | Node::Far) {
            acts.push((node, Act::run(&format!("ip link set dev {device} mtu 1500 up"))));
        }
    }
    acts.extend(next_hops(plan.ipv6));
    acts
}

/// Who is met where: fixed neighbours everywhere, routes on the routers.
fn next_hops(ipv6: bool) -> Vec<(Node, Act)> {
    let family = if ipv6 { "-6" } else { "-4" };
    let address = |node: Node| node.address(ipv6);
    let neighbour = |node, device: &str, to: IpAddr, met: &str| {
        let words = format!(
            "ip {family} neighbour replace {to} lladdr {} dev {device} nud permanent",
            hardware(met)
        );
        (node, Act::run(&words))
    };
    let route = |node, device: &str, to: IpAddr| {
        (node, Act::run(&format!("ip {family} route replace {to} dev {device}")))
    };
    let (client, server) = (address(Node::Client), address(Node::Server));
    vec![
        route(Node::Near, TO_FAR, client),
        route(Node::Near, TO_SERVER, server),
        route(Node::Far, TO_CLIENT, client),
        route(Node::Far, TO_NEAR, server),
        neighbour(Node::Near, TO_FAR, client, TO_NEAR),
        neighbour(Node::Near, TO_SERVER, server, "server"),
        neighbour(Node::Far, TO_CLIENT, client, "client"),
        neighbour(Node::Far, TO_NEAR, server, TO_FAR),
    ]
}

/// What the hosts know of their neighbours, once their interfaces are up.
pub(super) fn host_neighbour(ipv6: bool, node: Node) -> Act {
    let (peer, met) = match node {
        Node::Client => (Node::Server, TO_CLIENT),
        _ => (Node::Client, TO_SERVER),
    };
    let (family, device) = (if ipv6 { "-6" } else { "-4" }, node.name());
    let (to, met) = (peer.address(ipv6), hardware(met));
    Act::run(&format!("ip {family} neighbour replace {to} lladdr {met} dev {device} nud permanent"))
}

/// The path as it is at first.
pub(super) fn path(plan: &Plan) -> Vec<(Node, Act)> {
    let lasting = !plan.path.changes.is_empty();
    let mut acts = down(&plan.path.down, lasting);
    acts.extend(up(&plan.path.up, lasting));
    acts
}

/// What is done at which instant after the first application has started.
pub(super) fn changes(plan: &Plan) -> Vec<(u64, Vec<(Node, Act)>)> {
    let changes = plan.path.changes.iter();
    changes
        .map(|change| {
            let mut acts: Vec<_> = change.down.iter().flat_map(|way| down(way, true)).collect();
            acts.extend(change.up.iter().flat_map(|way| up(way, true)));
            (change.at_ns, acts)
        })
        .collect()
}

fn down(way: &Way, lasting: bool) -> Vec<(Node, Act)> {
    disciplines(way, "down", (Node::Near, TO_FAR), (Node::Far, TO_CLIENT), lasting)
}

fn up(way: &Way, lasting: bool) -> Vec<(Node, Act)> {
    disciplines(way, "up", (Node::Far, TO_NEAR), (Node::Near, TO_SERVER), lasting)
}

/// The link's discipline and that of the distance, each where it is; with `lasting` the distance
/// has one even if it is nothing, so that it can be changed.
fn disciplines(
    way: &Way,
    name: &str,
    link: (Node, &str),
    distance: (Node, &str),
    lasting: bool,
) -> Vec<(Node, Act)> {
    let act = |(node, device): (Node, &str), words: &str, what: &str| {
        let act = Act::run(&format!("tc qdisc replace dev {device} root {words}"));
        (node, act.because(format!("`path.{name}.{what}`")))
    };
    let mut acts = Vec::new();
    if let Some(words) = link_words(way) {
        acts.push(act(link, &words, if way.bucket.is_some() { "bucket" } else { "rate" }));
    }
    let words = distance_words(way);
    if lasting || !words.is_empty() {
        acts.push(act(distance, &format!("netem limit {ENDLESS_PACKETS}{words}"), "delay"));
    }
    acts
}

fn kind(way: &Way) -> &'static str {
    match (way.bucket, way.rate, way.queue) {
        (None, 0, _) => "none",
        (None, _, Queue::Packets(_)) => "netem",
        _ => "tbf",
    }
}

fn link_words(way: &Way) -> Option<String> {
    let rate = way.rate;
    Some(match (way.bucket, rate, way.queue) {
        (Some(bucket), ..) => setup::token_bucket(bucket),
        (None, 0, _) => return None,
        // The packet that is being sent is in the queue, too.
        (None, _, Queue::Packets(limit)) => {
            format!("netem rate {rate}bit limit {}", limit.saturating_add(1))
        }
        (None, _, Queue::Bytes(limit)) => tight_bucket(rate, limit.saturating_add(FRAME)),
        // Refused before.
        (None, _, Queue::Endless | Queue::FqCodel) => tight_bucket(rate, ENDLESS_BYTES),
    })
}

/// A bucket so small that it is as good as a link.
fn tight_bucket(rate: u64, limit: u64) -> String {
    let burst = (rate / 8 / 10_000).max(2 * FRAME);
    let limit = limit.min(ENDLESS_BYTES);
    format!("tbf rate {rate}bit burst {burst}b limit {limit}b")
}

/// Words of tc-netem(8), each with a blank before it.
fn distance_words(way: &Way) -> String {
    let delay =
        (way.delay_ns > 0 || way.jitter_ns > 0).then(|| format!(" delay {}", time(way.delay_ns)));
    let jitter = (way.jitter_ns > 0).then(|| format!(" {}", time(way.jitter_ns)));
    let loss = match &way.loss {
        Loss::None | Loss::Exact(_) => None,
        Loss::Random(chance) => Some(format!(" loss random {}", percent(*chance))),
        Loss::Gilbert { enter, leave, bad } => {
            let (enter, leave, bad) = (percent(*enter), percent(*leave), percent(*bad));
            Some(format!(" loss gemodel {enter} {leave} {bad} 0%"))
        }
    };
    let duplicate = (way.duplicate > 0).then(|| format!(" duplicate {}", percent(way.duplicate)));
    [delay, jitter, loss, duplicate].into_iter().flatten().collect()
}

/// In the finest unit that tc-netem(8) reads.
fn time(ns: u64) -> String {
    format!("{}.{:03}us", ns / 1_000, ns % 1_000)
}

fn percent(chance: Ppm) -> String {
    format!("{}.{:04}%", chance / 10_000, chance % 10_000)
}

/// A hardware address of our own choice (locally administered, IEEE 802-2014 section 8.4).
fn hardware(device: &str) -> String {
    let all = WIRES.iter().flatten();
    let place = all.map(|(_, name)| *name).position(|name| name == device).unwrap_or(0);
    format!("02:00:00:00:00:{:02x}", place + 1)
}

const TO_SERVER: &str = "to-server";
const TO_FAR: &str = "to-far";
const TO_NEAR: &str = "to-near";
const TO_CLIENT: &str = "to-client";

const WIRES: [[(Node, &str); 2]; 3] = [
    [(Node::Client, "client"), (Node::Far, TO_CLIENT)],
    [(Node::Far, TO_NEAR), (Node::Near, TO_FAR)],
    [(Node::Near, TO_SERVER), (Node::Server, "server")],
];

/// An Ethernet frame.
const FRAME: u64 = 1514;

/// Ours: 1.5 GB, more than any window.
const ENDLESS_PACKETS: u32 = 1_000_000;
const ENDLESS_BYTES: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use tcpwhy_model::scenario::plan::{Change, Host, TokenBucket};

    use super::super::setup::Deed;
    use super::*;

    fn lines(acts: &[(Node, Act)]) -> Vec<String> {
        acts.iter()
            .filter_map(|(node, act)| match &act.deed {
                Deed::Run(words) => Some(format!("{}: {}", node.name(), words.join(" "))),
                _ => None,
            })
            .collect()
    }

    fn with_down(down: Way) -> Plan {
        let mut plan = Plan::default();
        plan.path.down = down;
        plan
    }

    #[test]
    fn a_way_down_is_a_link_at_the_near_router_and_a_distance_at_the_far_one() {
        let plan = with_down(Way {
            rate: 10_000_000,
            queue: Queue::Bytes(60_000),
            delay_ns: 20_000_000,
            jitter_ns: 1_000_000,
            loss: Loss::Random(12_345),
            duplicate: 500,
            ..Way::default()
        });
        assert_eq!(
            lines(&path(&plan)),
            [
                "near: tc qdisc replace dev to-far root tbf rate 10000000bit burst 3028b limit 61514b",
                "far: tc qdisc replace dev to-client root netem limit 1000000 delay 20000.000us \
                 1000.000us loss random 1.2345% duplicate 0.0500%",
            ]
        );
    }

    #[test]
    fn queues_in_packets_and_bursts_of_losses_have_their_words() {
        let plan = with_down(Way {
            rate: 10_000_000,
            queue: Queue::Packets(30),
            loss: Loss::Gilbert { enter: 1_000, leave: 300_000, bad: 1_000_000 },
            ..Way::default()
        });
        let told = lines(&path(&plan));
        assert!(told[0].ends_with("netem rate 10000000bit limit 31"), "{told:?}");
        assert!(told[1].ends_with("loss gemodel 0.1000% 30.0000% 100.0000% 0%"), "{told:?}");
    }

    #[test]
    fn nothing_asked_for_is_nothing_done() {
        assert!(path(&Plan::default()).is_empty());
    }

    #[test]
    fn changes_take_effect_on_what_is_there_already() {
        let way = |rate| Way { rate, ..Way::default() };
        let mut plan = with_down(way(10_000_000));
        plan.path.changes = vec![Change { at_ns: 5, down: Some(way(2_000_000)), up: None }];
        assert_eq!(lines(&path(&plan)).len(), 3, "both distances can be changed");
        let changes = changes(&plan);
        assert_eq!(changes[0].0, 5);
        assert!(lines(&changes[0].1)[0].contains("tbf rate 2000000bit"));
    }

    #[test]
    fn all_nodes_know_the_way_to_both_hosts() {
        let told = lines(&build(&Plan::default(), |node| format!("/proc/1/fd/{}", node.name())));
        for expected in [
            "client: ip link add client address 02:00:00:00:00:01 netns /proc/1/fd/client type veth \
             peer name to-client address 02:00:00:00:00:02 netns /proc/1/fd/far",
            "near: ip -4 route replace 192.0.2.1 dev to-far",
            "far: ip -4 neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:04 dev to-near nud permanent",
            "near: ip -4 neighbour replace 192.0.2.1 lladdr 02:00:00:00:00:03 dev to-far nud permanent",
        ] {
            assert!(told.contains(&expected.to_owned()), "{expected}: {told:#?}");
        }
    }

    #[test]
    fn what_it_cannot_do_is_named() {
        let exact = Way { loss: Loss::Exact(vec![1]), ..Way::default() };
        let policer = TokenBucket { rate: 1, burst: 1, queue: 0 };
        for (what, plan) in [
            ("`path.down.loss`", with_down(exact.clone())),
            ("`path.down.corrupt`", with_down(Way { corrupt: 1, ..Way::default() })),
            ("`path.down.reorder`", with_down(Way { reorder: 1, ..Way::default() })),
            ("`path.down.bucket`", with_down(Way { bucket: Some(policer), ..Way::default() })),
            (
                "`server.offload`",
                Plan { server: Host { offload: true, ..Host::default() }, ..Plan::default() },
            ),
        ] {
            assert_eq!(cannot(&plan).map(|[what, ..]| what).as_deref(), Some(what));
        }
        let mut later = Plan::default();
        later.path.changes = vec![Change { at_ns: 1, down: None, up: Some(exact) }];
        assert_eq!(cannot(&later).map(|[what, ..]| what).as_deref(), Some("`path.up.loss`"));
        assert_eq!(cannot(&Plan::default()), None);
    }
}
