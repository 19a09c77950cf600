//! `[client]`, `[server]` and their sockets.

use std::collections::BTreeMap;

use super::bucket::bucket;
use super::error::ScenarioError;
use super::host_changes;
use super::keys::{DEVICE, HOST, ROUTE, SOCKET};
use super::path;
use super::plan::{Device, Egress, Host, Queue, Socket};
use super::section::Section;
use super::settings::{is_word, sysctl};
use super::tree::{Node, Value};

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

fn route(section: &Section<'_>) -> Result<BTreeMap<String, String>, ScenarioError> {
    let mut words = BTreeMap::new();
    for (word, (place, node)) in section.table("route")?.into_iter().flatten() {
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

/// Packets that `pfifo_fast` holds: `DEFAULT_TX_QUEUE_LEN` of `include/net/pkt_sched.h`.
const TXQUEUELEN: u64 = 1000;
