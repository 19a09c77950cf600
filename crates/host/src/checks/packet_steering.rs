//! Receive flow steering is half set up, or packets are spread twice.
//!
//! # What it says
//! RFS brings packets to the processor where their program runs. It needs `rps_flow_cnt` of a queue and `net.core.rps_sock_flow_entries`; with
//! one of them 0 it does nothing. RPS on an interface that spreads over several queues itself costs an interrupt between processors
//! more for many packets.
//!
//! # How we know
//! The values of both; masks in `rps_cpus` of an interface with as many receive queues as the host has processors.
//!
//! # What it is not
//! Not that a connection is slow for it.
//!
//! # What to do
//! Set both or neither; clear `rps_cpus` where the interface has queues enough.
//!
//! # Sources
//! Documentation/networking/scaling.rst; Linux `get_rps_cpu` (v6.1, `net/core/dev.c`).

use super::devices::devices;
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Link, Source};

pub(super) const CHECK: Check = Check {
    code: "PACKET_STEERING",
    file: include_str!("packet_steering.rs"),
    group: Group::Hygiene,
    judge,
};

const KEY: &str = "net.core.rps_sock_flow_entries";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.queues.is_none()) {
        return Err(Missing::part(Source::Links, "queues"));
    }
    let links: Vec<&Link> = all.iter().map(|device| device.now).collect();
    // A namespace of its own does not show it.
    let entries = seen.number(KEY)?;
    let flows = |link: &&&Link| {
        link.queues
            .as_ref()
            .is_some_and(|queues| queues.rps_flow_cnt.iter().any(|count| *count > 0))
    };
    let half = links.iter().find(flows).filter(|_| entries == Some(0));
    let twice = links.iter().find(|link| is_spread_twice(link, seen.snapshot.processors));
    let found = half.map(|link| half_set(link)).into_iter();
    let found = found.chain(twice.map(|link| spread_twice(link))).collect();
    seen.unless_refused(Source::ByteQueues, found)
}

fn is_spread_twice(link: &Link, processors: Option<u32>) -> bool {
    let Some((queues, processors)) = link.queues.as_ref().zip(processors) else { return false };
    queues.rx.is_some_and(|rx| rx > 1 && rx >= processors)
        && queues.rps_cpus.iter().any(|mask| is_on(mask))
}

fn is_on(mask: &str) -> bool {
    mask.chars().any(|digit| digit.is_ascii_hexdigit() && digit != '0')
}

fn half_set(link: &Link) -> Finding {
    Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!("receive flow steering is set on {} and does nothing", link.name),
        why: "its queues have rps_flow_cnt, but net.core.rps_sock_flow_entries is 0: no flow is remembered.".to_owned(),
        not: "not that a connection is slow for it".to_owned(),
        evidence: vec![
            words::setting(KEY, &0),
            Evidence::new(format!("/sys/class/net/{}/queues/rx-*/rps_flow_cnt", link.name), "above 0"),
        ],
        fixes: vec![Fix {
            what: "remember as many flows as are busy at a time".to_owned(),
            risk: "some memory".to_owned(),
            set: Some(Change::Sysctl { key: KEY.to_owned(), from: "0".to_owned(), to: "32768".to_owned() }),
            applies: words::AT_ONCE.to_owned(),
        }],
        ..Finding::default()
    }
}

fn spread_twice(link: &Link) -> Finding {
    let queues = link.queues.as_ref();
    let masks = queues.map(|queues| queues.rps_cpus.as_slice()).unwrap_or_default();
    let on = masks.iter().enumerate().filter(|(_, mask)| is_on(mask));
    Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Interface(link.name.clone()),
        title: format!("packets of {} are spread by its queues, and again by RPS", link.name),
        why: format!(
            "it has {} receive queues, one for each processor; RPS then only adds an interrupt between processors.",
            queues.and_then(|queues| queues.rx).unwrap_or(0)
        ),
        not: "not that a processor is full for it".to_owned(),
        evidence: vec![Evidence::new(
            format!("/sys/class/net/{}/queues/rx-*/rps_cpus", link.name),
            masks.join(" "),
        )],
        fixes: on
            .take(words::WORST)
            .map(|(nth, mask)| Fix {
                what: "leave the spreading to the interface".to_owned(),
                risk: "uneven load if few flows share one queue".to_owned(),
                set: Some(Change::File {
                    path: format!("/sys/class/net/{}/queues/rx-{nth}/rps_cpus", link.name),
                    from: mask.clone(),
                    to: "0".to_owned(),
                }),
                applies: words::AT_ONCE.to_owned(),
            })
            .collect(),
        ..Finding::default()
    }
    .all_together()
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Queues, Snapshot};

    fn steered(rx: u32, mask: &str, flows: u32, entries: &str) -> Snapshot {
        let mut host = each_look(host(&[(KEY, entries)]), |_, look| {
            let queues = Queues {
                rx: Some(rx),
                rps_cpus: vec![mask.to_owned(), "0".to_owned()],
                rps_flow_cnt: vec![flows],
                ..Queues::default()
            };
            look.links = Some(vec![Link { queues: Some(queues), ..link("eth0") }]);
        });
        host.processors = Some(4);
        host
    }

    #[test]
    fn steering_that_is_half_set_and_spreading_twice_are_told() {
        insta::assert_snapshot!(shown(&CHECK, &steered(4, "00000000,0000000f", 4096, "0")));
    }

    #[test]
    fn both_set_fewer_queues_than_processors_or_no_mask_are_well() {
        assert_eq!(judged(&CHECK, &steered(3, "f", 4096, "32768")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &steered(4, "0000,0000", 0, "0")), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_or_queues_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).of.as_deref(), Some("queues"));
    }
}
