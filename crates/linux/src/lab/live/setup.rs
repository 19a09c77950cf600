//! What has to be done inside a host's namespace before it is the host of the plan.
//!
//! Everything is a list of acts, made without touching anything, so that it can be read and tested
//! apart from rights and kernels. Words for iproute2 come from the plan; nothing passes through a
//! shell. Acts are carried out in a namespace of ours ([`super::stage`]) and nowhere else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tcpwhy_model::scenario::plan::{Egress, Host, Plan, Queue, TokenBucket};

use crate::lab::agent::FLOOD;

/// A host, or a router of the netem backend.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Node {
    /// The end that connects.
    Client,
    /// The end that accepts.
    Server,
    /// The router next to the server.
    Near,
    /// The router next to the client.
    Far,
}

impl Node {
    /// Its name, which is also that of its interface if it is a host.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    /// The name of its second interface, if it has one: all that it sends leaves by that.
    pub const fn second(self) -> &'static str {
        match self {
            Self::Client => "client-out",
            Self::Server => "server-out",
            // Routers have one name for each wire.
            Self::Near | Self::Far => "",
        }
    }

    /// The interface that the packets of a host leave by.
    fn way_out(self, plan: &Plan) -> &'static str {
        if self.host(plan).second_nic { self.second() } else { self.name() }
    }

    /// What a plan says of it, if it is a host; of a router, what it says of the host behind it.
    pub(super) const fn host(self, plan: &Plan) -> &Host {
        match self {
            Self::Client | Self::Far => &plan.client,
            Self::Server | Self::Near => &plan.server,
        }
    }

    /// Its addresses, from the ranges set aside for documentation (RFC 5737, RFC 3849): whatever
    /// leaked out of a lab would reach nobody.
    pub const fn address(self, ipv6: bool) -> IpAddr {
        let last = match self {
            Self::Client => 1,
            Self::Server => 2,
            Self::Near => 3,
            Self::Far => 4,
        };
        if ipv6 {
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last))
        } else {
            IpAddr::V4(Ipv4Addr::new(192, 0, 2, last as u8))
        }
    }
}

/// Something to be done in a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Act {
    /// The part of the plan that asks for it, in its words; none if every plan needs it.
    pub blame: Option<String>,
    /// What is done.
    pub deed: Deed,
}

/// What is done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Deed {
    /// Writes a setting of the namespace, by its name with dots.
    Sysctl(String, String),
    /// Writes it where there is such a setting.
    SysctlIfThere(String, String),
    /// Runs a program with these words.
    Run(Vec<String>),
    /// Has an interface neither cut nor join segments for its stack (TSO, GSO, GRO).
    PlainSegments(&'static str),
    /// Has the kernel forget what it remembers of peers.
    ForgetPeers,
}

impl Act {
    fn need(deed: Deed) -> Self {
        Self { blame: None, deed }
    }

    /// Words separated by blanks, run as they are.
    pub fn run(words: &str) -> Self {
        Self::need(Deed::Run(words.split_whitespace().map(str::to_owned).collect()))
    }

    /// Blames a part of the plan if it fails.
    #[must_use]
    pub fn because(self, blame: impl Into<String>) -> Self {
        Self { blame: Some(blame.into()), ..self }
    }
}

/// A setting whose name may become a path below `/proc/sys/net`, and nothing else.
pub fn is_setting(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.next() == Some("net")
        && name.split('.').count() > 2
        && parts.all(|part| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/'))
                && !part.starts_with('/')
                && !part.ends_with('/')
        })
}

/// Turns a namespace into a host: settings first, then its interface, which is there already.
pub fn host(plan: &Plan, node: Node) -> Vec<Act> {
    let host = node.host(plan);
    let peer = if node == Node::Client { Node::Server } else { Node::Client };
    let (name, way_out) = (node.name(), node.way_out(plan));
    let mut acts = quiet(plan.ipv6);
    if host.second_nic {
        acts.extend(unfiltered(node));
    }
    acts.extend(host.sysctl.iter().map(|(setting, value)| Act {
        blame: Some(format!("`{name}.sysctl` {setting} = \"{value}\"")),
        deed: Deed::Sysctl(setting.clone(), value.clone()),
    }));
    acts.push(Act::run("ip link set dev lo up"));
    for device in [name, way_out].into_iter().take(1 + usize::from(host.second_nic)) {
        acts.push(Act::run(&format!(
            "ip link set dev {device} mtu {MTU} txqueuelen {DEVICE_QUEUE} up"
        )));
    }
    acts.push(address(node, plan.ipv6));
    acts.push(route(plan, node, peer));
    if node == Node::Server && plan.flows.iter().any(|flow| flow.flood > 0) {
        acts.push(
            Act::run(&format!("ip -4 route replace {FLOOD} dev {way_out}")).because("`flood`"),
        );
    }
    acts.extend(metrics(plan, node, host, peer));
    acts.extend(egress(way_out, host));
    acts
}

