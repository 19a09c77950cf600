//! One look at what changes, everything as nearly at once as can be: what is quickly read first.

use tcpwhy::host::snapshot::{Look, Source};

use super::blind::Blind;
use super::{links, machine, sockets, tables};
use crate::netlink::Netlink;
use crate::record::Clock;
use crate::record::counters::Counters;

/// Looks.
pub(super) fn look(blind: &mut Blind) -> Look {
    let mut look = Look {
        t_ns: Some(Clock::Real.now()),
        uptime_ns: Some(Clock::Boot.now()),
        counters: counters(blind),
        ..Look::default()
    };
    let sockstat = blind.file(Source::Sockstat, "/proc/thread-self/net/sockstat");
    look.sockstat = sockstat.map(|text| tables::sockstat(&text));
    machine::look(&mut look, blind);
    look.conntrack = machine::conntrack(blind);
    look.neighbours = machine::neighbours(blind);
    match Netlink::open(libc::NETLINK_ROUTE) {
        Ok(mut route) => look.links = links::links(&mut route, blind),
        Err(error) => blind.refused(Source::Links, None, &error),
    }
    if let Some(found) = sockets::sockets(blind) {
        look.sockets = Some(found.connections);
        look.listeners = Some(found.listeners);
        look.time_wait = Some(found.time_wait);
    }
    look
}

/// The counters by group and name; a table that is broken is kept as far as it goes.
fn counters(blind: &mut Blind) -> Option<tables::Grouped<i64>> {
    let mut all = Counters::default();
    for file in ["snmp", "netstat"] {
        let path = format!("/proc/thread-self/net/{file}");
        let text = blind.file(Source::Counters, &path)?;
        if let Err((line, why)) = all.add(&text) {
            blind.say(Source::Counters, Some(&path), format!("line {line}: {why}"));
        }
    }
    // A kernel without IPv6 has none.
    let path = "/proc/thread-self/net/snmp6";
    let of_ipv6 = blind.file_if_there(Source::Counters, path);
    all.counters.extend(of_ipv6.map(|text| tables::snmp6(&text)).unwrap_or_default());
    Some(all.counters)
}
