//! What only ioctl tells of a device, its driver's counters, and the rest for kernels before 5.6.
//!
//! Structures of Linux `include/uapi/linux/ethtool.h`, as numbers of 32 bits behind their command. Names
//! of counters are the driver's.

use std::collections::BTreeMap;

use tcpwhy::host::snapshot::{Features, Link, Ring};

use super::told::{bits_per_second, full_duplex, sort_in};
use crate::collect::blind::name;
use crate::netlink::number;
use crate::sys;

/// Everything but counters.
pub(super) fn describe(link: &mut Link) {
    for ask in [modes, features, ring, channels, coalescing, pause] {
        ask(link);
    }
}

/// `ETHTOOL_GSTATS`; `None` where the driver has none.
pub(in crate::collect) fn counters(device: &str) -> Option<BTreeMap<String, u64>> {
    let names = strings(device, ETH_SS_STATS)?;
    // `ethtool_stats`: command, how many, and the numbers.
    let mut place = vec![0; 8 + 8 * with_room_to_grow(names.len())];
    start(&mut place, ETHTOOL_GSTATS, names.len() as u32);
    sys::ethtool(device, &mut place).ok()?;
    // There may be fewer by now.
    let told = number(&place, 4, 4)? as usize;
    let values = names.into_iter().take(told).enumerate();
    let found = values.filter_map(|(index, name)| Some((name, number(&place, 8 + 8 * index, 8)?)));
    Some(found.collect())
}

/// A set of names (`ETHTOOL_GSTRINGS`), as many as `ETHTOOL_GSSET_INFO` says there are.
fn strings(device: &str, set: u32) -> Option<Vec<String>> {
    // `ethtool_sset_info`: command, nothing, a mask of sets, and their sizes.
    let mut info = vec![0; 20];
    start(&mut info, ETHTOOL_GSSET_INFO, 0);
    info[8..16].copy_from_slice(&(1_u64 << set).to_ne_bytes());
    sys::ethtool(device, &mut info).ok()?;
    let count = if number(&info, 8, 8)? == 0 { 0 } else { number(&info, 16, 4)? as usize };
    if count == 0 || count > MOST_NAMES {
        return None;
    }
    let mut place = vec![0; 12 + LENGTH * with_room_to_grow(count)];
    start(&mut place, ETHTOOL_GSTRINGS, set);
    place[8..12].copy_from_slice(&(count as u32).to_ne_bytes());
    sys::ethtool(device, &mut place).ok()?;
    let told = count.min(number(&place, 8, 4)? as usize);
    let names = place.get(12..)?.chunks_exact(LENGTH).take(told);
    Some(names.map(|own| name(own).trim().to_owned()).collect())
}

/// The kernel writes as many as there are by then, whatever number it was given (`ethtool_get_stats`,
/// `ethtool_get_strings`). Queues that are added meanwhile must find room. ethtool(8) has none to spare.
const fn with_room_to_grow(count: usize) -> usize {
    2 * count + 1024
}

fn start(place: &mut [u8], command: u32, next: u32) {
    place[..4].copy_from_slice(&command.to_ne_bytes());
    place[4..8].copy_from_slice(&next.to_ne_bytes());
}

/// Asks one thing: numbers behind the command.
fn ask<const N: usize>(device: &str, command: u32) -> Option<[u32; N]> {
    let mut place = vec![0; 4 * N];
    place[..4].copy_from_slice(&command.to_ne_bytes());
    sys::ethtool(device, &mut place).ok()?;
    Some(std::array::from_fn(|index| number(&place, 4 * index, 4).unwrap_or(0) as u32))
}

/// `ethtool_cmd`: the speed in halves, and duplex.
pub(super) fn modes(link: &mut Link) {
    let Some(told) = ask::<11>(&link.name, ETHTOOL_GSET) else { return };
    let bytes: Vec<u8> = told.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let half = |at| number(&bytes, at, 2).unwrap_or(0) as u32;
    let (low, high) = (half(12), half(28));
    // An unknown speed is all ones; old drivers set its low half only.
    link.speed = bits_per_second(if low == 0xffff { u32::MAX } else { high << 16 | low });
    link.full_duplex = full_duplex(bytes[14]);
}

