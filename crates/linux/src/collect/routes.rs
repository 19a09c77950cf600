//! Routes of all tables with their metrics, the rules that choose among the tables, and what the kernel
//! remembers about peers.
//!
//! A route's `line` gives it back: `ip route replace LINE` sets the same one. It is built of what
//! iproute2 prints (`ip/iproute.c` of version 6.1) as far as it reads that back, exactly. Where something
//! is not understood, or the interface's name is no plain word, there is no line.

use std::collections::BTreeMap;
use std::io;

use tcpwhy::host::snapshot::{PeerMetrics, Route, Rule, Source};

use super::blind::{Blind, name};
use crate::netlink::{Answer, Generic, Netlink, address, attribute, attributes, u32_of};
use crate::record::host::{CC_ALGO, METRICS, RTMSG};

mod line;

/// Those of the namespace of this thread.
pub(super) fn routes(
    route: &mut Netlink,
    names: &BTreeMap<u32, String>,
    blind: &mut Blind,
) -> Option<Vec<Route>> {
    let mut left_out = 0_u64;
    let listed = route.gather(libc::RTM_GETROUTE, &[0; RTMSG], |found, message| {
        let Some(route) = read(message, names) else { return };
        // Whoever has the routes of the Internet has metrics on few of them.
        if found.len() < MOST_ROUTES || route.to.is_none() || !route.metrics.is_empty() {
            found.push(route);
        } else {
            left_out += 1;
        }
    });
    if left_out > 0 {
        let why = format!("there are more than {MOST_ROUTES}: those without metrics are left out");
        blind.say(Source::Routes, Some(&format!("{left_out} routes")), why);
    }
    let mut routes = told(listed, Source::Routes, blind)?;
    spare_twins(&mut routes);
    Some(routes)
}

/// Of several routes with the same destination, table and metric `replace` takes the place of the first,
/// whichever was meant (`fib6_add_rt2node`, `fib_table_insert`): they have no line.
fn spare_twins(routes: &mut [Route]) {
    let key = |route: &Route| (route.ipv6, route.to, route.table, route.metric, tos(&route.line));
    let mut times = BTreeMap::new();
    for route in routes.iter() {
        *times.entry(key(route)).or_insert(0_u32) += 1;
    }
    for route in routes.iter_mut() {
        if times.get(&key(route)).is_some_and(|&times| times > 1) {
            route.line.clear();
        }
    }
}

fn tos(line: &str) -> Option<u8> {
    let hex = line.split(' ').skip_while(|word| *word != "tos").nth(1)?.strip_prefix("0x")?;
    u8::from_str_radix(hex, 16).ok()
}

fn told<T>(
    listed: io::Result<(Vec<T>, Answer)>,
    source: Source,
    blind: &mut Blind,
) -> Option<Vec<T>> {
    match listed {
        Ok((found, answer)) => {
            blind.unless_whole(source, answer);
            Some(found)
        }
        Err(error) => {
            blind.refused(source, None, &error);
            None
        }
    }
}

/// A route (`rtmsg` and its attributes), but those that the kernel makes for itself.
fn read(message: &[u8], names: &BTreeMap<u32, String>) -> Option<Route> {
    let head = message.get(..RTMSG)?;
    let kind = KINDS.iter().find(|(number, _)| *number == head[7])?.1;
    let ipv6 = match i32::from(head[0]) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let mut route =
        Route { kind: kind.to_owned(), ipv6, table: u32::from(head[4]), ..Route::default() };
    for (kind, value) in attributes(&message[RTMSG..]) {
        match kind {
            libc::RTA_DST => route.to = address(value).map(|to| (to, head[1])),
            libc::RTA_OIF => route.dev = u32_of(value).and_then(|dev| names.get(&dev).cloned()),
            libc::RTA_GATEWAY => route.via = address(value),
            RTA_VIA => route.via = value.get(2..).and_then(address),
            libc::RTA_PREFSRC => route.src = address(value),
            libc::RTA_TABLE => route.table = u32_of(value)?,
            libc::RTA_PRIORITY => route.metric = u32_of(value)?,
            libc::RTA_METRICS => metrics(value, &mut route),
            _ => {}
        }
    }
    route.line = line::line(message, &route, names).unwrap_or_default();
    Some(route)
}