/// All that will change at a host while a run goes on, to try whether it can.
pub(super) fn changes(plan: &Plan, node: Node) -> Vec<Act> {
    let name = node.name();
    let mut acts = Vec::new();
    for change in &node.host(plan).changes {
        acts.extend(change.sysctl.iter().map(|(setting, value)| {
            let blame = format!("`{name}.changes`: {setting} = \"{value}\"");
            Act::need(Deed::Sysctl(setting.clone(), value.clone())).because(blame)
        }));
        if change.flush_metrics {
            let blame = format!("`{name}.changes`: metrics = \"flush\"");
            acts.push(Act::need(Deed::ForgetPeers).because(blame));
        }
    }
    acts
}

/// Keeps the stack from talking of its own accord, which would disturb exact counts.
pub(super) fn quiet(ipv6: bool) -> Vec<Act> {
    let mut acts = Vec::new();
    for which in ["all", "default"] {
        let set = |name: &str, value: &str| {
            let name = format!("net.ipv6.conf.{which}.{name}");
            Act::need(Deed::SysctlIfThere(name, value.to_owned()))
        };
        acts.push(set("disable_ipv6", if ipv6 { "0" } else { "1" }));
        for name in ["accept_dad", "accept_ra", "router_solicitations"] {
            acts.push(set(name, "0"));
        }
        // No link-local address, thus nothing to announce.
        acts.push(set("addr_gen_mode", "1"));
    }
    acts
}

fn address(node: Node, ipv6: bool) -> Act {
    let (device, address) = (node.name(), node.address(ipv6));
    if ipv6 {
        Act::run(&format!("ip -6 address add {address}/128 dev {device} nodad"))
    } else {
        Act::run(&format!("ip -4 address add {address}/32 dev {device}"))
    }
}

/// Has an interface neither cut nor join segments.
pub(super) fn plain_segments(device: &'static str) -> Act {
    Act::need(Deed::PlainSegments(device))
}

/// Turns a namespace into a router.
pub(super) fn forwarding() -> Vec<Act> {
    let set =
        |name: &str, value: &str| Act::need(Deed::SysctlIfThere(name.to_owned(), value.to_owned()));
    vec![
        set("net.ipv4.ip_forward", "1"),
        set("net.ipv6.conf.all.forwarding", "1"),
        // A new namespace may inherit the host's.
        set("net.ipv4.conf.all.rp_filter", "0"),
        set("net.ipv4.conf.default.rp_filter", "0"),
    ]
}

/// No filter of reverse paths but what a plan asks for: a new namespace may have inherited the machine's.
fn unfiltered(node: Node) -> Vec<Act> {
    let names = ["all", "default", node.name(), node.second()];
    names
        .map(|name| {
            let setting = format!("net.ipv4.conf.{name}.rp_filter");
            Act::need(Deed::SysctlIfThere(setting, "0".to_owned()))
        })
        .to_vec()
}

/// The way to the peer.
fn route(plan: &Plan, node: Node, peer: Node) -> Act {
    let ipv6 = plan.ipv6;
    let (family, source) = (if ipv6 { "-6" } else { "-4" }, node.address(ipv6));
    let (device, peer) = (node.way_out(plan), peer.address(ipv6));
    Act::run(&format!("ip {family} route replace {peer} dev {device} src {source}"))
}

/// The plan's words on the route to the peer, one after the other, so that the one that is refused
/// is named.
fn metrics(plan: &Plan, node: Node, host: &Host, peer: Node) -> Vec<Act> {
    let Deed::Run(mut words) = route(plan, node, peer).deed else {
        return Vec::new();
    };
    host.route
        .iter()
        .map(|(name, value)| {
            words.push(name.clone());
            words.extend(value.split_whitespace().map(str::to_owned));
            let blame = format!("`{}.route` {name} = \"{value}\"", node.name());
            Act::need(Deed::Run(words.clone())).because(blame)
        })
        .collect()
}

