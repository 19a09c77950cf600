//! `/proc/net/bonding/NAME`.
//!
//! Its name is in the command only. The kernel prints the bond first, then each interface of it
//! (v6.1 `drivers/net/bonding/bond_procfs.c`).

use super::collected::Collected;
use super::command::{Command, is_device};
use super::{Line, Taken};
use crate::snapshot::Bond;

/// The beginning of the file.
pub(super) fn begin(line: Line<'_>, command: &Command, collected: &mut Collected) -> bool {
    if !line.text.starts_with("Ethernet Channel Bonding Driver:") {
        return false;
    }
    let name = command.files().find_map(|file| file.strip_prefix("/proc/net/bonding/"));
    let name = name.filter(|name| is_device(name)).unwrap_or("bond").to_owned();
    let now = collected.now;
    if collected.bonds.last().is_none_or(|all| all.iter().any(|bond| bond.name == name)) {
        collected.bonds.push(now, Vec::new());
    }
    collected.bonds.open(now).push(Bond { name, ..Bond::default() });
    true
}

/// A line below it.
pub(super) fn line(line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
    let text = line.text;
    let bond = collected.bonds.last()?.last_mut()?;
    let Some((name, value)) = text.split_once(':') else {
        return matches!(text, "802.3ad info").then_some(Taken::Read);
    };
    let value = value.trim();
    let slave = bond.slaves.last_mut();
    match (name.trim(), slave) {
        ("Bonding Mode", _) => mode(value).clone_into(&mut bond.mode),
        ("Transmit Hash Policy", _) => {
            bond.xmit_hash_policy = value.split_whitespace().next().map(str::to_owned);
        }
        ("Partner Mac Address", None) => {
            bond.partner = Some(value.chars().any(|c| c.is_ascii_hexdigit() && c != '0'));
        }
        ("Slave Interface", _) => {
            bond.slaves.push((value.to_owned(), false, 0, None));
            let master = bond.name.clone();
            collected.link(value).master = Some(master);
        }
        // Going back it carries nothing yet, going down it still does.
        ("MII Status", Some(slave)) => {
            slave.1 = matches!(value, "up" | "going down");
            let (name, is_up) = (slave.0.clone(), slave.1);
            collected.link(&name).carrier = is_up;
        }
        ("Link Failure Count", Some(slave)) => slave.2 = value.parse().ok()?,
        ("Aggregator ID", Some(slave)) => slave.3 = value.parse().ok(),
        ("Speed", Some(slave)) => {
            let mbit = value.strip_suffix(" Mbps").and_then(|number| number.parse::<u64>().ok());
            let name = slave.0.clone();
            collected.link(&name).speed = mbit.and_then(|mbit| mbit.checked_mul(1_000_000));
        }
        ("Duplex", Some(slave)) => {
            let name = slave.0.clone();
            collected.link(&name).full_duplex = match value {
                "full" => Some(true),
                "half" => Some(false),
                _ => None,
            };
        }
        (name, _) => {
            return OTHERS.iter().any(|other| name.starts_with(other)).then_some(Taken::Read);
        }
    }
    Some(Taken::Read)
}

/// `IEEE 802.3ad Dynamic link aggregation`, in the word of ip-link(8).
fn mode(words: &str) -> &str {
    let known = [
        ("load balancing (round-robin)", "balance-rr"),
        ("fault-tolerance (active-backup)", "active-backup"),
        ("load balancing (xor)", "balance-xor"),
        ("fault-tolerance (broadcast)", "broadcast"),
        ("IEEE 802.3ad Dynamic link aggregation", "802.3ad"),
        ("transmit load balancing", "balance-tlb"),
        ("adaptive load balancing", "balance-alb"),
    ];
    known.into_iter().find(|(long, _)| words.starts_with(long)).map_or(words, |(_, short)| short)
}

/// Lines that say nothing that is wanted.
const OTHERS: [&str; 34] = [
    "MII Status",
    "MII Polling Interval",
    "Up Delay",
    "Down Delay",
    "Peer Notification Delay",
    "Primary Slave",
    "Currently Active Slave",
    "ARP",
    "NS IPv6",
    "LACP",
    "Min links",
    "Aggregator",
    "System",
    "Active Aggregator Info",
    "Number of ports",
    "Actor",
    "Partner",
    "Permanent HW addr",
    "Slave queue ID",
    "details",
    "system",
    "port",
    "oper key",
    "802.3ad info",
    "Speed",
    "Duplex",
    "Link Failure Count",
    "Slave active",
    "Tlb",
    "Adaptive",
    "Fail over",
    "fail_over_mac",
    "Churn",
    "Mux",
];
