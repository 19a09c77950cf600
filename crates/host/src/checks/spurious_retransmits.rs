//! Much of what was retransmitted had arrived: packets were late or out of order, not lost.
//!
//! # What it says
//! A sender takes a packet for lost when later ones are acknowledged first or no answer comes in time. If it was
//! only overtaken or delayed, the repeat is wasted and the congestion window was made smaller for nothing, at
//! least for a while.
//!
//! # How we know
//! Receivers reported at least 30 % of the repeats of data as seen before (`TCPDSACKRecvSegs`, before Linux 5.10
//! `TCPDSACKRecv`), of at least a hundred; as many reports as there were tail loss probes (`TCPLossProbes`) are left out,
//! for those are repeats made on suspicion; with them it is a remark. Without counters, what peers reported to single
//! sockets counts (`dsack_dups` of at least 20 repeats). Undone reductions and timeouts, and sockets that saw reordering, are
//! shown beside it.
//!
//! # What it is not
//! Not that nothing is lost: the rest of the repeats was needed.
//!
//! # What to do
//! Look for what lets packets overtake each other: a bond with `balance-rr`, routers that spread packets instead of
//! flows, interrupts that move between processors, radio links. Raising `tcp_reordering` does little since RACK: it
//! adapts by itself.
//!
//! # Sources
//! RFC 3708, RFC 8985 section 3.3.2; Linux `tcp_dsack_seen`, `tcp_check_sack_reordering` (v6.12). 30 % of a hundred:
//! ours, not measured.

use super::{Check, counters, flows, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::Info;

pub(super) const CHECK: Check = Check {
    code: "SPURIOUS_RETRANSMITS",
    file: include_str!("spurious_retransmits.rs"),
    group: Group::Losses,
    judge,
};

const LEAST: u64 = 100;
/// Repeats of one connection. Ours, not measured.
const LEAST_OF_ONE: u64 = 20;
/// `TCP_FASTRETRANS_THRESH`, Linux `include/net/tcp.h`: where no reordering was seen.
const IN_ORDER: u32 = 3;
const BESIDE: [&str; 8] = [
    "TCPLossProbes",
    "TCPSpuriousRTOs",
    "TCPFullUndo",
    "TCPPartialUndo",
    "TCPDSACKUndo",
    "TCPLossUndo",
    "TCPSACKReorder",
    "TCPTSReorder",
];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    match of_counters(seen) {
        Ok(found) if !found.is_empty() => Ok(found),
        counted => of_sockets(seen).map_or(counted, |found| Ok(vec![found])),
    }
}

fn of_counters(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let ext = |name| counters::grew(seen, counters::TCP_EXT, name);
    let Some(told) = counters::data_again(seen)? else { return Ok(Vec::new()) };
    let again = told.data;
    // A report is of one segment or more: where segments are not counted, reports are a bound.
    let segments = ext("TCPDSACKRecvSegs");
    let reports = ext("TCPDSACKRecv");
    let known = |asked: &Asked<Option<Growth>>, name| Some((name, asked.clone().ok()??));
    let known = known(&segments, "TCPDSACKRecvSegs").or_else(|| known(&reports, "TCPDSACKRecv"));
    let Some((name, reported)) = known else { return reports.map(|_| Vec::new()) };
    let probes = counters::by(seen, counters::TCP_EXT, "TCPLossProbes").ok();
    let needless = Growth { by: reported.by.saturating_sub(probes.unwrap_or(0)), ..reported };
    // With SYNs among them the repeats of data are fewer, and the share larger.
    if again.by < LEAST || !counters::is_share(reported.by, again.by, 30) {
        return told.exact().map(|()| Vec::new());
    }
    let is_more = probes.is_some() && counters::is_share(needless.by, again.by, 30);
    let reordered = flows::known(seen).unwrap_or_default().into_iter();
    let reordered = reordered.filter(|(flow, _)| reordering(flow) > IN_ORDER);
    let reordered = flows::worst(reordered.map(|(flow, _)| flow).collect(), reordering);
    let mut evidence = vec![told.evidence(), words::counter(counters::TCP_EXT, name, reported)];
    evidence.extend(counters::beside(seen, &BESIDE));
    evidence.extend(flows::evidence(seen, &reordered, |flow| {
        format!("reordering over {} segments", reordering(flow))
    }));
    let wasted = if is_more { needless } else { reported };
    Ok(vec![Finding {
        severity: if is_more {
            counters::severity(needless, Severity::Warning)
        } else {
            Severity::Info
        },
        confidence: words::sure(wasted),
        title: format!("{} had arrived: {}", share_of(wasted.by, again.by), words::grown(wasted)),
        why: if is_more { LATE } else { PROBED }.to_owned(),
        evidence,
        ..finding()
    }])
}

/// Shared by all ways to see it.
fn finding() -> Finding {
    Finding {
        scope: Scope::Netns,
        not: "not that nothing is lost: the other repeats were needed".to_owned(),
        fixes: vec![words::advise(
            "look for what lets packets overtake each other: balance-rr bonds, routes that spread packets, \
             radio links",
            "",
        )],
        ..Finding::default()
    }
}

fn share_of(part: u64, whole: u64) -> String {
    let share = (part.saturating_mul(100) / whole.max(1)).min(100);
    format!("{share} % of what was retransmitted")
}

