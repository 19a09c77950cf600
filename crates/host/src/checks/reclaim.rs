//! Memory runs short: tasks stop to free some, or packets were dropped for want of it.
//!
//! # What it says
//! When free memory is gone, whoever asks for some must free it first (direct reclaim) and stands still meanwhile. What only
//! the reserve can hold, the network may not have: packets are dropped.
//!
//! # How we know
//! `PFMemallocDrop` grew (packets dropped), or `allocstall_*` of `/proc/vmstat` did.
//!
//! # What it is not
//! Not TCP's own limit (`tcp_mem`), which is counted apart.
//!
//! # What to do
//! Find what uses the memory; raise `vm.min_free_kbytes` where packets are dropped in bursts.
//!
//! # Sources
//! Linux `sk_filter_trim_cap` (`PFMemallocDrop`), `__alloc_pages_direct_reclaim` (v6.1); Documentation/admin-guide/sysctl/vm.rst.

use super::{Check, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::{Look, Source};

pub(super) const CHECK: Check =
    Check { code: "RECLAIM", file: include_str!("reclaim.rs"), group: Group::Host, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let dropped = seen.growth("TcpExt", "PFMemallocDrop");
    if dropped.is_err() && seen.now.vmstat.is_none() {
        return Err(Missing::all(Source::Reclaim));
    }
    let dropped = dropped.ok().flatten().filter(|growth| growth.by > 0);
    // Every host stalls at some time since its start: one look tells nothing.
    let stalled = stalls(seen).filter(|growth| growth.by > 0 && !growth.since_start);
    let Some(growth) = dropped.or(stalled) else { return Ok(Vec::new()) };
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(dropped.map(|growth| words::counter("TcpExt", "PFMemallocDrop", growth)));
    evidence.extend(
        stalled.map(|growth| Evidence::new("/proc/vmstat allocstall_*", words::grown(growth))),
    );
    evidence.extend(
        seen.now.available_bytes.map(|bytes| {
            Evidence::new("/proc/meminfo MemAvailable", format!("{} MiB", bytes >> 20))
        }),
    );
    Ok(vec![Finding {
        severity: dropped.map_or(Severity::Warning, words::of_drops),
        confidence: words::sure(growth),
        scope: Scope::Host,
        title: match dropped {
            Some(growth) => format!("packets were dropped for want of memory: {}", words::grown(growth)),
            None => format!("tasks stopped to free memory: {}", words::grown(growth)),
        },
        why: "who asks for memory must free some first, and stands still meanwhile: packets wait, and windows close.".to_owned(),
        not: "not TCP's own limit (tcp_mem), which is counted apart".to_owned(),
        evidence,
        fixes: vec![words::advise("find what uses the memory: top -o RES, slabtop, smem", "")],
        ..Finding::default()
    }])
}

fn stalls(seen: &Seen<'_>) -> Option<Growth> {
    let sum = |look: &Look| {
        let all = look.vmstat.as_ref()?.iter().filter(|(name, _)| name.starts_with("allocstall"));
        Some(all.map(|(_, count)| *count).fold(0, u64::saturating_add))
    };
    seen.growth_of(sum(seen.now)?, seen.before.and_then(sum))
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn short(stalls: [u64; 2], dropped: i64) -> Snapshot {
        let host = each_look(host(&[]), |nth, look| {
            look.available_bytes = Some(80 << 20);
            look.vmstat = Some([("allocstall_normal".to_owned(), stalls[nth as usize])].into());
        });
        counted(host, "TcpExt", "PFMemallocDrop", [1, 1 + dropped])
    }

    #[test]
    fn packets_dropped_for_want_of_memory_are_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &short([5, 90], 3)));
    }

    #[test]
    fn stalls_between_the_looks_are_a_warning_and_those_of_before_are_nothing() {
        assert_eq!(judged(&CHECK, &short([5, 6], 0)).expect("seen")[0].severity, Severity::Warning);
        assert_eq!(judged(&CHECK, &short([5, 5], 0)), Ok(Vec::new()));
        let mut one = once(short([5, 5], -1));
        assert_eq!(judged(&CHECK, &one), Ok(Vec::new()));
        one.looks[0].vmstat = None;
        assert_eq!(judged(&CHECK, &one), Ok(Vec::new()));
    }

    #[test]
    fn without_counters_and_vmstat_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Reclaim);
    }
}
