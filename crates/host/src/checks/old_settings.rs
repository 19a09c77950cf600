//! A value is the default of an older kernel, and below that of this one.
//!
//! # What it says
//! Lists of settings often pin what was a default once. On a newer kernel they hold back what its developers have raised since.
//!
//! # How we know
//! `somaxconn` is 128 (4096 since Linux 5.4), the middle of `tcp_rmem` is 87380 (131072 since 4.20), or, on a kernel that has `tcp_ecn_option`
//! (6.18), `tcp_rmem` ends at 6 MiB or less (32 MiB, or 1/128 of memory where that is less). How new the kernel is follows from
//! settings that came later, not by its version.
//!
//! # What it is not
//! Not that a connection waits for it: other checks tell that.
//!
//! # What to do
//! Take the line out, or set the newer default.
//!
//! # Sources
//! Linux commits 19f92a030ca6 (`somaxconn`, 5.4), a337531b942b (`tcp_rmem`, 4.20), 65e6d90168f3 (`tcp_no_ssthresh_metrics_save`, 5.6: by it we
//! tell); `tcp_init` of 6.18 as read on a running kernel.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "OLD_SETTINGS",
    file: include_str!("old_settings.rs"),
    group: Group::Hygiene,
    judge,
};

const BACKLOG: &str = "net.core.somaxconn";
const BUFFERS: &str = "net.ipv4.tcp_rmem";
const NEWEST_MAX: i64 = 32 << 20;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let since_5_6 = seen.setting("net.ipv4.tcp_no_ssthresh_metrics_save")?.is_some();
    let since_6_18 = seen.setting("net.ipv4.tcp_ecn_option")?.is_some();
    if !since_5_6 {
        return Ok(Vec::new());
    }
    let mut old: Vec<(&str, String, String)> = Vec::new();
    if seen.number(BACKLOG)? == Some(128) {
        old.push((BACKLOG, "128".to_owned(), "4096".to_owned()));
    }
    if let Some([low, first, most]) = seen.numbers::<3>(BUFFERS)? {
        let first_to = if first == 87_380 { 131_072 } else { first };
        let most_to = if since_6_18 && most <= 6 << 20 { newest_max(seen).max(most) } else { most };
        if (first_to, most_to) != (first, most) {
            old.push((
                BUFFERS,
                format!("{low} {first} {most}"),
                format!("{low} {first_to} {most_to}"),
            ));
        }
    }
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> =
        old.iter().map(|(key, ..)| key.rsplit('.').next().unwrap_or(key)).collect();
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("older kernels' defaults hold this one back: {}", words::named(&names)),
        why: "this kernel would have more by itself; a file, a profile or a program set the old value.".to_owned(),
        not: "not that a connection waits for it".to_owned(),
        evidence: old.iter().map(|(key, value, _)| Evidence::new(*key, format!("{value}{}", place(seen, key)))).collect(),
        fixes: old
            .iter()
            .map(|(key, _, to)| words::set(seen, key, to, "set the newer default, and take the old line out", "for new connections and listeners", ""))
            .collect(),
        ..Finding::default()
    }
    .all_together()])
}

/// The kernel's own formula: 32 MiB, or a 128th of memory. Half of that is left to what the kernel keeps for itself.
fn newest_max(seen: &Seen<'_>) -> i64 {
    let memory =
        seen.snapshot.memory_bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(0);
    NEWEST_MAX.min(memory / 256)
}

fn place(seen: &Seen<'_>, key: &str) -> String {
    let line = seen.snapshot.set_in.as_ref().and_then(|all| all.get(key)?.last());
    line.map_or_else(String::new, |line| format!(" ({}:{})", line.file, line.line))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{SetIn, Snapshot, Source};

    const NEW: (&str, &str) = ("net.ipv4.tcp_no_ssthresh_metrics_save", "1");
    const NEWER: (&str, &str) = ("net.ipv4.tcp_ecn_option", "2");

    fn with(settings: &[(&str, &str)]) -> Snapshot {
        Snapshot { memory_bytes: Some(16 << 30), ..host(settings) }
    }

    #[test]
    fn old_defaults_are_told_with_the_file_that_sets_them() {
        let mut old = with(&[NEW, NEWER, (BACKLOG, "128"), (BUFFERS, "4096 87380 6291456")]);
        let line = SetIn { file: "/etc/sysctl.conf".to_owned(), line: 7, value: "128".to_owned() };
        old.set_in = Some([(BACKLOG.to_owned(), vec![line])].into());
        insta::assert_snapshot!(shown(&CHECK, &old));
    }

    #[test]
    fn an_older_kernel_a_newer_value_and_a_small_machine_are_well() {
        assert_eq!(judged(&CHECK, &with(&[(BACKLOG, "128")])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &with(&[NEW, (BUFFERS, "4096 131072 6291456")])), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &with(&[NEW, NEWER, (BUFFERS, "4096 131072 6291457")])),
            Ok(Vec::new())
        );
        let mut small = with(&[NEW, NEWER, (BUFFERS, "4096 131072 6291456")]);
        assert_eq!(judged(&CHECK, &small).expect("seen").len(), 1);
        small.memory_bytes = Some(256 * (6 << 20));
        assert_eq!(judged(&CHECK, &small), Ok(Vec::new()));
    }

    #[test]
    fn without_settings_nothing_is_said() {
        let mut blind = host(&[]);
        blind.settings = None;
        assert_eq!(missing(&CHECK, &blind).source, Source::Settings);
    }
}
