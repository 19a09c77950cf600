//! `ip route`, with `show table all` or `-6`, and `ip tcp_metrics`.
//!
//! ```text
//! default via 10.0.0.1 dev eth0 proto dhcp metric 100 mtu lock 1400 initcwnd 30 rto_min lock 40ms
//! 10.0.0.9 age 12.340sec ssthresh 361 cwnd 40 rtt 29000us rttvar 14000us source 10.0.0.2
//! ```
//!
//! A table that is named, but by none of the kernel's names, is 0: its number is in a file that was not seen.

use core::net::IpAddr;

use super::collected::Collected;
use super::command::Command;
use super::{Line, Taken};
use crate::snapshot::{PeerMetrics, Route};
use tcpwhy_words::printed::stamp;

/// Kinds of routes that ip(8) prints in front (ip-route(8)); `unicast` only with `-d`.
const KINDS: [&str; 11] = [
    "unicast",
    "local",
    "broadcast",
    "multicast",
    "anycast",
    "blackhole",
    "unreachable",
    "prohibit",
    "throw",
    "nat",
    "xresolve",
];

/// Words that say the state of a route, not how to set it.
const STATES: [&str; 7] =
    ["linkdown", "dead", "pervasive", "offload", "trap", "rt_offload", "rt_trap"];

/// A route's line; false for others.
pub(super) fn route(line: Line<'_>, command: &Command, collected: &mut Collected) -> bool {
    let mut words: Vec<&str> = line.text.split_whitespace().collect();
    let kind = words.first().copied().filter(|word| KINDS.contains(word)).unwrap_or_default();
    if !kind.is_empty() {
        words.remove(0);
    }
    let Some((to, words)) = words.split_first() else { return false };
    let Some(to) = destination(to) else { return false };
    // An address alone is no route.
    let is_route =
        words.iter().any(|word| matches!(*word, "dev" | "via" | "nexthop" | "nhid" | "proto"))
            || matches!(kind, "blackhole" | "unreachable" | "prohibit" | "throw");
    if !is_route || words.contains(&"lladdr") || words.contains(&"age") {
        return false;
    }
    if matches!(kind, "local" | "broadcast" | "multicast" | "anycast") {
        collected.routes.get_or_insert_default();
        return true;
    }
    let mut route = Route {
        line: settable(line.text),
        to,
        kind: if kind.is_empty() { "unicast" } else { kind }.to_owned(),
        table: 254,
        ipv6: to.is_some_and(|(address, _)| address.is_ipv6()) || command.has("ip", '6'),
        ..Route::default()
    };
    attributes(&mut route, words);
    collected.routes.get_or_insert_default().push(route);
    true
}

/// Further gateways, and what the kernel cached.
pub(super) fn go_on(line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
    let route = collected.routes.as_mut()?.last_mut()?;
    let mut words = line.text.split_whitespace();
    match words.next()? {
        "nexthop" => {
            route.line.push(' ');
            route.line.push_str(&settable(line.text));
            let words: Vec<&str> = words.collect();
            if route.dev.is_none() {
                attributes(route, &words);
            }
            Some(Taken::Read)
        }
        "cache" => Some(Taken::Read),
        _ => None,
    }
}

/// `default`, `10.0.0.0/8`, `10.0.0.1`; the outer `None` is for what is no destination.
#[expect(clippy::option_option, reason = "the default route is a destination without an address")]
fn destination(word: &str) -> Option<Option<(IpAddr, u8)>> {
    if word == "default" {
        return Some(None);
    }
    let (address, length) = word.split_once('/').map_or((word, None), |(a, l)| (a, Some(l)));
    // `ip` shortens `10.0.0.0/8` to `10/8` no longer.
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv6() { 128 } else { 32 };
    let length = length.map_or(Some(most), |length| length.parse().ok())?;
    (length <= most).then_some(Some((address, length)))
}

fn settable(text: &str) -> String {
    let mut kept = Vec::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if matches!(word, "error" | "expires" | "age" | "users" | "used") {
            words.next();
        } else if !STATES.contains(&word) {
            kept.push(word);
        }
    }
    kept.join(" ")
}

