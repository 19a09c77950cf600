//! `ip link` and `ip addr`, with `-s`, `-s -s` and `-d`.
//!
//! Heads name the columns of statistics, for they changed places: what iproute2 before 5.10 prints as `overrun` of
//! the first line is now in the second, and `missed` the other way round. `-s` alone shows some of the counters,
//! `-s -s` all.

use core::net::IpAddr;

use super::collected::{Collected, Counted};
use super::{Line, Taken};
use crate::snapshot::Link;

/// An interface whose lines are being read.
#[derive(Debug, Default)]
pub(super) struct Block {
    dev: String,
    /// The kernel's names of the columns that the next line fills.
    columns: Vec<&'static str>,
    counts_begun: bool,
}

/// `2: eth0@if5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq state UP mode DEFAULT qlen 1000`
pub(super) fn begin(line: Line<'_>, collected: &mut Collected) -> Option<Block> {
    let (index, rest) = line.text.split_once(": ")?;
    let index = index.parse().ok()?;
    let (name, rest) = rest.split_once(": <")?;
    let (flags, rest) = rest.split_once('>')?;
    let dev = name.split('@').next()?;
    let link = collected.link(dev);
    link.index = index;
    let flag = |name: &str| flags.split(',').any(|flag| flag == name);
    (link.up, link.carrier, link.loopback) = (flag("UP"), flag("LOWER_UP"), flag("LOOPBACK"));
    link.flags_unseen = false;
    link.xdp = Some(0);
    let mut words = rest.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mode = match word.split('/').next() {
            Some("xdp" | "xdpmulti") => Some(1),
            Some("xdpgeneric") => Some(2),
            Some("xdpoffload") => Some(3),
            _ => None,
        };
        if mode.is_some() {
            link.xdp = mode;
        } else if let Some(value) = words.peek() {
            parameter(link, word, value);
        }
    }
    Some(Block { dev: dev.to_owned(), ..Block::default() })
}

impl Block {
    /// A line below the first.
    pub(super) fn line(&mut self, line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
        let text = line.text;
        let mut words = text.split_whitespace();
        let first = words.next()?;
        if let Some(columns) = columns(text) {
            self.columns = columns;
            return Some(Taken::Read);
        }
        if !self.columns.is_empty() {
            let columns = core::mem::take(&mut self.columns);
            return self.counters(&columns, text, collected).then_some(Taken::Read);
        }
        let link = collected.link(&self.dev);
        match first {
            "inet" | "inet6" => {
                let (address, length) = words.next()?.split_once('/')?;
                let address: IpAddr = address.parse().ok()?;
                let length = length.parse().ok()?;
                add_address(link, (address, length));
            }
            _ if first.starts_with("link/") || DETAILS.contains(&first) => {}
            // With `-d` the kind is first, and its parameters follow.
            kind if KINDS.contains(&kind) => link.kind = Some(kind.to_owned()),
            _ if !line.is_indented() => return None,
            _ => {}
        }
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if let Some(value) = words.peek() {
                parameter(link, word, value);
            }
        }
        Some(Taken::Read)
    }

    fn counters(&mut self, columns: &[&str], text: &str, collected: &mut Collected) -> bool {
        let values: Option<Vec<u64>> =
            text.split_whitespace().map(|word| word.parse().ok()).collect();
        // With `-h` they are rounded, and not used.
        let Some(values) = values.filter(|values| values.len() == columns.len()) else {
            return text.starts_with(|c: char| c.is_ascii_digit());
        };
        let now = collected.now;
        let readings = collected.link_counts.entry(self.dev.clone()).or_default();
        if !core::mem::replace(&mut self.counts_begun, true) {
            readings.push(now, Counted::new());
        }
        let counts = readings.open(now);
        let wanted = columns.iter().zip(values).filter(|(name, _)| !name.is_empty());
        counts.extend(wanted.map(|(name, value)| ((*name).to_owned(), value)));
        true
    }
}

/// Adds an address, once. The most is ours: hosts with thousands on one interface are rare, and finding one
/// among many takes its time.
pub(super) fn add_address(link: &mut Link, address: (IpAddr, u8)) {
    if link.addresses.len() < 4096 && !link.addresses.contains(&address) {
        link.addresses.push(address);
    }
}

fn parameter(link: &mut Link, name: &str, value: &str) {
    let number = || value.parse::<u32>().ok();
    match name {
        "mtu" => link.mtu = number().or(link.mtu),
        "qdisc" => link.queueless = value == "noqueue",
        "qlen" => link.txqlen = number().or(link.txqlen),
        "master" => link.master = Some(value.to_owned()),
        "gso_max_size" => link.gso_max_size = number().or(link.gso_max_size),
        "gso_max_segs" => link.gso_max_segs = number().or(link.gso_max_segs),
        _ => {}
    }
}

/// The counters under a head, by the kernel's names (iproute2 6.1 `ip/ipaddress.c`, `print_link_stats64`);
/// an empty name is not wanted.
fn columns(text: &str) -> Option<Vec<&'static str>> {
    let (head, names) = text.split_once(':')?;
    let names = names.split_whitespace();
    let all: &[(&str, &str)] = match head {
        "RX" => &RX,
        "TX" => &TX,
        "RX errors" => &RX_ERRORS,
        "TX errors" => &TX_ERRORS,
        _ => return None,
    };
    let known = |name: &str| all.iter().find(|(printed, _)| *printed == name).map(|(_, is)| *is);
    Some(names.map(|name| known(name).unwrap_or_default()).collect())
}

const RX: [(&str, &str); 6] = [
    ("bytes", "rx_bytes"),
    ("packets", "rx_packets"),
    ("errors", "rx_errors"),
    ("dropped", "rx_dropped"),
    ("missed", "rx_missed_errors"),
    ("overrun", "rx_over_errors"),
];

const TX: [(&str, &str); 5] = [
    ("bytes", "tx_bytes"),
    ("packets", "tx_packets"),
    ("errors", "tx_errors"),
    ("dropped", "tx_dropped"),
    ("carrier", "tx_carrier_errors"),
];

const RX_ERRORS: [(&str, &str); 8] = [
    ("length", "rx_length_errors"),
    ("crc", "rx_crc_errors"),
    ("frame", "rx_frame_errors"),
    ("fifo", "rx_fifo_errors"),
    ("missed", "rx_missed_errors"),
    ("overrun", "rx_over_errors"),
    ("nohandler", "rx_nohandler"),
    ("otherhost", "rx_otherhost_dropped"),
];

const TX_ERRORS: [(&str, &str); 3] = [
    ("aborted", "tx_aborted_errors"),
    ("fifo", "tx_fifo_errors"),
    // How often the carrier came or went (`IFLA_CARRIER_CHANGES`).
    ("transns", "carrier_changes"),
];

/// First words of lines that say nothing that is wanted.
const DETAILS: [&str; 7] =
    ["valid_lft", "altname", "alias", "vf", "prog/xdp", "permaddr", "promiscuity"];

/// `IFLA_INFO_KIND` of what is found on servers (`rtnl_link_ops.kind` in the kernel's `drivers/net`).
const KINDS: [&str; 18] = [
    "veth",
    "bridge",
    "bond",
    "vlan",
    "vxlan",
    "macvlan",
    "ipvlan",
    "tun",
    "dummy",
    "ifb",
    "gre",
    "geneve",
    "wireguard",
    "vrf",
    "team",
    "ipip",
    "sit",
    "macvtap",
];
