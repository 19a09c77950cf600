//! Settings that do nothing on this kernel.
//!
//! # What it says
//! Lists of settings live longer than the kernels that they were written for. Some of their keys are gone, some are still there and nobody
//! reads them; whoever looks for the cause of a slow transfer may think that they count.
//!
//! # How we know
//! A file of sysctl.d(5) sets a key of `net.core` or `net.ipv4.tcp_*` that this kernel does not have; `tcp_low_latency` or `tcp_fack` is set
//! (no-ops since 4.14 and 4.15); `tcp_recovery` lacks its first bit on 6.17 or later, where RACK is always on; `tcp_max_syn_backlog` is set in a file while SYN cookies are on, which make it irrelevant.
//!
//! # What it is not
//! Not harmful. A key of a module that is not loaded yet, or of a newer kernel that will be booted, is missing too.
//!
//! # What to do
//! Take the lines out of the files that set them.
//!
//! # Sources
//! Linux v4.12 (`tcp_tw_recycle` is gone), v4.14 (prequeue is gone, which `tcp_low_latency` switched), v4.15 (FACK is gone), commit 1c120191dcec (6.17: no recovery
//! without RACK); v6.12
//! `net/ipv4/sysctl_net_ipv4.c`, `inet_csk_reqsk_queue_is_full`, `tcp_conn_request`; Documentation/networking/ip-sysctl.rst.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::SetIn;

pub(super) const CHECK: Check = Check {
    code: "INERT_SETTINGS",
    file: include_str!("inert_settings.rs"),
    group: Group::Hygiene,
    judge,
};

const NO_OPS: [(&str, &str); 2] = [
    ("net.ipv4.tcp_low_latency", "read by nobody since Linux 4.14"),
    ("net.ipv4.tcp_fack", "read by nobody since Linux 4.15: RACK took its place"),
];
const RECOVERY: &str = "net.ipv4.tcp_recovery";
const BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut inert: Vec<(&str, String, Option<&SetIn>)> = Vec::new();
    for (key, why) in NO_OPS {
        if seen.number(key)?.is_some_and(|value| value != 0) {
            inert.push((key, why.to_owned(), last(seen, key)));
        }
    }
    if seen.is_kernel_from(6, 17) == Some(true)
        && seen.number(RECOVERY)?.is_some_and(|bits| bits & 1 == 0)
    {
        let why = "its first bit does nothing since Linux 6.17: RACK is always on";
        inert.push((RECOVERY, why.to_owned(), last(seen, RECOVERY)));
    }
    let cookies = seen.number("net.ipv4.tcp_syncookies")?;
    if let Some(line) = last(seen, BACKLOG).filter(|_| matches!(cookies, Some(1 | 2))) {
        inert.push((BACKLOG, "counts only while SYN cookies are off".to_owned(), Some(line)));
    }
    // Another namespace does not show what belongs to the whole host.
    if seen.snapshot.initial_netns == Some(true) {
        let keys = seen.snapshot.set_in.iter().flat_map(|all| all.keys()).filter(|key| is_tcp(key));
        let gone = keys.filter(|key| matches!(seen.setting(key), Ok(None)));
        inert.extend(
            gone.map(|key| {
                (key.as_str(), "this kernel has no such key".to_owned(), last(seen, key))
            }),
        );
    }
    if inert.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> =
        inert.iter().map(|(key, ..)| key.rsplit('.').next().unwrap_or(key)).collect();
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!("settings that do nothing here: {}", words::named(&names)),
        why: "they look as if they counted, and mislead who looks for a cause.".to_owned(),
        not: "not that they harm".to_owned(),
        evidence: inert.iter().take(MANY).map(evidence).collect(),
        fixes: vec![words::advise("take the lines out of the files that set them", "")],
        unseen: seen
            .snapshot
            .set_in
            .is_none()
            .then(|| "sysctl files".to_owned())
            .into_iter()
            .collect(),
        ..Finding::default()
    }])
}

fn evidence((key, why, line): &(&str, String, Option<&SetIn>)) -> Evidence {
    let in_file = |line: &SetIn| format!("{key} in {}:{}", line.file, line.line);
    Evidence::new(line.map_or_else(|| (*key).to_owned(), in_file), why.clone())
}

/// As many are listed one by one. Ours: what a screen holds.
const MANY: usize = 10;

fn last<'a>(seen: &Seen<'a>, key: &str) -> Option<&'a SetIn> {
    seen.snapshot.set_in.as_ref()?.get(key)?.last()
}

fn is_tcp(key: &str) -> bool {
    (key.starts_with("net.ipv4.tcp_") || key.starts_with("net.core."))
        && !key.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn set(keys: &[&str], settings: &[(&str, &str)]) -> Snapshot {
        let line = |key: &&str| {
            let set = SetIn {
                file: "/etc/sysctl.d/90-web.conf".to_owned(),
                line: 3,
                value: "1".to_owned(),
            };
            ((*key).to_owned(), vec![set])
        };
        let set_in = Some(keys.iter().map(line).collect());
        Snapshot { set_in, initial_netns: Some(true), ..host(settings) }
    }

    #[test]
    fn keys_that_are_gone_and_keys_that_nobody_reads_are_told_with_their_lines() {
        let keys = ["net.ipv4.tcp_tw_recycle", BACKLOG];
        let settings = [
            ("net.ipv4.tcp_low_latency", "1"),
            ("net.ipv4.tcp_syncookies", "1"),
            (BACKLOG, "8192"),
        ];
        insta::assert_snapshot!(shown(&CHECK, &set(&keys, &settings)));
    }

    #[test]
    fn keys_that_exist_modules_that_are_absent_and_a_backlog_without_cookies_are_well() {
        let keys = ["net.ipv4.tcp_sack", "net.netfilter.nf_conntrack_max", BACKLOG];
        let settings = [
            ("net.ipv4.tcp_sack", "1"),
            ("net.ipv4.tcp_syncookies", "0"),
            ("net.ipv4.tcp_fack", "0"),
            (BACKLOG, "8192"),
        ];
        assert_eq!(judged(&CHECK, &set(&keys, &settings)), Ok(Vec::new()));
    }

    #[test]
    fn rack_cannot_be_switched_off_since_6_17() {
        let number = |kernel: &str, value| {
            let host = set(&[], &[(RECOVERY, value)]);
            let host = Snapshot { kernel: Some(kernel.to_owned()), ..host };
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!(
            [number("6.17.1", "0"), number("6.17.1", "3"), number("6.16.1", "0")],
            [1, 0, 0]
        );
    }

    #[test]
    fn a_namespace_does_not_show_all_keys() {
        let mut child = set(&["net.ipv4.tcp_mem"], &[]);
        child.initial_netns = Some(false);
        assert_eq!(judged(&CHECK, &child), Ok(Vec::new()));
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
