//! New connections leave slow start early because of what the kernel remembers of their peers.
//!
//! # What it says
//! The kernel may keep the slow start threshold that a connection ended with, and give it to the next one
//! to the same peer. After a lossy transfer it is small: later connections stop doubling at it and grow by one
//! segment a round trip, long after the path has recovered.
//!
//! # How we know
//! The kernel saves thresholds (`tcp_no_ssthresh_metrics_save` is 0, or does not exist: before 5.6 there was
//! no switch), and `ip tcp_metrics` holds one below 100 segments for a peer more than 10 ms away, or below 50 for one a
//! millisecond away or more (then it is a remark). Where the switch was not seen, that there is a threshold shows that it
//! was saved.
//!
//! # What it is not
//! Since 5.6 the switch is 1 by default, and a threshold that is shown is not used: then this is not a finding.
//! A cached `cwnd` is not used either unless a route locks it.
//!
//! # What to do
//! Set the switch to 1. Where it does not exist forget the peer (`ip tcp_metrics delete`), which also forgets its
//! round trip and its Fast Open cookie; `tcp_no_metrics_save=1` is the broader way.
//!
//! # Sources
//! Linux `tcp_init_metrics`, `tcp_update_metrics` (v6.12), commit 65e6d90168f3 (5.6). 100 segments and 10 ms, 50
//! and 1 ms: ours, not measured.

use super::flows::time;
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{PeerMetrics, Source};
use tcpwhy_words::said::count;

pub(super) const CHECK: Check = Check {
    code: "CACHED_SSTHRESH",
    file: include_str!("cached_ssthresh.rs"),
    group: Group::Sending,
    judge,
};

const KEY: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";
const SMALL: u32 = 100;
const LONG_NS: u64 = 10_000_000;
/// Over such a path some hundred kilobytes take several round trips more.
const NEAR_NS: u64 = 1_000_000;
const TINY: u32 = 50;
const NAMED: usize = 5;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let asked = seen.number(KEY);
    let switch = asked.clone().ok().flatten();
    if switch.is_some_and(|switch| switch != 0) {
        return Ok(Vec::new());
    }
    let Some(all) = seen.snapshot.tcp_metrics.as_ref() else {
        return asked.and(Err(Missing::all(Source::TcpMetrics)));
    };
    let mut small: Vec<&PeerMetrics> = all.iter().filter(|peer| is_small(peer)).collect();
    small.sort_by_key(|peer| (peer.ssthresh, peer.to));
    if small.is_empty() {
        return Ok(Vec::new());
    }
    let evidence = small.iter().take(NAMED).map(|peer| {
        let rtt = peer.rtt_ns.map_or_else(|| "not kept".to_owned(), time);
        let value = format!("ssthresh {}, rtt {rtt}", peer.ssthresh.unwrap_or(0));
        Evidence::new(format!("ip tcp_metrics show {}", peer.to), value)
    });
    let is_old = seen.is_kernel_from(5, 6) == Some(false) || asked.is_ok();
    let why = match switch {
        Some(_) => "this kernel is set to keep them",
        None if is_old => "this kernel keeps them always",
        None => "this kernel keeps them, for they are there",
    };
    let is_far = small.iter().any(|peer| peer.rtt_ns.is_some_and(|rtt| rtt > LONG_NS));
    Ok(vec![Finding {
        severity: if is_far { Severity::Warning } else { Severity::Info },
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!(
            "small slow start thresholds are remembered of {}",
            count(small.len() as u64, "peer")
        ),
        why: format!(
            "{why}: a new connection to one of them stops doubling at its threshold and then grows by a \
             segment a round trip."
        ),
        not: "not that the path is still bad: the threshold tells of a connection that has ended"
            .to_owned(),
        evidence: switch
            .map(|switch| words::setting(KEY, &switch))
            .into_iter()
            .chain(evidence)
            .collect(),
        fixes: fixes(seen, switch, &small),
        ..Finding::default()
    }
    .all_together()])
}

fn is_small(peer: &PeerMetrics) -> bool {
    let Some(ssthresh) = peer.ssthresh else { return false };
    match peer.rtt_ns {
        Some(rtt) if rtt > LONG_NS => ssthresh < SMALL,
        Some(rtt) => ssthresh < TINY && rtt >= NEAR_NS,
        None => ssthresh < TINY,
    }
}

fn fixes(seen: &Seen<'_>, switch: Option<i64>, small: &[&PeerMetrics]) -> Vec<Fix> {
    if switch.is_some() {
        return vec![words::set(
            seen,
            KEY,
            &1,
            "neither save nor use thresholds, as is the default since Linux 5.6",
            "for new connections",
            "",
        )];
    }
    let forget = small.iter().take(NAMED).map(|peer| Fix {
        what: format!("forget what is remembered of {}", peer.to),
        risk: "its round trip and its Fast Open cookie are forgotten, too".to_owned(),
        set: Some(Change::Forget {
            peer: peer.to.to_string(),
            from: format!("ssthresh {}", peer.ssthresh.unwrap_or(0)),
        }),
        applies: "for new connections, until the next lossy one ends".to_owned(),
    });
    forget.collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn remembering(settings: &[(&str, &str)], ssthresh: u32, rtt_ms: u64) -> Snapshot {
        let peer = PeerMetrics {
            to: [10, 0, 0, 7].into(),
            from: None,
            ssthresh: Some(ssthresh),
            cwnd: Some(40),
            rtt_ns: Some(rtt_ms * 1_000_000),
            rttvar_ns: None,
            reordering: None,
            cookie: false,
        };
        Snapshot { tcp_metrics: Some(vec![peer]), ..host(settings) }
    }

    #[test]
    fn a_kernel_that_is_set_to_keep_them() {
        insta::assert_snapshot!(shown(&CHECK, &remembering(&[(KEY, "0")], 10, 30)));
    }

    #[test]
    fn an_old_kernel_forgets_peer_by_peer() {
        let found = judged(&CHECK, &remembering(&[], 10, 30)).expect("seen");
        assert!(matches!(found[0].fixes[0].set, Some(Change::Forget { .. })));
    }

    #[test]
    fn the_default_of_today_and_large_thresholds_and_near_peers_are_none() {
        for host in [
            remembering(&[(KEY, "1")], 10, 30),
            remembering(&[(KEY, "0")], 100, 30),
            remembering(&[(KEY, "0")], 99, 10),
            remembering(&[(KEY, "0")], 49, 0),
        ] {
            assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
        }
    }

    #[test]
    fn that_it_is_there_shows_that_it_was_saved() {
        let mut blind = remembering(&[], 22, 6);
        blind.settings = None;
        let found = judged(&CHECK, &blind).expect("seen");
        assert_eq!(found[0].severity, Severity::Info);
        assert!(found[0].why.contains("they are there"), "{}", found[0].why);
        blind.kernel = Some("3.10.0-1160.el7.x86_64".to_owned());
        assert!(judged(&CHECK, &blind).expect("seen")[0].why.contains("always"));
        blind.tcp_metrics = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }

    #[test]
    fn without_the_cache_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[(KEY, "0")])).source, Source::TcpMetrics);
    }
}
