//! Routers mark much of the traffic as congested.
//!
//! # What it says
//! Where both ends agreed on ECN a router marks packets instead of dropping them when its queue grows. Many marks
//! mean a queue on the path: senders slow down without any loss.
//!
//! # How we know
//! More than 5 % of what this host received with ECN had a mark (`InCEPkts`), or more than 5 % of what it sent was
//! acknowledged with the echo of a mark (`TCPDeliveredCE`), of at least a thousand packets. The echo of RFC 3168 is in all
//! ACKs of a round trip until the sender answers it, so fewer packets were marked than came under it. Where a text leaves a counter out, the share is a
//! bound and said so: without `InECT1Pkts` at most, and of `OutSegs` instead of `TCPDelivered` at least.
//!
//! # What it is not
//! No fault of ECN: without it these would be losses. In a data centre with DCTCP many marks are as intended.
//!
//! # What to do
//! Find the queue. Do not switch ECN off for it.
//!
//! # Sources
//! RFC 3168 section 6.1.3; RFC 8257 (DCTCP); Linux `ip_rcv_core` (counts by codepoint), `tcp_count_delivered` (v6.12). 5 % of a
//! thousand: ours, not measured.

use super::{Check, counters, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check =
    Check { code: "ECN_MARKS", file: include_str!("ecn_marks.rs"), group: Group::Losses, judge };

const LEAST: u64 = 1000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let (mut found, mut unseen) = (Vec::new(), None);
    for way in [received(seen), sent(seen)] {
        match way {
            Ok(told) => found.extend(told),
            Err(missing) => unseen = unseen.or(Some(missing)),
        }
    }
    unseen.filter(|_| found.is_empty()).map_or(Ok(found), Err)
}

/// Marks among what came with ECN. Few send `ECT(1)`, and one that is not there only makes the share smaller.
fn received(seen: &Seen<'_>) -> Asked<Option<Finding>> {
    let Some(marks) = counters::grew(seen, "IpExt", "InCEPkts")? else { return Ok(None) };
    let known = counters::by(seen, "IpExt", "InECT0Pkts")?.saturating_add(marks.by);
    let other = counters::by(seen, "IpExt", "InECT1Pkts");
    let capable = known.saturating_add(*other.as_ref().unwrap_or(&0));
    match other {
        Err(missing) if capable < LEAST => Err(missing),
        _ if !is_much(marks, capable) => Ok(None),
        other => {
            let bound = other.is_err().then_some(("at most", "InECT1Pkts"));
            let evidence = words::counter("IpExt", "InCEPkts", marks);
            Ok(Some(tell(RECEIVED, marks, capable, bound, evidence)))
        }
    }
}

/// Marks among what was delivered, or among all that was sent, which is no less.
fn sent(seen: &Seen<'_>) -> Asked<Option<Finding>> {
    let Some(marks) = counters::grew(seen, counters::TCP_EXT, "TCPDeliveredCE")? else {
        return Ok(None);
    };
    let delivered = counters::by(seen, counters::TCP_EXT, "TCPDelivered");
    let all = match &delivered {
        Ok(delivered) => *delivered,
        Err(_) => counters::by(seen, "Tcp", "OutSegs")?,
    };
    let evidence = words::counter(counters::TCP_EXT, "TCPDeliveredCE", marks);
    match delivered {
        _ if is_much(marks, all) => {
            let bound = delivered.is_err().then_some(("at least", "TCPDelivered"));
            Ok(Some(tell(SENT, marks, all, bound, evidence)))
        }
        delivered => delivered.map(|_| None),
    }
}

/// `bound` is what the share is, and the counter whose absence makes it no more than that.
fn tell(
    way: &str,
    marks: Growth,
    all: u64,
    bound: Option<(&str, &str)>,
    evidence: Evidence,
) -> Finding {
    let share = marks.by.saturating_mul(100) / all.max(1);
    let at = bound.map(|(at, _)| format!("{at} ")).unwrap_or_default();
    let not = if way == SENT {
        "no fault of ECN: without it these would be losses; nor that each was marked: all ACKs of a round trip carry the echo"
    } else {
        "no fault of ECN: without it these would be losses"
    };
    Finding {
        severity: Severity::Info,
        confidence: if bound.is_some() { Confidence::Low } else { words::sure(marks) },
        scope: Scope::Netns,
        title: format!("{at}{share} % of what this host {way}: {}", words::grown(marks)),
        why: "there is a queue on the path, and its router marks instead of dropping; senders slow down for \
              each marked round trip."
            .to_owned(),
        not: bound.map_or(not.to_owned(), |(at, name)| {
            format!("{not}; {at} that share, for {name} is not in the text")
        }),
        evidence: vec![evidence],
        fixes: vec![words::advise("find the queue on the path; leave ECN on", "")],
        ..Finding::default()
    }
}

const RECEIVED: &str = "received with ECN was marked as congested";
const SENT: &str = "sent was acknowledged with the echo of a congestion mark";

const fn is_much(marks: Growth, all: u64) -> bool {
    all >= LEAST && marks.by.saturating_mul(20) > all
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, cut, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn marked(plain: i64, marks: i64) -> Snapshot {
        let host = counted(host(&[]), "IpExt", "InECT0Pkts", [10, 10 + plain]);
        let host = counted(host, "TcpExt", "TCPDelivered", [10, 10 + plain + marks]);
        counted(host, "IpExt", "InCEPkts", [10, 10 + marks])
    }

    #[test]
    fn many_marks_tell_of_a_queue() {
        insta::assert_snapshot!(shown(&CHECK, &marked(9000, 1000)));
    }

    #[test]
    fn one_in_twenty_of_a_thousand_is_the_border() {
        let number = |plain, marks| judged(&CHECK, &marked(plain, marks)).expect("seen").len();
        assert_eq!([number(950, 50), number(949, 51), number(900, 99)], [0, 1, 0]);
    }

    #[test]
    fn what_was_sent_is_told_apart_and_no_counters_are_missing() {
        let host = counted(marked(2000, 0), "TcpExt", "TCPDeliveredCE", [0, 200]);
        assert!(judged(&CHECK, &host).expect("seen")[0].title.contains("this host sent"));
        assert_eq!(missing(&CHECK, &super::super::sample::host(&[])).source, Source::Counters);
    }

    #[test]
    fn a_counter_that_a_text_leaves_out_makes_the_share_a_bound() {
        let text = cut(marked(9000, 1000));
        let found = judged(&CHECK, &text).expect("judged");
        assert!(found[0].title.starts_with("at most 10 %"), "{}", found[0].title);
        assert!(found[0].not.contains("InECT1Pkts is not in the text"));
        assert_eq!(
            judged(&CHECK, &cut(marked(19_000, 1000))),
            Err(delivered_marks()),
            "5 % at most"
        );
        assert_eq!(missing(&CHECK, &cut(marked(800, 100))).of.as_deref(), Some("InECT1Pkts"));
    }

    fn delivered_marks() -> crate::Missing {
        crate::Missing::part(Source::Counters, "TCPDeliveredCE")
    }

    #[test]
    fn marks_of_all_that_was_sent_are_a_share_of_more_than_was_delivered() {
        let of = |sent| {
            let host = counted(host(&[]), "TcpExt", "TCPDeliveredCE", [0, 200]);
            cut(counted(host, "Tcp", "OutSegs", [0, sent]))
        };
        let found = judged(&CHECK, &of(2000)).expect("judged");
        assert!(found[0].title.starts_with("at least 10 % of what this host sent"));
        assert!(judged(&CHECK, &of(4000)).is_err(), "5 % at least may be 5 %");
    }
}
