//! The bound for all of TCP's memory is set to values that do not fit this host.
//!
//! # What it says
//! `tcp_mem` counts pages, not bytes. Values copied as bytes allow more than the machine has, so that nothing stops TCP
//! from using all memory; values below the kernel's own start its brakes with memory to spare.
//!
//! # How we know
//! The third number in bytes is more than the host's memory; or the numbers do not rise; or the second one is less
//! than half of the kernel's own, a 16th of the memory. Where the memory was not seen: the third number allows a tebibyte or
//! more, ten times the second or more, or more than all memory by what the kernel set `udp_mem` to; or
//! the second is less than 128, the least that the kernel sets on any host.
//!
//! # What it is not
//! Not that memory for TCP is short now: that is `TCP_MEMORY`.
//!
//! # What to do
//! Leave the line out of sysctl.d, or set what the kernel computes from the memory. It is a setting of the whole host.
//!
//! # Sources
//! Linux `tcp_init_mem` (v6.12): a 16th of the free pages at start, three quarters and one and a half times of that. `udp_init` gives `udp_mem` an eighth of
//! them. The kernel makes the third number one and a half times the second: ten times, and a tebibyte, are ours. Half
//! of it: ours, for less than all memory is free then, and on 32 bits only its lower part counts.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::bytes;

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
        let why = if rises { boundless(seen, set) } else { Some(FALLS.to_owned()) };
        return why.map_or(Err(unseen.clone()), |why| Ok(vec![by_itself(set, &why, &unseen)]));
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
    (memory / page.max(1) / 16).max(LEAST)
}

/// The least that the kernel sets the second number to.
const LEAST: u64 = 128;

const FALLS: &str =
    "the numbers do not rise: pressure begins when nothing is left, or does not end";

/// Why numbers that rise fit no host, or not this one, as far as that shows without the size of a page: it has 4 KiB or
/// more.
fn boundless(seen: &Seen<'_>, [_, pressure, most]: [i64; 3]) -> Option<String> {
    const PAGE: u64 = 4096;
    let most = most.unsigned_abs();
    let allows = bytes(most.saturating_mul(PAGE));
    let udp = seen.numbers::<3>("net.ipv4.udp_mem").ok().flatten();
    let all = udp.map(|[low, eighth, top]| [low, eighth, top].map(i64::unsigned_abs));
    // As the kernel sets it, and nobody else would.
    let all = all.filter(|[low, eighth, top]| *low == eighth / 4 * 3 && *top == low * 2);
    let all = all.map(|[_, eighth, _]| eighth.saturating_mul(8));
    // Its own numbers are never less (`tcp_init_mem`).
    if pressure.unsigned_abs() < LEAST {
        return Some(format!(
            "the kernel brakes TCP from {pressure} pages on; by itself it sets {LEAST} or more on any host"
        ));
    }
    let why = match all {
        // Whatever a page has.
        _ if has_less(seen, most.saturating_mul(PAGE)) => format!(
            "the third allows {allows} or more of the {} that this host has",
            bytes(seen.snapshot.memory_bytes.unwrap_or(0))
        ),
        Some(all) if most > all => format!(
            "the third allows {allows}, and this host has some {} by its udp_mem",
            bytes(all.saturating_mul(PAGE))
        ),
        _ if most.saturating_mul(PAGE) >= 1 << 40 => format!("the third allows {allows}"),
        _ if most >= pressure.unsigned_abs().saturating_mul(10) => {
            format!("the third allows {allows}, ten times what the second does or more")
        }
        _ => return None,
    };
    Some(format!("the numbers are pages: {why}, so that nothing stops TCP before memory is gone"))
}

fn has_less(seen: &Seen<'_>, bytes: u64) -> bool {
    seen.snapshot.memory_bytes.is_some_and(|memory| bytes > memory)
}

/// What shows of the numbers alone.
fn by_itself([low, pressure, most]: [i64; 3], why: &str, unseen: &Missing) -> Finding {
    let of = if why.contains("this host has") { "this host" } else { "any host" };
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!("{KEY} does not fit {of}: {low} {pressure} {most} pages"),
        why: format!("{why}."),
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
    use crate::snapshot::Snapshot;

    /// A host of 16 GiB has 4,194,304 pages. The kernel would brake at 262,144 of them.
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
        assert_eq!(missing(&CHECK, &host(&[(KEY, "96 128 192")])).source, Source::Machine);
    }

    #[test]
    fn bytes_as_pages_show_without_the_memory_where_no_host_has_as_much() {
        let number =
            |settings: &[(&str, &str)]| judged(&CHECK, &host(settings)).map(|all| all.len());
        assert_eq!(number(&[(KEY, "67108864 134217728 268435456")]), Ok(1));
        assert_eq!(number(&[(KEY, "4096 87380 16777216")]), Ok(1));
        assert!(number(&[(KEY, "8388608 12582912 16777216")]).is_err(), "64 GiB may be right");
        let beside = |udp| [(KEY, "8388608 12582912 16777216"), ("net.ipv4.udp_mem", udp)];
        // 16 GiB, as the kernel sets it; 1 TiB; and set by a person.
        assert_eq!(number(&beside("393216 524288 786432")), Ok(1));
        assert!(number(&beside("25165824 33554432 50331648")).is_err());
        assert!(number(&beside("393216 524288 800000")).is_err());
    }

    #[test]
    fn beside_free_the_size_of_a_page_is_not_needed() {
        let beside = |memory: u64, value| {
            let memory_bytes = Some(memory << 30);
            let host = Snapshot { memory_bytes, ..host(&[(KEY, value)]) };
            judged(&CHECK, &host).map(|found| found[0].title.clone())
        };
        let in_bytes = "8388608 12582912 16777216";
        let told = beside(23, in_bytes).expect("too much");
        assert!(told.contains("does not fit this host"), "{told}");
        assert!(beside(64, in_bytes).is_err(), "64 GiB may be right");
        assert!(beside(23, "287901 383868 575802").is_err());
    }

    #[test]
    fn that_the_numbers_fall_shows_without_the_memory() {
        let little = judged(&CHECK, &host(&[(KEY, "95 127 191")])).expect("seen");
        assert!(little[0].why.contains("from 127 pages on"), "{}", little[0].why);
        let found = judged(&CHECK, &host(&[(KEY, "3 3 4")])).expect("seen");
        assert_eq!((found.len(), found[0].unseen.len()), (1, 1));
    }
}
