//! Builds a layout out of network namespaces, and changes it while a run goes on.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use tcpwhy_model::scenario::plan::Plan;

use super::fate::Judge;
use super::links::{self, metrics};
use super::queues;
use super::system;
use crate::lab::changing::set;
use crate::lab::layout::{Fate, Layout, Port, Setting, Timed};
use crate::netlink::Netlink;
use crate::record::counters::Counters;

/// The network namespaces of a run.
pub(super) struct Paths {
    ipv6: bool,
    networks: Vec<OwnedFd>,
    judges: BTreeMap<String, Judge>,
}

impl Paths {
    /// Builds all of it.
    pub(super) fn build(plan: &Plan, layout: &Layout) -> Result<Self, String> {
        let mut paths = Self { ipv6: plan.ipv6, networks: Vec::new(), judges: BTreeMap::new() };
        for node in &layout.nodes {
            let fd = system::leave_network()
                .and_then(|()| system::network())
                .map_err(|e| format!("cannot make a network namespace: {e}"))?;
            paths.networks.push(fd);
            for (name, value) in QUIET {
                set(name, value)?;
            }
            if node.forwards {
                for name in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
                    set(name, "1")?;
                }
            }
            for (name, value) in &node.sysctl {
                set(name, value).map_err(|e| format!("{}: {e}", node.name))?;
            }
        }
        let links = || layout.links.iter().enumerate();
        let all = || links().chain(layout.ways_out.iter().map(|(k, link)| (*k, link)));
        for (k, link) in all() {
            let there = &paths.networks[k + 1];
            paths
                .within(k, || {
                    links::join(&mut Netlink::open_for_changes()?, &link.near, &link.far, there)
                })?
                .map_err(|e| {
                    format!("cannot join {} and {}: {e}", link.near.device, link.far.device)
                })?;
        }
        for k in 0..layout.nodes.len() {
            paths.within(k, || ports(layout, k))??;
        }
        for (k, link) in all() {
            paths.settings(k, &link.near)?;
            paths.settings(k + 1, &link.far)?;
        }
        Ok(paths)
    }

    /// Does something in the namespace of a node.
    pub(super) fn within<T>(&self, node: usize, what: impl FnOnce() -> T) -> Result<T, String> {
        system::enter_network(&self.networks[node])
            .map_err(|e| format!("cannot enter a network namespace: {e}"))?;
        Ok(what())
    }

    /// Carries a change out.
    pub(super) fn change(&mut self, change: &Timed) -> Result<(), String> {
        self.put(change.node, &change.device, &change.setting, true)
    }

    /// Settings of both hosts, by `client.net.ipv4.tcp_rmem` and alike.
    pub(super) fn knobs(&self) -> Result<BTreeMap<String, String>, String> {
        let mut knobs = BTreeMap::new();
        for (host, node) in self.hosts() {
            let read = self.within(node, || {
                let tcp = fs::read_dir("/proc/sys/net/ipv4").into_iter().flatten().flatten();
                tcp.filter_map(|entry| {
                    let name = entry.file_name().into_string().ok()?;
                    let value = fs::read_to_string(entry.path()).ok()?;
                    name.starts_with("tcp_").then(|| (name, value.trim().replace('\t', " ")))
                })
                .collect::<Vec<_>>()
            })?;
            for (name, value) in read {
                knobs.insert(format!("{host}.net.ipv4.{name}"), value);
            }
        }
        Ok(knobs)
    }

    /// The counters of both hosts.
    pub(super) fn counters(&self) -> Result<BTreeMap<&'static str, Counters>, String> {
        let mut all = BTreeMap::new();
        for (host, node) in self.hosts() {
            let read = self.within(node, Counters::read)?;
            let read = read.map_err(|e| format!("cannot count at the {host}: {e}"))?;
            all.insert(host, read);
        }
        Ok(all)
    }

    /// Both hosts and their places in the chain.
    pub(super) fn hosts(&self) -> [(&'static str, usize); 2] {
        [("server", 0), ("client", self.networks.len() - 1)]
    }

    fn settings(&mut self, node: usize, port: &Port) -> Result<(), String> {
        let watched = |s: &Setting| matches!(s, Setting::Police(_) | Setting::Fate(_));
        if port.settings.iter().any(watched) {
            self.within(node, || queues::watch(&mut Netlink::open_for_changes()?, &port.device))?
                .map_err(|e| format!("cannot classify at {}: {e}", port.device))?;
        }
        for setting in &port.settings {
            self.put(node, &port.device, setting, false)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        node: usize,
        device: &str,
        setting: &Setting,
        there: bool,
    ) -> Result<(), String> {
        system::enter_network(&self.networks[node])
            .and_then(|()| match setting {
                Setting::Egress(d) => {
                    queues::egress(&mut Netlink::open_for_changes()?, device, d, there)
                }
                Setting::Police(p) => {
                    queues::police(&mut Netlink::open_for_changes()?, device, *p, there)
                }
                Setting::Fate(fate) => self.judge(device, fate),
            })
            .map_err(|e| format!("cannot put {setting:?} on {device}: {e}"))
    }

    fn judge(&mut self, device: &str, fate: &Fate) -> io::Result<()> {
        if let Some(judge) = self.judges.get_mut(device) {
            return judge.change(fate);
        }
        let judge = Judge::new(self.ipv6, fate)?;
        queues::decide(&mut Netlink::open_for_changes()?, device, &judge.program)?;
        self.judges.insert(device.to_owned(), judge);
        Ok(())
    }
}

/// Addresses and routes of a node, in whose namespace this is called.
fn ports(layout: &Layout, k: usize) -> Result<(), String> {
    let node = &layout.nodes[k];
    let error = |e: io::Error| format!("cannot configure the devices of {}: {e}", node.name);
    let mut netlink = Netlink::open_for_changes().map_err(error)?;
    links::put_loopback_up(&mut netlink).map_err(error)?;
    let (before, behind) = (k.checked_sub(1), k);
    let toward_server = before.map(|k| (&layout.links[k].far, &layout.links[k].near));
    let toward_client = layout.links.get(behind).map(|l| (&l.near, &l.far));
    let second_before = before.and_then(|k| layout.ways_out.get(&k)).map(|l| (&l.far, &l.near));
    let second_behind = layout.ways_out.get(&behind).map(|l| (&l.near, &l.far));
    let ports = [toward_server, toward_client, second_before, second_behind];
    for (port, peer) in ports.into_iter().flatten() {
        links::put_up(&mut netlink, port, peer).map_err(error)?;
    }
    let metrics = metrics(&node.route).map_err(|e| format!("route of {}: {e}", node.name))?;
    let (server, client) =
        (layout.links[0].near.net, layout.links[layout.links.len() - 1].near.net);
    // What is next to a node it reaches without a route. A host's second link is its way to the peer.
    let last = layout.links.len();
    let ways = [
        (server, toward_server, second_before.filter(|_| k == last)),
        (client, toward_client, second_behind.filter(|_| k == 0)),
    ];
    for (net, first, second) in ways {
        let Some(first) = first.filter(|(port, _)| port.net != net) else { continue };
        let (toward, source) = second.map_or((first, None), |second| (second, Some(first.0)));
        links::route(&mut netlink, net, toward, source, &metrics).map_err(error)?;
    }
    Ok(())
}

/// Nothing speaks on the links but what the run asks for.
const QUIET: [(&str, &str); 4] = [
    ("net.ipv6.conf.all.accept_dad", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    ("net.ipv6.conf.all.router_solicitations", "0"),
];
