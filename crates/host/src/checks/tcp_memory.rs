//! Memory for TCP is short: the kernel keeps buffers from growing, drops packets, or resets connections.
//!
//! # What it says
//! All TCP sockets of the host share one bound, `tcp_mem`, three numbers of pages. Above the second one the
//! kernel is under pressure until it is below the first again: windows shrink, buffers stop growing. At the third
//! nothing more can be had: data is dropped, and orphans are reset.
//!
//! # How we know
//! `mem` of `/proc/net/sockstat` beside `tcp_mem`; `TCPMemoryPressures` and `TCPAbortOnMemory` grew. From 80 % of
//! the second number on it is a warning. Or the kernel's log says `out of memory -- consider tuning tcp_mem`.
//!
//! # What it is not
//! Not that the limit is too low: a program that does not read, or a leak of connections, fills any. A
//! control group's own limit does the same to its sockets without any of this.
//!
//! # What to do
//! See who holds it. Only then raise `tcp_mem`, where the host has memory to spare. It is a setting of the
//! whole host: containers neither see nor set it. Its unit is the page, which is not 4 KiB everywhere.
//!
//! # Sources
//! Linux `__sk_mem_raise_allocated`, `tcp_enter_memory_pressure`, `tcp_check_oom` (v6.12). 80 %, and a quarter of
//! memory free before more is proposed: ours, not measured.

use std::collections::BTreeMap;

