//! Data that arrived was thrown away at the socket, and has to be retransmitted.
//!
//! # What it says
//! Packets came through the network and the host, and there was no place for them at the socket: the peer
//! must send them again, after a timeout if nothing behind them arrives.
//!
//! # How we know
//! `TCPRcvQDrop` (data in order, no memory), `TCPOFODrop` (data beyond a hole, no memory) or
//! `TCPZeroWindowDrop` (data beyond the window) grew. Sockets whose own count of dropped packets grew are
//! named; that count has other causes, too.
//!
//! # What it is not
//! Not a loss in the network. A few drops of `TCPZeroWindowDrop` are probes of peers whose window is closed.
//!
//! # What to do
//! See what the memory went to: a program that does not read (`RECEIVE_QUEUE_FULL`), memory for TCP
//! (`TCP_MEMORY`), a tiny `SO_RCVBUF`, or a control group's limit.
//!
//! # Sources
//! Linux `tcp_data_queue`, `tcp_data_queue_ofo`, `tcp_send_rcvq` (v6.12; the counters are there since 4.19 and
//! 5.0). One a second: ours, not measured.

use super::{Check, counters, flows, words};
use crate::finding::{Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "RECEIVE_QUEUE_DROPS",
    file: include_str!("receive_queue_drops.rs"),
    group: Group::Receiving,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let grown = counters::grown(seen, &["TCPRcvQDrop", "TCPOFODrop", "TCPZeroWindowDrop"])?;
    let Some(most) = counters::largest(&grown) else { return Ok(Vec::new()) };
    let bad = if most.per_second() > 1.0 { Severity::Error } else { Severity::Warning };
    let mut evidence = counters::evidence(&grown);
    evidence.extend(flows::evidence(seen, &flows::dropping(seen), |flow| {
        format!("{} packets dropped between the looks, for any reason", flows::dropped(flow))
    }));
    Ok(vec![Finding {
        severity: counters::severity(most, bad),
        confidence: words::sure(most),
        scope: Scope::Netns,
        title: format!("data that had arrived was dropped at sockets: {}", words::grown(most)),
        why: "it had come all the way, and its sender has to send it again; where nothing follows it, only \
              after a timeout of at least 200 ms."
            .to_owned(),
        not: "not a loss in the network; some of TCPZeroWindowDrop are probes of a closed window".to_owned(),
        evidence,
        fixes: vec![words::advise(
            "see what the memory went to: programs that do not read, tcp_mem, small SO_RCVBUF, a control \
             group's limit",
            "",
        )],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{Info, Memory, Source};

    #[test]
    fn drops_are_told_with_the_sockets_that_dropped() {
        let at = |drops| vec![socket(0, &Info::default(), Memory { drops, ..Memory::default() })];
        let host = counted(connected(&[], at(3), at(24)), "TcpExt", "TCPRcvQDrop", [5, 26]);
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn one_a_second_is_the_border_of_an_error() {
        let severity = |drops| {
            let host = counted(host(&[]), "TcpExt", "TCPOFODrop", [0, drops]);
            judged(&CHECK, &host).expect("seen").first().map(|found| found.severity)
        };
        let expected = [None, Some(Severity::Warning), Some(Severity::Error)];
        assert_eq!([severity(0), severity(10), severity(11)], expected);
    }

    #[test]
    fn drops_at_some_time_since_the_start_are_no_more_than_worth_knowing() {
        let host = once(counted(host(&[]), "TcpExt", "TCPOFODrop", [0, 500]));
        let found = judged(&CHECK, &host).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
        assert_eq!(missing(&CHECK, &super::super::sample::host(&[])).source, Source::Counters);
    }
}