/// `ethtool_gfeatures`: of 32 offloads each what can be changed, is asked for, is on, and stays.
pub(super) fn features(link: &mut Link) {
    let Some(names) = strings(&link.name, ETH_SS_FEATURES) else { return };
    let blocks = names.len().div_ceil(32);
    let mut place = vec![0; 8 + 16 * blocks];
    start(&mut place, ETHTOOL_GFEATURES, blocks as u32);
    if sys::ethtool(&link.name, &mut place).is_err() {
        return;
    }
    let mut features = Features::default();
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let bit = |which: usize| {
            let block = number(&place, 8 + 16 * (index / 32) + 4 * which, 4).unwrap_or(0);
            block >> (index % 32) & 1 != 0
        };
        sort_in(&mut features, name, bit(2), bit(0) && !bit(3));
    }
    link.features = Some(features);
}

/// `ethtool_ringparam`.
pub(super) fn ring(link: &mut Link) {
    let Some([_, rx_max, _, _, tx_max, rx, _, _, tx]) = ask(&link.name, ETHTOOL_GRINGPARAM) else {
        return;
    };
    link.ring =
        Some(Ring { rx: Some(rx), rx_max: Some(rx_max), tx: Some(tx), tx_max: Some(tx_max) });
}

/// `ethtool_channels`.
pub(super) fn channels(link: &mut Link) {
    let Some([_, _, _, _, most, _, _, _, now]) = ask(&link.name, ETHTOOL_GCHANNELS) else { return };
    link.queues.get_or_insert_default().combined = (most != 0).then_some([now, most]);
}

/// The second and the eleventh number of `ethtool_coalesce`.
pub(super) fn coalescing(link: &mut Link) {
    let Some(told) = ask::<23>(&link.name, ETHTOOL_GCOALESCE) else { return };
    (link.coalesce_rx_usecs, link.coalesce_adaptive) = (Some(told[1]), Some(told[10] != 0));
}

/// `ethtool_pauseparam`.
pub(super) fn pause(link: &mut Link) {
    let Some([_, _, honoured, sent]) = ask(&link.name, ETHTOOL_GPAUSEPARAM) else { return };
    link.pause = Some([sent != 0, honoured != 0]);
}

const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_SS_STATS: u32 = 1;
const ETH_SS_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const LENGTH: usize = 32;
/// Ours: a driver with 64 queues of each kind and 20 counters of each has 2,600.
const MOST_NAMES: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::super::ethtool;
    use super::*;
    use crate::collect::blind::Blind;
    use crate::collect::links;
    use crate::netlink::Netlink;

    /// Both ways to ask have to bring the same.
    #[test]
    fn ioctl_and_netlink_agree_on_this_machines_interfaces() {
        let mut route = Netlink::open(libc::NETLINK_ROUTE).expect("netlink");
        let mut blind = Blind::default();
        let listed = links::links(&mut route, &mut blind).expect("a list");
        let plain = |link: &Link| Link { name: link.name.clone(), ..Link::default() };
        let mut new: BTreeMap<u32, Link> =
            listed.iter().map(|link| (link.index, plain(link))).collect();
        let mut old = new.clone();
        ethtool::describe(&mut new, &mut blind);
        old.values_mut().for_each(describe);
        for link in new.values_mut().chain(old.values_mut()) {
            // Only netlink knows what the peer advertises.
            link.speed_max = None;
            if let Some(features) = &mut link.features {
                features.on.sort();
                features.off.sort();
                features.fixed_off.sort();
            }
        }
        // They may come and go while other tests make some.
        for (index, link) in &new {
            assert_eq!(Some(link), old.get(index), "{}", link.name);
        }
        let lo = new.values().find(|link| link.name == "lo").expect("every namespace has one");
        assert!(lo.features.as_ref().is_some_and(|features| !features.on.is_empty()));
    }
}
