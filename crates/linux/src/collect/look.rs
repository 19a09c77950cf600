//! One look at what changes, everything as nearly at once as can be: what is quickly read first.

use tcpwhy::host::snapshot::{Look, Source};

use super::blind::Blind;
use super::devices::{Devices, Sysfs, bonds};
use super::processes::Owners;
use super::{groups, links, machine, qdiscs, sockets, tables};
use crate::netlink::Netlink;
use crate::record::Clock;
use crate::record::counters::Counters;

/// What is kept from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// `None` where nobody asks who holds the sockets.
    owners: Option<Owners>,
    devices: Devices,
    sysfs: Option<Sysfs>,
}

impl Kept {
    /// Nothing yet.
    pub(super) fn new(owners: Option<Owners>) -> Self {
        Self { owners, ..Self::default() }
    }
}

/// Looks.
pub(super) fn look(kept: &mut Kept, blind: &mut Blind) -> Look {
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
        Ok(mut route) => {
            look.links = links::links(&mut route, blind);
            let names = links::names(look.links.as_deref().unwrap_or_default());
            if let Some([qdiscs, classes]) = qdiscs::qdiscs(&mut route, &names, blind) {
                (look.qdiscs, look.classes) = (Some(qdiscs), Some(classes));
            }
        }
        Err(error) => blind.refused(Source::Links, None, &error),
    }
    if let Some(found) = sockets::sockets(blind) {
        look.sockets = Some(found.connections);
        look.listeners = Some(found.listeners);
        look.time_wait = Some(found.time_wait);
    }
    devices(&mut look, kept, blind);
    if let Some(owners) = &mut kept.owners {
        owners.join(&mut look, blind);
    } else {
        blind.say_with(Source::Processes, None, "they were not looked at", "leave that option out");
    }
    let paths = look.processes.iter().flatten().filter_map(|(_, process)| process.group.as_deref());
    look.groups = groups::groups(&paths.collect(), blind);
    look
}

fn devices(look: &mut Look, kept: &mut Kept, blind: &mut Blind) {
    let Some(links) = &mut look.links else { return };
    if kept.sysfs.is_none() {
        kept.sysfs = Sysfs::open(links, blind);
    }
    let sysfs = kept.sysfs.as_ref();
    kept.devices.describe(links, sysfs, blind);
    look.bonds = Some(bonds(blind));
    look.interrupts = sysfs.and_then(|sysfs| Devices::interrupts(links, sysfs, blind));
}

/// The counters by group and name; a table that is broken is kept as far as it goes.
pub(super) fn counters(blind: &mut Blind) -> Option<tables::Grouped<i64>> {
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
