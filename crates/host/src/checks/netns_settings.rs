//! A network namespace has other TCP settings than its host.
//!
//! # What it says
//! A new namespace copies `tcp_rmem`, `tcp_wmem` and the congestion control of the host; all else begins with the kernel's defaults. A host that was
//! tuned (`somaxconn`, `tcp_slow_start_after_idle`, ...) does not pass that on to its containers.
//!
//! # How we know
//! Settings of TCP differ between this namespace and that of process 1.
//!
//! # What it is not
//! Not which of the two is right: a container may have been set on purpose.
//!
//! # What to do
//! Set them where the container is described (`--sysctl`, `sysctls:` of compose, `securityContext.sysctls` of a pod, the tuning plugin
//! of CNI): what is set inside is lost with it.
//!
//! # Sources
//! Linux `tcp_sk_init` (v6.12, `net/ipv4/tcp_ipv4.c`), `net_core_init`; Documentation/admin-guide/sysctl/net.rst.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "NETNS_SETTINGS",
    file: include_str!("netns_settings.rs"),
    group: Group::Hygiene,
    judge,
};

/// What a namespace has for itself and nobody sets.
const DERIVED: [&str; 5] = [
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_available_ulp",
    "net.ipv4.tcp_ehash_entries",
    "net.ipv4.tcp_child_ehash_entries",
    "net.ipv4.tcp_fastopen_key",
];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(host) = &seen.snapshot.host_settings else {
        let is_host = seen.snapshot.initial_netns == Some(true);
        return if is_host {
            Ok(Vec::new())
        } else {
            Err(Missing::part(Source::Settings, "those of the host"))
        };
    };
    let mut differ: Vec<(&str, &str, &str)> = Vec::new();
    for (key, theirs) in host.iter().filter(|(key, _)| is_asked(key)) {
        if let Some(ours) = seen.setting(key).ok().flatten().filter(|ours| *ours != theirs) {
            differ.push((key, ours, theirs));
        }
    }
    seen.setting("net.ipv4.tcp_rmem")?;
    if differ.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> =
        differ.iter().map(|(key, ..)| key.rsplit('.').next().unwrap_or(key)).collect();
    Ok(vec![Finding {
        severity: Severity::Info,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!("this namespace differs from its host in {}", words::named(&names)),
        why: "a namespace begins with the kernel's defaults: what the host was tuned to does not count here.".to_owned(),
        not: "not which of the two is right".to_owned(),
        evidence: differ
            .iter()
            .take(MANY)
            .map(|(key, ours, theirs)| Evidence::new(*key, format!("{ours}, on the host {theirs}")))
            .collect(),
        fixes: differ
            .iter()
            .take(MANY)
            .map(|(key, _, theirs)| {
                words::set(
                    seen,
                    key,
                    theirs,
                    "set what the host has, if that is meant for this namespace too",
                    "until the container is made anew: set it where that is described",
                    "it may have been set on purpose",
                )
            })
            .collect(),
        ..Finding::default()
    }
    .all_together()])
}

/// As many are listed one by one. Ours: what a screen holds.
const MANY: usize = 10;

fn is_asked(key: &str) -> bool {
    let is_tcp = key.starts_with("net.ipv4.tcp_") && !DERIVED.contains(&key);
    is_tcp || matches!(key, "net.core.somaxconn" | "net.ipv4.ip_local_port_range")
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn differing(key: &str, theirs: &str) -> Snapshot {
        let here = [
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.ip_forward", "0"),
            ("net.ipv4.tcp_ehash_entries", "-262144"),
        ];
        let host_settings = Some([(key.to_owned(), theirs.to_owned())].into());
        Snapshot { host_settings, initial_netns: Some(false), ..host(&here) }
    }

    #[test]
    fn settings_that_differ_are_told_with_both_values() {
        insta::assert_snapshot!(shown(&CHECK, &differing("net.core.somaxconn", "65535")));
    }

    #[test]
    fn equal_ones_those_of_others_and_derived_ones_are_well() {
        assert_eq!(judged(&CHECK, &differing("net.core.somaxconn", "4096")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &differing("net.ipv4.ip_forward", "1")), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &differing("net.ipv4.tcp_ehash_entries", "262144")),
            Ok(Vec::new())
        );
    }

    #[test]
    fn the_host_itself_is_well_and_without_its_settings_nothing_is_said() {
        let mut here = differing("net.core.somaxconn", "1");
        here.host_settings = None;
        assert_eq!(missing(&CHECK, &here).source, Source::Settings);
        here.initial_netns = Some(true);
        assert_eq!(judged(&CHECK, &here), Ok(Vec::new()));
    }
}
