//! A notable share of what this host sends has to be retransmitted.
//!
//! # What it says
//! Data is lost on the way out of this host, or taken for lost. Each loss costs a round trip or more, and makes
//! the congestion window smaller: a rate over a long path suffers from one in a thousand already.
//!
//! # How we know
//! `RetransSegs` without SYNs (`TCPSynRetrans`) beside all segments with data (`TCPOrigDataSent` and the repeats;
//! `OutSegs` where that is not there): more than 1 % of at least a thousand. Peers are told apart by what their sockets retransmitted.
//!
//! # What it is not
//! Not where it is lost: the path, the peer, or this host's own queues. Some repeats are needless; see
//! `SPURIOUS_RETRANSMITS`. What peers send here is counted by them.
//!
//! # What to do
//! If most of it goes to one peer or network, look there; if to all, begin with this host: its interface's errors, its
//! queueing discipline's drops, then the next link.
//!
//! # Sources
//! Linux `__tcp_retransmit_skb`, `tcp_event_new_data_sent` (v6.12). 1 % and 5 %: ours, not measured.

use core::cmp::Reverse;
use core::net::IpAddr;
use std::collections::BTreeMap;

use super::{Check, counters, flows, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::bytes;

pub(super) const CHECK: Check = Check {
    code: "RETRANSMITS",
    file: include_str!("retransmits.rs"),
    group: Group::Losses,
    judge,
};

const LEAST_SENT: u64 = 1000;
const NAMED: usize = 5;
const WHERE: &str =
    "not where they are lost: on the path, at the peer, or in this host's own queues";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(again) = counters::data_again(seen)? else { return Ok(Vec::new()) };
    let data = counters::grew(seen, counters::TCP_EXT, "TCPOrigDataSent").ok().flatten();
    let (name, sent) = match data {
        Some(data) => ("TcpExt.TCPOrigDataSent", data),
        None => match counters::grew(seen, "Tcp", "OutSegs")? {
            Some(sent) => ("Tcp.OutSegs", sent),
            None => return Ok(Vec::new()),
        },
    };
    let (told, again) = (again, again.data);
    let all = sent.by.saturating_add(again.by);
    if all < LEAST_SENT || again.by.saturating_mul(100) <= all {
        return Ok(Vec::new());
    }
    let bad =
        if counters::is_share(again.by, all, 5) { Severity::Error } else { Severity::Warning };
    let share = again.by as f64 * 100.0 / all as f64;
    let (peers, where_to) = peers(seen);
    let mut evidence = vec![
        told.evidence(),
        Evidence::new(format!("/proc/net/snmp and netstat {name}"), words::grown(sent)),
    ];
    evidence.extend(peers);
    Ok(vec![Finding {
        severity: counters::severity(again, bad),
        confidence: words::sure(again),
        scope: Scope::Netns,
        title: format!(
            "{share:.1} % of the segments sent are retransmitted: {}",
            words::grown(again)
        ),
        why: format!(
            "each costs a round trip or more and makes a window smaller; over a long path one in a \
             thousand is felt{where_to}."
        ),
        not: if told.is_exact {
            WHERE.to_owned()
        } else {
            format!("{WHERE}; nor how many of them are SYNs, which are not counted apart here")
        },
        evidence,
        fixes: vec![words::advise(
            "look at what the peers concerned have in common; where it is all of them, at this host's \
             interface and queueing discipline",
            "",
        )],
        unseen: (again.since_start.then(|| Missing::all(Source::SecondLook)).into_iter())
            .chain(told.exact().err())
            .map(|missing| missing.to_string())
            .collect(),
        ..Finding::default()
    }])
}

/// The peers to whom most was retransmitted, and whether one of them has most of it.
fn peers(seen: &Seen<'_>) -> (Vec<Evidence>, String) {
    let mut by_peer: BTreeMap<IpAddr, (u64, u64)> = BTreeMap::new();
    for (flow, info) in flows::known(seen).unwrap_or_default() {
        let now_or_ever = |of: fn(&crate::snapshot::Info) -> Option<u64>| match seen.before {
            Some(_) => flow.grew(of).unwrap_or(0),
            None => of(info).unwrap_or(0),
        };
        let (again, sent) =
            (now_or_ever(|info| info.bytes_retrans), now_or_ever(|info| info.bytes_sent));
        let sums = by_peer.entry(flow.peer()).or_default();
        *sums = (sums.0.saturating_add(again), sums.1.saturating_add(sent));
    }
    let all = by_peer.values().fold(0_u64, |all, (again, _)| all.saturating_add(*again));
    let mut worst: Vec<_> = by_peer.into_iter().filter(|(_, (again, _))| *again > 0).collect();
    worst.sort_by_key(|(peer, (again, _))| (Reverse(*again), *peer));
    let most = worst
        .first()
        .filter(|(_, (again, _))| worst.len() > 1 && counters::is_share(*again, all, 50));
    let where_to = match most {
        Some((peer, _)) => {
            format!("; at least half of what open connections retransmitted went to {peer}")
        }
        None => String::new(),
    };
    let says = |(peer, (again, sent)): &(IpAddr, (u64, u64))| {
        let value = format!("{} of {} retransmitted", bytes(*again), bytes(*sent));
        Evidence::new(format!("ss -tin dst {peer}"), value)
    };
    (worst.iter().take(NAMED).map(says).collect(), where_to)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{Info, Memory, Snapshot};

    fn sending(host: Snapshot, sent: i64, again: i64) -> Snapshot {
        let host = counted(host, "TcpExt", "TCPOrigDataSent", [500, 500 + sent]);
        counted(host, "Tcp", "RetransSegs", [7, 7 + again])
    }

    #[test]
    fn losses_are_told_with_the_peers_that_they_concern() {
        let at = |again, sent| {
            let info =
                Info { bytes_retrans: Some(again), bytes_sent: Some(sent), ..Info::default() };
            let mut other = socket(1, &info, Memory::default());
            other.remote = "192.0.2.9:443".parse().expect("an address");
            let few = Info { bytes_retrans: Some(again / 10), ..info };
            vec![socket(0, &few, Memory::default()), other]
        };
        let host = connected(&[], at(0, 0), at(600_000, 9_000_000));
        insta::assert_snapshot!(shown(&CHECK, &sending(host, 9000, 650)));
    }

    #[test]
    fn one_in_a_hundred_of_a_thousand_is_the_border_and_five_are_an_error() {
        let severity = |sent, again| {
            let found = judged(&CHECK, &sending(host(&[]), sent, again)).expect("seen");
            found.first().map(|found| found.severity)
        };
        assert_eq!(severity(990, 10), None);
        assert_eq!(severity(989, 11), Some(Severity::Warning));
        assert_eq!(severity(988, 11), None);
        assert_eq!(severity(950, 50), Some(Severity::Error));
        assert_eq!(severity(951, 49), Some(Severity::Warning));
    }

    #[test]
    fn repeats_of_syns_are_no_repeats_of_data() {
        let number = |syns: i64| {
            let host =
                counted(sending(host(&[]), 950, 50), "TcpExt", "TCPSynRetrans", [4, 4 + syns]);
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(0), number(50)], [1, 0]);
    }

    #[test]
    fn since_the_start_it_is_less_sure_and_without_counters_nothing_is_said() {
        let found = judged(&CHECK, &once(sending(host(&[]), 950, 100))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
