//! Two interfaces have addresses in the same network.
//!
//! # What it says
//! The kernel answers for any of its addresses on any interface (ARP), and sends by the first route that fits: both interfaces' traffic may come
//! in and go out by one of them, and with a strict `rp_filter` some is dropped.
//!
//! # How we know
//! Two interfaces that are up have IPv4 addresses of the same network, no rule chooses a table by source, and neither `arp_ignore` nor
//! `arp_filter` is set for both.
//!
//! # What it is not
//! Not that packets are lost: `REVERSE_PATH_FILTER` tells that.
//!
//! # What to do
//! A table for each interface with a rule for its address, and `arp_ignore=1`; or a bond.
//!
//! # Sources
//! Linux `arp_ignore`, `arp_filter` (v6.12, `net/ipv4/arp.c`); Documentation/networking/ip-sysctl.rst.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "SAME_SUBNET",
    file: include_str!("same_subnet.rs"),
    group: Group::Routing,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let links = seen
        .links()?
        .iter()
        .filter(|link| link.up && link.carrier && !link.loopback && link.master.is_none());
    let mut networks: BTreeMap<(u32, u8), Vec<&str>> = BTreeMap::new();
    for link in links {
        for (address, length) in &link.addresses {
            if let (IpAddr::V4(address), 1..=30) = (address, *length) {
                let network = u32::from(*address) & (u32::MAX << (32 - u32::from(*length)));
                let names = networks.entry((network, *length)).or_default();
                if !names.contains(&link.name.as_str()) {
                    names.push(&link.name);
                }
            }
        }
    }
    let shared = networks
        .into_iter()
        .find(|(_, names)| names.len() > 1 && names.iter().any(|name| !is_told_apart(seen, name)));
    let Some(((network, length), names)) = shared else { return Ok(Vec::new()) };
    let rules = seen.snapshot.rules.as_ref().ok_or(Missing::part(Source::Routes, "rules"))?;
    if rules.iter().any(|rule| rule.selects && !rule.ipv6) {
        return Ok(Vec::new());
    }
    let network = format!("{}/{length}", core::net::Ipv4Addr::from(network));
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("{} have addresses in the same network {network}", words::named(&names)),
        why: "each answers for the addresses of the others, and what leaves takes the first route: one interface may carry \
              the traffic of all."
            .to_owned(),
        not: "not that packets are lost for it".to_owned(),
        evidence: vec![Evidence::new("ip -4 address; ip rule", format!("{network} on {}; no rule by source", words::named(&names)))],
        fixes: vec![words::advise(
            "a table for each interface with a rule for its address, and arp_ignore=1; or a bond of them",
            "connections may move to another interface",
        )],
        ..Finding::default()
    }])
}

/// The kernel takes the larger `arp_ignore` of `all` and the interface, and `arp_filter` if either is set.
fn is_told_apart(seen: &Seen<'_>, dev: &str) -> bool {
    let of = |whose: &str, key: &str| {
        seen.number(&format!("net.ipv4.conf.{}.{key}", whose.replace('.', "/")))
            .ok()
            .flatten()
            .unwrap_or(0)
    };
    ["arp_ignore", "arp_filter"].into_iter().any(|key| of("all", key).max(of(dev, key)) > 0)
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Link, Rule, Snapshot};

    fn addressed(second: &str, length: u8, ignore: &str) -> Snapshot {
        let settings = [("net.ipv4.conf.all.arp_ignore", ignore)];
        let mut host = each_look(host(&settings), |_, look| {
            let with = |name: &str, address: &str| Link {
                addresses: vec![(address.parse().expect("an address"), length)],
                ..link(name)
            };
            look.links = Some(vec![with("eth0", "10.0.0.5"), with("eth1", second)]);
        });
        host.rules = Some(vec![Rule { table: 254, ..Rule::default() }]);
        host
    }

    #[test]
    fn two_interfaces_of_one_network_are_told() {
        insta::assert_snapshot!(shown(&CHECK, &addressed("10.0.0.6", 24, "0")));
    }

    #[test]
    fn another_network_arp_ignore_or_a_rule_are_well() {
        assert_eq!(judged(&CHECK, &addressed("10.0.1.6", 24, "0")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &addressed("10.0.0.6", 24, "1")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &addressed("10.0.0.6", 32, "0")), Ok(Vec::new()));
        let mut ruled = addressed("10.0.0.6", 24, "0");
        ruled.rules = Some(vec![Rule { selects: true, ..Rule::default() }]);
        assert_eq!(judged(&CHECK, &ruled), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_or_rules_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let mut unruled = addressed("10.0.0.6", 24, "0");
        unruled.rules = None;
        assert_eq!(missing(&CHECK, &unruled).source, Source::Routes);
    }
}
