//! Phrases and changes that several checks share.

use core::fmt::{self, Write as _};

use crate::finding::{Change, Confidence, Evidence, Fix, Severity};
use crate::seen::{Growth, Seen};
use crate::snapshot::Owner;
pub(super) use tcpwhy_words::said::count;
use tcpwhy_words::said::listed;

/// How sure a counter makes: one look tells only that it happened at some time since the host started.
pub(super) const fn sure(growth: Growth) -> Confidence {
    if growth.since_start { Confidence::Low } else { Confidence::High }
}

/// `+3 in 10.0 s`, `3 since the host started`, or `+3 from one look to the next`.
pub(super) fn grown(growth: Growth) -> String {
    if growth.since_start && growth.or_since_nstat {
        format!("{} since the host started, or since nstat was last run", growth.by)
    } else if growth.since_start {
        format!("{} since the host started", growth.by)
    } else if growth.over_ns == 0 {
        format!("+{} from one look to the next", growth.by)
    } else {
        format!("+{} in {:.1} s", growth.by, growth.over_ns as f64 / 1e9)
    }
}

/// A counter of `/proc/net/netstat` or `snmp` as evidence.
pub(super) fn counter(group: &str, name: &str, growth: Growth) -> Evidence {
    let file = match group {
        "TcpExt" | "IpExt" => "netstat",
        "Ip6" | "Icmp6" => "snmp6",
        _ => "snmp",
    };
    Evidence::new(format!("/proc/net/{file} {group}.{name}"), grown(growth))
}

/// A setting as evidence.
pub(super) fn setting(key: &str, value: &dyn fmt::Display) -> Evidence {
    Evidence::new(key, value.to_string())
}

/// Settings that a network namespace shows and may not write (`sysctl_core_net_init`, `net/core/sysctl_net_core.c`,
/// and `nf_conntrack_standalone_init_sysctl`; seen on 6.18; 6.1 does not show the first four).
const OF_THE_HOST: [&str; 5] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.netfilter.nf_conntrack_max",
];

fn is_read_only(seen: &Seen<'_>, key: &str) -> bool {
    seen.snapshot.initial_netns == Some(false) && OF_THE_HOST.contains(&key)
}

/// A setting changed from what was seen; none where it cannot be from there.
pub(super) fn sysctl(seen: &Seen<'_>, key: &str, to: &dyn fmt::Display) -> Option<Change> {
    if is_read_only(seen, key) {
        return None;
    }
    let from = seen.setting(key).ok()??.to_owned();
    Some(Change::Sysctl { key: key.to_owned(), from, to: to.to_string() })
}

/// A fix that changes a setting of the kernel.
pub(super) fn set(
    seen: &Seen<'_>,
    key: &str,
    to: &dyn fmt::Display,
    what: impl Into<String>,
    applies: &str,
    risk: &str,
) -> Fix {
    let mut what = what.into();
    if is_read_only(seen, key) {
        let _ = write!(what, ": {key} of the host to {to}, for it is read-only in a namespace");
    }
    Fix { what, risk: risk.to_owned(), set: sysctl(seen, key, to), applies: applies.to_owned() }
}

/// An interface in a command: of one that a text does not name, a placeholder.
pub(super) fn device(name: &str) -> &str {
    if name.contains(' ') { "DEV" } else { name }
}

/// A fix that no setting makes.
pub(super) fn advise(what: impl Into<String>, risk: &str) -> Fix {
    Fix { what: what.into(), risk: risk.to_owned(), ..Fix::default() }
}

pub(super) const AT_ONCE: &str = "at once";
pub(super) const NEW_LISTENERS: &str = "for listeners that call listen() again";

/// `nginx (1234)`, or `the program`.
pub(super) fn program(seen: &Seen<'_>, owner: Option<Owner>) -> String {
    owner.map_or_else(
        || "the program".to_owned(),
        |owner| {
            let process = seen.processes().ok().and_then(|all| all.get(&owner.pid));
            process.map_or_else(
                || format!("process {}", owner.pid),
                |process| format!("{} ({})", process.name, owner.pid),
            )
        },
    )
}

/// How many of many are listed one by one.
pub(super) const WORST: usize = 5;

/// `a`, `a and b`, `a, b, c, d, e and 7 more`.
pub(super) fn named<T: AsRef<str>>(names: &[T]) -> String {
    let told = names.iter().take(WORST).map(|name| name.as_ref().to_owned());
    let more = names.len().saturating_sub(WORST);
    listed(&told.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>())
}

/// `12 %`, `0.4 %`, `0.0031 %`: of packets a few in a million may be what matters.
pub(super) fn share(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    if share >= 10.0 || share == 0.0 {
        format!("{share:.0} %")
    } else if share >= 0.1 {
        format!("{share:.1} %")
    } else {
        format!("{share:.4} %")
    }
}

/// `part` is more than `share` percent of `whole`.
pub(super) fn above_percent(part: u64, share: u64, whole: u64) -> bool {
    u128::from(part) * 100 > u128::from(share) * u128::from(whole)
}

/// Drops seen between two looks are an error; those of some time since the start a warning.
pub(super) const fn of_drops(growth: Growth) -> Severity {
    if growth.since_start { Severity::Warning } else { Severity::Error }
}

#[cfg(test)]
mod tests {
    use super::super::sample::host;
    use super::*;
    use crate::snapshot::Snapshot;

    #[test]
    fn what_a_namespace_may_not_write_is_advised_for_the_host() {
        let fix = |initial_netns, key: &str| {
            let host = Snapshot { initial_netns, ..host(&[(key, "212992")]) };
            let seen = Seen::new(&host).expect("a look");
            set(&seen, key, &4_194_304, "let it have more", AT_ONCE, "")
        };
        let key = "net.core.wmem_max";
        for netns in [None, Some(true)] {
            assert!(fix(netns, key).set.is_some(), "{netns:?}");
        }
        let inside = fix(Some(false), key);
        assert_eq!(inside.set, None);
        assert!(inside.what.ends_with(
            "more: net.core.wmem_max of the host to 4194304, for it is read-only in a namespace"
        ));
        assert!(fix(Some(false), "net.ipv4.tcp_notsent_lowat").set.is_some());
    }
}
