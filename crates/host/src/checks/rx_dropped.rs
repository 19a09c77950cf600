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

use super::devices::{self, Device, devices, need_counters};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "RX_DROPPED", file: include_str!("rx_dropped.rs"), group: Group::Queues, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    need_counters(&all, &["rx_dropped"])?;
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let mut hit: Vec<(Device<'_>, Growth, u64)> = all
        .into_iter()
        .filter_map(|device| {
            let dropped = device.counted(&["rx_dropped"])?;
            let received = device.counted(&["rx_packets"])?.by;
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
            words::share(dropped.by, *received),
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
    let told =
        [("rx_nohandler", ", without a handler "), ("rx_otherhost_dropped", ", for other hosts ")];
    told.iter()
        .filter_map(|(name, what)| {
            let grown = device.counted(&[name]).filter(|grown| grown.by > 0)?;
            Some(format!("{what}{}", words::grown(grown)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{LinkCounters, Snapshot};

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
    fn what_ifconfig_adds_to_the_misses_of_a_ring_proves_nothing() {
        let added = |name: &str| {
            each_look(dropped(300), |nth, look| {
                let eth0 = &mut look.links.as_mut().expect("seen")[0];
                eth0.counters = None;
                let counts = [(name.to_owned(), 300 * nth), ("rx_packets".to_owned(), 1000 * nth)];
                eth0.some_counters = Some(counts.into());
            })
        };
        assert_eq!(missing(&CHECK, &added("rx_dropped+rx_missed_errors")).source, Source::Links);
        assert_eq!(judged(&CHECK, &added("rx_dropped")).expect("seen").len(), 1);
    }

    #[test]
    fn without_interfaces_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        assert_eq!(missing(&CHECK, &once(dropped(300))).source, Source::SecondLook);
    }
}