/// Times as the kernel keeps them: `rtt` in eighths and `rttvar` in quarters of a millisecond.
fn metrics(value: &[u8], route: &mut Route) {
    let locks = attribute(value, RTAX_LOCK).and_then(u32_of).unwrap_or(0);
    for (metric, value) in attributes(value) {
        let Some((_, own)) = METRICS.iter().chain(&MORE).find(|(number, _)| *number == metric)
        else {
            continue;
        };
        if metric < 32 && locks >> metric & 1 != 0 {
            route.locked.push((*own).to_owned());
        }
        if metric == CC_ALGO {
            route.congestion = Some(name(value));
            continue;
        }
        let Some(number) = u32_of(value).map(u64::from) else { continue };
        let value = match *own {
            "rtt" => number * 1_000_000 / 8,
            "rttvar" => number * 1_000_000 / 4,
            "rto_min" => number * 1_000_000,
            // -1 is none (`IPV6_DEFAULT_HOPLIMIT` of old kernels).
            "hoplimit" if number == u64::from(u32::MAX) => continue,
            _ => number,
        };
        route.metrics.insert((*own).to_owned(), value);
    }
}

/// The rules of both families.
pub(super) fn rules(route: &mut Netlink, blind: &mut Blind) -> Option<Vec<Rule>> {
    let mut all = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut body = [0; FIB_RULE_HDR];
        body[0] = family as u8;
        let listed = route.gather(libc::RTM_GETRULE, &body, |found, message| {
            found.extend(rule(message));
        });
        match listed {
            // A kernel without rules of this family has one table.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            listed => all.extend(told(listed, Source::Routes, blind)?),
        }
    }
    Some(all)
}

/// A rule (`fib_rule_hdr` and its attributes).
fn rule(message: &[u8]) -> Option<Rule> {
    let head = message.get(..FIB_RULE_HDR)?;
    let mut rule = Rule {
        table: u32::from(head[4]),
        ipv6: i32::from(head[0]) == libc::AF_INET6,
        // A kind of service.
        selects: head[3] != 0,
        preference: 0,
    };
    for (kind, value) in attributes(&message[FIB_RULE_HDR..]) {
        match kind {
            FRA_PRIORITY => rule.preference = u32_of(value)?,
            FRA_TABLE => rule.table = u32_of(value)?,
            // All ones is none.
            FRA_SUPPRESS_IFGROUP | FRA_SUPPRESS_PREFIXLEN => {
                rule.selects |= u32_of(value)? != u32::MAX;
            }
            FRA_FWMARK | FRA_L3MDEV => rule.selects |= value.iter().any(|&byte| byte != 0),
            _ => rule.selects |= SELECTORS.contains(&kind),
        }
    }
    // Others go on elsewhere, or refuse.
    if head[7] != FR_ACT_TO_TBL {
        rule.table = 0;
    }
    Some(rule)
}

/// What the kernel remembers about peers.
pub(super) fn tcp_metrics(blind: &mut Blind) -> Option<Vec<PeerMetrics>> {
    let mut metrics = match Generic::open(c"tcp_metrics") {
        Ok(Some(metrics)) => metrics,
        Ok(None) => {
            blind.say(Source::TcpMetrics, None, "this kernel does not tell them");
            return None;
        }
        Err(error) => {
            blind.refused(Source::TcpMetrics, None, &error);
            return None;
        }
    };
    let mut left_out = 0_u64;
    let listed = metrics.gather(TCP_METRICS_CMD_GET, &[], |found, facts| {
        let Some(peer) = peer(facts) else { return };
        if found.len() < MOST_PEERS {
            found.push(peer);
        } else {
            left_out += 1;
        }
    });
    if left_out > 0 {
        let why = format!("there are more than {MOST_PEERS}");
        blind.say(Source::TcpMetrics, Some(&format!("{left_out} peers")), why);
    }
    told(listed, Source::TcpMetrics, blind)
}

