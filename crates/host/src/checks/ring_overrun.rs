//! The interface dropped packets because nobody took them out of its receive ring in time.
//!
//! # What it says
//! An interface writes what it receives into a ring of buffers and the kernel takes it out. When the ring is full, the
//! interface drops: TCP sees a loss that no cable made.
//!
//! # How we know
//! `rx_missed_errors` or `rx_fifo_errors` grew, or the driver's own counter of the same (`rx_no_buffer_count`,
//! `rx_out_of_buffer`, `rx_discards_phy`, ...).
//!
//! # What it is not
//! Not `rx_dropped`, which counts what the kernel threw away after it had it. Not that the ring is too short: a
//! processor that does not keep up fills any ring, only later.
//!
//! # What to do
//! See first whether one processor does all the work (`ONE_CPU`) or has none left (`SOFTIRQ`). Then lengthen the
//! ring two to four times; a longer one adds delay and spoils caches.
//!
//! # Sources
//! Linux `include/uapi/linux/if_link.h` (`rtnl_link_stats64`); ethtool(8). One packet in ten thousand: ours, not measured.

use core::cmp::Reverse;

use super::devices::{self, Device, devices, need_counters, unless_cut};
use super::{Check, words};
use crate::finding::{Change, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "RING_OVERRUN",
    file: include_str!("ring_overrun.rs"),
    group: Group::Queues,
    judge,
};

/// Names that drivers give to packets that found no buffer: igb and ixgbe, mlx5, sfc, bnxt and i40e.
const DRIVERS: [&str; 7] = [
    "rx_no_buffer_count",
    "rx_missed_errors",
    "rx_out_of_buffer",
    "rx_discards_phy",
    "rx_nodesc_drops",
    "rx_nodesc_drop_cnt",
    "rx_no_dma_resources",
];

const KERNEL: [&str; 2] = ["rx_missed_errors", "rx_fifo_errors"];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if all.iter().all(|device| device.now.driver_counters.is_none()) {
        need_counters(&all, &KERNEL)?;
    }
    let mut hit: Vec<(Device<'_>, String, Growth)> = all
        .into_iter()
        .filter_map(|device| lost(device).map(|(name, growth)| (device, name, growth)))
        .collect();
    hit.sort_by_key(|(device, _, growth)| (Reverse(growth.by), device.name()));
    let Some((worst, _, growth)) = hit.first() else { return unless_cut(seen, Vec::new()) };
    let names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    // The packets that were missed are not among those received.
    let all = worst.counted(&["rx_packets"]).map(|packets| packets.by.saturating_add(growth.by));
    let is_much = all.is_none_or(|all| u128::from(growth.by) * 10_000 > u128::from(all));
    let share = all.map_or_else(
        || "what was missed of what came".to_owned(),
        |all| format!("{} of what came", words::share(growth.by, all)),
    );
    let mut evidence: Vec<Evidence> = Vec::new();
    for (device, name, growth) in hit.iter().take(words::WORST) {
        evidence.push(Evidence::new(source(device, name), words::grown(*growth)));
        evidence.extend(device.now.ring.map(|ring| {
            let size = |size: Option<u32>| {
                size.map_or_else(|| "unknown".to_owned(), |size| size.to_string())
            };
            Evidence::new(
                format!("ethtool -g {}", device.name()),
                format!("rx {}, at most {}", size(ring.rx), size(ring.rx_max)),
            )
        }));
    }
    Ok(vec![Finding {
        severity: if is_much { words::of_drops(*growth) } else { Severity::Warning },
        confidence: words::sure(*growth),
        scope: devices::scope(&names),
        title: format!("{} dropped packets, the receive ring was full: {}", devices::told(&names), words::grown(*growth)),
        why: format!(
            "{share} to {} was lost inside this host: each such packet is a loss to TCP.",
            worst.name()
        ),
        not: "not that the ring is too short: a processor that does not keep up fills any ring, only later".to_owned(),
        evidence,
        fixes: fixes(&hit),
        ..Finding::default()
    }
    .all_together()])
}

