//! Packets come in large and many, and the kernel hardly merges them.
//!
//! # What it says
//! GRO makes one packet of several that follow one another in a connection; TCP then handles few large ones. Where that fails, each
//! costs its own way.
//!
//! # How we know
//! More than 50,000 packets a second came in, of more than 1,000 bytes on average, and TCP handled at least four for each five of them
//! (`InSegs`). Loopback must be quiet meanwhile, for its packets are counted with them.
//!
//! # What it is not
//! Not a fault by itself: many connections that take turns leave nothing to merge.
//!
//! # What to do
//! See whether GRO is on (`OFFLOADS_OFF`), whether XDP in generic mode or a filter is in the way, and whether few queues mix many connections.
//!
//! # Sources
//! Linux `dev_gro_receive`, `tcp_v4_rcv` (`TCP_MIB_INSEGS` counts merged packets once; v6.12). 50,000, 1,000 bytes, four fifths: ours,
//! not measured.

use super::devices::{Device, devices, need_counters};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Link, Source};
use tcpwhy_words::said::grouped;

pub(super) const CHECK: Check = Check {
    code: "GRO_INEFFECTIVE",
    file: include_str!("gro_ineffective.rs"),
    group: Group::Queues,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    const PER_SECOND: f64 = 50_000.0;
    const LARGE: u64 = 1000;
    let all = devices(seen)?;
    need_counters(&all, &["rx_packets"])?;
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let Some(segments) = seen.growth("Tcp", "InSegs")?.filter(|grown| !grown.since_start) else {
        return Ok(Vec::new());
    };
    let hardware: Vec<&Device<'_>> =
        all.iter().filter(|device| device.now.kind.is_none()).collect();
    let sum = |name: &str| {
        hardware
            .iter()
            .filter_map(|device| device.counted(&[name]))
            .map(|grown| grown.by)
            .sum::<u64>()
    };
    let (packets, bytes) = (sum("rx_packets"), sum("rx_bytes"));
    let own = loopback(seen);
    let seconds = segments.over_ns as f64 / 1e9;
    let is_busy = seconds > 0.0
        && packets as f64 / seconds > PER_SECOND
        && bytes > packets.saturating_mul(LARGE);
    let is_quiet = own.is_some_and(|own| own.saturating_mul(20) < segments.by);
    let is_single = segments.by.saturating_mul(5) >= packets.saturating_mul(4);
    if !(is_busy && is_quiet && is_single) {
        return Ok(Vec::new());
    }
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Low,
        scope: Scope::Netns,
        title: format!(
            "{:.0} packets a second are hardly merged on their way in",
            packets as f64 / seconds
        ),
        why: format!(
            "TCP handled {} for {} that came: each takes its own way through the stack.",
            words::count(segments.by, "packet"),
            grouped(packets)
        ),
        not: "not a fault by itself: connections that take turns leave nothing to merge".to_owned(),
        evidence: vec![
            words::counter("Tcp", "InSegs", segments),
            Evidence::new(
                "ip -s link, RX of hardware interfaces",
                format!("+{packets} packets, +{bytes} bytes"),
            ),
        ],
        fixes: vec![words::advise(
            "see whether rx-gro is on, and whether XDP or few queues are in its way",
            "",
        )],
        ..Finding::default()
    }])
}

/// Packets of loopback between the looks.
fn loopback(seen: &Seen<'_>) -> Option<u64> {
    let packets = |links: &[Link]| {
        let one = links.iter().find(|link| link.loopback)?;
        Some(one.counters.as_ref()?.rx_packets)
    };
    packets(seen.links().ok()?)?.checked_sub(packets(seen.before?.links.as_deref()?)?)
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{LinkCounters, Snapshot};

    fn received(packets: u64, bytes: u64, segments: i64, own: u64) -> Snapshot {
        let host = counted(host(&[]), "Tcp", "InSegs", [9, 9 + segments]);
        each_look(host, |nth, look| {
            let with = |name: &str, rx_packets, rx_bytes| Link {
                loopback: name == "lo",
                counters: Some(LinkCounters { rx_packets, rx_bytes, ..LinkCounters::default() }),
                ..link(name)
            };
            look.links =
                Some(vec![with("lo", own * nth, 0), with("eth0", packets * nth, bytes * nth)]);
        })
    }

    #[test]
    fn packets_that_are_not_merged_are_told() {
        insta::assert_snapshot!(shown(&CHECK, &received(1_000_000, 1_400_000_000, 990_000, 10)));
    }

    #[test]
    fn merged_small_few_or_mixed_with_loopback_are_nothing() {
        for (packets, bytes, segments, own) in [
            (1_000_000, 1_400_000_000, 799_999, 10),
            (1_000_000, 1_000_000_000, 990_000, 10),
            (500_000, 700_000_000, 499_000, 10),
            (1_000_000, 1_400_000_000, 990_000, 49_500),
        ] {
            assert_eq!(judged(&CHECK, &received(packets, bytes, segments, own)), Ok(Vec::new()));
        }
        assert_eq!(
            judged(&CHECK, &received(1_000_000, 1_400_000_000, 800_000, 10)).expect("seen").len(),
            1
        );
    }

    #[test]
    fn without_interfaces_counters_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        assert_eq!(missing(&CHECK, &once(received(1, 1, 1, 1))).source, Source::SecondLook);
    }
}
