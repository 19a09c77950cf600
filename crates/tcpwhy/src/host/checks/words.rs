//! Phrases and changes that several checks share.

use core::fmt;

use crate::host::finding::{Change, Confidence, Evidence, Fix};
use crate::host::seen::{Growth, Seen};
use crate::host::snapshot::Owner;

/// How sure a counter makes: one look tells only that it happened at some time since the host started.
pub(super) const fn sure(growth: Growth) -> Confidence {
    if growth.since_start { Confidence::Low } else { Confidence::High }
}

/// `+3 in 10.0 s`, `3 since the host started`, or `+3 from one look to the next`.
pub(super) fn grown(growth: Growth) -> String {
    if growth.since_start {
        format!("{} since the host started", growth.by)
    } else if growth.over_ns == 0 {
        format!("+{} from one look to the next", growth.by)
    } else {
        format!("+{} in {:.1} s", growth.by, growth.over_ns as f64 / 1e9)
    }
}

/// A counter of `/proc/net/netstat` or `snmp` as evidence.
pub(super) fn counter(group: &str, name: &str, growth: Growth) -> Evidence {
    let file = if matches!(group, "TcpExt" | "IpExt") { "netstat" } else { "snmp" };
    Evidence::new(format!("/proc/net/{file} {group}.{name}"), grown(growth))
}

/// A setting as evidence.
pub(super) fn setting(key: &str, value: &dyn fmt::Display) -> Evidence {
    Evidence::new(key, value.to_string())
}

/// A setting changed from what was seen.
pub(super) fn sysctl(seen: &Seen<'_>, key: &str, to: &dyn fmt::Display) -> Option<Change> {
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
    Fix {
        what: what.into(),
        risk: risk.to_owned(),
        set: sysctl(seen, key, to),
        applies: applies.to_owned(),
    }
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