/// The kernel's own counters where they grew, else the driver's; both may count the same packets.
fn lost(device: Device<'_>) -> Option<(String, Growth)> {
    // Some drivers count the same packets in both.
    let both = KERNEL.iter().filter_map(|name| device.counted(&[name]));
    let kernel = both.filter(|growth| growth.by > 0).max_by_key(|growth| growth.by);
    let driver = device.driver(|name| {
        DRIVERS.contains(&name) || (name.starts_with("rx_queue_") && name.ends_with("_drops"))
    });
    kernel
        .map(|growth| ("rx_missed_errors, rx_fifo_errors".to_owned(), growth))
        .or_else(|| driver.map(|(name, growth)| (name.to_owned(), growth)))
}

fn source(device: &Device<'_>, name: &str) -> String {
    if name.contains(',') {
        format!("ip -s -s link show {} (missed, fifo)", words::device(device.name()))
    } else {
        format!("ethtool -S {} {name}", words::device(device.name()))
    }
}

fn fixes(hit: &[(Device<'_>, String, Growth)]) -> Vec<Fix> {
    let mut fixes = vec![words::advise(
        "see first whether one processor takes all packets, or has no time left (mpstat -P ALL 1, /proc/interrupts)",
        "",
    )];
    fixes.extend(hit.iter().take(words::WORST).filter_map(|(device, ..)| {
        let ring = device.now.ring?;
        let (now, most) = (ring.rx?, ring.rx_max?);
        let to = now.saturating_mul(4).min(most);
        (to > now).then(|| Fix {
            what: format!("lengthen the ring of {}", device.name()),
            risk: "the link goes down for a moment with many drivers; a longer ring adds delay"
                .to_owned(),
            set: Some(Change::Ethtool {
                dev: device.name().to_owned(),
                option: "-G".to_owned(),
                from: format!("rx {now}"),
                to: format!("rx {to}"),
            }),
            applies: words::AT_ONCE.to_owned(),
        })
    }));
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::finding::{Confidence, Scope};
    use crate::snapshot::{LinkCounters, Ring, Snapshot, Source};

    fn missed(missed: [u64; 2], packets: u64) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            eth0.counters = Some(LinkCounters {
                rx_missed_errors: missed[nth as usize],
                rx_packets: 1000 + packets * nth,
                ..LinkCounters::default()
            });
            eth0.ring = Some(Ring { rx: Some(256), rx_max: Some(4096), ..Ring::default() });
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn missed_packets_are_told_with_the_ring_and_what_it_may_be() {
        insta::assert_snapshot!(shown(&CHECK, &missed([7, 207], 99_800)));
    }

    #[test]
    fn one_in_ten_thousand_is_a_warning_and_none_is_nothing() {
        assert_eq!(
            judged(&CHECK, &missed([7, 8], 9_999)).expect("seen")[0].severity,
            Severity::Warning
        );
        assert_eq!(
            judged(&CHECK, &missed([7, 8], 9_998)).expect("seen")[0].severity,
            Severity::Error
        );
        assert_eq!(judged(&CHECK, &missed([7, 7], 0)), Ok(Vec::new()));
    }

    #[test]
    fn the_counter_of_a_driver_is_enough_and_an_unknown_one_is_not() {
        let with = |name: &str| {
            each_look(missed([0, 0], 1000), |nth, look| {
                let links = look.links.as_mut().expect("seen");
                links[0].driver_counters = Some([(name.to_owned(), 5 * nth)].into());
            })
        };
        let found = judged(&CHECK, &with("rx_queue_3_drops")).expect("seen");
        assert_eq!(found[0].scope, Scope::Interface("eth0".to_owned()));
        assert_eq!(judged(&CHECK, &with("rx_queue_3_packets")), Ok(Vec::new()));
    }

    #[test]
    fn an_interface_that_was_made_anew_and_one_look_are_no_error() {
        let mut anew = missed([7, 207], 1000);
        anew.looks[0].links.as_mut().expect("seen")[0].index = 9;
        assert_eq!(judged(&CHECK, &anew), Ok(Vec::new()));
        let found = judged(&CHECK, &once(missed([7, 207], 1000))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn without_interfaces_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
    }
}
