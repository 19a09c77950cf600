//! The cloud holds back or drops packets because this size of machine may have no more.
//!
//! # What it says
//! Clouds give each size of machine a rate, a packet rate and a number of tracked connections. Above it the network of the cloud queues
//! or drops; nothing on the host shows it but the driver's counters.
//!
//! # How we know
//! A counter of the driver named `..._allowance_exceeded` grew (AWS `ena`).
//!
//! # What it is not
//! Not a limit of the kernel or its settings. Other clouds' drivers do not count it: silence proves nothing there.
//!
//! # What to do
//! A larger size, fewer and larger packets, or connections kept open; for `conntrack_allowance`, security groups that need no
//! tracking. Bursts can be spread: these sizes have a credit.
//!
//! # Sources
//! Linux `drivers/net/ethernet/amazon/ena/ena_ethtool.c` (v6.1); AWS, Monitor network performance for your EC2 instance.

use core::cmp::Reverse;

use super::devices::{self, Device, devices, unless_cut};
use super::{Check, words};
use crate::finding::{Evidence, Finding, Group};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "CLOUD_ALLOWANCE",
    file: include_str!("cloud_allowance.rs"),
    group: Group::Queues,
    judge,
};

const SUFFIX: &str = "_allowance_exceeded";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.driver_counters.is_none()) {
        return Err(Missing::part(Source::Ethtool, "driver counters"));
    }
    let mut hit: Vec<(Device<'_>, &str, Growth)> = Vec::new();
    for device in all {
        let names = device.now.driver_counters.iter().flat_map(|all| all.keys());
        hit.extend(names.filter(|name| name.ends_with(SUFFIX)).filter_map(|name| {
            let grown = device.driver(|each| each == name)?.1;
            Some((device, name.as_str(), grown))
        }));
    }
    hit.sort_by_key(|(device, name, growth)| (Reverse(growth.by), device.name(), *name));
    let Some((worst, name, growth)) = hit.first() else { return unless_cut(seen, Vec::new()) };
    let mut names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    names.sort_unstable();
    names.dedup();
    let evidence = hit.iter().take(words::WORST).map(|(device, name, growth)| {
        Evidence::new(
            format!("ethtool -S {} {name}", words::device(device.name())),
            words::grown(*growth),
        )
    });
    Ok(vec![Finding {
        severity: words::of_drops(*growth),
        confidence: words::sure(*growth),
        scope: devices::scope(&names),
        title: format!(
            "the cloud held back or dropped packets of {}: {}",
            worst.name(),
            words::grown(*growth)
        ),
        why: format!("the size of this machine was exceeded in {}.", limit(name)),
        not: "not a limit of the kernel: no setting changes it".to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            "a larger size of machine, or less at once: larger packets, connections kept open",
            "",
        )],
        ..Finding::default()
    }])
}

fn limit(name: &str) -> &str {
    match name.trim_end_matches(SUFFIX) {
        "bw_in" => "its rate inwards",
        "bw_out" => "its rate outwards",
        "pps" => "its packets a second",
        "conntrack" => "the connections that the cloud tracks",
        "linklocal" => "packets to the cloud's own services (DNS, metadata, time)",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::finding::{Confidence, Severity};
    use crate::snapshot::Snapshot;

    fn exceeded(pps: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let mut eth0 = link("ens5");
            let counters = [
                ("pps_allowance_exceeded", pps[nth as usize]),
                ("bw_in_allowance_exceeded", 4),
                ("rx_packets", nth),
            ];
            eth0.driver_counters =
                Some(counters.map(|(name, value)| (name.to_owned(), value)).into());
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn an_allowance_that_is_exceeded_is_an_error_of_the_machines_size() {
        insta::assert_snapshot!(shown(&CHECK, &exceeded([7, 99])));
    }

    #[test]
    fn what_was_before_is_nothing_and_one_look_is_unsure() {
        assert_eq!(judged(&CHECK, &exceeded([7, 7])), Ok(Vec::new()));
        let found = judged(&CHECK, &once(exceeded([7, 7]))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn without_interfaces_or_their_drivers_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).source, Source::Ethtool);
    }
}
