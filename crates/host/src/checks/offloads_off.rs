//! An interface that carries much has segmentation, merging or checksums switched off.
//!
//! # What it says
//! With TSO, GSO and GRO the kernel handles some tens of segments as one packet; without them each costs its own way
//! through the stack. Above a gigabit a processor becomes the limit, and it is full before the wire is.
//!
//! # How we know
//! ethtool shows the offload as off and not fixed, and more than 100 Mbit/s passed between the looks.
//!
//! # What it is not
//! Not that a processor is full: `SOFTIRQ` tells that. A driver with a fault may need it off: see who set it and why.
//! An old advice switches them off for less delay; since TSO sizes its bursts by the rate (Linux 3.12) that gains nothing.
//!
//! # What to do
//! Switch them on again, scatter-gather first: TSO and GSO need it.
//!
//! # Sources
//! Linux `netdev_fix_features` (v6.1, `net/core/dev.c`), `tcp_tso_autosize`; Documentation/networking/segmentation-offloads.rst.
//! 100 Mbit/s: ours, not measured.

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Features, Source};

pub(super) const CHECK: Check = Check {
    code: "OFFLOADS_OFF",
    file: include_str!("offloads_off.rs"),
    group: Group::Queues,
    judge,
};

/// In the order in which they can be switched on.
const WANTED: [&str; 5] = [
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
    "rx-checksum",
];

/// A device has one of these, not all.
const CHECKSUMS: [&str; 2] = ["tx-checksum-ip-generic", "tx-checksum-ipv4"];

const BUSY_BITS: f64 = 100e6;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let running: Vec<Device<'_>> = devices(seen)?.into_iter().filter(Device::is_running).collect();
    if !running.is_empty() && running.iter().all(|device| device.now.features.is_none()) {
        return Err(Missing::part(Source::Ethtool, "features"));
    }
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let hit: Vec<(Device<'_>, f64, Vec<&str>)> = running
        .into_iter()
        .filter_map(|device| {
            let rate = device.bit_rate().filter(|rate| *rate > BUSY_BITS)?;
            let off = off(device.now.features.as_ref()?);
            (!off.is_empty()).then_some((device, rate, off))
        })
        .collect();
    let Some((_, rate, off)) = hit.first() else { return Ok(Vec::new()) };
    let names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    let evidence = hit.iter().take(words::WORST).map(|(device, rate, off)| {
        Evidence::new(
            format!("ethtool -k {}", device.name()),
            format!("off: {}; {:.0} Mbit/s pass", words::named(off), rate / 1e6),
        )
    });
    let fixes = hit.iter().take(words::WORST).flat_map(|(device, _, off)| {
        off.iter().map(|name| Fix {
            what: format!("switch {name} of {} on", device.name()),
            risk: "a driver with a fault may send broken segments: watch for retransmissions"
                .to_owned(),
            set: Some(Change::Ethtool {
                dev: device.name().to_owned(),
                option: "-K".to_owned(),
                from: format!("{name} off"),
                to: format!("{name} on"),
            }),
            applies: words::AT_ONCE.to_owned(),
        })
    });
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!("{} has {} switched off", devices::told(&names), words::named(off)),
        why: format!(
            "{:.0} Mbit/s pass, and each segment takes its own way through the stack: that costs processor time and, when \
             none is left, packets.",
            rate / 1e6
        ),
        not: "not that a processor is full, nor that it is off without reason: a faulty driver may need it so".to_owned(),
        evidence: evidence.collect(),
        fixes: fixes.collect(),
        ..Finding::default()
    }
    .all_together()])
}

fn off(features: &Features) -> Vec<&str> {
    let is_off = |name: &&str| features.off.iter().any(|off| off == name);
    let mut off: Vec<&str> = WANTED.into_iter().filter(is_off).collect();
    if !CHECKSUMS.iter().any(|name| features.on.iter().any(|on| on == name)) {
        off.extend(CHECKSUMS.into_iter().filter(is_off));
    }
    off
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{LinkCounters, Snapshot};

    fn with(off: &[&str], on: &[&str], bytes: u64) -> Snapshot {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("eth0");
            eth0.counters = Some(LinkCounters { tx_bytes: bytes * nth, ..LinkCounters::default() });
            eth0.features =
                Some(Features { on: owned(on), off: owned(off), fixed_off: Vec::new() });
            look.links = Some(vec![eth0]);
        })
    }

    const ENOUGH: u64 = 125_000_001;

    #[test]
    fn segmentation_that_is_off_on_a_busy_interface_is_told_with_its_rate() {
        let bad =
            with(&["tx-tcp-segmentation", "tx-scatter-gather"], &["tx-checksum-ipv4"], ENOUGH * 5);
        insta::assert_snapshot!(shown(&CHECK, &bad));
    }

    #[test]
    fn a_quiet_interface_and_one_with_the_other_checksum_are_well() {
        let off = ["rx-gro"];
        assert_eq!(judged(&CHECK, &with(&off, &["tx-checksum-ipv4"], ENOUGH - 1)), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &with(&off, &["tx-checksum-ipv4"], ENOUGH)).expect("seen").len(),
            1
        );
        let other = with(&["tx-checksum-ipv4"], &["tx-checksum-ip-generic"], ENOUGH);
        assert_eq!(judged(&CHECK, &other), Ok(Vec::new()));
    }

    #[test]
    fn without_features_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let one = once(with(&["rx-gro"], &[], ENOUGH));
        assert_eq!(missing(&CHECK, &one).source, Source::SecondLook);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).source, Source::Ethtool);
    }
}
