//! Large packets do not come through: connections open, and their first full segment is never acknowledged.
//!
//! # What it says
//! A router that cannot pass a packet for its size must say so; where that message is filtered, the sender never
//! learns, and sends the same large packet again and again. Small requests work, downloads hang.
//!
//! # How we know
//! An open connection has timed out at least twice in a row, has a full segment or more to send, and less than one
//! segment of it was ever acknowledged. It is likely where something came from that peer between the looks, on this
//! or another connection; else it is one explanation.
//!
//! # What it is not
//! A peer that died at that moment looks the same.
//!
//! # What to do
//! `tracepath PEER` shows where the size shrinks. Let ICMP "fragmentation needed" and "packet too big" through. With
//! `tcp_mtu_probing=1` connections find it out for themselves after some timeouts; a tunnel's end can lower the
//! segment size in SYNs instead.
//!
//! # Sources
//! RFC 2923, RFC 4821; Linux `tcp_mtu_probing` in `tcp_write_timeout` (after `tcp_retries1` timeouts; v6.12). Two
//! timeouts: ours, not measured.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::{Check, counters, flows, words};
use crate::finding::{Confidence, Finding, Fix, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};
use crate::snapshot::{Info, State};

pub(super) const CHECK: Check = Check {
    code: "PATH_MTU_BLACK_HOLE",
    file: include_str!("path_mtu_black_hole.rs"),
    group: Group::Losses,
    judge,
};

const KEY: &str = "net.ipv4.tcp_mtu_probing";
/// The least MTU of IPv6, 1280 bytes (RFC 8200 section 5; `MIN_PLPMTU` of RFC 8899 section 5.1.2), less headers of 60: smaller
/// packets come through everywhere.
const SMALL_MSS: u32 = 1220;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    let mut stuck: BTreeMap<IpAddr, Vec<&Flow<'_>>> = BTreeMap::new();
    for (flow, info) in &known {
        if is_stuck(flow, info) {
            stuck.entry(flow.peer()).or_default().push(flow);
        }
    }
    let alive = |peer: IpAddr| {
        let moves = |flow: &Flow<'_>| {
            flow.grew(|info| info.bytes_acked).is_some_and(|acked| acked > 0)
                || flow.grew(|info| info.bytes_received).is_some_and(|came| came > 0)
        };
        known.iter().any(|(flow, _)| flow.peer() == peer && moves(flow))
    };
    let likely = stuck.keys().any(|peer| alive(*peer));
    let flows: Vec<_> = stuck.values().flatten().copied().collect();
    let flows = flows::worst(flows, |flow| flow.info().and_then(|info| info.backoff));
    let Some(worst) = flows.first() else { return Ok(Vec::new()) };
    let mut evidence = flows::evidence(seen, &flows, says);
    let probes = counters::grown(seen, &["TCPMTUPFail", "TCPMTUPSuccess"]).unwrap_or_default();
    evidence.extend(counters::evidence(&probes));
    let probing = seen.number(KEY).ok().flatten();
    evidence.extend(probing.map(|probing| words::setting(KEY, &probing)));
    Ok(vec![Finding {
        severity: if likely { Severity::Error } else { Severity::Warning },
        confidence: if likely { Confidence::Medium } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!("{} never got a full segment through", flows::counted(seen, &flows)),
        why: format!(
            "{} opened, and what fills a packet is sent again and again without an answer: {} bytes of \
             payload may be more than the path carries.",
            if flows.len() == 1 { "it" } else { "they" },
            worst.info().and_then(|info| info.snd_mss).unwrap_or(0)
        ),
        not: if likely {
            "not where on the path the size shrinks".to_owned()
        } else {
            "not that the peer is well: one that died at that moment looks the same".to_owned()
        },
        evidence,
        fixes: fixes(seen, worst, probing),
        ..Finding::default()
    }])
}

fn is_stuck(flow: &Flow<'_>, info: &Info) -> bool {
    let stuck = || {
        let mss = info.snd_mss?;
        let is_large = mss > SMALL_MSS && flow.now.send_queue >= mss;
        let none_came = info.bytes_acked? < u64::from(mss);
        Some(info.backoff? >= 2 && is_large && none_came)
    };
    matches!(flow.now.state, State::Established | State::CloseWait) && stuck().unwrap_or(false)
}

fn says(flow: &Flow<'_>) -> String {
    let Some(info) = flow.info() else { return String::new() };
    format!(
        "{} timeouts in a row, mss {}, pmtu {}, {} bytes acknowledged in all",
        info.backoff.unwrap_or(0),
        info.snd_mss.unwrap_or(0),
        info.pmtu.unwrap_or(0),
        info.bytes_acked.unwrap_or(0)
    )
}

fn fixes(seen: &Seen<'_>, worst: &Flow<'_>, probing: Option<i64>) -> Vec<Fix> {
    let mut fixes = vec![words::advise(
        format!(
            "run `tracepath {}`, and let ICMP \"fragmentation needed\" and \"packet too big\" through",
            worst.peer()
        ),
        "",
    )];
    if probing == Some(0) {
        fixes.push(words::set(
            seen,
            KEY,
            &1,
            "let connections that time out try smaller packets",
            words::AT_ONCE,
            "connections that time out for other reasons may end up with small packets",
        ));
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot, Socket, Source};

    fn hanging(number: u16, backoff: u8, acked: u64) -> Socket {
        let info = Info {
            backoff: Some(backoff),
            snd_mss: Some(1448),
            pmtu: Some(1500),
            bytes_acked: Some(acked),
            ..Info::default()
        };
        Socket { send_queue: 8000, ..socket(number, &info, Memory::default()) }
    }

    fn with(sockets: &[Socket]) -> Snapshot {
        connected(&[(KEY, "0")], sockets.to_vec(), sockets.to_vec())
    }

    /// Beside a connection on which 300 bytes came through, or more.
    fn beside(acked: u64) -> Snapshot {
        let mut host = with(&[hanging(0, 4, 300), hanging(1, 0, 300)]);
        host.looks[1].sockets.as_mut().expect("sockets")[1] = hanging(1, 0, acked);
        host
    }

    #[test]
    fn full_segments_to_a_peer_that_is_alive() {
        insta::assert_snapshot!(shown(&CHECK, &beside(900)));
    }

    #[test]
    fn of_a_peer_from_which_nothing_comes_it_is_one_explanation() {
        for host in [with(&[hanging(0, 2, 300), hanging(1, 3, 1)]), beside(300)] {
            let found = judged(&CHECK, &host).expect("seen");
            assert_eq!(
                (found[0].severity, found[0].confidence),
                (Severity::Warning, Confidence::Low)
            );
        }
    }

    #[test]
    fn one_timeout_or_a_segment_that_came_through_or_little_to_send_is_none() {
        let little = Socket { send_queue: 1447, ..hanging(0, 4, 300) };
        for socket in [hanging(0, 1, 300), hanging(0, 4, 1448), little] {
            assert_eq!(judged(&CHECK, &with(&[socket])), Ok(Vec::new()));
        }
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
