//! Which machines, links and queues a plan's path becomes inside a simulated kernel.
//!
//! ```text
//! server - (server-tap) - (server-nic) - r1 .. rk - middle - rk+1 .. rn - (client-nic) - (client-tap) - client
//!  egress                       up's distance, down's link | up's link, down's distance                egress
//! ```
//!
//! A chain of network namespaces joined by veth pairs. Each queueing discipline sits on a device
//! of its own, because they do not nest ([`parts`] says which there are). Devices of routers cut
//! and merge nothing, and compute checksums, so that queues, loss and flipped bits act on wire
//! packets and a flipped bit is noticed. A host with offloads gets a machine before it that cuts;
//! one that is captured from a distance gets a machine that delays, and is captured there. A host with a second
//! interface has a second link to its neighbour, which all that it sends leaves by.
//!
//! Addresses do not depend on what lies between: `10.0.1.1` and `fd00:1::1` are the server,
//! `10.0.2.1` and `fd00:2::1` the client.

mod parts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tcpwhy_model::scenario::plan::{Egress, Host, Loss, Overhead, Plan, Ppm};

use parts::Parts;

/// Machines in a row from the server to the client, and what joins them.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The server is first, the client last.
    pub nodes: Vec<Node>,
    /// Link `k` joins nodes `k` and `k + 1`.
    pub links: Vec<Link>,
    /// Links beside the one of this number, by which a host's packets leave.
    pub ways_out: BTreeMap<usize, Link>,
    /// Where the captures are taken.
    pub taps: Vec<Tap>,
    /// What changes while it runs, in order of time.
    pub changes: Vec<Timed>,
}

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// `server`, `client` or a router's name.
    pub name: String,
    /// Settings.
    pub sysctl: BTreeMap<String, String>,
    /// Words of its routes ([`Host::route`]).
    pub route: BTreeMap<String, String>,
    /// Passes packets on.
    pub forwards: bool,
}

/// A veth pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The end nearer to the server.
    pub near: Port,
    /// The end nearer to the client.
    pub far: Port,
}

/// One end of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Port {
    /// Name of the device, unique in the layout: records name devices alone.
    pub device: String,
    /// Its address in network number `net`, IPv4 (`10.0.net.0/24`) and IPv6 (`fd00:net::/64`).
    pub net: u8,
    /// Last byte of its addresses.
    pub host: u8,
    /// Segmentation, checksum and receive offloads.
    pub offload: bool,
    /// Queueing and dropping on it.
    pub settings: Vec<Setting>,
}

/// Something that is done to packets at a port.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// On their way out.
    Egress(Discipline),
    /// On their way out, before that: what finds no token is dropped.
    Police(Police),
    /// As they arrive.
    Fate(Fate),
}

/// A queueing discipline, in the kernel's terms.
#[derive(Clone, Debug, PartialEq)]
pub enum Discipline {
    /// Token bucket.
    Tbf(Tbf),
    /// Delay, loss, duplication, rate.
    Netem(Netem),
    /// Fair queueing with pacing.
    Fq,
    /// Fair queueing with `CoDel`.
    FqCodel,
    /// First in, first out.
    Fifo(Limit),
}

/// `sch_tbf`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tbf {
    /// Bits per second.
    pub rate: u64,
    /// Bytes.
    pub burst: u64,
    /// What may wait.
    pub limit: Limit,
    /// What is added to each packet.
    pub overhead: Overhead,
}

/// Of what a queue holds so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Bytes (bfifo).
    Bytes(u32),
    /// Packets (pfifo).
    Packets(u32),
    /// By `fq_codel`'s rules.
    FqCodel,
}

/// `sch_netem`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Netem {
    /// Constant delay.
    pub delay_ns: u64,
    /// Uniform spread to either side.
    pub jitter_ns: u64,
    /// Share that passes at once instead.
    pub at_once: Ppm,
    /// What is lost; never [`Loss::Exact`].
    pub loss: Loss,
    /// Share delivered twice.
    pub duplicate: Ppm,
    /// Serializes at this many bits per second; 0 does not.
    pub rate: u64,
    /// What it adds to each packet for that.
    pub overhead: Overhead,
    /// Seeds its random choices where the kernel lets (v6.6 and newer).
    pub seed: u64,
}

/// `act_police`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Police {
    /// Bits per second.
    pub rate: u64,
    /// Bytes.
    pub burst: u64,
    /// What is added to each packet.
    pub overhead: Overhead,
}

/// Which packets with data are lost or damaged, counted from 1 as they arrive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fate {
    /// These are lost.
    pub lost: Vec<u64>,
    /// This share has a bit of its data flipped.
    pub corrupt: Ppm,
}

/// A place to capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Tap {
    /// `client`, `server` or `middle`.
    pub name: &'static str,
    /// Index of the node.
    pub node: usize,
    /// Device, or `any` for all of the node.
    pub device: String,
}

