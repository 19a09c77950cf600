//! What ethtool(8) shows, asked by netlink, or by ioctl where the kernel is older than 5.6.
//!
//! Each question is asked once for all interfaces (Linux `Documentation/networking/ethtool-netlink.rst`,
//! `include/uapi/linux/ethtool_netlink.h`); what a driver does not know is absent from the answer.

use std::collections::{BTreeMap, BTreeSet};

use tcpwhy::host::snapshot::{Features, Link, Ring, Source};

use super::ioctl;
use super::told::{bits_per_second, full_duplex, sort_in};
use crate::collect::blind::{Blind, name};
use crate::netlink::{Generic, attribute, attributes, put, u32_of};

/// Fills in what can be asked.
pub(super) fn describe(links: &mut BTreeMap<u32, Link>, blind: &mut Blind) {
    let mut ethtool = match Generic::open(c"ethtool") {
        Ok(Some(ethtool)) => ethtool,
        Ok(None) => return links.values_mut().for_each(ioctl::describe),
        Err(error) => return blind.refused(Source::Ethtool, None, &error),
    };
    let mut whom = Vec::new();
    put(&mut whom, HEADER | NESTED, &[]);
    for (command, old, tell) in QUESTIONS {
        let asked = ethtool.gather(command, &whom, |_: &mut Vec<()>, facts| {
            let index = attribute(facts, HEADER).and_then(|head| attribute(head, DEV_INDEX));
            let link = index.and_then(u32_of).and_then(|index| links.get_mut(&index));
            if let Some(link) = link {
                tell(facts, link);
            }
        });
        match asked {
            Ok((_, answer)) => blind.unless_whole(Source::Ethtool, answer),
            // Questions were added one by one.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                links.values_mut().for_each(old);
            }
            Err(error) => blind.refused(Source::Ethtool, None, &error),
        }
    }
}

/// `ETHTOOL_MSG_*_GET`, what asks the same by ioctl, and what reads the answer.
type Question = (u8, fn(&mut Link), fn(&[u8], &mut Link));
const QUESTIONS: [Question; 6] = [
    (4, ioctl::modes, modes),
    (11, ioctl::features, features),
    (15, ioctl::ring, ring),
    (17, ioctl::channels, channels),
    (19, ioctl::coalescing, coalescing),
    (21, ioctl::pause, pause),
];

/// `ETHTOOL_A_LINKMODES_*`. Modes of both ends are known only after they agreed on one.
fn modes(facts: &[u8], link: &mut Link) {
    link.speed = attribute(facts, 5).and_then(u32_of).and_then(bits_per_second);
    link.full_duplex = attribute(facts, 6).and_then(|value| full_duplex(*value.first()?));
    let names = |kind| {
        let all = attribute(facts, kind).map(bits).unwrap_or_default();
        all.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect::<BTreeSet<_>>()
    };
    let (ours, peers) = (names(3), names(4));
    link.speed_max = ours.intersection(&peers).filter_map(|mode| speed_of(mode)).max();
}

/// Megabits of a mode's name: `10000baseT/Full`.
fn speed_of(mode: &str) -> Option<u64> {
    let (speed, _) = mode.split_once("base")?;
    speed.parse::<u64>().ok()?.checked_mul(1_000_000)
}

/// `ETHTOOL_A_FEATURES_*`: what the hardware can, what is on, and what nobody may change.
fn features(facts: &[u8], link: &mut Link) {
    let all = |kind| attribute(facts, kind).map(bits).unwrap_or_default();
    let set = |kind| all(kind).into_iter().filter(|(_, set)| *set).map(|(name, _)| name);
    let (on, fixed): (BTreeSet<_>, BTreeSet<_>) = (set(4).collect(), set(5).collect());
    let mut features = Features::default();
    // The list of what can be changed names all there are.
    for (name, can) in all(2) {
        sort_in(&mut features, &name, on.contains(&name), can && !fixed.contains(&name));
    }
    link.features = Some(features);
}

/// `ETHTOOL_A_RINGS_*`.
fn ring(facts: &[u8], link: &mut Link) {
    let at = |kind| attribute(facts, kind).and_then(u32_of);
    link.ring = Some(Ring { rx: at(6), rx_max: at(2), tx: at(9), tx_max: at(5) });
}

