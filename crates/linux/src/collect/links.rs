//! Interfaces by rtnetlink(7): what they are, their addresses, and what passed through them.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use tcpwhy::host::snapshot::{Link, LinkCounters, Source};

use super::blind::{Blind, name};
use crate::netlink::{Netlink, address, attribute, attributes, number, u32_of};

/// Those of the namespace of this thread, in the order of their numbers.
pub(super) fn links(route: &mut Netlink, blind: &mut Blind) -> Option<Vec<Link>> {
    match listed(route, blind) {
        Ok(links) => Some(links),
        Err(error) => {
            blind.refused(Source::Links, None, &error);
            None
        }
    }
}

/// Names of interfaces by their numbers.
pub(super) fn names(links: &[Link]) -> BTreeMap<u32, String> {
    links.iter().map(|link| (link.index, link.name.clone())).collect()
}

fn listed(route: &mut Netlink, blind: &mut Blind) -> io::Result<Vec<Link>> {
    let mut masters = Vec::new();
    let (mut links, answer) =
        route.gather(libc::RTM_GETLINK, &[0; IFINFOMSG], |found, message| {
            if let Some((link, master)) = link(message) {
                masters.push((link.index, master));
                found.push(link);
            }
        })?;
    blind.unless_whole(Source::Links, answer);
    let names = names(&links);
    let masters: BTreeMap<u32, Option<u32>> = masters.into_iter().collect();
    let (addresses, answer) =
        route.gather(libc::RTM_GETADDR, &[0; IFADDRMSG], |found, message| {
            found.extend(address_of(message));
        })?;
    blind.unless_whole(Source::Links, answer);
    for link in &mut links {
        let master = masters.get(&link.index).copied().flatten();
        link.master = master.and_then(|master| names.get(&master).cloned());
        let own = addresses.iter().filter(|(index, ..)| *index == link.index);
        link.addresses = own.map(|&(_, ip, length)| (ip, length)).collect();
    }
    links.sort_by_key(|link| link.index);
    Ok(links)
}

/// An interface and the number of its master (`ifinfomsg` and its attributes).
fn link(message: &[u8]) -> Option<(Link, Option<u32>)> {
    let flags = number(message, 8, 4)? as i32;
    let mut link = Link {
        index: number(message, 4, 4)? as u32,
        up: flags & libc::IFF_UP != 0,
        carrier: flags & libc::IFF_LOWER_UP != 0,
        loopback: flags & libc::IFF_LOOPBACK != 0,
        ..Link::default()
    };
    let mut master = None;
    for (kind, value) in attributes(message.get(IFINFOMSG..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = name(value),
            libc::IFLA_MTU => link.mtu = u32_of(value),
            libc::IFLA_TXQLEN => link.txqlen = u32_of(value),
            libc::IFLA_MASTER => master = u32_of(value),
            libc::IFLA_LINKINFO => link.kind = attribute(value, IFLA_INFO_KIND).map(name),
            libc::IFLA_XDP => {
                let attached = attribute(value, IFLA_XDP_ATTACHED);
                link.xdp = attached.and_then(|value| value.first().copied());
            }
            libc::IFLA_GSO_MAX_SEGS => link.gso_max_segs = u32_of(value),
            libc::IFLA_GSO_MAX_SIZE => link.gso_max_size = u32_of(value),
            libc::IFLA_CARRIER_CHANGES => {
                link.carrier_changes = u32_of(value).map(u64::from);
            }
            libc::IFLA_STATS64 => link.counters = counters(value),
            _ => {}
        }
    }
    Some((link, master)).filter(|(link, _)| !link.name.is_empty())
}

/// `rtnl_link_stats64` (Linux `include/uapi/linux/if_link.h`), which grows at its end.
fn counters(value: &[u8]) -> Option<LinkCounters> {
    let at = |index: usize| number(value, 8 * index, 8);
    Some(LinkCounters {
        rx_packets: at(0)?,
        tx_packets: at(1)?,
        rx_bytes: at(2)?,
        tx_bytes: at(3)?,
        rx_errors: at(4)?,
        tx_errors: at(5)?,
        rx_dropped: at(6)?,
        tx_dropped: at(7)?,
        rx_length_errors: at(10)?,
        rx_over_errors: at(11)?,
        rx_crc_errors: at(12)?,
        rx_frame_errors: at(13)?,
        rx_fifo_errors: at(14)?,
        rx_missed_errors: at(15)?,
        tx_aborted_errors: at(16)?,
        tx_carrier_errors: at(17)?,
        tx_fifo_errors: at(18)?,
        rx_nohandler: at(23),
        rx_otherhost_dropped: at(24),
    })
}

/// Interface, address and length of its prefix (`ifaddrmsg` and its attributes). On a link with two ends
/// `IFA_ADDRESS` is the other one's.
fn address_of(message: &[u8]) -> Option<(u32, IpAddr, u8)> {
    let (length, index) = (*message.get(1)?, number(message, 4, 4)? as u32);
    let facts = message.get(IFADDRMSG..)?;
    let own = attribute(facts, libc::IFA_LOCAL).or_else(|| attribute(facts, libc::IFA_ADDRESS))?;
    Some((index, address(own)?, length))
}

/// Length of an `ifinfomsg`: family, type, index, flags, change.
const IFINFOMSG: usize = 16;
/// Length of an `ifaddrmsg`: family, length of the prefix, flags, scope, index.
const IFADDRMSG: usize = 8;
/// Within `IFLA_LINKINFO` and `IFLA_XDP`.
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP_ATTACHED: u16 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::put;

    #[test]
    fn an_interface_is_told_by_its_attributes() {
        let mut message = vec![0; IFINFOMSG];
        message[4] = 3;
        message[8..12].copy_from_slice(&(libc::IFF_UP | libc::IFF_LOWER_UP).to_ne_bytes());
        put(&mut message, libc::IFLA_IFNAME, b"v\xff0\0");
        put(&mut message, libc::IFLA_MASTER, &7_u32.to_ne_bytes());
        let mut info = Vec::new();
        put(&mut info, IFLA_INFO_KIND, b"veth\0");
        put(&mut message, libc::IFLA_LINKINFO, &info);
        let stats: Vec<u8> = (0..24_u64).flat_map(u64::to_ne_bytes).collect();
        put(&mut message, libc::IFLA_STATS64, &stats);
        let (link, master) = link(&message).expect("whole");
        assert_eq!(
            (link.name.as_str(), link.kind.as_deref(), master),
            (r"v\xff0", Some("veth"), Some(7))
        );
        assert!(link.up && link.carrier && !link.loopback);
        let counters = link.counters.expect("whole");
        assert_eq!((counters.rx_missed_errors, counters.tx_fifo_errors), (15, 18));
        assert_eq!((counters.rx_nohandler, counters.rx_otherhost_dropped), (Some(23), None));
    }

    #[test]
    fn short_counters_are_none() {
        assert_eq!(counters(&[0; 8 * 18]), None);
    }

    #[test]
    fn this_machine_has_its_loopback_with_its_address() {
        let mut route = Netlink::open(libc::NETLINK_ROUTE).expect("netlink");
        let mut blind = Blind::default();
        let links = links(&mut route, &mut blind).expect("a list");
        let lo = links.iter().find(|link| link.loopback).expect("every namespace has one");
        assert!(lo.counters.is_some());
        assert!(lo.addresses.contains(&(IpAddr::from([127, 0, 0, 1]), 8)));
    }

    proptest! {
        #[test]
        fn no_message_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (link(&bytes), address_of(&bytes), counters(&bytes));
        }
    }
}
