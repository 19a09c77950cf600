//! Much of what was sent again had arrived: packets were late or out of order, not lost.
//!
//! # What it says
//! A sender takes a packet for lost when later ones are acknowledged first or no answer comes in time. If it was
//! only overtaken or delayed, the repeat is wasted and the congestion window was made smaller for nothing, at
//! least for a while.
//!
//! # How we know
//! Receivers reported at least 30 % of the repeats of data as seen before (`TCPDSACKRecvSegs`, before Linux 5.10
//! `TCPDSACKRecv`), of at least a hundred; as many reports as there were tail loss probes (`TCPLossProbes`) are left out,
//! for those are repeats made on suspicion. Undone reductions and timeouts, and sockets that saw reordering, are
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
use crate::host::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::host::flow::Flow;
use crate::host::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "SPURIOUS_RETRANSMITS",
    file: include_str!("spurious_retransmits.rs"),
    group: Group::Losses,
    judge,
};

const LEAST: u64 = 100;
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
    let ext = |name| counters::grew(seen, counters::TCP_EXT, name);
    let Some(again) = counters::data_again(seen)? else { return Ok(Vec::new()) };
    let segments = ext("TCPDSACKRecvSegs")?.map(|growth| ("TCPDSACKRecvSegs", growth));
    let reports = ext("TCPDSACKRecv")?.map(|growth| ("TCPDSACKRecv", growth));
    let Some((name, needless)) = segments.or(reports) else { return Ok(Vec::new()) };
    let probes = counters::by(seen, counters::TCP_EXT, "TCPLossProbes")?;
    let reported = words::counter(counters::TCP_EXT, name, needless);
    let needless = Growth { by: needless.by.saturating_sub(probes), ..needless };
    if again.by < LEAST || !counters::is_share(needless.by, again.by, 30) {
        return Ok(Vec::new());
    }
    let reordered = flows::known(seen).unwrap_or_default().into_iter();
    let reordered = reordered.filter(|(flow, _)| reordering(flow) > IN_ORDER);
    let reordered = flows::worst(reordered.map(|(flow, _)| flow).collect(), reordering);
    let all = Evidence::new("/proc/net/snmp Tcp.RetransSegs without SYNs", words::grown(again));
    let mut evidence = vec![all, reported];
    evidence.extend(counters::evidence(&counters::grown(seen, &BESIDE)?));
    evidence.extend(flows::evidence(seen, &reordered, |flow| {
        format!("reordering over {} segments", reordering(flow))
    }));
    let share = (needless.by.saturating_mul(100) / again.by).min(100);
    Ok(vec![Finding {
        severity: counters::severity(needless, Severity::Warning),
        confidence: words::sure(needless),
        scope: Scope::Netns,
        title: format!("{share} % of what was sent again had arrived: {}", words::grown(needless)),
        why: "packets came late or out of order and were taken for lost; each time the window was made smaller \
              for nothing, at least for a while."
            .to_owned(),
        not: "not that nothing is lost: the other repeats were needed".to_owned(),
        evidence,
        fixes: vec![words::advise(
            "look for what lets packets overtake each other: balance-rr bonds, routes that spread packets, \
             radio links",
            "",
        )],
        ..Finding::default()
    }])
}

fn reordering(flow: &Flow<'_>) -> u32 {
    flow.info().and_then(|info| info.reordering).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::host::snapshot::{Info, Memory, Snapshot, Source};

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
        let number = |probes| {
            let host =
                counted(repeating(host(&[]), 100, 60), "TcpExt", "TCPLossProbes", [0, probes]);
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(30), number(31)], [1, 0]);
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
