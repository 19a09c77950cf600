//! Queueing disciplines and classes by rtnetlink(7), with their statistics.
//!
//! Disciplines that nobody asked for and that tc(8) does not show either, those below a class, are left
//! out. Options are those of the kinds in [`options`]; those of another kind are marked as unread.

use std::collections::{BTreeMap, BTreeSet};

use tcpwhy::host::snapshot::{Qdisc, Source};

use super::blind::{Blind, name};
use crate::netlink::{Netlink, attribute, attributes, number};

mod options;

/// Those of the namespace of this thread, in the kernel's order, and the classes of those that have some.
pub(super) fn qdiscs(
    route: &mut Netlink,
    names: &BTreeMap<u32, String>,
    blind: &mut Blind,
) -> Option<[Vec<Qdisc>; 2]> {
    let listed = route.gather(libc::RTM_GETQDISC, &[0; TCMSG], |found, message| {
        found.extend(read(message, names));
    });
    let (found, answer) = match listed {
        Ok(listed) => listed,
        Err(error) => {
            blind.refused(Source::Qdiscs, None, &error);
            return None;
        }
    };
    blind.unless_whole(Source::Qdiscs, answer);
    let strange: BTreeSet<&str> = found
        .iter()
        .map(|(_, qdisc)| qdisc.kind.as_str())
        .filter(|kind| !options::knows(kind))
        .collect();
    for kind in strange {
        blind.say(Source::Qdiscs, Some(kind), "options of this kind are not read");
    }
    let with_classes: BTreeSet<u32> = found
        .iter()
        .filter(|(_, qdisc)| CLASSFUL.contains(&qdisc.kind.as_str()))
        .map(|(index, _)| *index)
        .collect();
    let mut classes = Vec::new();
    for index in with_classes.into_iter().take(MOST_DEVICES) {
        let mut body = vec![0; TCMSG];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let listed = route.gather(libc::RTM_GETTCLASS, &body, |found, message| {
            let class = read(message, names).map(|(_, class)| class);
            found.extend(class.filter(|class| CLASSFUL.contains(&class.kind.as_str())));
        });
        match listed {
            Ok((found, answer)) => {
                blind.unless_whole(Source::Qdiscs, answer);
                classes.extend(found);
            }
            // It went away.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => blind.refused(Source::Qdiscs, Some("classes"), &error),
        }
    }
    Some([found.into_iter().map(|(_, qdisc)| qdisc).collect(), classes])
}

/// A discipline or a class (`tcmsg` and its attributes), and the number of its interface.
fn read(message: &[u8], names: &BTreeMap<u32, String>) -> Option<(u32, Qdisc)> {
    let at = |at| number(message, at, 4).map(|value| value as u32);
    let index = at(4)?;
    let facts = message.get(TCMSG..)?;
    let mut qdisc = Qdisc {
        dev: names.get(&index)?.clone(),
        kind: name(attribute(facts, TCA_KIND)?),
        handle: at(8)?,
        parent: at(12)?,
        ..Qdisc::default()
    };
    for (kind, value) in attributes(facts) {
        match kind {
            TCA_OPTIONS => options::read(&mut qdisc, value),
            TCA_STATS2 => statistics(&mut qdisc, value),
            _ => {}
        }
    }
    Some((index, qdisc))
}

/// `TCA_STATS_*` (Linux `include/uapi/linux/gen_stats.h`).
fn statistics(qdisc: &mut Qdisc, stats: &[u8]) {
    for (kind, value) in attributes(stats) {
        let at = |at| number(value, at, 4).unwrap_or(0);
        match kind {
            TCA_STATS_BASIC => {
                qdisc.bytes = number(value, 0, 8).unwrap_or(0);
                qdisc.packets = qdisc.packets.max(at(8));
            }
            // The same without wrapping; it is behind the other.
            TCA_STATS_PKT64 => qdisc.packets = number(value, 0, 8).unwrap_or(qdisc.packets),
            TCA_STATS_QUEUE => {
                (qdisc.qlen, qdisc.backlog, qdisc.drops) = (at(0), at(4), at(8));
                (qdisc.requeues, qdisc.overlimits) = (at(12), at(16));
            }
            TCA_STATS_APP => options::own(qdisc, value),
            _ => {}
        }
    }
}

/// Kinds whose classes are set by people and have rates or shares.
const CLASSFUL: [&str; 5] = ["htb", "hfsc", "drr", "qfq", "ets"];

/// Ours: hosts shape one interface or a few.
const MOST_DEVICES: usize = 64;

/// Length of a `tcmsg`, and `TCA_*` (Linux `include/uapi/linux/rtnetlink.h`).
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::put;

    #[test]
    fn a_discipline_is_told_with_its_statistics() {
        let mut message = vec![0; TCMSG];
        message[4] = 2;
        message[8..12].copy_from_slice(&0x8001_0000_u32.to_ne_bytes());
        message[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        put(&mut message, TCA_KIND, b"pfifo\0");
        put(&mut message, TCA_OPTIONS, &1000_u32.to_ne_bytes());
        let mut stats = Vec::new();
        put(&mut stats, TCA_STATS_BASIC, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        let queue: Vec<u8> = (3..8_u32).flat_map(u32::to_ne_bytes).collect();
        put(&mut stats, TCA_STATS_QUEUE, &queue);
        put(&mut message, TCA_STATS2, &stats);
        let names = BTreeMap::from([(2, "eth0".to_owned())]);
        let (_, found) = read(&message, &names).expect("whole");
        assert_eq!((found.dev.as_str(), found.kind.as_str()), ("eth0", "pfifo"));
        assert_eq!((found.bytes, found.packets, found.qlen, found.backlog), (1, 2, 3, 4));
        assert_eq!((found.drops, found.requeues, found.overlimits), (5, 6, 7));
        assert_eq!(found.options["limit"], "1000p");
    }

    #[test]
    fn what_is_at_an_interface_that_has_gone_is_left_out() {
        let mut message = vec![0; TCMSG];
        put(&mut message, TCA_KIND, b"pfifo\0");
        assert_eq!(read(&message, &BTreeMap::new()), None);
    }

    proptest! {
        #[test]
        fn no_message_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, &BTreeMap::from([(0, "x".to_owned())]));
        }
    }
}