/// `ETHTOOL_A_CHANNELS_*`.
fn channels(facts: &[u8], link: &mut Link) {
    let at = |kind| attribute(facts, kind).and_then(u32_of);
    let queues = link.queues.get_or_insert_default();
    queues.combined = at(9).zip(at(5)).filter(|&(_, most)| most != 0).map(<[u32; 2]>::from);
}

/// `ETHTOOL_A_COALESCE_*`.
fn coalescing(facts: &[u8], link: &mut Link) {
    link.coalesce_rx_usecs = attribute(facts, 2).and_then(u32_of);
    link.coalesce_adaptive = attribute(facts, 11).and_then(|value| Some(*value.first()? != 0));
}

/// `ETHTOOL_A_PAUSE_*`: sent, honoured.
fn pause(facts: &[u8], link: &mut Link) {
    let at = |kind| attribute(facts, kind).and_then(|value| Some(*value.first()? != 0));
    link.pause = at(4).zip(at(3)).map(<[bool; 2]>::from);
}

/// The bits of a set (`ETHTOOL_A_BITSET_*`): name, and whether it is set. In a plain list all are.
fn bits(set: &[u8]) -> Vec<(String, bool)> {
    let is_list = attribute(set, BITSET_NOMASK).is_some();
    let each = attributes(attribute(set, BITSET_BITS).unwrap_or_default());
    each.filter_map(|(_, bit)| {
        let own = name(attribute(bit, BIT_NAME)?);
        Some((own, is_list || attribute(bit, BIT_VALUE).is_some()))
    })
    // Numbers that are not given out have bits, too.
    .filter(|(own, _)| !own.is_empty())
    .collect()
}

const NESTED: u16 = 0x8000;
const HEADER: u16 = 1;
const DEV_INDEX: u16 = 1;
const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(bits: &[(&str, bool)], is_list: bool) -> Vec<u8> {
        let mut all = Vec::new();
        for (name, set) in bits {
            let mut bit = Vec::new();
            put(&mut bit, BIT_NAME, format!("{name}\0").as_bytes());
            if *set {
                put(&mut bit, BIT_VALUE, &[]);
            }
            put(&mut all, 1, &bit);
        }
        let mut value = Vec::new();
        if is_list {
            put(&mut value, BITSET_NOMASK, &[]);
        }
        put(&mut value, BITSET_BITS, &all);
        value
    }

    #[test]
    fn features_are_on_or_off_or_off_for_good() {
        let mut facts = Vec::new();
        put(
            &mut facts,
            2,
            &set(&[("tx-a", true), ("rx-b", true), ("c", false), ("d", true)], false),
        );
        put(&mut facts, 4, &set(&[("tx-a", false)], true));
        put(&mut facts, 5, &set(&[("d", true), ("rx-b", false)], false));
        let mut link = Link::default();
        features(&facts, &mut link);
        let found = link.features.expect("told");
        assert_eq!((found.on, found.off), (vec!["tx-a".to_owned()], vec!["rx-b".to_owned()]));
        assert_eq!(found.fixed_off, ["c", "d"]);
    }

    #[test]
    fn the_fastest_mode_is_one_that_both_ends_have() {
        let mut facts = Vec::new();
        put(
            &mut facts,
            3,
            &set(
                &[
                    ("100baseT/Full", true),
                    ("1000baseT/Full", true),
                    ("10000baseT/Full", true),
                    ("TP", true),
                ],
                false,
            ),
        );
        put(&mut facts, 4, &set(&[("100baseT/Full", false), ("1000baseT/Full", false)], true));
        put(&mut facts, 5, &100_u32.to_ne_bytes());
        put(&mut facts, 6, &[0]);
        let mut link = Link::default();
        modes(&facts, &mut link);
        assert_eq!((link.speed, link.speed_max), (Some(100_000_000), Some(1_000_000_000)));
        assert_eq!(link.full_duplex, Some(false));
        modes(&[], &mut link);
        assert_eq!((link.speed, link.speed_max, link.full_duplex), (None, None, None));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut link = Link::default();
            for (_, _, tell) in QUESTIONS {
                tell(&bytes, &mut link);
            }
            bits(&bytes);
        }
    }
}
