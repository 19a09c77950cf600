//! A bond spreads packets in a way that harms TCP, or hardly spreads them at all.
//!
//! # What it says
//! `balance-rr` sends the packets of one connection over all interfaces in turn: they arrive out of order, and TCP takes
//! that for loss. The hash `layer2` chooses by hardware addresses: towards one gateway it is always the same interface.
//!
//! # How we know
//! The mode and `xmit_hash_policy` of `/proc/net/bonding`; for `balance-rr` also whether connections here see reordering; for
//! `layer2` whether all default routes of the bond go to one gateway.
//!
//! # What it is not
//! One connection never goes faster than one interface in the modes that hash; no policy changes that.
//!
//! # What to do
//! 802.3ad with `layer3+4` where the switch can; `balance-rr` only between two hosts that are wired so.
//!
//! # Sources
//! Documentation/networking/bonding.rst (mode, `xmit_hash_policy`); Linux `bond_xmit_hash` (v6.1). Reordering of more than the default 3: tcp(7).

use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Bond, Source};

pub(super) const CHECK: Check = Check {
    code: "BOND_SPREAD",
    file: include_str!("bond_spread.rs"),
    group: Group::Queues,
    judge,
};

/// `tcp_reordering`, the kernel's default.
const REORDERING: u32 = 3;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let bonds = seen.now.bonds.as_ref().ok_or(Missing::all(Source::Bonds))?;
    let found = bonds.iter().filter_map(|bond| {
        let up = bond.slaves.iter().filter(|(_, up, ..)| *up).count();
        // The file says `load balancing (round-robin)` and `layer2 (0)`.
        if up < 2 {
            None
        } else if bond.mode.contains("balance-rr") || bond.mode.contains("round-robin") {
            Some(striped(seen, bond))
        } else if bond
            .xmit_hash_policy
            .as_deref()
            .is_some_and(|policy| policy.split_whitespace().next() == Some("layer2"))
        {
            one_way(seen, bond)
        } else {
            None
        }
    });
    Ok(found.take(words::WORST).collect())
}

fn striped(seen: &Seen<'_>, bond: &Bond) -> Finding {
    let reordered = seen.sockets().unwrap_or_default().iter().filter(|socket| {
        socket
            .info
            .as_ref()
            .and_then(|info| info.reordering)
            .is_some_and(|distance| distance > REORDERING)
    });
    let reordered = reordered.count() as u64;
    let mut evidence = vec![Evidence::new(
        format!("/proc/net/bonding/{}", bond.name),
        format!("mode {}", bond.mode),
    )];
    if reordered > 0 {
        evidence.push(Evidence::new(
            "ss -tin, reordering above 3",
            words::count(reordered, "connection"),
        ));
    }
    Finding {
        severity: if reordered > 0 { Severity::Warning } else { Severity::Info },
        confidence: Confidence::Medium,
        scope: Scope::Interface(bond.name.clone()),
        title: format!(
            "{} sends the packets of each connection over all its interfaces in turn",
            bond.name
        ),
        why: "they arrive out of order, and TCP takes that for loss and slows down.".to_owned(),
        not: if reordered > 0 {
            "not that these connections go through the bond"
        } else {
            "not that packets are out of order: no connection here has seen it"
        }
        .to_owned(),
        evidence,
        fixes: vec![words::advise(
            "802.3ad with xmit_hash_policy layer3+4, if the switch can",
            "all connections of the bond stop meanwhile",
        )],
        ..Finding::default()
    }
}

fn one_way(seen: &Seen<'_>, bond: &Bond) -> Option<Finding> {
    let routes = seen.snapshot.routes.as_ref()?.iter();
    let mut gateways: Vec<_> = routes
        .filter(|route| route.dev.as_deref() == Some(&*bond.name) && route.to.is_none())
        .filter_map(|route| route.via)
        .filter(std::net::IpAddr::is_ipv4)
        .collect();
    gateways.sort_unstable();
    gateways.dedup();
    let [gateway] = gateways[..] else { return None };
    let path = format!("/sys/class/net/{}/bonding/xmit_hash_policy", bond.name);
    Some(Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Interface(bond.name.clone()),
        title: format!("what {} sends through {gateway} leaves by one of its interfaces", bond.name),
        why: "its policy layer2 chooses by hardware addresses, and those of the gateway are always the same.".to_owned(),
        not: "not that one interface is too slow, and nothing about what goes to hosts of the same network".to_owned(),
        evidence: vec![
            Evidence::new(path.clone(), "layer2"),
            Evidence::new("ip route show default", format!("via {gateway} dev {}", bond.name)),
        ],
        fixes: vec![Fix {
            what: "choose by addresses and ports".to_owned(),
            risk: "fragments of one packet may take different ways, which 802.3ad does not allow".to_owned(),
            set: Some(Change::File { path, from: "layer2".to_owned(), to: "layer3+4".to_owned() }),
            applies: words::AT_ONCE.to_owned(),
        }],
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, silent, socket};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Route, Snapshot, State};

    fn bond(mode: &str, policy: &str, up: bool) -> Snapshot {
        let mut host = each_look(host(&[]), |_, look| {
            let slave = |name: &str, up| (name.to_owned(), up, 0, None);
            look.bonds = Some(vec![Bond {
                name: "bond0".to_owned(),
                mode: mode.to_owned(),
                xmit_hash_policy: Some(policy.to_owned()),
                partner: None,
                slaves: vec![slave("eth0", true), slave("eth1", up)],
            }]);
        });
        let via = |address: &str| Route {
            dev: Some("bond0".to_owned()),
            via: address.parse().ok(),
            ..Route::default()
        };
        host.routes = Some(vec![via("10.0.0.254")]);
        host
    }

    #[test]
    fn one_gateway_and_a_hash_of_hardware_addresses_use_one_interface() {
        insta::assert_snapshot!(shown(&CHECK, &bond("802.3ad", "layer2", true)));
    }

    #[test]
    fn packets_in_turn_are_a_warning_where_connections_see_reordering() {
        let with = |distance| {
            each_look(bond("balance-rr", "layer2", true), |_, look| {
                let mut one = silent(socket(State::Established, "10.0.0.1:80", "10.0.0.9:1"), 1);
                one.info.as_mut().expect("info").reordering = Some(distance);
                look.sockets = Some(vec![one]);
            })
        };
        assert_eq!(judged(&CHECK, &with(4)).expect("seen")[0].severity, Severity::Warning);
        assert_eq!(judged(&CHECK, &with(3)).expect("seen")[0].severity, Severity::Info);
    }

    #[test]
    fn another_policy_two_gateways_or_one_interface_are_well() {
        assert_eq!(judged(&CHECK, &bond("802.3ad", "layer3+4", true)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &bond("802.3ad", "layer2+3", true)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &bond("802.3ad", "layer2", false)), Ok(Vec::new()));
        let mut two = bond("802.3ad", "layer2", true);
        let mut other = two.routes.clone().expect("routes");
        other[0].via = "10.0.0.253".parse().ok();
        two.routes.as_mut().expect("routes").extend(other);
        assert_eq!(judged(&CHECK, &two), Ok(Vec::new()));
    }

    #[test]
    fn without_bonds_read_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Bonds);
    }
}