use super::tcp_memory_limits::by_kernel;
use super::{Check, counters, kernel_log, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::{Event, Source};
use tcpwhy_words::said::{bytes, percent};

pub(super) const CHECK: Check = Check {
    code: "TCP_MEMORY",
    file: include_str!("tcp_memory.rs"),
    group: Group::Receiving,
    judge,
};

const KEY: &str = "net.ipv4.tcp_mem";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    kernel_log::beside(seen, Event::TcpOutOfMemory, counted(seen), |_| Finding {
        scope: Scope::Host,
        title: "the kernel says that TCP had no memory left".to_owned(),
        why: "nothing more could be had of tcp_mem: data was dropped, and orphans were reset."
            .to_owned(),
        fixes: fixes(seen, None, false),
        ..Finding::default()
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let grown = counters::grown(seen, &["TCPMemoryPressures", "TCPAbortOnMemory"]);
    let limits = seen.numbers::<3>(KEY).ok().flatten().map(|limits| limits.map(i64::unsigned_abs));
    let used = used(seen);
    let level = limits.zip(used.clone().ok()).and_then(|(limits, used)| level(limits, used));
    let most = grown.as_ref().ok().and_then(|grown| counters::largest(grown));
    let severity = most.map(|most| counters::severity(most, Severity::Error));
    let Some(severity) = severity.max(level.as_ref().map(|(severity, _)| *severity)) else {
        // Nothing is wrong as far as was seen; nothing of it may have been seen.
        return match (grown, limits, used) {
            (Err(missing), None, _) | (Err(missing), _, Err(_)) => Err(missing),
            _ => Ok(Vec::new()),
        };
    };
    let confidence = match (&level, most) {
        (Some(_), _) => Confidence::High,
        (None, most) => most.map_or(Confidence::Low, words::sure),
    };
    let mut found = Finding {
        severity,
        confidence,
        scope: Scope::Host,
        title: title(level.as_ref(), most),
        why: "all TCP sockets of the host share it: windows shrink and buffers stop growing while it is \
              short, and at the end data is dropped."
            .to_owned(),
        not: if is_tiny(seen, limits) {
            "not that the programs are at fault: the limit is far below what the kernel sets by itself"
        } else {
            "not that the limit is too low: a program that does not read fills any"
        }
        .to_owned(),
        evidence: counters::evidence(grown.as_deref().unwrap_or_default()),
        fixes: fixes(seen, limits, level.is_some()),
        ..Finding::default()
    };
    found.evidence.extend(shown(seen, limits, used.as_ref().ok().copied()));
    found.evidence.extend(holders(seen));
    let missing =
        [grown.err(), used.err(), limits.is_none().then(|| Missing::part(Source::Settings, KEY))];
    found.unseen.extend(missing.into_iter().flatten().map(|missing| missing.to_string()));
    Ok(vec![found])
}

/// `TCP_MEMORY_LIMITS` says so, too.
fn is_tiny(seen: &Seen<'_>, limits: Option<[u64; 3]>) -> bool {
    let machine = seen.snapshot.memory_bytes.zip(seen.snapshot.page_bytes);
    let both = limits.zip(machine);
    both.is_some_and(|([_, pressure, _], (memory, page))| pressure < by_kernel(memory, page) / 2)
}

/// Pages in use.
fn used(seen: &Seen<'_>) -> Asked<u64> {
    let all = seen.now.sockstat.as_ref().ok_or(Missing::all(Source::Sockstat))?;
    let mem = all.get("TCP").and_then(|tcp| tcp.get("mem"));
    mem.copied().ok_or_else(|| Missing::part(Source::Sockstat, "TCP mem"))
}

fn level([_, pressure, most]: [u64; 3], used: u64) -> Option<(Severity, String)> {
    let says = |of, what: &str| {
        let share = percent(used.cast_signed(), u64::cast_signed(of));
        format!("TCP holds {share} of the memory {what}")
    };
    if used >= most {
        Some((Severity::Error, says(most, "that it may have: nothing is left")))
    } else if used > pressure {
        Some((Severity::Error, says(most, "that it may have: the kernel is under pressure")))
    } else if used.saturating_mul(5) > pressure.saturating_mul(4) {
        Some((Severity::Warning, says(pressure, "at which the kernel comes under pressure")))
    } else {
        None
    }
}

fn title(level: Option<&(Severity, String)>, most: Option<Growth>) -> String {
    match (level, most) {
        (Some((_, says)), _) => says.clone(),
        (None, Some(most)) => format!("memory for TCP was short: {}", words::grown(most)),
        (None, None) => String::new(),
    }
}

fn shown(seen: &Seen<'_>, limits: Option<[u64; 3]>, used: Option<u64>) -> Vec<Evidence> {
    let page = seen.snapshot.page_bytes;
    let in_bytes = |pages: u64| {
        page.map_or_else(String::new, |page| format!(" ({})", bytes(pages.saturating_mul(page))))
    };
    let used = used.map(|used| {
        let value = format!("{used} pages{}", in_bytes(used));
        Evidence::new("/proc/net/sockstat TCP mem", value)
    });
    let limits = limits.map(|[low, pressure, most]| {
        let value = format!("{low} {pressure} {most} pages{}", in_bytes(most));
        Evidence::new(KEY, value)
    });
    used.into_iter().chain(limits).collect()
}

/// The three programs whose sockets hold most.
fn holders(seen: &Seen<'_>) -> Vec<Evidence> {
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    let processes = seen.processes().ok();
    for socket in seen.sockets().unwrap_or_default() {
        let Some(memory) = socket.memory else { continue };
        let process = socket.owner.and_then(|owner| processes?.get(&owner.pid));
        let name = process.map_or("sockets without a program", |process| process.name.as_str());
        let held = held.entry(name).or_default();
        *held = held.saturating_add(u64::from(memory.rmem) + u64::from(memory.wqueued));
    }
    let mut held: Vec<_> = held.into_iter().filter(|(_, held)| *held > 0).collect();
    held.sort_by_key(|(name, held)| (core::cmp::Reverse(*held), *name));
    let says = |(name, held): &(&str, u64)| {
        Evidence::new(format!("ss -tm, r and w of {name}"), bytes(*held))
    };
    held.iter().take(3).map(says).collect()
}

fn fixes(seen: &Seen<'_>, limits: Option<[u64; 3]>, is_short_now: bool) -> Vec<Fix> {
    let mut fixes = vec![words::advise(
        "see who holds it: sockets that are not read, connections that are never closed",
        "",
    )];
    let free = seen.now.available_bytes.zip(seen.snapshot.memory_bytes);
    let has_room = free.is_some_and(|(free, all)| free > all / 4);
    if let Some(limits) = limits.filter(|_| is_short_now && has_room) {
        let [low, pressure, most] = limits.map(|pages| pages.saturating_mul(2));
        fixes.push(words::set(
            seen,
            KEY,
            &format_args!("{low} {pressure} {most}"),
            "allow twice as much, for the host has memory to spare",
            words::AT_ONCE,
            "memory that TCP takes cannot be taken back from it",
        ));
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot};

    fn holding(pages: u64) -> Snapshot {
        let memory = Memory { rmem: 5 << 20, wqueued: 1 << 20, ..Memory::default() };
        let sockets = || vec![socket(0, &Info::default(), memory)];
        let mut host = connected(&[(KEY, "750 1000 1500")], sockets(), sockets());
        host.page_bytes = Some(4096);
        host.memory_bytes = Some(64 << 20);
        for look in &mut host.looks {
            look.sockstat = Some([("TCP".to_owned(), [("mem".to_owned(), pages)].into())].into());
            look.available_bytes = Some(32 << 20);
        }
        counted(host, "TcpExt", "TCPMemoryPressures", [2, 2])
    }

    #[test]
    fn under_pressure_now() {
        insta::assert_snapshot!(shown(&CHECK, &holding(1200)));
    }

    #[test]
    fn four_fifths_are_the_border_and_all_of_it_is_an_error() {
        let severity = |pages| {
            judged(&CHECK, &holding(pages)).expect("seen").first().map(|found| found.severity)
        };
        assert_eq!([800, 801, 1000, 1001, 1500].map(severity), {
            use Severity::{Error, Warning};
            [None, Some(Warning), Some(Warning), Some(Error), Some(Error)]
        });
    }

    #[test]
    fn a_limit_far_below_the_kernels_own_is_not_defended() {
        let not = |memory| {
            let host = Snapshot { memory_bytes: Some(memory), ..holding(1200) };
            judged(&CHECK, &host).expect("seen")[0].not.clone()
        };
        // The kernel's own would be 2,000 pages, then 2,002.
        assert!(not(2000 * 16 * 4096).contains("does not read"));
        assert!(not(2002 * 16 * 4096).contains("far below"));
    }

    #[test]
    fn pressure_that_came_and_went_between_the_looks_is_told() {
        let host = counted(holding(10), "TcpExt", "TCPMemoryPressures", [2, 3]);
        let found = judged(&CHECK, &host).expect("seen");
        assert_eq!(found[0].title, "memory for TCP was short: +1 in 10.0 s");
        assert_eq!(judged(&CHECK, &once(host)).expect("seen")[0].confidence, Confidence::Low);
    }

    #[test]
    fn without_counters_and_sockstat_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[(KEY, "1 2 3")])).source, Source::Counters);
    }
}
