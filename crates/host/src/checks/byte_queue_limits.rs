//! The limit of bytes in an interface's send ring was set too low by hand.
//!
//! # What it says
//! Byte queue limits keep the send ring just full enough. The kernel finds the limit itself, up to `limit_max`. Set below 64 KiB
//! that is less than one packet of TSO: the ring runs dry between two of them.
//!
//! # How we know
//! `limit_max` of a send queue is below 65,536, on an interface of at least 1 Gbit/s.
//!
//! # What it is not
//! Not that the interface idles for it: at low rates it does not matter.
//!
//! # What to do
//! Write 1879048192 to it, the kernel's own value, which `max` stands for.
//!
//! # Sources
//! Linux `bql_set`, `DQL_MAX_LIMIT` (v6.1, `net/core/net-sysfs.c`, `include/linux/dynamic_queue_limits.h`). 64 KiB: the largest packet of IPv4.

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "BYTE_QUEUE_LIMITS",
    file: include_str!("byte_queue_limits.rs"),
    group: Group::Queues,
    judge,
};

const PACKET: u64 = 65_536;
/// `DQL_MAX_LIMIT`, (`UINT_MAX` / 2) - (`UINT_MAX` / 16): as it will be read.
const MOST: &str = "1879048192";
const FAST: u64 = 1_000_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.byte_queues.is_none()) {
        return Err(Missing::all(Source::ByteQueues));
    }
    let mut hit: Vec<(Device<'_>, usize, u64)> = Vec::new();
    for device in
        all.into_iter().filter(|device| device.now.speed.is_some_and(|speed| speed >= FAST))
    {
        let queues = device.now.byte_queues.iter().flatten().enumerate();
        hit.extend(
            queues
                .filter(|(_, queue)| queue.limit_max < PACKET)
                .map(|(nth, queue)| (device, nth, queue.limit_max)),
        );
    }
    if hit.is_empty() {
        return Ok(Vec::new());
    }
    let mut names: Vec<&str> = hit.iter().map(|(device, ..)| device.name()).collect();
    names.dedup();
    let path = |device: &Device<'_>, nth: usize| {
        format!("/sys/class/net/{}/queues/tx-{nth}/byte_queue_limits/limit_max", device.name())
    };
    let worst = hit.iter().take(words::WORST);
    let evidence = worst
        .clone()
        .map(|(device, nth, most)| Evidence::new(path(device, *nth), most.to_string()));
    let fixes = worst.map(|(device, nth, most)| Fix {
        what: "let the kernel find the limit".to_owned(),
        risk: String::new(),
        set: Some(Change::File {
            path: path(device, *nth),
            from: most.to_string(),
            to: MOST.to_owned(),
        }),
        applies: words::AT_ONCE.to_owned(),
    });
    let found = Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!(
            "{} of {} may not hold one full packet (limit_max)",
            words::count(hit.len() as u64, "send queue"),
            devices::told(&names)
        ),
        why: "a packet of TSO has up to 64 KiB: the ring runs dry before the next one may come."
            .to_owned(),
        not: "not that the interface idles for it: at low rates it does not matter".to_owned(),
        evidence: evidence.collect(),
        fixes: fixes.collect(),
        ..Finding::default()
    };
    Ok(vec![found.all_together()])
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{ByteQueue, Snapshot};

    fn limited(most: u64, speed: u64) -> Snapshot {
        each_look(host(&[]), |_, look| {
            let mut eth0 = link("eth0");
            eth0.speed = Some(speed);
            let free = ByteQueue { limit_max: 1_879_048_192, ..ByteQueue::default() };
            eth0.byte_queues = Some(vec![free, ByteQueue { limit_max: most, ..free }]);
            look.links = Some(vec![eth0]);
        })
    }

    #[test]
    fn a_limit_below_one_packet_is_told_with_its_queue() {
        insta::assert_snapshot!(shown(&CHECK, &limited(3000, FAST)));
    }

    #[test]
    fn one_packet_or_a_slow_interface_are_well() {
        assert_eq!(judged(&CHECK, &limited(PACKET, FAST)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &limited(PACKET - 1, FAST)).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &limited(3000, FAST / 10)), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_or_their_limits_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let unseen = each_look(host(&[]), |_, look| look.links = Some(vec![link("eth0")]));
        assert_eq!(missing(&CHECK, &unseen).source, Source::ByteQueues);
    }
}
