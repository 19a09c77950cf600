//! An XDP program runs in generic mode: each packet is copied and taken apart before the kernel sees it.
//!
//! # What it says
//! XDP is quick when the driver runs it. In generic mode the kernel runs it after it has made a packet of the frame, and does not merge
//! packets (GRO) on the interface while a program is there, whatever `ethtool -k` says: each segment passes the kernel alone.
//!
//! # How we know
//! The interface says that its XDP program is attached in generic mode (`xdpgeneric`).
//!
//! # What it is not
//! Not that the processor is full. `veth` and other software interfaces have generic mode only where the driver lacks it.
//!
//! # What to do
//! Ask who loaded it; use a driver with native XDP, or leave it out.
//!
//! # Sources
//! Linux `do_xdp_generic`, `generic_xdp_install`, `netif_elide_gro` (v6.1, `net/core/dev.c`); `IFLA_XDP_ATTACHED` in `include/uapi/linux/if_link.h`.

use super::devices::{self, Device, devices};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "XDP_GENERIC",
    file: include_str!("xdp_generic.rs"),
    group: Group::Queues,
    judge,
};

/// `XDP_ATTACHED_SKB`.
const GENERIC: u8 = 2;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = devices(seen)?;
    if !all.is_empty() && all.iter().all(|device| device.now.xdp.is_none()) {
        return Err(Missing::part(Source::Links, "XDP"));
    }
    let hit: Vec<Device<'_>> =
        all.into_iter().filter(|device| device.now.xdp == Some(GENERIC)).collect();
    if hit.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = hit.iter().map(Device::name).collect();
    let evidence = hit
        .iter()
        .take(words::WORST)
        .map(|device| Evidence::new(format!("ip link show {}", device.name()), "xdpgeneric"));
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: devices::scope(&names),
        title: format!("an XDP program of {} runs in generic mode", devices::told(&names)),
        why: "the kernel merges no packets (GRO) on an interface with such a program: each segment passes it alone.".to_owned(),
        not: "not that a processor is full for it".to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise("ask who loaded it; a driver with native XDP runs it without that cost", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Link, Snapshot};

    fn attached(xdp: Option<u8>) -> Snapshot {
        each_look(host(&[]), |_, look| look.links = Some(vec![Link { xdp, ..link("eth0") }]))
    }

    #[test]
    fn generic_mode_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &attached(Some(2))));
    }

    #[test]
    fn a_driver_that_runs_it_and_none_at_all_are_well() {
        assert_eq!(judged(&CHECK, &attached(Some(1))), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &attached(Some(0))), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_or_xdp_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Links);
        assert_eq!(missing(&CHECK, &attached(None)).of.as_deref(), Some("XDP"));
    }
}
