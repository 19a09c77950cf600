//! Connections that no program holds any more come near their limit: the kernel will reset them.
//!
//! # What it says
//! After `close` the kernel goes on alone until the peer has all data: an orphan. It resets orphans when there are
//! more than `tcp_max_orphans`, or when TCP's memory is used up; a peer that was still receiving loses
//! the end of its data.
//!
//! # How we know
//! More than a quarter of `tcp_max_orphans` are orphans: for one that has been silent, or that met an ICMP error,
//! the kernel counts all of them twice or four times. Or `TCPAbortOnMemory` grew, or the kernel's log says `too many
//! orphaned sockets`.
//!
//! # What it is not
//! Not who left them: an orphan has no process. `TCPAbortOnMemory` counts what memory did, too.
//!
//! # What to do
//! See to which peers they go and why these do not acknowledge. Raise the limit (each may hold up to its send
//! buffer of memory that cannot be swapped); do not lower it.
//!
//! # Sources
//! Linux `tcp_out_of_resources`, `tcp_check_oom`, `tcp_orphan_count_sum` (v6.12). A quarter and a half follow from
//! the shifts there.

use super::{Check, kernel_log, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Event, Source};

pub(super) const CHECK: Check =
    Check { code: "ORPHANS", file: include_str!("orphans.rs"), group: Group::Closing, judge };

const KEY: &str = "net.ipv4.tcp_max_orphans";
const WHY: &str = "the kernel resets orphans above the limit; one that has been silent for long counts twice, and after \
                   an ICMP error four times, so that resets begin at a quarter.";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    kernel_log::beside(seen, Event::TooManyOrphans, counted(seen), |_| Finding {
        scope: Scope::Host,
        title: "the kernel says that there were too many orphans".to_owned(),
        why: WHY.to_owned(),
        fixes: vec![words::advise(
            "see to which peers they go: ss -tnoe state fin-wait-1 state last-ack",
            "",
        )],
        ..Finding::default()
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let stat = seen.now.sockstat.as_ref().ok_or(Missing::all(Source::Sockstat))?;
    let Some(&orphans) = stat.get("TCP").and_then(|tcp| tcp.get("orphan")) else {
        return Err(Missing::part(Source::Sockstat, "TCP orphan"));
    };
    let most = limit(seen)?;
    let aborted = seen.growth("TcpExt", "TCPAbortOnMemory").ok().flatten();
    let aborted = aborted.filter(|grown| grown.by > 0);
    let is_near = words::above_percent(orphans, 25, most);
    // Aborts of some time since the start, with few orphans now, tell nothing about orphans.
    if !is_near && aborted.is_none_or(|grown| grown.since_start) {
        return Ok(Vec::new());
    }
    let mut evidence = vec![
        Evidence::new("/proc/net/sockstat TCP orphan", orphans.to_string()),
        words::setting(KEY, &most),
    ];
    evidence.extend(aborted.map(|grown| words::counter("TcpExt", "TCPAbortOnMemory", grown)));
    let are_reset = aborted.is_some_and(|grown| !grown.since_start);
    let title = match aborted {
        Some(grown) if are_reset => {
            format!(
                "connections are reset for want of memory or room for orphans: {}",
                words::grown(grown)
            )
        }
        _ => format!("{orphans} of {most} orphans: connections that no program holds"),
    };
    let fix = words::set(
        seen,
        KEY,
        &most.saturating_mul(2),
        "allow more, and see to which peers they go: ss -tnoe state fin-wait-1 state last-ack",
        words::AT_ONCE,
        "each may hold its send buffer in memory that cannot be swapped",
    );
    Ok(vec![Finding {
        severity: if are_reset { Severity::Error } else { Severity::Warning },
        confidence: if is_near { Confidence::High } else { Confidence::Medium },
        scope: Scope::Host,
        title,
        why: WHY.to_owned(),
        not: if is_near {
            "not who left them: an orphan has no process"
        } else {
            "not that orphans are the cause: the same counter tells of tcp_mem, and few are orphans now"
        }
        .to_owned(),
        evidence,
        fixes: if is_near { vec![fix] } else { Vec::new() },
        ..Finding::default()
    }])
}

/// That of the whole host: other namespaces than the first do not have it, and `/proc/net/sockstat` counts the
/// orphans of all of them there, too (`sockstat_seq_show`, `tcp_orphan_count_sum`).
fn limit(seen: &Seen<'_>) -> Asked<u64> {
    let theirs = || seen.snapshot.host_settings.as_ref()?.get(KEY)?.parse().ok();
    let most = seen.number(KEY)?.or_else(theirs);
    most.map(|most| u64::try_from(most).unwrap_or(0))
        .ok_or_else(|| Missing::part(Source::Settings, KEY))
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn orphans(now: u64, aborted: i64) -> Snapshot {
        let host = each_look(host(&[(KEY, "1000")]), |_, look| {
            let stat = look.sockstat.get_or_insert_default();
            stat.entry("TCP".to_owned()).or_default().insert("orphan".to_owned(), now);
        });
        counted(host, "TcpExt", "TCPAbortOnMemory", [5, 5 + aborted])
    }

    #[test]
    fn orphans_that_are_reset_are_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &orphans(600, 3)));
    }

    #[test]
    fn a_quarter_is_not_enough_and_one_more_is() {
        assert_eq!(judged(&CHECK, &orphans(250, 0)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &orphans(251, 0)).expect("seen")[0].severity, Severity::Warning);
    }

    #[test]
    fn resets_with_few_orphans_may_be_those_of_memory() {
        let found = judged(&CHECK, &orphans(1, 3)).expect("seen");
        assert_eq!((found[0].confidence, found[0].fixes.len()), (Confidence::Medium, 0));
    }

    #[test]
    fn a_namespace_without_the_limit_and_a_host_without_the_count_say_nothing() {
        let mut host = orphans(600, 0);
        host.settings.as_mut().expect("settings").values.clear();
        assert_eq!(missing(&CHECK, &host).source, Source::Settings);
        host.host_settings = Some([(KEY.to_owned(), "1000".to_owned())].into());
        let found = judged(&CHECK, &host).expect("seen");
        assert_eq!(found[0].fixes[0].set, None, "it is the host's to change");
        host.looks[1].sockstat = None;
        assert_eq!(missing(&CHECK, &host).source, Source::Sockstat);
    }
}
