//! TCP Fast Open fails.
//!
//! # What it says
//! With Fast Open data travels in the SYN. Some firewalls drop such SYNs or their option; then the connection starts only after a
//! timeout of a second. Until Linux 5.13, or with `tcp_fastopen_blackhole_timeout_sec`, the kernel stops trying for a while (an hour by
//! default there) after some of these. On a server a full queue for such
//! SYNs turns them into ordinary ones.
//!
//! # How we know
//! `TCPFastOpenActiveFail` is more than a tenth of all tries, `TCPFastOpenBlackhole` grew, or `TCPFastOpenListenOverflow` did.
//!
//! # What it is not
//! Not which path is at fault. `tcp_fastopen` alone does nothing: a program has to ask for it.
//!
//! # What to do
//! Client: switch it off where the path does not carry it. Server: a larger queue in `setsockopt(TCP_FASTOPEN)`.
//!
//! # Sources
//! RFC 7413; Linux `tcp_fastopen_active_disable`, `tcp_rcv_fastopen_synack`, `tcp_fastopen_queue_check` (v6.12; v5.14 set that time
//! to 0). A tenth of at least
//! ten tries: ours, not measured.

use super::{Check, counters, words};
use crate::finding::{Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check = Check {
    code: "FAST_OPEN",
    file: include_str!("fast_open.rs"),
    group: Group::Connecting,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    const FAILS: &str = "TCPFastOpenActiveFail";
    const HOLE: &str = "TCPFastOpenBlackhole";
    const FULL: &str = "TCPFastOpenListenOverflow";
    let grown = counters::grown(seen, &[FAILS, HOLE, FULL])?;
    let of = |name| grown.iter().find(|(each, _)| *each == name).map(|(_, growth)| *growth);
    let (fails, hole, full) = (of(FAILS), of(HOLE), of(FULL));
    // Without those that worked the failures are no share.
    let asked = counters::grew(seen, counters::TCP_EXT, "TCPFastOpenActive");
    let worked = asked.clone().ok().flatten();
    let mut found = Vec::new();
    let tries = |fails: Growth| fails.by.saturating_add(worked.map_or(0, |worked| worked.by));
    let often = fails.filter(|fails| {
        let is_often = words::above_percent(fails.by, 10, tries(*fails));
        asked.is_ok() && tries(*fails) >= 10 && is_often
    });
    if let Some(growth) = often.or(hole) {
        let mut evidence: Vec<_> =
            fails.map(|fails| words::counter("TcpExt", FAILS, fails)).into_iter().collect();
        evidence.extend(worked.map(|worked| words::counter("TcpExt", "TCPFastOpenActive", worked)));
        evidence.extend(hole.map(|hole| words::counter("TcpExt", HOLE, hole)));
        found.push(Finding {
            title: format!("Fast Open fails on the way out: {}", words::grown(growth)),
            why: "a SYN with data that a firewall drops costs a timeout of a second before the connection starts.".to_owned(),
            not: "not which path: the counters are those of all peers".to_owned(),
            evidence,
            fixes: client(seen),
            ..finding(growth)
        });
    }
    if let Some(growth) = full {
        found.push(Finding {
            title: format!("the queue for Fast Open was full: {}", words::grown(growth)),
            why: "these connections lost the round trip that Fast Open saves.".to_owned(),
            not: "not that connections were lost: they opened as ordinary ones".to_owned(),
            evidence: vec![words::counter("TcpExt", FULL, growth)],
            fixes: vec![words::advise(
                "give setsockopt(TCP_FASTOPEN) of the listener a larger number",
                "",
            )],
            ..finding(growth)
        });
    }
    Ok(found)
}

fn finding(growth: Growth) -> Finding {
    Finding {
        severity: if growth.since_start { Severity::Info } else { Severity::Warning },
        confidence: words::sure(growth),
        scope: Scope::Netns,
        ..Finding::default()
    }
}

/// Bit 0 is the client's.
fn client(seen: &Seen<'_>) -> Vec<Fix> {
    const KEY: &str = "net.ipv4.tcp_fastopen";
    let on = seen.number(KEY).ok().flatten().filter(|bits| bits & 1 != 0);
    let fix = on.map(|bits| {
        words::set(
            seen,
            KEY,
            &(bits & !1),
            "do not try it as a client",
            words::AT_ONCE,
            "peers to which it works cost a round trip more",
        )
    });
    fix.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn tried(fails: i64, worked: i64, full: i64) -> Snapshot {
        let host = counted(
            host(&[("net.ipv4.tcp_fastopen", "3")]),
            "TcpExt",
            "TCPFastOpenActiveFail",
            [1, 1 + fails],
        );
        let host = counted(host, "TcpExt", "TCPFastOpenActive", [0, worked]);
        counted(host, "TcpExt", "TCPFastOpenListenOverflow", [0, full])
    }

    #[test]
    fn failures_and_a_full_queue_are_told_apart() {
        insta::assert_snapshot!(shown(&CHECK, &tried(20, 30, 4)));
    }

    #[test]
    fn a_tenth_or_a_few_tries_are_nothing() {
        assert_eq!(judged(&CHECK, &tried(10, 90, 0)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &tried(11, 89, 0)).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &tried(9, 0, 0)), Ok(Vec::new()));
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
