//! `ifconfig`, as net-tools 1.60 and 2.10 print it.
//!
//! It reads `/proc/net/dev`, which adds some counters up (v6.12 `net/core/net-procfs.c`,
//! `dev_seq_printf_stats`): `dropped` is what was dropped and what the ring missed, `frame` four kinds of
//! broken frames. Aliases (`eth0:1`) are not interfaces.

use core::net::{IpAddr, Ipv4Addr};

use super::collected::{Collected, Counted};
use super::command::is_device;
use super::links::add_address;
use super::{Line, Taken};
use crate::snapshot::Link;

/// An interface whose lines are being read.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// `None` for an alias.
    dev: Option<String>,
    counts_begun: bool,
}

/// `eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500`, or `eth0      Link encap:Ethernet ..`.
pub(super) fn begin(line: Line<'_>, collected: &mut Collected) -> Option<Block> {
    let text = line.text;
    let (name, flags) = if let Some((name, rest)) = text.split_once(": flags=") {
        (name, Some(rest))
    } else {
        let (name, rest) = text.split_once(char::is_whitespace)?;
        rest.trim_start().strip_prefix("Link encap:")?;
        (name, None)
    };
    let plain = name.trim_end_matches(':');
    if !is_device(plain) {
        // An alias has its own lines.
        let is_alias = plain.split(':').all(is_device);
        return is_alias.then(Block::default);
    }
    let link = collected.link(plain);
    if let Some(flags) = flags {
        let (flags, rest) = flags.split_once('<')?.1.split_once('>')?;
        take_flags(link, flags.split(','));
        link.mtu = rest.trim().strip_prefix("mtu ").and_then(|mtu| mtu.trim().parse().ok());
    }
    Some(Block { dev: Some(plain.to_owned()), counts_begun: false })
}

/// `RUNNING` is the carrier, unless the device is dormant (`netif_oper_up`).
fn take_flags<'a>(link: &mut Link, flags: impl Iterator<Item = &'a str> + Clone) {
    let mut flags = flags;
    let has = |name: &str| flags.clone().any(|flag| flag == name);
    (link.up, link.carrier, link.loopback) = (has("UP"), has("RUNNING"), has("LOOPBACK"));
    link.flags_unseen = flags.next().is_none();
}

impl Block {
    /// A line below the first.
    pub(super) fn line(&mut self, line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
        let text = line.text;
        let first = text.split([' ', ':']).next()?;
        let known =
            ["inet", "inet6", "ether", "loop", "unspec", "UP", "BROADCAST", "LOOPBACK", "RX", "TX"];
        let more = ["POINTOPOINT", "NOARP", "device", "Interrupt", "collisions", "DOWN"];
        if !known.contains(&first) && !more.contains(&first) {
            return None;
        }
        let Some(dev) = &self.dev else { return Some(Taken::Read) };
        let link = collected.link(dev);
        if let Some(address) = address(text) {
            add_address(link, address);
            return Some(Taken::Read);
        }
        if text.contains("MTU:") {
            take_flags(link, text.split_whitespace());
        }
        for (name, value) in words(text) {
            match name {
                "MTU" => link.mtu = value.and_then(|value| value.parse().ok()),
                "txqueuelen" => link.txqlen = value.and_then(|value| value.parse().ok()),
                _ => {}
            }
        }
        if matches!(first, "RX" | "TX") {
            self.counters(text, collected);
        }
        Some(Taken::Read)
    }

    fn counters(&mut self, text: &str, collected: &mut Collected) {
        let Some(dev) = &self.dev else { return };
        let now = collected.now;
        let readings = collected.link_counts.entry(dev.clone()).or_default();
        if !core::mem::replace(&mut self.counts_begun, true) {
            readings.push(now, Counted::new());
        }
        let counts = readings.open(now);
        let mut direction = "";
        for (name, value) in words(text) {
            if matches!(name, "RX" | "TX") {
                direction = name;
            }
            let is = |&&(of, printed, _): &&(&str, &str, &str)| of == direction && printed == name;
            let value = value.and_then(|value| value.parse::<u64>().ok());
            if let (Some((_, _, counter)), Some(value)) = (COUNTERS.iter().find(is), value) {
                counts.insert((*counter).to_owned(), value);
            }
        }
    }
}

/// `errors:0` or `errors 0`: names with the values behind them.
fn words(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut words = text.split_whitespace().peekable();
    core::iter::from_fn(move || {
        let word = words.next()?;
        Some(match word.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (word, words.peek().copied()),
        })
    })
}

/// Direction, ifconfig's name, and the kernel's.
const COUNTERS: [(&str, &str, &str); 12] = [
    ("RX", "packets", "rx_packets"),
    ("RX", "bytes", "rx_bytes"),
    ("RX", "errors", "rx_errors"),
    ("RX", "dropped", "rx_dropped+rx_missed_errors"),
    ("RX", "overruns", "rx_fifo_errors"),
    ("RX", "frame", "rx_length_errors+rx_over_errors+rx_crc_errors+rx_frame_errors"),
    ("TX", "packets", "tx_packets"),
    ("TX", "bytes", "tx_bytes"),
    ("TX", "errors", "tx_errors"),
    ("TX", "dropped", "tx_dropped"),
    ("TX", "overruns", "tx_fifo_errors"),
    ("TX", "carrier", "tx_carrier_errors+tx_aborted_errors+tx_window_errors+tx_heartbeat_errors"),
];

/// `inet 10.0.0.2  netmask 255.255.255.0`, `inet addr:10.0.0.2  Bcast:..  Mask:255.255.255.0`,
/// `inet6 fe80::1  prefixlen 64`, `inet6 addr: fe80::1/64 Scope:Link`.
fn address(text: &str) -> Option<(IpAddr, u8)> {
    let rest = text.strip_prefix("inet6 ").or_else(|| text.strip_prefix("inet "))?;
    let rest = rest.strip_prefix("addr:").unwrap_or(rest).trim_start();
    let first = rest.split_whitespace().next()?;
    if let Some((address, length)) = first.split_once('/') {
        return Some((address.parse().ok()?, length.parse().ok()?));
    }
    let value = |name: &str| {
        let (_, behind) = rest.split_once(name)?;
        behind.split_whitespace().next()
    };
    let length = if let Some(length) = value("prefixlen ") {
        length.parse().ok()?
    } else {
        let mask: Ipv4Addr = value("netmask ").or_else(|| value("Mask:"))?.parse().ok()?;
        mask.to_bits().count_ones() as u8
    };
    Some((first.parse().ok()?, length))
}
