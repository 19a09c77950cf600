//! Connections that find the accept queue full are reset, not asked to try again.
//!
//! # What it says
//! With `tcp_abort_on_overflow=1` a client whose handshake completes while the accept queue is full gets a reset. Without it the
//! kernel drops the last ACK, and the client's data comes again when there may be room: a burst passes unharmed. A SYN that
//! comes while the queue is full is dropped either way since Linux 4.10.
//!
//! # How we know
//! `net.ipv4.tcp_abort_on_overflow` is 1. If `ListenOverflows` and `EmbryonicRsts` grew too, clients were reset; the second
//! counts resets that half-open connections got from their peers, too.
//!
//! # What it is not
//! Not wrong everywhere: where clients can go to another server at once, a reset is quicker than a timeout.
//!
//! # What to do
//! Set it to 0 unless that is the case, and look at why the queue is full (`ACCEPT_QUEUE`).
//!
//! # Sources
//! Linux `tcp_check_req` (v6.12, `net/ipv4/tcp_minisocks.c`), `tcp_conn_request` (since 4.10); tcp(7); Documentation/networking/ip-sysctl.rst.

use super::{Check, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "ABORT_ON_OVERFLOW",
    file: include_str!("abort_on_overflow.rs"),
    group: Group::Connecting,
    judge,
};

const KEY: &str = "net.ipv4.tcp_abort_on_overflow";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    if seen.number(KEY)?.is_none_or(|value| value == 0) {
        return Ok(Vec::new());
    }
    let both = ["ListenOverflows", "EmbryonicRsts"];
    let grown = counters::grown(seen, &both).unwrap_or_default();
    let resets = grown.iter().map(|(_, growth)| *growth).min_by_key(|growth| growth.by);
    let now = resets.filter(|resets| grown.len() == both.len() && !resets.since_start);
    let mut evidence = vec![words::setting(KEY, &1)];
    evidence.extend(counters::evidence(&grown));
    Ok(vec![Finding {
        severity: if now.is_some() { Severity::Error } else { Severity::Warning },
        confidence: if now.is_some() { Confidence::Medium } else { Confidence::High },
        scope: Scope::Netns,
        title: match now {
            Some(growth) => format!(
                "clients are reset because an accept queue is full: at most {}",
                words::grown(growth)
            ),
            None => "clients would be reset, not delayed, when an accept queue is full".to_owned(),
        },
        why: "without this setting a client tries again and gets in when the burst is over."
            .to_owned(),
        not: "not wrong where clients can go to another server at once".to_owned(),
        evidence,
        fixes: vec![words::set(
            seen,
            KEY,
            &0,
            "let clients try again",
            words::AT_ONCE,
            "a client of a server that hangs waits longer until it knows",
        )],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Source;

    #[test]
    fn resets_that_happen_are_an_error() {
        let bad = counted(host(&[(KEY, "1")]), "TcpExt", "ListenOverflows", [3, 9]);
        let dropped = counted(bad.clone(), "TcpExt", "EmbryonicRsts", [2, 2]);
        assert_eq!(judged(&CHECK, &dropped).expect("seen")[0].severity, Severity::Warning);
        let bad = counted(bad, "TcpExt", "EmbryonicRsts", [2, 6]);
        insta::assert_snapshot!(shown(&CHECK, &bad));
    }

    #[test]
    fn the_setting_alone_is_a_warning_and_the_default_is_well() {
        let quiet = counted(host(&[(KEY, "1")]), "TcpExt", "ListenOverflows", [9, 9]);
        assert_eq!(judged(&CHECK, &quiet).expect("seen")[0].severity, Severity::Warning);
        let well = counted(host(&[(KEY, "0")]), "TcpExt", "ListenOverflows", [3, 9]);
        assert_eq!(judged(&CHECK, &well), Ok(Vec::new()));
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