/// A setting from an instant on.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// After the first application started.
    pub at_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// Device.
    pub device: String,
    /// What takes the place of the setting of the same kind.
    pub setting: Setting,
}

/// A plan that no layout fits.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Unfit {
    /// What was asked, in the scenario's words.
    pub what: String,
    /// Why there is no layout for it.
    pub why: String,
}

impl Layout {
    /// Lays a plan out.
    ///
    /// # Errors
    /// There is no layout for it.
    pub fn of(plan: &Plan) -> Result<Self, Unfit> {
        let down = Parts::of(plan, "down", &plan.path.down, |c| c.down.as_ref())?;
        let up = Parts::of(plan, "up", &plan.path.up, |c| c.up.as_ref())?;
        // Routers on the server's side carry the link of the way down and the distance of the way
        // up; those on the client's side the other two.
        let near = down.link.len().max(up.distance.len()).max(1);
        let far = up.link.len().max(down.distance.len()).max(1);
        let mut layout = Self::chain(plan, near + far);
        let middle = layout.nodes.iter().position(|n| n.name == "r1").unwrap_or(1) + near - 1;
        for (k, part) in down.link.iter().enumerate() {
            layout.put(plan, (middle + 1 - down.link.len() + k, Side::Near), part);
        }
        for (k, part) in down.distance.iter().enumerate() {
            layout.put(plan, (middle + 1 + k, Side::Near), part);
        }
        for (k, part) in up.link.iter().enumerate() {
            layout.put(plan, (middle + up.link.len() - 1 - k, Side::Far), part);
        }
        for (k, part) in up.distance.iter().enumerate() {
            layout.put(plan, (middle - 1 - k, Side::Far), part);
        }
        for (fate, side) in [(&down.fate, Side::Far), (&up.fate, Side::Near)] {
            if let Some(part) = fate {
                layout.put(plan, (middle, side), part);
            }
        }
        layout.changes.sort_by_key(|c| c.at_ns);
        layout.host_ports(plan);
        layout.put_taps(plan, middle);
        Ok(layout)
    }

    /// The server's address.
    pub fn server_address(&self, ipv6: bool) -> IpAddr {
        self.links[0].near.address(ipv6)
    }

    /// The machines and their links, with nothing on them.
    fn chain(plan: &Plan, routers: usize) -> Self {
        let mut names = vec!["server".to_owned()];
        names.extend(before("server", &plan.server));
        names.extend((1..=routers).map(|k| format!("r{k}")));
        names.extend(before("client", &plan.client).into_iter().rev());
        names.push("client".to_owned());
        let offload = |name: &str| {
            let host = if name.starts_with("server") { &plan.server } else { &plan.client };
            host.offload && !name.starts_with('r') && !name.ends_with("-nic")
        };
        let last = names.len() - 2;
        let links = (0..=last)
            .map(|k| {
                let (a, b) = (&names[k], &names[k + 1]);
                // The hosts' networks have the same numbers however long the chain.
                let net = if k == 0 {
                    1
                } else if k == last {
                    2
                } else {
                    k as u8 + 2
                };
                let hosts = if k == last { (2, 1) } else { (1, 2) };
                let port =
                    |device, host, offload| Port { device, net, host, offload, ..Port::default() };
                Link {
                    near: port(device(a, "c"), hosts.0, offload(a)),
                    far: port(device(b, "s"), hosts.1, offload(b)),
                }
            })
            .collect();
        let nodes = names
            .into_iter()
            .map(|name| match name.as_str() {
                "server" => Node::host(name, &plan.server),
                "client" => Node::host(name, &plan.client),
                _ => Node { name, forwards: true, ..Node::default() },
            })
            .collect();
        let ways_out = BTreeMap::new();
        let mut layout = Self { nodes, links, ways_out, taps: Vec::new(), changes: Vec::new() };
        layout.put_ways_out(plan);
        layout
    }

    /// The second links of the hosts that have two interfaces.
    fn put_ways_out(&mut self, plan: &Plan) {
        let last = self.links.len() - 1;
        let sides = [(&plan.server, 0, SERVER_OUT), (&plan.client, last, CLIENT_OUT)];
        for (_, k, net) in sides.into_iter().filter(|(host, ..)| host.second_nic) {
            let Link { mut near, mut far } = self.links[k].clone();
            let name = |node: usize, end: &str| format!("{}-{end}", self.nodes[node].name);
            let [near_end, far_end] = if k == 0 { ["out", "in"] } else { ["in", "out"] };
            (near.device, far.device) = (name(k, near_end), name(k + 1, far_end));
            (near.net, far.net) = (net, net);
            self.ways_out.insert(k, Link { near, far });
        }
    }

