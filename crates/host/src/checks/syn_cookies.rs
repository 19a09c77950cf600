//! Connections were opened by SYN cookies: they may lack window scaling, SACK and their full segment size.
//!
//! # What it says
//! A SYN cookie puts what the kernel must remember of a SYN into the sequence number of its answer. What has
//! no room there is lost: a client without timestamps gets no window scaling (64 KiB in a round trip
//! at most), no SACK and no ECN; the segment size is rounded down to one of four; Fast Open is not tried.
//!
//! # How we know
//! `SyncookiesRecv` grew by more than a hundredth of the connections that were accepted (`PassiveOpens`). With
//! `tcp_syncookies=2` all of them are: `SYN_COOKIES_SETTING` says so. Where a text lacks `PassiveOpens`, half of
//! `InSegs` stands for it: a connection is not accepted by fewer than two segments, so the share is at least that.
//!
//! # What it is not
//! Not an attack by itself: where `SyncookiesFailed` stays far below it, real clients came back with their
//! cookies, and the queue is too small for them. Which connections they are is not recorded.
//!
//! # What to do
//! Lengthen the listeners' backlogs and `net.core.somaxconn`; keep `tcp_timestamps` on, which saves the
//! options of clients that send them.
//!
//! # Sources
//! Linux `cookie_timestamp_decode`, `msstab` (v6.12, `net/ipv4/syncookies.c`), `tcp_conn_request`. A hundredth: ours,
//! not measured.

use super::{Check, words};
use crate::finding::{Confidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "SYN_COOKIES",
    file: include_str!("syn_cookies.rs"),
    group: Group::Connecting,
    judge,
};

const OPENED: &str = "PassiveOpens";
const KEY: &str = "net.ipv4.tcp_syncookies";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let received = seen.growth("TcpExt", "SyncookiesRecv")?.filter(|growth| growth.by > 0);
    let Some(received) = received else { return Ok(Vec::new()) };
    let (opened, is_bound) = match opened(seen) {
        Ok(Some(opened)) => (opened, false),
        Ok(None) => return Ok(Vec::new()),
        Err(missing) => (most_opened(seen).ok_or(missing)?, true),
    };
    let always = seen.number(KEY).ok().flatten() == Some(2);
    if always {
        return Ok(Vec::new());
    }
    if !words::above_percent(received.by, 1, opened.by) {
        return if is_bound {
            Err(Missing::part(Source::Counters, OPENED))
        } else {
            Ok(Vec::new())
        };
    }
    // It is 0 or was not seen where a text has none.
    let failed = seen.growth("TcpExt", "SyncookiesFailed");
    let is_flood_unseen = failed.is_err();
    let failed = failed.ok().flatten();
    let is_flood = failed.is_some_and(|failed| failed.by > received.by);
    let stamps = seen.number("net.ipv4.tcp_timestamps").ok().flatten();
    let lost = if stamps == Some(0) {
        "timestamps are off, so none of them has window scaling, SACK or ECN: at most 64 KiB in a round trip."
    } else {
        "those of clients without timestamps have no window scaling, SACK or ECN: at most 64 KiB in a round trip."
    };
    let mut evidence = vec![
        words::counter("TcpExt", "SyncookiesRecv", received),
        words::counter("Tcp", if is_bound { "InSegs, by two" } else { OPENED }, opened),
    ];
    evidence.extend(failed.map(|failed| words::counter("TcpExt", "SyncookiesFailed", failed)));
    evidence.extend(stamps.map(|on| words::setting("net.ipv4.tcp_timestamps", &on)));
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: if is_flood || is_flood_unseen || is_bound {
            Confidence::Low
        } else {
            words::sure(received)
        },
        scope: Scope::Netns,
        title: format!(
            "{}{} of the accepted connections were opened by SYN cookies",
            if is_bound { "at least " } else { "" },
            words::share(received.by.min(opened.by), opened.by)
        ),
        why: format!("the queue for SYNs was full when they came; {lost}"),
        not: if is_flood {
            "more cookies were wrong than right: it may be a flood, which cookies are there for"
        } else if is_flood_unseen {
            "not that it was no flood: SyncookiesFailed is not in the text, so it is 0 or was left out"
        } else {
            "not which connections they are: the kernel does not mark them"
        }
        .to_owned(),
        evidence,
        fixes: fixes(seen, received, stamps),
        ..Finding::default()
    }])
}

