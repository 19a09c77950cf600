//! Packets were dropped because a program held their socket for too long.
//!
//! # What it says
//! While a program is in a system call on a socket, what arrives for it waits in the socket's backlog. When
//! that is full the packets are dropped, and must be retransmitted.
//!
//! # How we know
//! `TCPBacklogDrop` grew. Sockets that have a backlog now, or whose count of dropped packets grew, are named.
//!
//! # What it is not
//! It has nothing to do with the backlog of `listen`, nor with `net.core.netdev_max_backlog`.
//!
//! # What to do
//! Look at the processors: too little time for the program, or all packets on one processor. Large system
//! calls hold the socket longer than small ones. The backlog may hold the socket's buffers and 64 KiB more: with
//! a larger receive buffer it takes more.
//!
//! # Sources
//! Linux `tcp_add_backlog` (v6.12): its limit is the receive buffer twice, half the send buffer, 64 KiB.

use super::{Check, counters, flows, words};
use crate::finding::{Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "SOCKET_BACKLOG_DROPS",
    file: include_str!("socket_backlog_drops.rs"),
    group: Group::Receiving,
    judge,
};

const NAME: &str = "TCPBacklogDrop";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(drops) = counters::grew(seen, counters::TCP_EXT, NAME)? else { return Ok(Vec::new()) };
    let waiting = |flow: &Flow<'_>| flow.memory().map_or(0, |memory| memory.backlog);
    let flows = seen.flows().unwrap_or_default().iter();
    let held = flows.filter(|flow| waiting(flow) > 0 || flows::dropped(flow) > 0).collect();
    let held = flows::worst(held, |flow| (flows::dropped(flow), waiting(flow)));
    let mut evidence = vec![words::counter(counters::TCP_EXT, NAME, drops)];
    evidence.extend(flows::evidence(seen, &held, |flow| {
        format!("bl{}, {} packets dropped between the looks", waiting(flow), flows::dropped(flow))
    }));
    Ok(vec![Finding {
        severity: counters::severity(drops, Severity::Error),
        confidence: words::sure(drops),
        scope: Scope::Netns,
        title: format!("packets were dropped while programs held their sockets: {}", words::grown(drops)),
        why: "they had arrived, and have to be retransmitted; the program was in a system call on the socket \
              for longer than its backlog could take what came."
            .to_owned(),
        not: "neither the backlog of listen() nor netdev_max_backlog".to_owned(),
        evidence,
        fixes: vec![words::advise(
            "look at the processors that run the program and take the packets; see that rx-gro is on",
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
    fn drops_are_told_with_the_socket_that_was_held() {
        let at = |drops| {
            vec![socket(
                0,
                &Info::default(),
                Memory { drops, backlog: 70_000, ..Memory::default() },
            )]
        };
        let host = counted(connected(&[], at(0), at(9)), "TcpExt", NAME, [0, 9]);
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn without_a_drop_between_the_looks_a_backlog_is_nothing() {
        assert_eq!(judged(&CHECK, &counted(host(&[]), "TcpExt", NAME, [9, 9])), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }

    #[test]
    fn one_look_is_never_an_error() {
        let found =
            judged(&CHECK, &once(counted(host(&[]), "TcpExt", NAME, [0, 999]))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }
}
