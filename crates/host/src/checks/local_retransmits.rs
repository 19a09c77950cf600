//! Repeats failed on this host: the original had not left it, or the packet was refused.
//!
//! # What it says
//! TCP wanted to send a packet again and found the original still in the queueing discipline or the driver; or the
//! layers below refused the repeat. Either way the delay is on this host, before the wire.
//!
//! # How we know
//! `TCPSpuriousRtxHostQueues` or `TCPRetransFail` grew.
//!
//! # What it is not
//! Not a loss on the path. A few refusals are a route or an interface that went away.
//!
//! # What to do
//! Look at this host's send path: how much is in the queueing discipline and the ring, and whether the driver
//! reports what it has sent.
//!
//! # Sources
//! Linux `skb_still_in_host_queue`, `tcp_retransmit_skb` (v6.12). Ten: ours, not measured.

use super::{Check, counters, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "LOCAL_RETRANSMITS",
    file: include_str!("local_retransmits.rs"),
    group: Group::Queues,
    judge,
};

const LEAST: u64 = 10;
const NAMED: usize = 5;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let grown = counters::grown(seen, &["TCPSpuriousRtxHostQueues", "TCPRetransFail"])?;
    let Some(most) = counters::largest(&grown).filter(|most| most.by >= LEAST) else {
        return Ok(Vec::new());
    };
    let mut evidence = counters::evidence(&grown);
    let queues = seen.counted_qdiscs().unwrap_or_default();
    let mut full: Vec<_> = queues.iter().filter(|queue| queue.backlog > 0).collect();
    full.sort_by_key(|queue| (core::cmp::Reverse(queue.backlog), &queue.dev, queue.handle));
    evidence.extend(full.iter().take(NAMED).map(|queue| {
        Evidence::new(
            format!("tc -s qdisc show dev {}", words::device(&queue.dev)),
            format!(
                "{} {:x}: backlog {}b {}p",
                queue.kind,
                queue.handle >> 16,
                queue.backlog,
                queue.qlen
            ),
        )
    }));
    Ok(vec![Finding {
        severity: counters::severity(most, Severity::Warning),
        confidence: words::sure(most),
        scope: Scope::Netns,
        title: format!(
            "repeats found their originals still on this host, or were refused: {}",
            words::grown(most)
        ),
        why: why(&grown),
        not: "not a loss on the path; a few are a route or an interface that went away".to_owned(),
        evidence,
        fixes: vec![words::advise(
            "look at the send path: what waits in the queueing discipline and the ring",
            "",
        )],
        ..Finding::default()
    }])
}

fn why(grown: &[(&str, Growth)]) -> String {
    let each = grown.iter().map(|(name, _)| match *name {
        "TCPRetransFail" => "what TCP retransmitted was refused: the queueing discipline is full, or there is no route",
        _ => {
            "TCP's timers ran out while the packets waited here: the queue before the wire is longer than the \
             path lets expect, or the driver is stuck"
        }
    });
    each.collect::<Vec<_>>().join("; ") + "."
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Qdisc, Snapshot, Source};

    fn stuck(grown: i64) -> Snapshot {
        let mut host = counted(host(&[]), "TcpExt", "TCPSpuriousRtxHostQueues", [4, 4 + grown]);
        let queue = Qdisc {
            dev: "eth0".to_owned(),
            kind: "pfifo_fast".to_owned(),
            handle: 0x8001_0000,
            backlog: 150_000,
            qlen: 100,
            ..Qdisc::default()
        };
        host.looks[1].qdiscs = Some(vec![queue]);
        host
    }

    #[test]
    fn a_queue_that_is_longer_than_the_timers() {
        insta::assert_snapshot!(shown(&CHECK, &stuck(40)));
    }

    #[test]
    fn ten_are_the_border_and_no_counters_are_missing() {
        assert_eq!(judged(&CHECK, &stuck(9)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &stuck(10)).expect("seen").len(), 1);
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
