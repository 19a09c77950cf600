//! Routers mark much of the traffic as congested.
//!
//! # What it says
//! Where both ends agreed on ECN a router marks packets instead of dropping them when its queue grows. Many marks
//! mean a queue that stands on the path: senders slow down without any loss.
//!
//! # How we know
//! More than 5 % of what this host received with ECN had a mark (`InCEPkts`), or more than 5 % of what it sent was
//! reported as marked (`TCPDeliveredCE`), of at least a thousand packets.
//!
//! # What it is not
//! No fault of ECN: without it these would be losses. In a data centre with DCTCP many marks are as intended.
//!
//! # What to do
//! Find the queue. Do not switch ECN off for it.
//!
//! # Sources
//! RFC 3168; RFC 8257 (DCTCP); Linux `ip_rcv_core` (counts by codepoint), `tcp_count_delivered` (v6.12). 5 % of a
//! thousand: ours, not measured.

use super::{Check, counters, words};
use crate::host::finding::{Finding, Group, Scope, Severity};
use crate::host::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check =
    Check { code: "ECN_MARKS", file: include_str!("ecn_marks.rs"), group: Group::Losses, judge };

const LEAST: u64 = 1000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let of = |name| counters::by(seen, "IpExt", name);
    let capable =
        of("InECT0Pkts")?.saturating_add(of("InECT1Pkts")?).saturating_add(of("InCEPkts")?);
    let came = counters::grew(seen, "IpExt", "InCEPkts")?.filter(|marks| is_much(*marks, capable));
    let delivered = counters::by(seen, counters::TCP_EXT, "TCPDelivered")?;
    let sent = counters::grew(seen, counters::TCP_EXT, "TCPDeliveredCE")?;
    let sent = sent.filter(|marks| is_much(*marks, delivered));
    let mut found = Vec::new();
    let mut tell = |way: &str, marks: Growth, all: u64, evidence| {
        let share = marks.by.saturating_mul(100) / all.max(1);
        found.push(Finding {
            severity: Severity::Info,
            confidence: words::sure(marks),
            scope: Scope::Netns,
            title: format!("{share} % of what this host {way} was marked as congested: {}", words::grown(marks)),
            why: "a queue stands on the path, and its router marks instead of dropping; senders slow down for \
                  each marked round trip."
                .to_owned(),
            not: "no fault of ECN: without it these would be losses".to_owned(),
            evidence,
            fixes: vec![words::advise("find the queue on the path; leave ECN on", "")],
            ..Finding::default()
        });
    };
    if let Some(marks) = came {
        tell("received with ECN", marks, capable, vec![words::counter("IpExt", "InCEPkts", marks)]);
    }
    if let Some(marks) = sent {
        let evidence = vec![words::counter(counters::TCP_EXT, "TCPDeliveredCE", marks)];
        tell("sent", marks, delivered, evidence);
    }
    Ok(found)
}

const fn is_much(marks: Growth, all: u64) -> bool {
    all >= LEAST && marks.by.saturating_mul(20) > all
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::host::snapshot::{Snapshot, Source};

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
}
