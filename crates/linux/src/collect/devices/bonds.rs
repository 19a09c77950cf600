//! Bonds: `/proc/net/bonding` (Linux `drivers/net/bonding/bond_procfs.c`).

use std::fs;

use tcpwhy::host::snapshot::{Bond, Source};

use crate::collect::blind::{Blind, shown};

/// Those of this thread's namespace; none where the module is not loaded.
pub(in crate::collect) fn bonds(blind: &mut Blind) -> Vec<Bond> {
    use std::os::unix::ffi::OsStrExt as _;
    let entries = fs::read_dir("/proc/thread-self/net/bonding").into_iter().flatten().flatten();
    let mut found: Vec<Bond> = entries
        .filter_map(|entry| {
            let text = blind.file_if_there(Source::Bonds, entry.path())?;
            Some(bond(shown(entry.file_name().as_bytes()), &text))
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn bond(name: String, text: &str) -> Bond {
    let mut bond = Bond { name, ..Bond::default() };
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let value = value.trim();
        match (key, bond.slaves.last_mut()) {
            ("Bonding Mode", _) => bond.mode = mode(value),
            ("Transmit Hash Policy", _) => {
                let policy = value.split_once(' ').map_or(value, |(policy, _)| policy);
                bond.xmit_hash_policy = Some(policy.to_owned());
            }
            ("Partner Mac Address", _) => {
                bond.partner = Some(value.bytes().any(|b| !b"0:".contains(&b)));
            }
            ("Slave Interface", _) => bond.slaves.push((value.to_owned(), false, 0, None)),
            // Before the first slave it is the bond's own.
            ("MII Status", Some(slave)) => slave.1 = value == "up",
            ("Link Failure Count", Some(slave)) => slave.2 = value.parse().unwrap_or(0),
            ("Aggregator ID", Some(slave)) => slave.3 = value.parse().ok(),
            _ => {}
        }
    }
    bond
}

/// The name that ip-link(8) takes.
fn mode(told: &str) -> String {
    let known = MODES.iter().find(|(start, _)| told.starts_with(start));
    known.map_or(told, |(_, name)| name).to_owned()
}

const MODES: [(&str, &str); 7] = [
    ("load balancing (round-robin)", "balance-rr"),
    ("fault-tolerance (active-backup)", "active-backup"),
    ("load balancing (xor)", "balance-xor"),
    ("fault-tolerance (broadcast)", "broadcast"),
    ("IEEE 802.3ad", "802.3ad"),
    ("transmit load balancing", "balance-tlb"),
    ("adaptive load balancing", "balance-alb"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bond_of_two_slaves_with_a_partner() {
        let text = "Ethernet Channel Bonding Driver: v6.1\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\n\
                    Transmit Hash Policy: layer3+4 (1)\nMII Status: up\n\n802.3ad info\n\
                    Active Aggregator Info:\n\tAggregator ID: 1\n\tPartner Mac Address: 02:00:00:00:00:01\n\n\
                    Slave Interface: eth0\nMII Status: up\nLink Failure Count: 0\nAggregator ID: 1\n\n\
                    Slave Interface: eth1\nMII Status: down\nLink Failure Count: 3\nAggregator ID: 2\n";
        let found = bond("bond0".to_owned(), text);
        assert_eq!(
            (found.mode.as_str(), found.xmit_hash_policy.as_deref()),
            ("802.3ad", Some("layer3+4"))
        );
        assert_eq!(found.partner, Some(true));
        assert_eq!(found.slaves[1], ("eth1".to_owned(), false, 3, Some(2)));
        let none = bond("b".to_owned(), "Bonding Mode: fault-tolerance (active-backup)\n");
        assert_eq!((none.mode.as_str(), none.partner), ("active-backup", None));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[ -~\\n]{0,200}") {
            bond(String::new(), &text);
        }
    }
}
