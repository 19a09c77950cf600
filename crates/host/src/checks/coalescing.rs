//! An interface holds its interrupts back for long, or raises one for nearly every packet.
//!
//! # What it says
//! `rx-usecs` is how long an interface waits for more packets before it interrupts. Every answer waits as long; without any wait a busy
//! processor is interrupted for each packet.
//!
//! # How we know
//! Adaptive moderation is off, and `rx-usecs` is above 200, or 0 at more than 100,000 packets a second.
//!
//! # What it is not
//! Not a fault for bulk transfers: they do not notice 200 us.
//!
//! # What to do
//! Switch adaptive moderation on (`ethtool -C DEV adaptive-rx on`) where the driver has it, or choose 20 to 100 us.
//!
//! # Sources
//! ethtool(8) `-C`; Documentation/networking/ethtool-netlink.rst. 200 us and 100,000 a second: ours, not measured.

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "COALESCING", file: include_str!("coalescing.rs"), group: Group::Queues, judge };

const LONG_US: u32 = 200;
const MANY_A_SECOND: f64 = 100_000.0;
/// Ours, not measured: between the two.
const BETWEEN_US: u32 = 50;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.coalesce_rx_usecs.is_none()) {
        return Err(Missing::part(Source::Ethtool, "coalescing"));
    }
    let fixed: Vec<(Device<'_>, u32)> = all
        .into_iter()
        .filter(|device| device.is_running() && device.now.coalesce_adaptive != Some(true))
        .filter_map(|device| Some((device, device.now.coalesce_rx_usecs?)))
        .collect();
    let rate = |device: &Device<'_>| {
        device
            .counted(&["rx_packets"])
            .filter(|grown| !grown.since_start)
            .map_or(0.0, Growth::per_second)
    };
    let late: Vec<_> = fixed.iter().filter(|(_, wait_us)| *wait_us > LONG_US).copied().collect();
    let eager: Vec<_> = fixed
        .iter()
        .filter(|(device, wait_us)| *wait_us == 0 && rate(device) > MANY_A_SECOND)
        .copied()
        .collect();
    let mut found = Vec::new();
    if let Some((_, wait_us)) = late.iter().max_by_key(|(_, wait_us)| *wait_us) {
        found.push(Finding {
            why: format!("every packet may wait {wait_us} us before this host sees it, twice in a round trip between two such hosts."),
            not: "not a fault for bulk transfers: they do not notice it".to_owned(),
            ..finding(&late, "holds interrupts back for long")
        });
    }
    if let Some((device, _)) = eager.first() {
        found.push(Finding {
            why: format!(
                "{:.0} packets a second come, and each may interrupt a processor.",
                rate(device)
            ),
            not: "not that a processor is full: NAPI stops interrupts while it has work".to_owned(),
            ..finding(&eager, "interrupts for nearly every packet")
        });
    }
    Ok(found)
}

fn finding(hit: &[(Device<'_>, u32)], what: &str) -> Finding {
    let names: Vec<&str> = hit.iter().map(|(device, _)| device.name()).collect();
    let worst = hit.iter().take(words::WORST);
    let evidence = worst.clone().map(|(device, wait_us)| {
        Evidence::new(
            format!("ethtool -c {}", device.name()),
            format!("rx-usecs {wait_us}, adaptive-rx off or unknown"),
        )
    });
    let fixes = worst.map(|(device, wait_us)| Fix {
        what: format!("wait {BETWEEN_US} us on {}, or switch adaptive-rx on", device.name()),
        risk: "more or fewer interrupts: watch the processors".to_owned(),
        set: Some(Change::Ethtool {
            dev: device.name().to_owned(),
            option: "-C".to_owned(),
            from: format!("rx-usecs {wait_us}"),
            to: format!("rx-usecs {BETWEEN_US}"),
        }),
        applies: words::AT_ONCE.to_owned(),
    });
    Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!("{} {what}", devices::told(&names)),
        evidence: evidence.collect(),
        fixes: fixes.collect(),
        ..Finding::default()
    }
    .all_together()
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{LinkCounters, Snapshot};

    fn waits(wait_us: u32, adaptive: bool, packets: u64) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            (eth0.coalesce_rx_usecs, eth0.coalesce_adaptive) = (Some(wait_us), Some(adaptive));
            eth0.counters =
                Some(LinkCounters { rx_packets: packets * nth, ..LinkCounters::default() });
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn a_long_wait_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &waits(1022, false, 10)));
    }

    #[test]
    fn two_hundred_microseconds_or_a_driver_that_adapts_are_well() {
        assert_eq!(judged(&CHECK, &waits(200, false, 10)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &waits(201, false, 10)).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &waits(201, true, 10)), Ok(Vec::new()));
    }

    #[test]
    fn no_wait_at_all_is_told_only_where_packets_are_many() {
        assert_eq!(judged(&CHECK, &waits(0, false, 1_000_000)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &waits(0, false, 1_000_001)).expect("seen").len(), 1);
    }

    #[test]
    fn without_interfaces_or_coalescing_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).source, Source::Ethtool);
    }
}