fn attributes(route: &mut Route, words: &[&str]) {
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        let Some(next) = words.peek().copied() else { break };
        match word {
            "dev" => route.dev = Some(next.to_owned()),
            "via" => {
                // `via inet6 fe80::1` leads to another family.
                let gateway =
                    if matches!(next, "inet" | "inet6") { words.nth(1) } else { Some(next) };
                route.via = gateway.and_then(|word| word.parse().ok());
                route.ipv6 |= route.via.is_some_and(|via| via.is_ipv6()) && next != "inet6";
            }
            "src" => route.src = next.parse().ok(),
            "table" => route.table = table(next),
            "metric" => route.metric = next.parse().unwrap_or_default(),
            "pref" => route.ipv6 = true,
            "congctl" => {
                let locked = next == "lock";
                let name = if locked { words.nth(1).unwrap_or_default() } else { next };
                route.congestion = Some(name.to_owned());
                route.locked.extend(locked.then(|| word.to_owned()));
            }
            _ if METRICS.contains(&word) => {
                let locked = next == "lock";
                let value = if locked { words.nth(1).unwrap_or_default() } else { next };
                if let Some(value) = metric(word, value) {
                    route.metrics.insert(word.to_owned(), value);
                    route.locked.extend(locked.then(|| word.to_owned()));
                }
            }
            _ => {}
        }
    }
}

/// Metrics by the names of ip-route(8).
const METRICS: [&str; 14] = [
    "mtu",
    "window",
    "rtt",
    "rttvar",
    "ssthresh",
    "cwnd",
    "advmss",
    "reordering",
    "hoplimit",
    "initcwnd",
    "rto_min",
    "initrwnd",
    "quickack",
    "fastopen_no_cookie",
];

/// Times become nanoseconds: `40ms`, `1.5s`, `30us`; without a unit milliseconds (ip-route(8)).
fn metric(name: &str, value: &str) -> Option<u64> {
    if !matches!(name, "rtt" | "rttvar" | "rto_min") {
        return value.parse().ok();
    }
    let (number, divisor) = if let Some(number) = value.strip_suffix("us") {
        (number, 1_000_000)
    } else if let Some(number) = value.strip_suffix("ms") {
        (number, 1_000)
    } else if let Some(number) = value.strip_suffix('s') {
        (number, 1)
    } else {
        (value, 1_000)
    };
    u64::try_from(stamp::decimal(number)? / divisor).ok()
}

/// `include/uapi/linux/rtnetlink.h`, `rt_class_t`.
fn table(name: &str) -> u32 {
    match name {
        "main" => 254,
        "default" => 253,
        "local" => 255,
        number => number.parse().unwrap_or_default(),
    }
}

/// `10.0.0.9 age 12.340sec cwnd 40 rtt 29000us ..`; false for other lines.
pub(super) fn metrics(text: &str, collected: &mut Collected) -> bool {
    let mut words = text.split_whitespace().peekable();
    let Some(Ok(to)) = words.next().map(str::parse) else { return false };
    if words.next() != Some("age") || !words.next().is_some_and(|age| age.ends_with("sec")) {
        return false;
    }
    let mut peer = PeerMetrics {
        to,
        from: None,
        ssthresh: None,
        cwnd: None,
        rtt_ns: None,
        rttvar_ns: None,
        reordering: None,
        cookie: false,
    };
    while let Some(word) = words.next() {
        let Some(next) = words.peek().copied() else { break };
        match word {
            "ssthresh" => peer.ssthresh = next.parse().ok(),
            "cwnd" => peer.cwnd = next.parse().ok(),
            "reordering" => peer.reordering = next.parse().ok(),
            "rtt" => peer.rtt_ns = metric("rtt", next),
            "rttvar" => peer.rttvar_ns = metric("rtt", next),
            "source" => peer.from = next.parse().ok(),
            "fo_cookie" => peer.cookie = true,
            _ => {}
        }
    }
    collected.tcp_metrics.get_or_insert_default().push(peer);
    true
}
