//! Receive queues were tidied up for lack of room: data that was acknowledged selectively was thrown away.
//!
//! # What it says
//! When a receive buffer is full of half-empty packets the kernel copies them together, which stops the
//! connection for milliseconds. Where that does not help it throws away what had arrived beyond a hole, though
//! the sender was told that it was there, or drops what comes: all of it is retransmitted.
//!
//! # How we know
//! `OfoPruned` (queues that lost data beyond a hole) or `RcvPruned` (packets refused) grew, or
//! `TCPRcvCollapsed` (packets copied together) by more than 100 a second.
//!
//! # What it is not
//! `PruneCalled` alone only says that a buffer was found full; it is shown and not judged.
//!
//! # What to do
//! Let the program read faster. Keep generic receive offload on: large packets waste less of the buffer. A
//! buffer far above what a path needs makes each tidying longer.
//!
//! # Sources
//! Linux `tcp_prune_queue`, `tcp_prune_ofo_queue`, `tcp_collapse` (v6.12). 100 a second: ours, not measured.

use super::{Check, counters, flows, words};
use crate::finding::{Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "RECEIVE_QUEUE_PRUNED",
    file: include_str!("receive_queue_pruned.rs"),
    group: Group::Receiving,
    judge,
};

const COLLAPSED: &str = "TCPRcvCollapsed";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let asked = counters::grown(seen, &["OfoPruned", "RcvPruned"]);
    let pruned = asked.clone().unwrap_or_default();
    let others = counters::grown(seen, &["PruneCalled", COLLAPSED]).unwrap_or_default();
    let often = |growth: &Growth| !growth.since_start && growth.per_second() > 100.0;
    let collapsed = others.iter().find(|(name, growth)| *name == COLLAPSED && often(growth));
    let found = match (counters::largest(&pruned), collapsed) {
        (Some(pruned), _) => Finding {
            severity: counters::severity(pruned, Severity::Error),
            confidence: words::sure(pruned),
            title: format!("full receive queues threw data away: {}", words::grown(pruned)),
            why: "the buffers were full of packets that could not be made smaller; what was thrown away has \
                  to be retransmitted, though part of it had been acknowledged."
                .to_owned(),
            ..Finding::default()
        },
        (None, Some((_, collapsed))) => Finding {
            severity: Severity::Warning,
            confidence: words::sure(*collapsed),
            title: format!("full receive queues are copied together: {}", words::grown(*collapsed)),
            why: "each time the connection stops for as long as that takes, up to milliseconds for a \
                  large buffer."
                .to_owned(),
            ..Finding::default()
        },
        (None, None) => return asked.map(|_| Vec::new()),
    };
    let mut evidence = counters::evidence(&pruned);
    evidence.extend(counters::evidence(&others));
    evidence.extend(flows::evidence(seen, &flows::dropping(seen), |flow| {
        format!("{} packets dropped between the looks, for any reason", flows::dropped(flow))
    }));
    Ok(vec![Finding {
        scope: Scope::Netns,
        not: "not that buffers are too small: a program that does not read fills any buffer"
            .to_owned(),
        evidence,
        fixes: vec![words::advise(
            "find the program that reads too slowly; keep generic receive offload (rx-gro) on",
            "",
        )],
        ..found
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn grew(name: &str, by: i64) -> Snapshot {
        counted(host(&[]), "TcpExt", name, [9, 9 + by])
    }

    #[test]
    fn data_thrown_away_is_an_error() {
        let host = counted(grew("OfoPruned", 3), "TcpExt", "PruneCalled", [100, 400]);
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn a_hundred_copies_a_second_are_the_border() {
        assert_eq!(judged(&CHECK, &grew(COLLAPSED, 1000)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &grew(COLLAPSED, 1001)).expect("seen").len(), 1);
    }

    #[test]
    fn a_full_buffer_alone_is_no_finding_and_no_counters_are_missing() {
        assert_eq!(judged(&CHECK, &grew("PruneCalled", 9000)), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
