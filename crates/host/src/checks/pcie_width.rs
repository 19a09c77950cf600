//! An interface has a slower link to the processor than to the network.
//!
//! # What it says
//! A card in a narrow slot, or one whose `PCIe` link came up with fewer lanes than it has, takes packets slower than the cable brings
//! them: its ring overruns while processors idle.
//!
//! # How we know
//! The rate of the `PCIe` link as it is (lanes, and transfers a second less the line code) is below the speed of the interface; or it has
//! fewer lanes or less speed than the card could have.
//!
//! # What it is not
//! Not that packets are lost for it: a link that is not used up does not notice. Headers of `PCIe` take another tenth or more, which
//! is not counted here.
//!
//! # What to do
//! Put the card into a slot with all its lanes; seat it anew; look at the firmware's settings of the slot.
//!
//! # Sources
//! PCI Express Base Specification: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s, 242B/256B at 64 GT/s; Documentation/ABI/testing/sysfs-bus-pci
//! (`current_link_speed`).

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "PCIE_WIDTH", file: include_str!("pcie_width.rs"), group: Group::Queues, judge };

/// Bits a second from which a link below its best is named though it is enough (ours, not measured).
const FAST: u64 = 25_000_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut found = Vec::new();
    for device in devices(seen)?.into_iter().filter(Device::is_running) {
        let (Some([now, most]), Some(speed)) = (&device.now.pcie, device.now.speed) else {
            continue;
        };
        let (Some(rate), Some(best)) = (bits_per_second(now), bits_per_second(most)) else {
            continue;
        };
        if rate < speed || (rate < best && speed >= FAST) {
            found.push(finding(&device, rate < speed, [now, most], rate, speed));
        }
    }
    found.truncate(words::WORST);
    seen.unless_refused(Source::ByteQueues, found)
}

fn finding(
    device: &Device<'_>,
    is_short: bool,
    [now, most]: [&String; 2],
    rate: u64,
    speed: u64,
) -> Finding {
    let gbit = |rate: u64| format!("{:.1} Gbit/s", rate as f64 / 1e9);
    Finding {
        severity: if is_short { Severity::Warning } else { Severity::Info },
        confidence: Confidence::High,
        scope: devices::scope(&[device.name()]),
        title: if is_short {
            format!(
                "the PCIe link of {} carries {}, the cable {}",
                device.name(),
                gbit(rate),
                gbit(speed)
            )
        } else {
            format!("the PCIe link of {} is below what the card could have", device.name())
        },
        why: "what comes faster than this link carries overruns the ring, while processors idle."
            .to_owned(),
        not: "not that packets are lost for it: see whether the ring overruns".to_owned(),
        evidence: vec![Evidence::new(
            format!("/sys/class/net/{}/device/current_link_speed and _width", device.name()),
            format!("{now}, at most {most}"),
        )],
        fixes: vec![words::advise(
            "put the card into a slot with all its lanes, or seat it anew",
            "the host has to be switched off",
        )],
        ..Finding::default()
    }
}

/// Of `8.0 GT/s PCIe x4`: payload before the headers of packets.
fn bits_per_second(link: &str) -> Option<u64> {
    let mega_transfers = (link.split_whitespace().next()?.parse::<f64>().ok()? * 1000.0) as u64;
    let lanes: u64 =
        link.rsplit_once('x')?.1.parse().ok().filter(|lanes| (1..=32).contains(lanes))?;
    let coded = match mega_transfers {
        0 => return None,
        1..=5_000 => mega_transfers * 8 / 10,
        5_001..=32_000 => mega_transfers * 128 / 130,
        _ => mega_transfers * 242 / 256,
    };
    Some(coded.saturating_mul(lanes).saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Link, Snapshot, Source};

    fn slot(now: &str, most: &str, speed: u64) -> Snapshot {
        each_look(host(&[]), |_, look| {
            let pcie = Some([now.to_owned(), most.to_owned()]);
            look.links = Some(vec![Link { pcie, speed: Some(speed), ..link("eth0") }]);
        })
    }

    #[test]
    fn a_slot_slower_than_the_cable_is_told() {
        insta::assert_snapshot!(shown(
            &CHECK,
            &slot("8.0 GT/s PCIe x4", "8.0 GT/s PCIe x8", 40_000_000_000)
        ));
    }

    #[test]
    fn line_codes_count() {
        assert_eq!(bits_per_second("2.5 GT/s PCIe x1"), Some(2_000_000_000));
        assert_eq!(bits_per_second("5.0 GT/s PCIe x4"), Some(16_000_000_000));
        assert_eq!(bits_per_second("16.0 GT/s PCIe x16"), Some(252_048_000_000));
        assert_eq!(bits_per_second("Unknown x4"), None);
        assert_eq!(bits_per_second("8.0 GT/s"), None);
    }

    #[test]
    fn fewer_lanes_that_are_enough_are_told_from_25_gigabit_on() {
        let fewer = |speed| {
            judged(&CHECK, &slot("8.0 GT/s PCIe x4", "8.0 GT/s PCIe x8", speed)).expect("seen")
        };
        assert_eq!(fewer(25_000_000_000)[0].severity, Severity::Info);
        assert_eq!(fewer(10_000_000_000), Vec::new());
    }

    #[test]
    fn a_card_without_pcie_is_well_and_without_interfaces_nothing_is_said() {
        let virtio = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(judged(&CHECK, &virtio), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
    }
}