/// The discipline on a host's way out, before its tap.
fn egress(device: &str, host: &Host) -> Vec<Act> {
    let blame = |what: &str| format!("`{device}.egress = {what}`");
    match host.egress {
        None => Vec::new(),
        Some(Egress::Fq) => {
            vec![Act::run(&format!("tc qdisc replace dev {device} root fq")).because(blame("fq"))]
        }
        Some(Egress::FqCodel) => {
            let act = Act::run(&format!("tc qdisc replace dev {device} root fq_codel"));
            vec![act.because(blame("fq_codel"))]
        }
        Some(Egress::Fifo(queue)) => {
            let kind = match queue {
                Queue::Bytes(bytes) => format!("bfifo limit {bytes}"),
                Queue::Packets(packets) => format!("pfifo limit {packets}"),
                // The language has no other at a host.
                Queue::Endless | Queue::FqCodel => return Vec::new(),
            };
            let words = format!("tc qdisc replace dev {device} root {kind}");
            vec![Act::run(&words).because(blame("a fifo"))]
        }
        Some(Egress::TokenBucket(bucket)) if bucket.queue == 0 => police(device, bucket)
            .map(|words| Act::run(&words).because(blame("a policer")))
            .to_vec(),
        Some(Egress::TokenBucket(bucket)) => {
            let words = format!("tc qdisc replace dev {device} root {}", token_bucket(bucket));
            vec![Act::run(&words).because(blame("a token bucket"))]
        }
    }
}

/// Words of tc-tbf(8).
pub(super) fn token_bucket(bucket: TokenBucket) -> String {
    let TokenBucket { rate, burst, queue } = bucket;
    format!("tbf rate {rate}bit burst {burst}b limit {queue}b")
}

/// Words of tc-police(8).
fn police(device: &str, bucket: TokenBucket) -> [String; 2] {
    let TokenBucket { rate, burst, .. } = bucket;
    [
        format!("tc qdisc replace dev {device} clsact"),
        format!(
            "tc filter replace dev {device} egress matchall action police rate {rate}bit burst \
             {burst}b conform-exceed drop/ok"
        ),
    ]
}

/// Ethernet's.
const MTU: u32 = 1500;

/// The device drops what its own queue cannot take, and that would be a loss nobody planned. These
/// packets are 15 MB (lab-facts, trap 4).
const DEVICE_QUEUE: u32 = 10_000;

#[cfg(test)]
mod tests {
    use tcpwhy_model::scenario::plan::HostChange;

    use super::*;

    fn lines(acts: &[Act]) -> Vec<String> {
        acts.iter()
            .map(|act| match &act.deed {
                Deed::Sysctl(name, value) | Deed::SysctlIfThere(name, value) => {
                    format!("{name}={value}")
                }
                Deed::Run(words) => words.join(" "),
                Deed::PlainSegments(device) => format!("{device} plain"),
                Deed::ForgetPeers => "forget".to_owned(),
            })
            .collect()
    }

    fn a_plan() -> Plan {
        let mut plan = Plan::default();
        plan.server.sysctl.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
        plan.server.route.insert("cwnd".to_owned(), "lock 30".to_owned());
        plan.server.route.insert("initcwnd".to_owned(), "30".to_owned());
        plan
    }

    #[test]
    fn a_host_is_set_up_in_order() {
        let acts = host(&a_plan(), Node::Server);
        let told: Vec<String> =
            lines(&acts).into_iter().filter(|line| !line.contains("ipv6")).collect();
        assert_eq!(
            told,
            [
                "net.ipv4.tcp_sack=0",
                "ip link set dev lo up",
                "ip link set dev server mtu 1500 txqueuelen 10000 up",
                "ip -4 address add 192.0.2.2/32 dev server",
                "ip -4 route replace 192.0.2.1 dev server src 192.0.2.2",
                "ip -4 route replace 192.0.2.1 dev server src 192.0.2.2 cwnd lock 30",
                "ip -4 route replace 192.0.2.1 dev server src 192.0.2.2 cwnd lock 30 initcwnd 30",
            ]
        );
    }