const LATE: &str = "packets came late or out of order and were taken for lost; each time the window was made smaller \
                    for nothing, at least for a while.";
const PROBED: &str = "as many were tail loss probes, or may have been: such a repeat is made on suspicion and makes \
                      no window smaller. Timers ran out before ACKs came that were only late.";

/// What D-SACK told the sockets themselves, between the looks or ever.
fn of_sockets(seen: &Seen<'_>) -> Option<Finding> {
    let wasted = |flow: &Flow<'_>| {
        let now_or_ever = |of: &dyn Fn(&Info) -> Option<u64>| match seen.before {
            Some(_) => flow.grew(of),
            None => of(flow.info()?),
        };
        let again = now_or_ever(&|info| info.total_retrans.map(u64::from))?;
        let needless = now_or_ever(&|info| info.dsack_dups.map(u64::from))?;
        let is_much = again >= LEAST_OF_ONE && counters::is_share(needless, again, 30);
        is_much.then_some((needless, again))
    };
    let known = flows::known(seen).ok()?.into_iter().map(|(flow, _)| flow);
    let score = |flow: &Flow<'_>| wasted(flow).unwrap_or_default().0;
    let all = flows::worst(known.filter(|flow| wasted(flow).is_some()).collect(), score);
    let (needless, again) = wasted(all.first()?)?;
    Some(Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        title: format!(
            "{} by a connection had arrived: {needless} of {again}",
            share_of(needless, again)
        ),
        why: format!("its peer reported them as duplicates (D-SACK): {LATE}"),
        not: "not whether they were tail loss probes, which make no window smaller".to_owned(),
        evidence: flows::evidence(seen, &all, |flow| {
            let (needless, again) = wasted(flow).unwrap_or_default();
            format!("dsack_dups {needless} of {again} retrans")
        }),
        ..finding()
    })
}

fn reordering(flow: &Flow<'_>) -> u32 {
    flow.info().and_then(|info| info.reordering).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot, Source};

    fn repeating(host: Snapshot, again: i64, needless: i64) -> Snapshot {
        let host = counted(host, "Tcp", "RetransSegs", [100, 100 + again]);
        counted(host, "TcpExt", "TCPDSACKRecv", [100, 100 + needless])
    }

    #[test]
    fn repeats_that_had_arrived_with_the_sockets_that_saw_it() {
        let info = Info { reordering: Some(40), ..Info::default() };
        let at = || vec![socket(0, &info, Memory::default())];
        let host = repeating(connected(&[], at(), at()), 400, 300);
        insta::assert_snapshot!(shown(&CHECK, &counted(host, "TcpExt", "TCPSACKReorder", [0, 20])));
    }

    #[test]
    fn thirty_of_a_hundred_is_the_border() {
        let number = |again, needless| {
            judged(&CHECK, &repeating(host(&[]), again, needless)).expect("seen").len()
        };
        assert_eq!([number(100, 30), number(100, 29), number(99, 99)], [1, 0, 0]);
    }

    #[test]
    fn segments_count_where_the_kernel_counts_them() {
        let host = counted(repeating(host(&[]), 100, 10), "TcpExt", "TCPDSACKRecvSegs", [0, 50]);
        assert!(judged(&CHECK, &host).expect("seen")[0].title.starts_with("50 %"));
    }

    #[test]
    fn probes_are_repeats_on_suspicion() {
        let severity = |probes| {
            let host =
                counted(repeating(host(&[]), 100, 60), "TcpExt", "TCPLossProbes", [0, probes]);
            judged(&CHECK, &host).expect("seen")[0].severity
        };
        assert_eq!([severity(30), severity(31)], [Severity::Warning, Severity::Info]);
    }

    #[test]
    fn counters_that_a_text_lacks_keep_nothing_back() {
        let mut host = repeating(host(&[]), 100, 90);
        for look in &mut host.looks {
            look.counters_cut = true;
        }
        let found = judged(&CHECK, &host).expect("seen");
        assert!(found[0].title.starts_with("90 % "), "{}", found[0].title);
        assert!(found[0].evidence[0].source.contains("with SYNs"));
        // With SYNs taken out 29 of 100 may be 30 %.
        let mut few = repeating(super::super::sample::host(&[]), 100, 29);
        for look in &mut few.looks {
            look.counters_cut = true;
        }
        assert_eq!(missing(&CHECK, &few).source, Source::Counters);
    }

    #[test]
    fn what_peers_reported_to_sockets_is_told_without_counters() {
        let number = |needless, again| {
            let info =
                Info { dsack_dups: Some(needless), total_retrans: Some(again), ..Info::default() };
            let host = once(connected(&[], Vec::new(), vec![socket(0, &info, Memory::default())]));
            judged(&CHECK, &host).map_or(0, |found| found.len())
        };
        assert_eq!([number(240, 240), number(6, 20), number(5, 20), number(19, 19)], [1, 1, 0, 0]);
    }

    #[test]
    fn repeats_of_syns_are_left_out() {
        let number = |syns: i64| {
            let host = counted(repeating(host(&[]), 300, 50), "TcpExt", "TCPSynRetrans", [0, syns]);
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(0), number(200), number(201)], [0, 1, 0]);
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