fn opened(seen: &Seen<'_>) -> Asked<Option<Growth>> {
    seen.growth("Tcp", OPENED)
}

/// No more were accepted than half of the segments that came: a SYN and an ACK each.
fn most_opened(seen: &Seen<'_>) -> Option<Growth> {
    let came = seen.growth("Tcp", "InSegs").ok().flatten()?;
    Some(Growth { by: came.by / 2, ..came })
}

fn fixes(seen: &Seen<'_>, received: Growth, stamps: Option<i64>) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if stamps == Some(0) {
        fixes.push(words::set(
            seen,
            "net.ipv4.tcp_timestamps",
            &1,
            "switch timestamps on: they carry the options through a cookie",
            "for new connections",
            "12 bytes in every segment",
        ));
    }
    fixes.push(words::advise(
        format!(
            "lengthen the backlog of the busiest listeners (listen(fd, N)) and net.core.somaxconn: {} found no room",
            words::count(received.by, "connection")
        ),
        "more memory while a flood of SYNs lasts",
    ));
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, cut, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn cookies(received: i64, opened: i64, failed: i64) -> Snapshot {
        let host = host(&[("net.ipv4.tcp_timestamps", "0"), ("net.ipv4.tcp_syncookies", "1")]);
        let host = counted(host, "TcpExt", "SyncookiesRecv", [5, 5 + received]);
        let host = counted(host, "TcpExt", "SyncookiesFailed", [0, failed]);
        counted(host, "Tcp", "PassiveOpens", [100, 100 + opened])
    }

    #[test]
    fn connections_by_cookies_without_timestamps_have_no_options() {
        insta::assert_snapshot!(shown(&CHECK, &cookies(30, 1000, 2)));
    }

    #[test]
    fn a_hundredth_is_not_enough_and_a_flood_makes_it_unsure() {
        assert_eq!(judged(&CHECK, &cookies(10, 1000, 0)), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &cookies(11, 1000, 0)).expect("seen")[0].confidence,
            Confidence::High
        );
        assert_eq!(
            judged(&CHECK, &cookies(11, 1000, 12)).expect("seen")[0].confidence,
            Confidence::Low
        );
    }

    #[test]
    fn cookies_for_all_are_a_setting_and_not_a_full_queue() {
        let mut always = cookies(30, 30, 0);
        always.settings.as_mut().expect("settings").values.insert(KEY.to_owned(), "2".to_owned());
        assert_eq!(judged(&CHECK, &always), Ok(Vec::new()));
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }

    #[test]
    fn a_text_without_failures_or_openings_is_judged_with_a_bound() {
        let of = |group: &str, name: &str, by| {
            let host = counted(host(&[]), "TcpExt", "SyncookiesRecv", [5, 105]);
            cut(counted(host, group, name, [0, by]))
        };
        let found = judged(&CHECK, &of("Tcp", "PassiveOpens", 1000)).expect("judged");
        assert!(found[0].not.contains("SyncookiesFailed is not in the text"), "{}", found[0].not);
        assert_eq!(found[0].confidence, Confidence::Low);
        let found = judged(&CHECK, &of("Tcp", "InSegs", 2000)).expect("judged");
        assert!(found[0].title.starts_with("at least 10"), "{}", found[0].title);
        let few = missing(&CHECK, &of("Tcp", "InSegs", 20_000));
        assert_eq!(few.of.as_deref(), Some("PassiveOpens"), "a hundredth at least");
    }
}
