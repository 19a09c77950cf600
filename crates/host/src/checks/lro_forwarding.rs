//! An interface merges packets by LRO on a host that passes them on.
//!
//! # What it says
//! LRO makes one packet of several and forgets where they began. Passed on, such a packet is too large, or its segments get a size
//! and options that the sender never chose. GRO merges so that it can be undone.
//!
//! # How we know
//! `rx-lro` (`large-receive-offload`) is on, and the host forwards (`net.ipv4.ip_forward`) or the interface belongs to a bridge.
//!
//! # What it is not
//! Not a fault on a host that only receives. The kernel switches LRO off by itself when forwarding is switched on: someone
//! switched it on after that.
//!
//! # What to do
//! Switch LRO off and GRO on.
//!
//! # Sources
//! Linux `dev_disable_lro`, `skb_warn_if_lro` (v6.1, `net/core/dev.c`); Documentation/networking/segmentation-offloads.rst.

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Link, Source};

pub(super) const CHECK: Check = Check {
    code: "LRO_FORWARDING",
    file: include_str!("lro_forwarding.rs"),
    group: Group::Queues,
    judge,
};

const KEY: &str = "net.ipv4.ip_forward";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.features.is_none()) {
        return Err(Missing::part(Source::Ethtool, "features"));
    }
    let forwards = seen.number(KEY)?.is_some_and(|value| value != 0);
    let bridges: Vec<&str> = seen
        .links()?
        .iter()
        .filter(|link| link.kind.as_deref() == Some("bridge"))
        .map(|link| link.name.as_str())
        .collect();
    let is_bridged =
        |link: &Link| link.master.as_deref().is_some_and(|master| bridges.contains(&master));
    let hit: Vec<(Device<'_>, &str)> = all
        .into_iter()
        .filter(|device| forwards || is_bridged(device.now))
        .filter_map(|device| Some((device, lro(device.now)?)))
        .collect();
    if hit.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = hit.iter().map(|(device, _)| device.name()).collect();
    let worst = hit.iter().take(words::WORST);
    let mut evidence: Vec<Evidence> = worst
        .clone()
        .map(|(device, name)| {
            Evidence::new(format!("ethtool -k {}", device.name()), format!("{name} on"))
        })
        .collect();
    if forwards {
        evidence.push(words::setting(KEY, &1));
    }
    let fixes = worst.map(|(device, name)| Fix {
        what: format!("switch LRO of {} off; GRO does the same and can be undone", device.name()),
        risk: "some more processor time".to_owned(),
        set: Some(Change::Ethtool {
            dev: device.name().to_owned(),
            option: "-K".to_owned(),
            from: format!("{name} on"),
            to: format!("{name} off"),
        }),
        applies: words::AT_ONCE.to_owned(),
    });
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: devices::scope(&names),
        title: format!("{} merges packets by LRO, and this host passes packets on", devices::told(&names)),
        why: "a merged packet that is passed on is too large or cut anew: connections through this host lose packets.".to_owned(),
        not: "not that packets of this interface are among those passed on".to_owned(),
        evidence,
        fixes: fixes.collect(),
        ..Finding::default()
    }
    .all_together()])
}

fn lro(link: &Link) -> Option<&str> {
    let on = &link.features.as_ref()?.on;
    on.iter().map(String::as_str).find(|name| matches!(*name, "rx-lro" | "large-receive-offload"))
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Features, Snapshot};

    fn merging(feature: &str, forward: &str, bridged: bool) -> Snapshot {
        each_look(host(&[(KEY, forward)]), |_, look| {
            let mut eth0 = link("eth0");
            eth0.features = Some(Features { on: vec![feature.to_owned()], ..Features::default() });
            eth0.master = bridged.then(|| "br0".to_owned());
            look.links = Some(vec![eth0, Link { kind: Some("bridge".to_owned()), ..link("br0") }]);
        })
    }

    #[test]
    fn lro_on_a_host_that_forwards_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &merging("rx-lro", "1", false)));
    }

    #[test]
    fn a_bridge_passes_on_too_and_a_plain_host_does_not() {
        assert_eq!(judged(&CHECK, &merging("rx-lro", "0", true)).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &merging("rx-lro", "0", false)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &merging("rx-gro", "1", true)), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_or_features_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).source, Source::Ethtool);
    }
}