    /// Puts a part of a way, in all its versions, on one end of a link.
    fn put(&mut self, plan: &Plan, (link, side): (usize, Side), versions: &[Setting]) {
        let node = link + usize::from(side == Side::Far);
        let port = self.port(link, side);
        port.settings.push(versions[0].clone());
        let device = port.device.clone();
        for (k, pair) in versions.windows(2).enumerate() {
            if pair[0] != pair[1] {
                let (at_ns, setting) = (plan.path.changes[k].at_ns, pair[1].clone());
                self.changes.push(Timed { at_ns, node, device: device.clone(), setting });
            }
        }
    }

    fn port(&mut self, link: usize, side: Side) -> &mut Port {
        self.links[link].end(side)
    }

    /// The port of a host that its packets leave by.
    fn way_out(&mut self, link: usize, side: Side) -> &mut Port {
        match self.ways_out.get_mut(&link) {
            Some(second) => second.end(side),
            None => self.links[link].end(side),
        }
    }

    /// The hosts' own queues, and the delay between a stack and its tap.
    fn host_ports(&mut self, plan: &Plan) {
        let last = self.links.len() - 1;
        // A host's own port, then those of the machine that delays: to the path and to the host.
        let server = (&plan.server, (0, Side::Near), (1, Side::Near), (0, Side::Far));
        let client = (
            &plan.client,
            (last, Side::Far),
            (last.saturating_sub(1), Side::Far),
            (last, Side::Near),
        );
        for (host, own, to_path, to_host) in [server, client] {
            let setting = match host.egress {
                None => None,
                Some(Egress::TokenBucket(bucket)) => Some(parts::bucket(bucket)),
                Some(Egress::Fq) => Some(Setting::Egress(Discipline::Fq)),
                Some(Egress::FqCodel) => Some(Setting::Egress(Discipline::FqCodel)),
                Some(Egress::Fifo(queue)) => {
                    Some(Setting::Egress(Discipline::Fifo(parts::limit(queue))))
                }
            };
            self.way_out(own.0, own.1).settings.extend(setting);
            if host.stack_to_tap_ns > 0 {
                for (link, side) in [to_path, to_host] {
                    let delay = Netem { delay_ns: host.stack_to_tap_ns, ..Netem::default() };
                    let setting = Setting::Egress(Discipline::Netem(delay));
                    self.port(link, side).settings.push(setting);
                }
            }
        }
    }

    fn put_taps(&mut self, plan: &Plan, middle: usize) {
        let server = usize::from(plan.server.stack_to_tap_ns > 0);
        let client = self.nodes.len() - 1 - usize::from(plan.client.stack_to_tap_ns > 0);
        let mut tap = |name, node, device: &str| {
            self.taps.push(Tap { name, node, device: device.to_owned() });
        };
        // Of a host's two interfaces, each has half of it.
        let all = |host: &Host| (host.second_nic && host.stack_to_tap_ns == 0).then_some("any");
        tap("client", client, all(&plan.client).unwrap_or(&self.links[client - 1].far.device));
        tap("server", server, all(&plan.server).unwrap_or(&self.links[server].near.device));
        if plan.records.middle {
            tap("middle", middle + 1, &self.links[middle].far.device);
        }
    }
}

impl Node {
    fn host(name: String, host: &Host) -> Self {
        Self { name, sysctl: host.sysctl.clone(), route: host.route.clone(), forwards: false }
    }
}

impl Link {
    const fn end(&mut self, side: Side) -> &mut Port {
        match side {
            Side::Near => &mut self.near,
            Side::Far => &mut self.far,
        }
    }
}

impl Port {
    /// Its address.
    pub fn address(&self, ipv6: bool) -> IpAddr {
        if ipv6 {
            IpAddr::V6(Ipv6Addr::new(0xfd00, self.net.into(), 0, 0, 0, 0, 0, self.host.into()))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 0, self.net, self.host))
        }
    }

    /// Its hardware address, locally administered.
    pub fn hardware(&self) -> [u8; 6] {
        [2, 0, 0, 0, self.net, self.host]
    }
}

/// The end of a link that is nearer to the server, or farther.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Near,
    Far,
}

/// Machines between a host and the path, from the host on.
fn before(name: &str, host: &Host) -> Vec<String> {
    let tap = (host.stack_to_tap_ns > 0).then(|| format!("{name}-tap"));
    let nic = host.offload.then(|| format!("{name}-nic"));
    tap.into_iter().chain(nic).collect()
}

/// Numbers of the networks of second links; those of a chain are small.
const SERVER_OUT: u8 = 250;
const CLIENT_OUT: u8 = 251;

/// A host's first device, or a machine's device towards the client (`c`) or server (`s`).
fn device(node: &str, toward: &str) -> String {
    if node == "server" || node == "client" {
        format!("{node}0")
    } else {
        format!("{node}-{toward}")
    }
}
