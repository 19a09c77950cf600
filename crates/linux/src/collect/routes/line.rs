//! A route as the words that set it: `ip route replace LINE`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use tcpwhy::host::snapshot::Route;

use super::{CC_ALGO, METRICS, MORE, RTA_VIA, RTAX_LOCK, RTMSG};
use crate::collect::blind::name;
use crate::netlink::{address, attribute, attributes, number, u32_of};

/// The words, in the order in which ip(8) prints them; `None` where they would not set the same.
pub(super) fn line(message: &[u8], route: &Route, names: &BTreeMap<u32, String>) -> Option<String> {
    let head = message.get(..RTMSG)?;
    let facts = &message[RTMSG..];
    if attributes(facts).any(|(kind, _)| !UNDERSTOOD.contains(&kind)) {
        return None;
    }
    let [protocol, scope] = [head[5], head[6]];
    let mut words = Words::default();
    if route.kind != "unicast" {
        words.add(&route.kind);
    }
    words.add(&destination(route));
    if let Some(from) = attribute(facts, libc::RTA_SRC).and_then(address) {
        words.pair("from", &format!("{from}/{}", head[2]));
    }
    let shared = attribute(facts, RTA_NH_ID).and_then(u32_of);
    if let Some(id) = shared {
        words.pair("nhid", &id);
    }
    if head[3] != 0 {
        words.pair("tos", &format!("{:#x}", head[3]));
    }
    // What a shared next hop says must not be said again.
    if shared.is_none() {
        words.hop(facts, names)?;
    }
    words.table(route.table);
    // Left out, ip(8) takes `boot`, and what follows from type and gateway for the scope.
    if protocol != RTPROT_BOOT {
        words.pair("proto", &by_name(&PROTOCOLS, protocol));
    }
    let is_direct = route.via.is_none() && attribute(facts, libc::RTA_MULTIPATH).is_none();
    if !route.ipv6 && (scope != 0 || route.kind == "unicast" && is_direct) {
        words.pair("scope", &by_name(&SCOPES, scope));
    }
    if let Some(src) = route.src {
        words.pair("src", &src);
    }
    if let Some(realms) = attribute(facts, libc::RTA_FLOW).and_then(u32_of) {
        words.pair("realms", &self::realms(realms));
    }
    if attribute(facts, libc::RTA_PRIORITY).is_some() {
        words.pair("metric", &route.metric);
    }
    if number(head, 8, 4)? as u32 & RTNH_F_ONLINK != 0 && shared.is_none() {
        words.add("onlink");
    }
    words.metrics(attribute(facts, libc::RTA_METRICS).unwrap_or_default())?;
    words.rest(facts, names)?;
    Some(words.0)
}

/// The word `default` without a gateway is taken for IPv4's.
fn destination(route: &Route) -> String {
    match route.to {
        Some((IpAddr::V4(to), 32)) => to.to_string(),
        Some((IpAddr::V6(to), 128)) => to.to_string(),
        Some((to, length)) => format!("{to}/{length}"),
        None if route.ipv6 && route.via.is_none() => "::/0".to_owned(),
        None => "default".to_owned(),
    }
}

#[derive(Default)]
struct Words(String);

impl Words {
    fn add(&mut self, word: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(word);
    }

    fn pair(&mut self, name: &str, value: &dyn std::fmt::Display) {
        self.add(name);
        let _ = write!(self.0, " {value}");
    }

    /// Gateway and interface; nothing where there are several.
    fn hop(&mut self, facts: &[u8], names: &BTreeMap<u32, String>) -> Option<()> {
        if let Some(via) = attribute(facts, libc::RTA_GATEWAY) {
            self.pair("via", &address(via)?);
        }
        // Of the other family: its number, then the address.
        if let Some(via) = attribute(facts, RTA_VIA) {
            let via = address(via.get(2..)?)?;
            self.pair(if via.is_ipv6() { "via inet6" } else { "via inet" }, &via);
        }
        if let Some(dev) = attribute(facts, libc::RTA_OIF).and_then(u32_of) {
            self.device(dev, names)?;
        }
        Some(())
    }

    fn device(&mut self, dev: u32, names: &BTreeMap<u32, String>) -> Option<()> {
        let dev = names.get(&dev)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-@".contains(&byte);
        if !dev.bytes().all(plain) || dev.starts_with('-') {
            return None;
        }
        self.pair("dev", dev);
        Some(())
    }

    fn table(&mut self, table: u32) {
        match table {
            254 => {}
            253 => self.pair("table", &"default"),
            255 => self.pair("table", &"local"),
            other => self.pair("table", &other),
        }
    }

