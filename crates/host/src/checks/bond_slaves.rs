//! An interface of a bond is down, failed meanwhile, or does not take part.
//!
//! # What it says
//! A bond goes on with what is left: with less rate, and what was under way on the failed interface is lost. With 802.3ad
//! (LACP) an interface whose aggregator differs, or a bond whose partner never answered, carries nothing though it is up.
//!
//! # How we know
//! `/proc/net/bonding`: `MII Status: down`, a `Link Failure Count` that grew, a partner address of zeros, or
//! aggregator numbers that differ; and interfaces that are up at different speeds: LACP puts only equal ones into one
//! aggregator, and the other modes send through each as if they were equal.
//!
//! # What it is not
//! With `active-backup` one interface is idle by design; that is not told.
//!
//! # What to do
//! Look at cable and switch port of the interface; for LACP, at the port channel of the switch.
//!
//! # Sources
//! Documentation/networking/bonding.rst; Linux `bond_info_show_slave` (v6.1, `drivers/net/bonding/bond_procfs.c`),
//! `__get_link_speed` and `ad_port_selection_logic` (`bond_3ad.c`: a port's key holds its speed and duplex).

use core::fmt::Write as _;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Bond, Source};

pub(super) const CHECK: Check = Check {
    code: "BOND_SLAVES",
    file: include_str!("bond_slaves.rs"),
    group: Group::Queues,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let bonds = seen.now.bonds.as_ref().ok_or(Missing::all(Source::Bonds))?;
    let found = bonds.iter().filter_map(|bond| {
        let faults = faults(seen, bond);
        (!faults.is_empty()).then(|| finding(bond, &faults))
    });
    Ok(found.take(words::WORST).collect())
}

fn faults(seen: &Seen<'_>, bond: &Bond) -> Vec<String> {
    let mut faults = Vec::new();
    let before = seen
        .before
        .and_then(|look| look.bonds.as_ref()?.iter().find(|then| then.name == bond.name));
    for (name, up, failures, _) in &bond.slaves {
        let then = before.and_then(|then| then.slaves.iter().find(|(other, ..)| other == name));
        let grown = then.and_then(|(_, _, then, _)| failures.checked_sub(*then)).unwrap_or(0);
        if !up {
            faults.push(format!("{name} is down"));
        } else if grown > 0 {
            faults.push(format!("{name} failed and came back between the looks"));
        }
    }
    if bond.partner == Some(false) {
        faults.push("no LACP partner answers".to_owned());
    }
    let mut aggregators: Vec<u32> = bond
        .slaves
        .iter()
        .filter(|(_, up, ..)| *up)
        .filter_map(|(.., aggregator)| *aggregator)
        .collect();
    aggregators.sort_unstable();
    aggregators.dedup();
    faults.extend(uneven(seen, bond));
    if aggregators.len() > 1 {
        faults.push(
            "its interfaces are in different aggregators: only those of one carry anything"
                .to_owned(),
        );
    }
    faults
}

/// Interfaces that are up at different speeds; with `active-backup` only one works at a time.
fn uneven(seen: &Seen<'_>, bond: &Bond) -> Option<String> {
    let links = seen.links().ok()?;
    let speed_of = |name: &str| links.iter().find(|link| link.name == name)?.speed;
    let up = bond.slaves.iter().filter(|(_, up, ..)| *up);
    let speeds: Vec<(&str, u64)> =
        up.filter_map(|(name, ..)| Some((name.as_str(), speed_of(name)?))).collect();
    let (_, first) = speeds.first()?;
    if bond.mode == "active-backup" || speeds.iter().all(|(_, speed)| speed == first) {
        return None;
    }
    let mut said = "its interfaces run at different speeds:".to_owned();
    for (name, speed) in speeds.iter().take(words::WORST) {
        let _ = write!(said, " {name} {} Mbit/s", speed / 1_000_000);
    }
    Some(said)
}

fn finding(bond: &Bond, faults: &[String]) -> Finding {
    let is_dead = bond.slaves.iter().all(|(_, up, ..)| !up);
    Finding {
        severity: if is_dead { Severity::Error } else { Severity::Warning },
        confidence: Confidence::High,
        scope: Scope::Interface(bond.name.clone()),
        title: format!("{}: {}", bond.name, faults.join(", ")),
        why: "the bond carries less than it is built for, and what was under way on an interface that fails is lost."
            .to_owned(),
        not: "not which end is at fault: cable, switch port or driver".to_owned(),
        evidence: vec![Evidence::new(format!("/proc/net/bonding/{}", bond.name), format!("mode {}, {}", bond.mode, faults.join(", ")))],
        fixes: vec![words::advise("look at cable, switch port and, for LACP, the port channel of the switch", "")],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn bond(eth1: (bool, [u64; 2]), partner: bool, aggregator: u32) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let slave = |name: &str, up, failures, of| (name.to_owned(), up, failures, Some(of));
            look.bonds = Some(vec![Bond {
                name: "bond0".to_owned(),
                mode: "802.3ad".to_owned(),
                xmit_hash_policy: None,
                partner: Some(partner),
                slaves: vec![
                    slave("eth0", true, 0, 1),
                    slave("eth1", eth1.0, eth1.1[nth as usize], aggregator),
                ],
            }]);
        })
    }

    #[test]
    fn an_interface_that_is_down_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &bond((false, [3, 4]), true, 1)));
    }

    #[test]
    fn each_fault_is_told_and_a_failure_of_before_is_none() {
        let title = |host: &Snapshot| {
            judged(&CHECK, host).expect("seen").first().map(|found| found.title.clone())
        };
        assert_eq!(title(&bond((true, [3, 3]), true, 1)), None);
        assert!(title(&bond((true, [3, 4]), true, 1)).expect("told").contains("came back"));
        assert!(title(&bond((true, [3, 3]), false, 1)).expect("told").contains("partner"));
        assert!(title(&bond((true, [3, 3]), true, 2)).expect("told").contains("aggregators"));
    }

    #[test]
    fn without_bonds_read_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Bonds);
    }
}
