//! Frames arrive that are longer than this interface takes.
//!
//! # What it says
//! Hosts of one network must agree on the largest frame. If a neighbour sends 9,000 bytes to an interface that takes
//! 1,500 they are dropped without a message to anyone: connections open, and large transfers from that neighbour hang.
//!
//! # How we know
//! `rx_length_errors` of the interface grew.
//!
//! # What it is not
//! Frames that are too short count there, too.
//!
//! # What to do
//! Give all hosts and switch ports of the network the same MTU.
//!
//! # Sources
//! Linux `include/uapi/linux/if_link.h` (`rx_length_errors`).

use super::{Check, counters, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Link;

pub(super) const CHECK: Check = Check {
    code: "OVERSIZED_FRAMES",
    file: include_str!("oversized_frames.rs"),
    group: Group::Queues,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    Ok(seen.links()?.iter().filter_map(|link| of_link(seen, link)).collect())
}

fn of_link(seen: &Seen<'_>, link: &Link) -> Option<Finding> {
    let count = |link: &Link| link.counters.map(|counters| counters.rx_length_errors);
    let before = seen.before.map(|look| {
        let links = look.links.as_deref().unwrap_or_default();
        links.iter().find(|then| then.index == link.index && then.name == link.name).and_then(count)
    });
    // An interface that is younger than the first look has no growth.
    let dropped = match before {
        None => seen.growth_of(count(link)?, None),
        Some(before) => seen.growth_of(count(link)?, Some(before?)),
    };
    let dropped = dropped.filter(|dropped| dropped.by > 0)?;
    let mtu = link.mtu.map_or_else(String::new, |mtu| format!(" (MTU {mtu})"));
    Some(Finding {
        severity: counters::severity(dropped, Severity::Error),
        confidence: words::sure(dropped),
        scope: Scope::Interface(link.name.clone()),
        title: format!("{}{mtu} drops frames of a wrong length: {}", link.name, words::grown(dropped)),
        why: "a neighbour with a larger MTU is not told of it: connections to it open, and its large packets \
              never arrive."
            .to_owned(),
        not: "not which neighbour; frames that are too short count, too".to_owned(),
        evidence: vec![Evidence::new(
            format!("ip -s -s link show dev {}, length", link.name),
            words::grown(dropped),
        )],
        fixes: vec![words::advise("give all hosts and switch ports of the network the same MTU", "")],
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{LinkCounters, Snapshot, Source};

    fn dropping(before: u64, now: u64) -> Snapshot {
        let mut host = host(&[]);
        for (look, rx_length_errors) in host.looks.iter_mut().zip([before, now]) {
            look.links = Some(vec![Link {
                name: "eth0".to_owned(),
                mtu: Some(1500),
                counters: Some(LinkCounters { rx_length_errors, ..LinkCounters::default() }),
                ..Link::default()
            }]);
        }
        host
    }

    #[test]
    fn a_neighbour_with_a_larger_mtu() {
        insta::assert_snapshot!(shown(&CHECK, &dropping(2, 40)));
    }

    #[test]
    fn what_came_before_the_looks_or_went_back_is_none() {
        assert_eq!(judged(&CHECK, &dropping(40, 40)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &dropping(40, 2)), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &once(dropping(2, 40))).expect("seen")[0].confidence,
            Confidence::Low
        );
    }

    #[test]
    fn without_interfaces_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
    }
}
