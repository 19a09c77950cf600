//! Connections send smaller packets than their interface could.
//!
//! # What it says
//! The path MTU of some connections is below that of their interface: a tunnel lies on the way, a route has
//! an `mtu`, or a router said so. Small packets cost more headers and processor time; below about 1,200
//! bytes of payload it is mostly a mistake: MTU probing that gave up, or a forged message.
//!
//! # How we know
//! `pmtu` of the socket is below 1500 and below the MTU of the interface that has its address.
//!
//! # What it is not
//! A path MTU of 1,400 or so over a tunnel is right. Packets are lost for it only where a router's message does
//! not arrive (`PATH_MTU_BLACK_HOLE`).
//!
//! # What to do
//! Nothing, where a tunnel explains it. Else look who lowered it: `ip route get PEER` shows what is remembered, and a
//! route's own `mtu`.
//!
//! # Sources
//! RFC 1191, RFC 8201 section 4; Linux `tcp_sync_mss`, `tcp_mtu_probing` (v6.12). 1,200 bytes: ours, not measured.

use super::{Check, flows, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "PATH_MTU_SMALL",
    file: include_str!("path_mtu_small.rs"),
    group: Group::Losses,
    judge,
};

const SMALL_MSS: u32 = 1200;
/// The MTU of Ethernet and of nearly all of the Internet (RFC 894).
const ETHERNET: u32 = 1500;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    if seen.links().is_err() {
        return Err(Missing::all(Source::Links));
    }
    let reduced: Vec<_> =
        known.into_iter().filter_map(|(flow, _)| lowered(seen, flow).map(|_| flow)).collect();
    let reduced =
        flows::worst(reduced, |flow| core::cmp::Reverse(flow.info().and_then(|info| info.pmtu)));
    let Some(worst) = reduced.first() else { return Ok(Vec::new()) };
    let tiny = reduced.iter().filter(|flow| is_tiny(flow)).count();
    let says = |flow: &Flow<'_>| {
        let (pmtu, mtu) = lowered(seen, flow).unwrap_or_default();
        let mss = flow.info().and_then(|info| info.snd_mss).unwrap_or(0);
        format!("pmtu {pmtu} of {mtu}, mss {mss}")
    };
    let (pmtu, mtu) = lowered(seen, worst).unwrap_or_default();
    let why = if tiny > 0 {
        "that is less than a tunnel explains: more headers and more work for each byte"
    } else {
        "a tunnel on the way explains that, and it costs little"
    };
    Ok(vec![Finding {
        severity: if tiny > 0 { Severity::Warning } else { Severity::Info },
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!("{} may not send packets of full size", flows::counted(seen, &reduced)),
        why: format!("the smallest path MTU is {pmtu} where the interface has {mtu}; {why}."),
        not: "not that packets are lost for it".to_owned(),
        evidence: flows::evidence(seen, &reduced, says),
        fixes: match tiny {
            0 => Vec::new(),
            _ => vec![words::advise(
                format!("see who lowered it: `ip route get {}`, routes with an mtu", worst.peer()),
                "",
            )],
        },
        ..Finding::default()
    }])
}

/// Path MTU and interface's MTU where the first is less.
fn lowered(seen: &Seen<'_>, flow: &Flow<'_>) -> Option<(u32, u32)> {
    let (pmtu, mtu) = (flow.info()?.pmtu?, flows::link(seen, flow)?.mtu?);
    // Beyond a network of jumbo frames 1500 is what is to be expected.
    (pmtu > 0 && pmtu < mtu.min(ETHERNET)).then_some((pmtu, mtu))
}

/// A peer may ask for small segments by itself: that is not the path's doing.
fn is_tiny(flow: &Flow<'_>) -> bool {
    flow.info().is_some_and(|info| info.pmtu.is_some_and(|pmtu| pmtu < SMALL_MSS + 40))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Link, Memory, Snapshot};

    fn over(pmtu: u32) -> Snapshot {
        let info = Info { pmtu: Some(pmtu), snd_mss: Some(pmtu - 52), ..Info::default() };
        let at = || vec![socket(0, &info, Memory::default())];
        let mut host = connected(&[], at(), at());
        host.looks[1].links = Some(vec![Link {
            name: "eth0".to_owned(),
            mtu: Some(1500),
            addresses: vec![([10, 0, 0, 1].into(), 24)],
            ..Link::default()
        }]);
        host
    }

    #[test]
    fn a_tiny_path_mtu() {
        insta::assert_snapshot!(shown(&CHECK, &over(552)));
    }

    #[test]
    fn a_tunnel_is_worth_knowing_and_a_full_size_is_none() {
        assert_eq!(judged(&CHECK, &over(1240)).expect("seen")[0].severity, Severity::Info);
        assert_eq!(judged(&CHECK, &over(1239)).expect("seen")[0].severity, Severity::Warning);
        assert_eq!(judged(&CHECK, &over(1500)), Ok(Vec::new()));
    }

    #[test]
    fn without_interfaces_nothing_is_said() {
        let mut host = over(552);
        host.looks[1].links = None;
        assert_eq!(missing(&CHECK, &host).source, Source::Links);
    }
}
