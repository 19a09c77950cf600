//! SYN cookies are always on, or off.
//!
//! # What it says
//! With `tcp_syncookies=2` every connection is made from a cookie, queue full or not: those of clients without timestamps have no
//! window scaling and no SACK. With 0 a full queue drops SYNs, and already before that the last quarter of
//! `tcp_max_syn_backlog` is kept for peers that were seen before.
//!
//! # How we know
//! The value of `net.ipv4.tcp_syncookies`; with 0 also whether `tcp_max_syn_backlog` is below what a listener may hold.
//!
//! # What it is not
//! Not that a SYN was dropped or a connection is slow: `SYN_QUEUE` and `SYN_COOKIES` tell that.
//!
//! # What to do
//! Set it to 1, the kernel's default: cookies only while the queue is full. 2 is meant for tests.
//!
//! # Sources
//! Linux `tcp_conn_request`, `tcp_syn_flood_action` (v6.12, `net/ipv4/tcp_input.c`); Documentation/networking/ip-sysctl.rst.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Listener;

pub(super) const CHECK: Check = Check {
    code: "SYN_COOKIES_SETTING",
    file: include_str!("syn_cookies_setting.rs"),
    group: Group::Connecting,
    judge,
};

const KEY: &str = "net.ipv4.tcp_syncookies";
const STAMPS: &str = "net.ipv4.tcp_timestamps";
const BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(value @ (0 | 2)) = seen.number(KEY)? else { return Ok(Vec::new()) };
    let listeners = seen.listeners().unwrap_or_default();
    let backlog = seen.number(BACKLOG).ok().flatten();
    let largest = listeners.iter().max_by_key(|listener| listener.accept_max);
    // Three quarters of it are for peers that were not seen before.
    let tight = backlog
        .zip(largest)
        .filter(|(most, listener)| most * 3 / 4 < i64::from(listener.accept_max));
    let mut evidence = vec![words::setting(KEY, &value)];
    let stamps = seen.number(STAMPS).ok().flatten();
    if value == 0 {
        evidence.extend(backlog.map(|most| words::setting(BACKLOG, &most)));
        evidence.extend(tight.map(|(_, listener)| queue(listener)));
    }
    if value == 2 {
        let made = seen.growth("TcpExt", "SyncookiesRecv").ok().flatten();
        evidence.extend(made.map(|made| words::counter("TcpExt", "SyncookiesRecv", made)));
        evidence.extend(stamps.map(|on| words::setting(STAMPS, &on)));
    }
    let (title, why) = if value == 2 {
        (
            "every connection is accepted by a SYN cookie".to_owned(),
            format!(
                "{} window scaling and SACK: at most 64 KiB come in a round trip.",
                if stamps == Some(0) {
                    "timestamps are off, so all connections are without"
                } else {
                    "connections of clients without timestamps are without"
                }
            ),
        )
    } else {
        let earlier = tight.map_or_else(String::new, |(most, _)| {
            format!(" New peers are dropped already when {} SYNs wait: tcp_max_syn_backlog counts while cookies are off.", most * 3 / 4)
        });
        (
            "SYN cookies are off: SYNs are dropped when their queue is full".to_owned(),
            format!("a flood of SYNs, or a crowd, keeps all others out.{earlier}"),
        )
    };
    Ok(vec![Finding {
        severity: if value == 2 || tight.is_some() { Severity::Warning } else { Severity::Info },
        confidence: Confidence::High,
        scope: Scope::Netns,
        title,
        why,
        not: "not that a SYN was dropped, or that a connection here is slow for it".to_owned(),
        evidence,
        fixes: vec![words::set(
            seen,
            KEY,
            &1,
            "answer with cookies only while a queue is full",
            words::AT_ONCE,
            "",
        )],
        ..Finding::default()
    }])
}

fn queue(listener: &Listener) -> Evidence {
    Evidence::new(
        format!("ss -ltn 'sport = :{}'", listener.local.port()),
        format!("Send-Q {}", listener.accept_max),
    )
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, listener, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn set(value: &str, backlog: &str) -> Snapshot {
        each_look(host(&[(KEY, value), (BACKLOG, backlog)]), |_, look| {
            look.listeners = Some(vec![listener(0, 384, 0)]);
        })
    }

    #[test]
    fn cookies_for_all_cost_options() {
        insta::assert_snapshot!(shown(&CHECK, &set("2", "128")));
    }

    #[test]
    fn without_cookies_a_short_backlog_drops_early() {
        insta::assert_snapshot!(shown(&CHECK, &set("0", "511")));
        assert_eq!(judged(&CHECK, &set("0", "512")).expect("seen")[0].severity, Severity::Info);
    }

    #[test]
    fn the_default_is_well_and_without_settings_nothing_is_said() {
        assert_eq!(judged(&CHECK, &set("1", "8")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &host(&[])), Ok(Vec::new()));
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
