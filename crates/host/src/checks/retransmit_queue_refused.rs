//! Send buffers are so small that repairs are refused.
//!
//! # What it says
//! To repair a loss the kernel may have to split a packet in the send queue. Since the fix for "SACK panic" it refuses
//! that when the queue already takes more than twice the send buffer: the repair waits for a timeout.
//!
//! # How we know
//! `TCPWqueueTooBig` grew.
//!
//! # What it is not
//! Not a loss by itself, but its repair is late.
//!
//! # What to do
//! Find programs that set a small `SO_SNDBUF` and let them leave it alone.
//!
//! # Sources
//! CVE-2019-11478; Linux `tcp_fragment` (v6.12): twice the buffer and 128 KiB.

use super::{Check, counters, words};
use crate::finding::{Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "RETRANSMIT_QUEUE_REFUSED",
    file: include_str!("retransmit_queue_refused.rs"),
    group: Group::Sending,
    judge,
};

const NAME: &str = "TCPWqueueTooBig";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(refused) = counters::grew(seen, counters::TCP_EXT, NAME)? else {
        return Ok(Vec::new());
    };
    Ok(vec![Finding {
        severity: counters::severity(refused, Severity::Warning),
        confidence: words::sure(refused),
        scope: Scope::Netns,
        title: format!("repairs were refused for small send buffers: {}", words::grown(refused)),
        why: "a packet in the send queue could not be split because the queue takes more than twice its buffer; \
              such a repair waits for a timeout."
            .to_owned(),
        not: "not which program it was".to_owned(),
        evidence: vec![words::counter(counters::TCP_EXT, NAME, refused)],
        fixes: vec![words::advise("find programs that set a small SO_SNDBUF: `ss -tm`, tb below 100,000", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Source;

    #[test]
    fn a_repair_that_was_refused() {
        insta::assert_snapshot!(shown(&CHECK, &counted(host(&[]), "TcpExt", NAME, [0, 3])));
    }

    #[test]
    fn none_between_the_looks_is_well_and_no_counters_are_missing() {
        assert_eq!(judged(&CHECK, &counted(host(&[]), "TcpExt", NAME, [3, 3])), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