    fn metrics(&mut self, metrics: &[u8]) -> Option<()> {
        let locks = attribute(metrics, RTAX_LOCK).and_then(u32_of).unwrap_or(0);
        for (metric, value) in attributes(metrics) {
            if metric == RTAX_LOCK {
                continue;
            }
            let own = METRICS.iter().chain(&MORE).find(|(number, _)| *number == metric)?.1;
            let own = if metric == CC_ALGO { "congctl" } else { own };
            let raw = if metric == CC_ALGO { 0 } else { u32_of(value)? };
            if own == "hoplimit" && raw == u32::MAX {
                continue;
            }
            self.add(own);
            let is_locked = metric < 32 && locks >> metric & 1 != 0;
            // ip(8) locks this one by itself, and these two it cannot.
            match own {
                "rto_min" if !is_locked => return None,
                "features" | "fastopen_no_cookie" if is_locked => return None,
                _ if is_locked && own != "rto_min" => self.add("lock"),
                _ => {}
            }
            // A time without unit is taken as the kernel keeps it.
            let in_ms = |unit: u32| match raw % unit {
                0 => format!("{}ms", raw / unit),
                _ => raw.to_string(),
            };
            self.add(&match own {
                "congctl" => plain_word(name(value))?,
                "rtt" => in_ms(8),
                "rttvar" => in_ms(4),
                "rto_min" => in_ms(1),
                "features" => features(raw)?,
                _ => raw.to_string(),
            });
        }
        Some(())
    }

    /// What ip(8) prints last: when it ends, its preference, and several next hops.
    fn rest(&mut self, facts: &[u8], names: &BTreeMap<u32, String>) -> Option<()> {
        // `rta_cacheinfo`: users, last use, time to its end in hundredths of a second.
        let expires = attribute(facts, libc::RTA_CACHEINFO).and_then(|value| number(value, 8, 4));
        if let Some(seconds) = expires.map(|ticks| ticks as i32 / 100).filter(|&s| s > 0) {
            self.pair("expires", &seconds);
        }
        if let Some(&[preference]) = attribute(facts, RTA_PREF) {
            self.pair("pref", &by_name(&PREFERENCES, preference));
        }
        let mut hops = attribute(facts, libc::RTA_MULTIPATH).unwrap_or_default();
        if attribute(facts, RTA_NH_ID).is_some() {
            return Some(());
        }
        while !hops.is_empty() {
            // `rtnexthop`: length, flags, weight less one, interface.
            let length = number(hops, 0, 2)? as usize;
            let facts = hops.get(RTNEXTHOP..length)?;
            if attributes(facts).any(|(kind, _)| !UNDERSTOOD_OF_HOPS.contains(&kind)) {
                return None;
            }
            self.add("nexthop");
            self.hop(facts, names)?;
            self.device(number(hops, 4, 4)? as u32, names)?;
            self.pair("weight", &(u32::from(hops[3]) + 1));
            if u32::from(hops[2]) & RTNH_F_ONLINK != 0 {
                self.add("onlink");
            }
            hops = hops.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(())
    }
}

fn features(bits: u32) -> Option<String> {
    let known = [(1, "ecn"), (1 << 4, "tcp_usec_ts")];
    let named = known.iter().filter(|(bit, _)| bits & bit != 0);
    let all = known.iter().fold(0, |all, (bit, _)| all | bit);
    let words: Vec<&str> = named.map(|(_, name)| *name).collect();
    (bits & !all == 0 && !words.is_empty()).then(|| words.join(" "))
}

fn plain_word(word: String) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    Some(word).filter(|word| !word.is_empty() && word.bytes().all(plain))
}

fn realms(both: u32) -> String {
    let [from, to] = [both >> 16, both & 0xffff];
    if from == 0 { to.to_string() } else { format!("{from}/{to}") }
}

fn by_name(names: &[(u8, &str)], wanted: u8) -> String {
    let named = names.iter().find(|(number, _)| *number == wanted);
    named.map_or_else(|| wanted.to_string(), |(_, name)| (*name).to_owned())
}

const RTA_PREF: u16 = 20;
const RTA_NH_ID: u16 = 30;
/// Destination, source, interface, gateway, metric, preferred source, metrics, next hops, realms,
/// `cacheinfo`, table, gateway of the other family, preference, padding, shared next hop.
const UNDERSTOOD: [u16; 15] =
    [1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 15, RTA_VIA, RTA_PREF, 24, RTA_NH_ID];
/// Gateways of both kinds.
const UNDERSTOOD_OF_HOPS: [u16; 2] = [libc::RTA_GATEWAY, RTA_VIA];
/// Length of an `rtnexthop`.
const RTNEXTHOP: usize = 8;
const RTNH_F_ONLINK: u32 = 4;

const RTPROT_BOOT: u8 = 3;
/// Names that iproute2 brings for `RTPROT_*` (`lib/rt_names.c`); every other is its number.
const PROTOCOLS: [(u8, &str); 15] = [
    (1, "redirect"),
    (2, "kernel"),
    (4, "static"),
    (8, "gated"),
    (9, "ra"),
    (10, "mrt"),
    (11, "zebra"),
    (12, "bird"),
    (13, "dnrouted"),
    (14, "xorp"),
    (15, "ntk"),
    (16, "dhcp"),
    (18, "keepalived"),
    (42, "babel"),
    (186, "bgp"),
];
const SCOPES: [(u8, &str); 5] =
    [(0, "global"), (200, "site"), (253, "link"), (254, "host"), (255, "nowhere")];
/// `ICMPV6_ROUTER_PREF_*`.
const PREFERENCES: [(u8, &str); 3] = [(0, "medium"), (1, "high"), (3, "low")];
