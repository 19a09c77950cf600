//! Connections are given up or reset by this host.
//!
//! # What it says
//! A peer that gets a reset reports an error, and what it had sent may be lost. The kernel counts why this host
//! gave a connection up: no answer for too long, a program that closed before it had read all, a close without
//! lingering.
//!
//! # How we know
//! Between the looks `TCPAbortOnTimeout` grew by more than one a second, or `TCPAbortOnClose` or `TCPAbortOnData` did.
//!
//! # What it is not
//! Resets that are wanted (`SO_LINGER` of 0, health checks that close at once) count, too. Where memory ran out
//! see `TCP_MEMORY`.
//!
//! # What to do
//! Timeouts: see which peers vanish. `TCPAbortOnClose`: the program closes sockets with data that it has not read;
//! its peers see "connection reset". `TCPAbortOnData`: it closes with a linger time of 0, or data comes after
//! it has closed.
//!
//! # Sources
//! Linux `tcp_write_err`, `__tcp_close`, `tcp_rcv_state_process` (v6.12); RFC 2525 section 2.17. One a second: ours,
//! not measured.

use super::{Check, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use tcpwhy_words::said::listed;

pub(super) const CHECK: Check = Check {
    code: "ABORTED_CONNECTIONS",
    file: include_str!("aborted_connections.rs"),
    group: Group::Closing,
    judge,
};

const CAUSES: [(&str, &str, Severity); 3] = [
    ("TCPAbortOnTimeout", "peers did not answer for too long", Severity::Warning),
    ("TCPAbortOnClose", "programs closed sockets before they had read all", Severity::Warning),
    (
        "TCPAbortOnData",
        "programs closed without lingering, or data came after a close",
        Severity::Info,
    ),
];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let grown = counters::grown(seen, &CAUSES.map(|(name, ..)| name))?;
    // Such things happen at any time: since the start of the host they tell nothing.
    let often = |name: &str| {
        grown
            .iter()
            .any(|(of, growth)| *of == name && !growth.since_start && growth.per_second() > 1.0)
    };
    let causes: Vec<_> = CAUSES.into_iter().filter(|(name, ..)| often(name)).collect();
    let Some(severity) = causes.iter().map(|(.., severity)| *severity).max() else {
        return Ok(Vec::new());
    };
    let beside = ["TCPAbortOnLinger", "TCPAbortOnMemory", "TCPAbortFailed"];
    let mut evidence = counters::evidence(&grown);
    evidence.extend(counters::beside(seen, &beside));
    let resets = counters::grew(seen, "Tcp", "OutRsts").ok().flatten();
    evidence.extend(resets.map(|resets| words::counter("Tcp", "OutRsts", resets)));
    let why: Vec<String> = causes.iter().map(|(_, why, _)| (*why).to_owned()).collect();
    Ok(vec![Finding {
        severity,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: "connections are given up or reset by this host, more than one a second".to_owned(),
        why: format!("{}; the peers see resets or silence.", listed(&why)),
        not: "not that it is wrong: health checks and programs that reset on purpose count, too"
            .to_owned(),
        evidence,
        fixes: vec![words::advise(
            "find the program: `ss -tnp`, or the tracepoint tcp:tcp_send_reset",
            "",
        )],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn aborting(name: &str, by: i64) -> Snapshot {
        counted(host(&[]), "TcpExt", name, [5, 5 + by])
    }

    #[test]
    fn programs_that_close_before_they_have_read() {
        insta::assert_snapshot!(shown(&CHECK, &aborting("TCPAbortOnClose", 30)));
    }

    #[test]
    fn one_a_second_is_the_border_and_one_look_says_nothing() {
        let severity = |name, by| {
            judged(&CHECK, &aborting(name, by)).expect("seen").first().map(|found| found.severity)
        };
        assert_eq!(severity("TCPAbortOnTimeout", 10), None);
        assert_eq!(severity("TCPAbortOnTimeout", 11), Some(Severity::Warning));
        assert_eq!(severity("TCPAbortOnData", 11), Some(Severity::Info));
        assert_eq!(judged(&CHECK, &once(aborting("TCPAbortOnTimeout", 900))), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
