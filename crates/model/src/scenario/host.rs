//! `[client]`, `[server]` and their sockets.

use std::collections::BTreeMap;

use super::bucket::bucket;
use super::error::ScenarioError;
use super::host_changes;
use super::keys::{DEVICE, HOST, ROUTE, SOCKET};
use super::path;
use super::plan::{Device, Egress, Host, Queue, Socket};
use super::section::Section;
use super::tree::{Node, Table, Value};

/// Reads a host; its socket's options stand apart, for applications may change them. `limit_ns` is the longest time of a
/// run.
pub(super) fn read<'n>(
    name: &str,
    node: Option<&'n Node>,
    limit_ns: u64,
) -> Result<(Host, Option<&'n Node>), ScenarioError> {
    let section = Section::open(name, HOST, node)?;
    let host = Host {
        sysctl: sysctl(&section)?,
        route: route(&section)?,
        offload: section.switch("offload")?,
        egress: egress(&section)?,
        device: device(&section)?,
        stack_to_tap_ns: section.figure("tap_delay")?,
        second_nic: section.switch("second_nic")?,
        changes: host_changes::read(&section, limit_ns)?,
    };
    Ok((host, section.node("socket")))
}

/// Reads a socket's options, later layers over earlier ones; each with its dotted name.
pub(super) fn socket(layers: &[(String, Option<&Node>)]) -> Result<Socket, ScenarioError> {
    let mut all = Node::default();
    for (path, node) in layers {
        // Opened alone first, so that errors name the layer that is wrong.
        Section::open(path.as_str(), SOCKET, *node)?;
        if let Some(node) = node {
            all.overlay(node);
        }
    }
    let path = layers.last().map_or("socket", |(path, _)| path);
    let section = Section::open(path, SOCKET, Some(&all))?;
    let narrow = |name| Ok::<_, ScenarioError>(section.number(name)?.map(|n| n as u32));
    Ok(Socket {
        sndbuf: narrow("sndbuf")?,
        rcvbuf: narrow("rcvbuf")?,
        nodelay: section.switch("nodelay")?,
        cork: section.switch("cork")?,
        congestion: match section.text("congestion")? {
            Some((_, name)) if is_word(&name) => Some(name),
            Some((place, name)) => {
                let what = format!("`{path}.congestion`: `{name}` is no name of a controller");
                return Err(ScenarioError::new(place, what));
            }
            None => None,
        },
        notsent_lowat: narrow("notsent_lowat")?,
        max_pacing: section.number("max_pacing")?.map(|bits| bits / 8),
        window_clamp: narrow("window_clamp")?,
        fast_open: section.switch("fast_open")?,
        backlog: narrow("backlog")?,
    })
}

/// Settings by their names, of a host or of a change of it.
pub(super) fn sysctl(section: &Section<'_>) -> Result<BTreeMap<String, String>, ScenarioError> {
    let mut settings = BTreeMap::new();
    let Some(table) = table_of(section, "sysctl")? else { return Ok(settings) };
    flatten(section, "", table, &mut settings)?;
    Ok(settings)
}

/// `net.ipv4.tcp_sack` may come as one key or as tables in tables.
fn flatten(
    section: &Section<'_>,
    prefix: &str,
    table: &Table,
    settings: &mut BTreeMap<String, String>,
) -> Result<(), ScenarioError> {
    for (key, (place, node)) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if let Value::Table(inner) = &node.value {
            flatten(section, &name, inner, settings)?;
            continue;
        }
        let dotted = format!("{}.{name}", section.name("sysctl"));
        let refuse = |what: &str| Err(ScenarioError::new(place, format!("`{dotted}` {what}")));
        let is_plain = name.split('.').all(is_word);
        if !is_plain || !name.starts_with("net.") {
            return refuse(
                "cannot be set: only names below `net.` belong to one host alone; leave it out",
            );
        }
        if HOST_WIDE.contains(&name.as_str()) {
            return refuse(
                "holds for the whole machine, which no experiment may touch; leave it out",
            );
        }
        let value = section.text_of(&format!("sysctl.{name}"), node)?;
        if value.contains(['\n', '\0']) {
            return refuse("has a value of more than one line");
        }
        settings.insert(name, value);
    }
    Ok(())
}

