//! The bound for all of TCP's memory is set to values that do not fit this host.
//!
//! # What it says
//! `tcp_mem` counts pages, not bytes. Values copied as bytes allow more than the machine has, so that nothing stops TCP
//! from using all memory; values below the kernel's own start its brakes with memory to spare.
//!
//! # How we know
//! The third number in bytes is more than the host's memory; or the numbers do not rise; or the second one is less
//! than half of the kernel's own, a 16th of the memory.
//!
//! # What it is not
//! Not that memory for TCP is short now: that is `TCP_MEMORY`.
//!
//! # What to do
//! Leave the line out of sysctl.d, or set what the kernel computes from the memory. It is a setting of the whole host.
//!
//! # Sources
//! Linux `tcp_init_mem` (v6.12): a 16th of the free pages at start, three quarters and one and a half times of that. Half
//! of it: ours, for less than all memory is free then, and on 32 bits only its lower part counts.

use super::{Check, words};
use crate::host::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::host::seen::{Asked, Missing, Seen};
use crate::host::snapshot::Source;
use crate::words::bytes;

pub(super) const CHECK: Check = Check {
    code: "TCP_MEMORY_LIMITS",
    file: include_str!("tcp_memory_limits.rs"),
    group: Group::Receiving,
    judge,
};

const KEY: &str = "net.ipv4.tcp_mem";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(set) = seen.numbers::<3>(KEY)? else { return Ok(Vec::new()) };
    let [low, pressure, most] = set.map(|pages| u64::try_from(pages).unwrap_or(0));
    let rises = low < pressure && pressure < most;
    let machine = seen.snapshot.memory_bytes.zip(seen.snapshot.page_bytes);
    let unseen = Missing::part(Source::Machine, "memory, page size");
    let Some((memory, page)) = machine else {
        return if rises { Err(unseen) } else { Ok(vec![falling(set, &unseen)]) };
    };
    let in_bytes = most.saturating_mul(page);
    let own = by_kernel(memory, page);
    let (severity, why) = if in_bytes > memory {
        let why = format!(
            "the numbers are pages: the third allows {} of the {} that this host has, so that nothing stops TCP \
             before memory is gone",
            bytes(in_bytes),
            bytes(memory)
        );
        (Severity::Warning, why)
    } else if !rises {
        (Severity::Warning, FALLS.to_owned())
    } else if pressure < own / 2 {
        let why = format!(
            "the kernel brakes TCP from {} on; by itself it would from about {}",
            bytes(pressure.saturating_mul(page)),
            bytes(own.saturating_mul(page))
        );
        (Severity::Info, why)
    } else {
        return Ok(Vec::new());
    };
    let lowest = own / 4 * 3;
    Ok(vec![Finding {
        severity,
        confidence: if severity == Severity::Info { Confidence::Medium } else { Confidence::High },
        scope: Scope::Host,
        title: format!("{KEY} does not fit this host: {low} {pressure} {most} pages"),
        why: format!("{why}."),
        not: "not that memory for TCP is short now".to_owned(),
        evidence: vec![
            words::setting(KEY, &format_args!("{low} {pressure} {most}")),
            Evidence::new("/proc/meminfo MemTotal", bytes(memory)),
            Evidence::new("getconf PAGE_SIZE", page.to_string()),
        ],
        fixes: vec![words::set(
            seen,
            KEY,
            &format_args!("{lowest} {own} {}", lowest * 2),
            "set about what the kernel sets by itself",
            words::AT_ONCE,
            "",
        )],
        ..Finding::default()
    }])
}

/// Pages from which on the kernel would brake TCP by itself (`tcp_init_mem`).
pub(super) fn by_kernel(memory: u64, page: u64) -> u64 {
    (memory / page.max(1) / 16).max(128)
}

const FALLS: &str =
    "the numbers do not rise: pressure begins when nothing is left, or does not end";

/// What shows of the numbers alone.
fn falling([low, pressure, most]: [i64; 3], unseen: &Missing) -> Finding {
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!("{KEY} does not fit any host: {low} {pressure} {most} pages"),
        why: format!("{FALLS}."),
        not: "not that memory for TCP is short now".to_owned(),
        evidence: vec![words::setting(KEY, &format_args!("{low} {pressure} {most}"))],
        fixes: vec![words::advise(
            "leave it out of sysctl.d: from its memory the kernel sets what fits",
            "works when the host is started anew",
        )],
        unseen: vec![unseen.to_string()],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::host::snapshot::Snapshot;

    /// A host of 16 GiB: 4,194,304 pages, of which the kernel would brake at 262,144.
    fn set(value: &str) -> Snapshot {
        Snapshot { memory_bytes: Some(16 << 30), page_bytes: Some(4096), ..host(&[(KEY, value)]) }
    }

    #[test]
    fn bytes_that_were_set_as_pages() {
        insta::assert_snapshot!(shown(&CHECK, &set("8388608 12582912 16777216")));
    }

    #[test]
    fn borders() {
        let number = |value| judged(&CHECK, &set(value)).expect("seen").len();
        assert_eq!([number("98304 131072 196608"), number("98303 131071 196608")], [0, 1]);
        assert_eq!([number("196608 262144 4194304"), number("196608 262144 4194305")], [0, 1]);
        assert_eq!(number("262144 262144 262144"), 1);
    }

    #[test]
    fn without_the_memory_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[(KEY, "1 2 3")])).source, Source::Machine);
    }

    #[test]
    fn that_the_numbers_fall_shows_without_the_memory() {
        let found = judged(&CHECK, &host(&[(KEY, "3 3 4")])).expect("seen");
        assert_eq!((found.len(), found[0].unseen.len()), (1, 1));
    }
}