    #[test]
    fn a_host_with_two_interfaces_answers_by_the_second() {
        let mut plan = a_plan();
        plan.server.second_nic = true;
        plan.server.route.clear();
        plan.server.egress = Some(Egress::Fq);
        let told: Vec<String> = lines(&host(&plan, Node::Server))
            .into_iter()
            .filter(|line| !line.contains("ipv6"))
            .collect();
        assert_eq!(
            told,
            [
                "net.ipv4.conf.all.rp_filter=0",
                "net.ipv4.conf.default.rp_filter=0",
                "net.ipv4.conf.server.rp_filter=0",
                "net.ipv4.conf.server-out.rp_filter=0",
                "net.ipv4.tcp_sack=0",
                "ip link set dev lo up",
                "ip link set dev server mtu 1500 txqueuelen 10000 up",
                "ip link set dev server-out mtu 1500 txqueuelen 10000 up",
                "ip -4 address add 192.0.2.2/32 dev server",
                "ip -4 route replace 192.0.2.1 dev server-out src 192.0.2.2",
                "tc qdisc replace dev server-out root fq",
            ]
        );
    }

    #[test]
    fn what_the_plan_asks_for_is_what_is_blamed() {
        let blamed: Vec<String> =
            host(&a_plan(), Node::Server).into_iter().filter_map(|act| act.blame).collect();
        assert_eq!(
            blamed,
            [
                "`server.sysctl` net.ipv4.tcp_sack = \"0\"",
                "`server.route` cwnd = \"lock 30\"",
                "`server.route` initcwnd = \"30\"",
            ]
        );
    }

    #[test]
    fn what_changes_later_is_tried_in_order() {
        let mut plan = Plan::default();
        let sysctl = [("net.ipv4.tcp_sack".to_owned(), "0".to_owned())].into();
        plan.client.changes = vec![
            HostChange { at_ns: 1, flush_metrics: true, ..HostChange::default() },
            HostChange { at_ns: 2, sysctl, flush_metrics: false },
        ];
        let acts = changes(&plan, Node::Client);
        assert_eq!(lines(&acts), ["forget", "net.ipv4.tcp_sack=0"]);
        let blamed: Vec<String> = acts.into_iter().filter_map(|act| act.blame).collect();
        assert_eq!(
            blamed,
            [
                "`client.changes`: metrics = \"flush\"",
                "`client.changes`: net.ipv4.tcp_sack = \"0\"",
            ]
        );
        assert_eq!(changes(&plan, Node::Server), []);
    }

    #[test]
    fn ipv6_hosts_have_no_ipv4_address() {
        let told = lines(&host(&Plan { ipv6: true, ..Plan::default() }, Node::Client));
        assert!(told.contains(&"ip -6 address add 2001:db8::1/128 dev client nodad".to_owned()));
        assert!(told.contains(&"net.ipv6.conf.all.disable_ipv6=0".to_owned()));
        assert!(!told.iter().any(|line| line.contains("192.0.2")), "{told:?}");
    }

    #[test]
    fn a_bucket_without_a_queue_polices_on_the_way_out() {
        let bucket = TokenBucket { rate: 10_000_000, burst: 20_000, queue: 0 };
        let host = Host { egress: Some(Egress::TokenBucket(bucket)), ..Host::default() };
        let told = lines(&egress("server", &host));
        assert_eq!(told[0], "tc qdisc replace dev server clsact");
        assert!(told[1].ends_with("police rate 10000000bit burst 20000b conform-exceed drop/ok"));
        let queued = TokenBucket { queue: 30_000, ..bucket };
        let host = Host { egress: Some(Egress::TokenBucket(queued)), ..host };
        assert_eq!(
            lines(&egress("server", &host)),
            ["tc qdisc replace dev server root tbf rate 10000000bit burst 20000b limit 30000b"]
        );
    }

    #[test]
    fn only_settings_of_the_network_are_settings() {
        for good in ["net.ipv4.tcp_rmem", "net.ipv4.conf.all.rp_filter", "net.core.somaxconn"] {
            assert!(is_setting(good), "{good}");
        }
        for bad in [
            "kernel.panic",
            "net",
            "net.",
            "net.ipv4",
            "net.ipv4..tcp_rmem",
            "net.ipv4./etc/passwd",
            "net/../kernel/panic",
            "net.ipv4.tcp rmem",
            "net.ipv4.\0",
            "",
        ] {
            assert!(!is_setting(bad), "{bad}");
        }
    }
}
