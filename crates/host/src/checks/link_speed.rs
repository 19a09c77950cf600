//! An interface has no carrier, runs at half duplex, or slower than both ends of its cable can.
//!
//! # What it says
//! At half duplex only one end may send at a time, and ACKs collide with data. A link that agreed on less than
//! both ends offer has a bad cable or a speed set by hand at one end. An interface that is up without a carrier has
//! nothing at the other end of its cable.
//!
//! # How we know
//! ethtool says `Duplex: Half`, or a speed below the fastest that both ends advertise. A missing carrier
//! (`NO-CARRIER`) is a finding where no other interface of hardware runs, or where the interface has an address.
//!
//! # What it is not
//! Not that a transfer is slow for it: one that needs less does not notice. Virtual interfaces report a number
//! that limits nothing; those without a driver are left out.
//!
//! # What to do
//! Let both ends negotiate, and change the cable: a broken pair makes 1 Gbit/s into 100 Mbit/s.
//!
//! # Sources
//! ethtool(8); IEEE 802.3 clause 28 (auto-negotiation: an end with fixed settings leaves the other at half duplex).

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "LINK_SPEED", file: include_str!("link_speed.rs"), group: Group::Queues, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    let dead = without_carrier(&all);
    if !dead.is_empty() {
        return Ok(vec![no_carrier(&dead)]);
    }
    let running: Vec<Device<'_>> =
        all.into_iter().filter(|device| device.is_running() && device.now.kind.is_none()).collect();
    let is_seen =
        |device: &Device<'_>| device.now.full_duplex.is_some() || device.now.speed.is_some();
    if !running.is_empty() && !running.iter().any(is_seen) {
        return Err(Missing::part(Source::Ethtool, "speed and duplex"));
    }
    let mut found = Vec::new();
    let half: Vec<_> =
        running.iter().filter(|device| device.now.full_duplex == Some(false)).collect();
    let slow: Vec<_> = running
        .iter()
        .filter(|device| {
            device.now.speed.zip(device.now.speed_max).is_some_and(|(speed, most)| speed < most)
        })
        .collect();
    if !half.is_empty() {
        found.push(Finding {
            severity: Severity::Error,
            why:
                "only one end may send at a time: ACKs collide with the data that they acknowledge. Mostly one end has its \
                 speed set by hand, and the other, which negotiates alone, falls back to this."
                    .to_owned(),
            ..finding(&half, "runs at half duplex")
        });
    }
    if !slow.is_empty() {
        found.push(Finding {
            severity: Severity::Warning,
            why: "both ends can do more: a pair of the cable is broken, or one end has its speed set by hand.".to_owned(),
            ..finding(&slow, "is slower than both its ends can be")
        });
    }
    Ok(found)
}

/// Hardware that is up, has no carrier, and is missed: a spare port is not. Ports of a bond are judged with it.
fn without_carrier<'a>(all: &[Device<'a>]) -> Vec<Device<'a>> {
    let is_hardware = |device: &&Device<'_>| {
        let link = device.now;
        link.kind.is_none() && !link.queueless && !link.flags_unseen && link.master.is_none()
    };
    let runs = all.iter().filter(is_hardware).any(Device::is_running);
    let dead = all.iter().filter(is_hardware).filter(|device| {
        let link = device.now;
        link.up && !link.carrier && (!runs || !link.addresses.is_empty())
    });
    dead.copied().collect()
}

fn no_carrier(dead: &[Device<'_>]) -> Finding {
    let names: Vec<&str> = dead.iter().map(Device::name).collect();
    let evidence = dead.iter().take(words::WORST).map(|device| {
        Evidence::new(format!("ip link show {}", words::device(device.name())), "NO-CARRIER")
    });
    Finding {
        severity: Severity::Error,
        confidence: Confidence::High,
        scope: devices::scope(&names),
        title: format!("{} is up and has no carrier: nothing passes", devices::told(&names)),
        why: "the interface hears nobody at the other end: no cable, a port that is off, or an optic that does not fit."
            .to_owned(),
        not: "not which end is off, or since when".to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise("look at the cable, the optic, and whether the switch's port is on", "")],
        ..Finding::default()
    }
}

