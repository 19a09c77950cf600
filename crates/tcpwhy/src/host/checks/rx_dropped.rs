//! The kernel threw away packets that an interface had received.
//!
//! # What it says
//! `rx_dropped` counts packets that arrived well and then had nowhere to go: of a protocol that nobody handles, of a VLAN that is
//! not there, on an idle interface of a bond, beyond memory or a full backlog. `ifconfig` and `/proc/net/dev` add the
//! interface's own misses to it, the kernel's newer interface does not.
//!
//! # How we know
//! `rx_dropped` is more than 2 % of what an interface received between the looks.
//!
//! # What it is not
//! Not a full ring (`RING_OVERRUN`), and mostly not TCP: discovery and spanning tree packets of switches are counted here on many
//! networks.
//!
//! # What to do
//! See which they are before anything else: `dropwatch`, `perf trace -e skb:kfree_skb`, or a capture of what is no IP.
//!
//! # Sources
//! Linux `__netif_receive_skb_core`, `include/uapi/linux/if_link.h` (v6.1). 2 %: ours, not measured.

use core::cmp::Reverse;

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::host::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::host::seen::{Asked, Growth, Missing, Seen};
use crate::host::snapshot::{LinkCounters, Source};

pub(super) const CHECK: Check =
    Check { code: "RX_DROPPED", file: include_str!("rx_dropped.rs"), group: Group::Queues, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let mut hit: Vec<(Device<'_>, Growth, u64)> = all
        .into_iter()
        .filter_map(|device| {
            let dropped = device.counted(|c| c.rx_dropped)?;
            let received = device.counted(|c| c.rx_packets)?.by;
            words::above_percent(dropped.by, 2, received).then_some((device, dropped, received))
        })
        .collect();
    hit.sort_by_key(|(device, dropped, _)| (Reverse(dropped.by), device.name()));
    let Some((worst, dropped, received)) = hit.first() else { return Ok(Vec::new()) };
    let names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    let evidence = hit.iter().take(words::WORST).map(|(device, dropped, received)| {
        let why = others(*device);
        Evidence::new(
            format!("ip -s link show {} (RX dropped)", device.name()),
            format!("{} of {received} received{why}", words::grown(*dropped)),
        )
    });
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Low,
        scope: devices::scope(&names),
        title: format!("{} received packets that nobody wanted: {}", devices::told(&names), words::grown(*dropped)),
        why: format!(
            "{} of what {} received was thrown away after it had come well.",
            words::percent(dropped.by, *received),
            worst.name()
        ),
        not: "not a full ring, and mostly not TCP: packets of switches among themselves are counted here, too".to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            "see what they are: dropwatch -l kas, or perf record -e skb:kfree_skb for some seconds",
            "",
        )],
        ..Finding::default()
    }])
}

fn others(device: Device<'_>) -> String {
    type Counter = (&'static str, fn(&LinkCounters) -> Option<u64>);
    const COUNTERS: [Counter; 2] = [
        (", without a handler ", |counters| counters.rx_nohandler),
        (", for other hosts ", |counters| counters.rx_otherhost_dropped),
    ];
    COUNTERS
        .iter()
        .filter_map(|(what, of)| {
            let grown = device.growth(|link| of(link.counters.as_ref()?))?;
            (grown.by > 0).then(|| format!("{what}{}", words::grown(grown)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::host::snapshot::Snapshot;

    fn dropped(by: u64) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            eth0.counters = Some(LinkCounters {
                rx_packets: 500 + 1000 * nth,
                rx_dropped: 3 + by * nth,
                rx_nohandler: Some(7 * nth),
                ..LinkCounters::default()
            });
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn packets_that_nobody_wanted_are_told_with_their_share() {
        insta::assert_snapshot!(shown(&CHECK, &dropped(300)));
    }

    #[test]
    fn two_percent_are_nothing() {
        assert_eq!(judged(&CHECK, &dropped(20)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &dropped(21)).expect("seen").len(), 1);
    }

    #[test]
    fn without_interfaces_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        assert_eq!(missing(&CHECK, &once(dropped(300))).source, Source::SecondLook);
    }
}