/// A peer (`TCP_METRICS_ATTR_*`, Linux `include/uapi/linux/tcp_metrics.h`).
fn peer(facts: &[u8]) -> Option<PeerMetrics> {
    let end = |v4, v6| attribute(facts, v4).or_else(|| attribute(facts, v6)).and_then(address);
    let values = attribute(facts, 6).unwrap_or_default();
    let value = |index: u16| attribute(values, index + 1).and_then(u32_of);
    let precise = |us: Option<u32>, ms: Option<u32>, unit: u64| {
        let ns = us.map(|us| u64::from(us) * 1000).or(ms.map(|ms| u64::from(ms) * 1_000_000));
        ns.map(|ns| ns / unit)
    };
    Some(PeerMetrics {
        to: end(1, 2)?,
        from: end(11, 12),
        ssthresh: value(2),
        cwnd: value(3),
        // Kept in eighths and quarters (`tcp_metrics_fill_info`).
        rtt_ns: precise(value(5), value(0), 8),
        rttvar_ns: precise(value(6), value(1), 4),
        reordering: value(4),
        cookie: attribute(facts, 10).is_some(),
    })
}

/// Types of routes that people set (`RTN_*`).
const KINDS: [(u8, &str); 5] =
    [(1, "unicast"), (6, "blackhole"), (7, "unreachable"), (8, "prohibit"), (9, "throw")];

const RTA_VIA: u16 = 18;
const RTAX_LOCK: u16 = 1;
/// Metrics that no recording keeps.
const MORE: [(u16, &str); 2] = [(10, "hoplimit"), (17, "fastopen_no_cookie")];

/// Length of a `fib_rule_hdr` (Linux `include/uapi/linux/fib_rules.h`), and `FRA_*`.
const FIB_RULE_HDR: usize = 12;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_L3MDEV: u16 = 19;
/// Destination, source, interfaces, flow, tunnel, users, protocol and ports, DSCP.
const SELECTORS: [u16; 10] = [1, 2, 3, 12, 17, 20, 22, 23, 24, 25];
const FR_ACT_TO_TBL: u8 = 1;

const TCP_METRICS_CMD_GET: u8 = 1;

/// Ours: with their lines 10,000 routes are 5 MB.
const MOST_ROUTES: usize = 10_000;
/// Ours: 100 bytes each.
const MOST_PEERS: usize = 20_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::put;

    #[test]
    fn routes_that_replace_would_mix_up_have_no_line() {
        let route =
            |line: &str, metric| Route { line: line.to_owned(), metric, ..Route::default() };
        let mut routes = [
            route("default dev a", 1),
            route("default dev b", 1),
            route("default tos 0x10 dev b", 1),
            route("default dev b metric 2", 2),
        ];
        spare_twins(&mut routes);
        let lines = routes.each_ref().map(|route| route.line.as_str());
        assert_eq!(lines, ["", "", "default tos 0x10 dev b", "default dev b metric 2"]);
    }

    #[test]
    fn a_rule_for_everything_selects_nothing() {
        let mut message = vec![0; FIB_RULE_HDR];
        (message[0], message[4], message[7]) = (libc::AF_INET as u8, 254, FR_ACT_TO_TBL);
        put(&mut message, FRA_PRIORITY, &32766_u32.to_ne_bytes());
        put(&mut message, FRA_SUPPRESS_PREFIXLEN, &u32::MAX.to_ne_bytes());
        let main = Rule { preference: 32766, table: 254, ..Rule::default() };
        assert_eq!(rule(&message), Some(main));
        put(&mut message, 3, b"eth0\0");
        assert!(rule(&message).expect("whole").selects);
    }

    #[test]
    fn a_peers_round_trip_is_the_precise_one() {
        let mut values = Vec::new();
        put(&mut values, 1, &1_u32.to_ne_bytes());
        put(&mut values, 6, &8000_u32.to_ne_bytes());
        put(&mut values, 3, &42_u32.to_ne_bytes());
        let mut facts = Vec::new();
        put(&mut facts, 1, &[192, 0, 2, 1]);
        put(&mut facts, 6, &values);
        let found = peer(&facts).expect("whole");
        assert_eq!((found.rtt_ns, found.ssthresh, found.cwnd), (Some(1_000_000), Some(42), None));
    }

    proptest! {
        #[test]
        fn no_message_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (read(&bytes, &BTreeMap::new()), rule(&bytes), peer(&bytes));
        }
    }
}
