//! This host sends in small pieces, which a fast link does not reach with.
//!
//! # What it says
//! TCP hands packets of up to 64 KiB to the interface, which cuts them. Where that size or the amount that one
//! connection may have below TCP is set small, a fast link is not filled by one connection, and the processor works
//! for each small packet.
//!
//! # How we know
//! On an interface of 10 Gbit/s or more `gso_max_segs` is below 16 or `gso_max_size` below 16 KiB; or
//! `net.ipv4.tcp_limit_output_bytes` is below 256 KiB, less than the default of any kernel from 4.18 on.
//!
//! # What it is not
//! On slow links small sizes do no harm. Switching offloads off for more throughput is wrong today: the kernel sizes
//! bursts by the rate, and acknowledgments of large packets do not slow the start.
//!
//! # What to do
//! Restore the sizes (`ip link set dev NAME gso_max_size 65536`), and the kernel's own limit: 1 MiB, since Linux 6.16
//! 4 MiB.
//!
//! # Sources
//! Linux `tcp_tso_autosize`, `tcp_small_queue_check`, commits c73e5807e4f6 (1 MiB) and of 6.16 (4 MiB). 16: ours, not
//! measured.

use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Link;

pub(super) const CHECK: Check = Check {
    code: "SEGMENT_SIZING",
    file: include_str!("segment_sizing.rs"),
    group: Group::Sending,
    judge,
};

const KEY: &str = "net.ipv4.tcp_limit_output_bytes";
const LEAST_OUTPUT: i64 = 256 << 10;
const FAST: u64 = 10_000_000_000;
const LEAST_SEGMENTS: u32 = 16;
const LEAST_BYTES: u32 = 16 << 10;
/// `GSO_LEGACY_MAX_SIZE` and `GSO_MAX_SEGS`, Linux v6.12 `include/linux/netdevice.h`.
const SIZE: u32 = 65_536;
const SEGMENTS: u32 = 65_535;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let (links, limit) = (seen.links(), seen.number(KEY));
    let mut found: Vec<Finding> =
        links.clone().unwrap_or_default().iter().filter_map(of_link).collect();
    if let Ok(Some(limit)) = limit
        && limit < LEAST_OUTPUT
    {
        found.push(of_setting(seen, limit));
    }
    if found.is_empty() {
        limit.and(links)?;
    }
    Ok(found)
}

fn of_setting(seen: &Seen<'_>, limit: i64) -> Finding {
    let links = seen.links().unwrap_or_default();
    let fast = links.iter().any(|link| link.speed.is_some_and(|speed| speed >= FAST));
    Finding {
        severity: if fast { Severity::Warning } else { Severity::Info },
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("a connection may have only {limit} bytes below TCP"),
        why: "what waits in the queueing discipline and the interface is bounded by that; a fast link runs \
              empty before TCP is called again."
            .to_owned(),
        not: "not that a connection here is slow for it".to_owned(),
        evidence: vec![words::setting(KEY, &limit)],
        fixes: vec![words::set(
            seen,
            KEY,
            &default(seen),
            "set the kernel's default",
            words::AT_ONCE,
            "more data of one connection before that of others in a plain queue",
        )],
        ..Finding::default()
    }
}

/// 4 MiB since Linux 6.16; where the version was not seen that of before.
fn default(seen: &Seen<'_>) -> i64 {
    if seen.is_kernel_from(6, 16) == Some(true) { 4 << 20 } else { 1 << 20 }
}

fn of_link(link: &Link) -> Option<Finding> {
    link.speed.filter(|speed| *speed >= FAST)?;
    let size = link.gso_max_size.filter(|size| *size < LEAST_BYTES);
    let segments = link.gso_max_segs.filter(|segments| *segments < LEAST_SEGMENTS);
    let set = |name: &str, value: Option<u32>, to: u32| {
        value.map(|value| (format!("{name} {value}"), format!("{name} {to}")))
    };
    let changes = [set("gso_max_size", size, SIZE), set("gso_max_segs", segments, SEGMENTS)];
    let (from, to): (Vec<_>, Vec<_>) = changes.into_iter().flatten().unzip();
    if from.is_empty() {
        return None;
    }
    Some(Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Interface(link.name.clone()),
        title: format!("{} takes packets in small pieces: {}", link.name, from.join(", ")),
        why: "at its rate the processor has to make a packet every few microseconds.".to_owned(),
        not: "not that a connection here is slow for it".to_owned(),
        evidence: vec![Evidence::new(format!("ip -d link show dev {}", link.name), from.join(" "))],
        fixes: vec![Fix {
            what: "let it take large packets again".to_owned(),
            risk: "a driver may have asked for the small size".to_owned(),
            set: Some(Change::Link {
                dev: link.name.clone(),
                from: from.join(" "),
                to: to.join(" "),
            }),
            applies: words::AT_ONCE.to_owned(),
        }],
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn with(limit: &str, speed: u64, size: u32, segments: u32) -> Snapshot {
        let mut host = host(&[(KEY, limit)]);
        host.looks[1].links = Some(vec![Link {
            name: "eth0".to_owned(),
            speed: Some(speed),
            gso_max_size: Some(size),
            gso_max_segs: Some(segments),
            ..Link::default()
        }]);
        host
    }

    #[test]
    fn a_fast_interface_with_small_packets() {
        insta::assert_snapshot!(shown(&CHECK, &with("1048576", FAST, 4096, 65_535)));
    }

    #[test]
    fn a_small_limit_below_tcp() {
        insta::assert_snapshot!(shown(&CHECK, &with("131072", FAST, 65_536, 65_535)));
    }

    #[test]
    fn since_6_16_the_default_is_four_times_as_large() {
        let to = |kernel: &str| {
            let host = with("131072", FAST, 65_536, 65_535);
            let host = Snapshot { kernel: Some(kernel.to_owned()), ..host };
            format!("{:?}", judged(&CHECK, &host).expect("seen")[0].fixes[0].set)
        };
        assert!(to("6.16.2").contains("4194304") && to("6.15.9").contains("1048576"));
    }

    #[test]
    fn defaults_and_borders_and_slow_interfaces_are_well() {
        for host in [with("262144", FAST, 16_384, 16), with("1048576", FAST - 1, 2048, 1)] {
            assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
        }
        assert_eq!(judged(&CHECK, &with("262143", FAST, 16_383, 15)).expect("seen").len(), 2);
    }

    #[test]
    fn without_interfaces_or_settings_it_is_told() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        let none = Snapshot { settings: None, ..with("1", 1, 1, 1) };
        assert_eq!(missing(&CHECK, &none).source, Source::Settings);
    }
}