fn route(section: &Section<'_>) -> Result<BTreeMap<String, String>, ScenarioError> {
    let mut words = BTreeMap::new();
    for (word, (place, node)) in table_of(section, "route")?.into_iter().flatten() {
        if !ROUTE.contains(&word.as_str()) {
            let known = ROUTE.iter().copied();
            return Err(ScenarioError::unknown(place, "unknown word of a route", word, known));
        }
        let value = match &node.value {
            Value::Switch(on) => u8::from(*on).to_string(),
            _ => section.text_of(&format!("route.{word}"), node)?,
        };
        if value.split(' ').all(is_word) {
            words.insert(word.clone(), value);
        } else {
            let what = format!("`{value}` is no value of a route's `{word}`");
            return Err(ScenarioError::new(&node.place, what));
        }
    }
    Ok(words)
}

fn table_of<'n>(section: &Section<'n>, name: &str) -> Result<Option<&'n Table>, ScenarioError> {
    match section.node(name).map(|node| (&node.value, &node.place)) {
        None => Ok(None),
        Some((Value::Table(table), _)) => Ok(Some(table)),
        Some((_, place)) => {
            let what = format!("`{}` is a table of names and values", section.name(name));
            Err(ScenarioError::new(place, what))
        }
    }
}

fn egress(section: &Section<'_>) -> Result<Option<Egress>, ScenarioError> {
    let Some(node) = section.node("egress") else { return Ok(None) };
    match &node.value {
        Value::Text(text) => match text.as_str() {
            "fq" => Ok(Some(Egress::Fq)),
            "fq_codel" => Ok(Some(Egress::FqCodel)),
            "pfifo_fast" => Ok(Some(Egress::Fifo(Queue::Packets(TXQUEUELEN)))),
            "none" => Ok(None),
            _ => match text.strip_prefix("fifo ").map(path::fifo) {
                Some(queue) => queue.map(|queue| Some(Egress::Fifo(queue))).map_err(|why| {
                    let what = format!("`{}`: {why}", section.name("egress"));
                    ScenarioError::new(&node.place, what)
                }),
                None => Err(ScenarioError::unknown(
                    &node.place,
                    "unknown queueing discipline",
                    text,
                    ["fq", "fq_codel", "fifo 1000 packets", "fifo 30kB", "pfifo_fast", "none"],
                )),
            },
        },
        _ => bucket(section, "egress").map(|bucket| bucket.map(Egress::TokenBucket)),
    }
}

fn device(section: &Section<'_>) -> Result<Option<Device>, ScenarioError> {
    let Some(node) = section.node("device") else { return Ok(None) };
    let device = Section::open(section.name("device"), DEVICE, Some(node))?;
    let limit_min = device.figure("limit_min")? as u32;
    let limit_max = device.number("limit_max")?.map(|bytes| bytes as u32);
    if limit_max.is_some_and(|most| most < limit_min) {
        let what = "`limit_max` is less than `limit_min`";
        return Err(ScenarioError::new(device.place("limit_max"), what));
    }
    Ok(Some(Device {
        rate: device.figure("rate")?,
        ring: device.figure("ring")? as u32,
        bql: device.switch("bql")?,
        limit_min,
        limit_max,
    }))
}

/// What may stand in a command or a file's name: nothing that a shell or a path would understand.
pub(super) fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= 64 && !text.starts_with('-') && text.chars().all(plain)
}

/// Not kept per namespace (Linux v6.12 `net/ipv4/sysctl_net_ipv4.c`, `ipv4_table`): writing one
/// inside a namespace would be refused, or would change the machine.
const HOST_WIDE: &[&str] = &[
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.inet_peer_threshold",
    "net.ipv4.inet_peer_minttl",
    "net.ipv4.inet_peer_maxttl",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_available_ulp",
];

/// Packets that `pfifo_fast` holds: `DEFAULT_TX_QUEUE_LEN` of `include/net/pkt_sched.h`.
const TXQUEUELEN: u64 = 1000;