fn finding(all: &[&Device<'_>], what: &str) -> Finding {
    let names: Vec<&str> = all.iter().map(|device| device.name()).collect();
    let told = all.iter().take(words::WORST).map(|device| {
        let mbit = |rate: Option<u64>| {
            rate.map_or_else(|| "unknown".to_owned(), |rate| format!("{} Mbit/s", rate / 1_000_000))
        };
        let duplex = match device.now.full_duplex {
            Some(true) => "full",
            Some(false) => "half",
            None => "unknown",
        };
        Evidence::new(
            format!("ethtool {}", device.name()),
            format!(
                "{}, duplex {duplex}; both ends offer {}",
                mbit(device.now.speed),
                mbit(device.now.speed_max)
            ),
        )
    });
    Finding {
        confidence: Confidence::High,
        scope: devices::scope(&names),
        title: format!("{} {what}", devices::told(&names)),
        not: "not that a transfer waits for it now: see how much passes".to_owned(),
        evidence: told.collect(),
        fixes: vec![words::advise(
            "let both ends negotiate, the switch too (ethtool -s DEV autoneg on), then change the cable",
            "the link goes down for some seconds",
        )],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Link, Snapshot};

    fn with(change: impl Fn(&mut Link)) -> Snapshot {
        each_look(host(&[]), |_, look| {
            let mut eth0 = link("eth0");
            eth0.speed_max = Some(1_000_000_000);
            change(&mut eth0);
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn half_duplex_and_a_tenth_of_the_speed_are_both_told() {
        let bad = with(|link| (link.full_duplex, link.speed) = (Some(false), Some(100_000_000)));
        insta::assert_snapshot!(shown(&CHECK, &bad));
    }

    #[test]
    fn the_fastest_of_both_ends_is_well_and_so_is_a_link_that_is_down() {
        assert_eq!(judged(&CHECK, &with(|_| ())), Ok(Vec::new()));
        let down = |link: &mut Link| (link.full_duplex, link.up) = (Some(false), false);
        assert_eq!(judged(&CHECK, &with(down)), Ok(Vec::new()));
    }

    #[test]
    fn a_missing_carrier_is_told_but_not_of_bridges_and_spare_ports() {
        let titles = |host: &Snapshot| {
            let found = judged(&CHECK, host).expect("seen");
            found.into_iter().map(|found| found.title).collect::<Vec<_>>()
        };
        let dead = titles(&with(|link| link.carrier = false));
        assert_eq!(dead, ["eth0 is up and has no carrier: nothing passes"]);
        let bridge = with(|link| (link.carrier, link.queueless) = (false, true));
        assert_eq!(titles(&bridge), [""; 0]);
        let second = |address: Option<&str>| {
            each_look(with(|_| ()), |_, look| {
                let mut spare = link("eth1");
                spare.carrier = false;
                spare.addresses.extend(address.map(|ip| (ip.parse().expect("one"), 24)));
                look.links.get_or_insert_default().push(spare);
            })
        };
        assert_eq!(titles(&second(None)), [""; 0]);
        assert_eq!(titles(&second(Some("10.0.0.1"))).len(), 1);
    }

    #[test]
    fn a_virtual_interface_says_what_limits_nothing() {
        let tap = with(|link| (link.kind, link.speed) = (Some("tun".to_owned()), Some(10_000_000)));
        assert_eq!(judged(&CHECK, &tap), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_or_ethtool_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = with(|link| (link.full_duplex, link.speed) = (None, None));
        assert_eq!(missing(&CHECK, &unseen).source, Source::Ethtool);
    }
}
