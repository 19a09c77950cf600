//! The table of tracked connections is full or nearly so: packets of new connections are dropped.
//!
//! # What it says
//! Where a firewall or NAT tracks connections, each one needs an entry. When the table is full and nothing in it can
//! be thrown out early, the first packet of a new connection is dropped.
//!
//! # How we know
//! `drop` in `/proc/net/stat/nf_conntrack` grew, or `nf_conntrack_count` is above 85 % of `nf_conntrack_max`; or the
//! kernel's log says `table full, dropping packet`.
//!
//! # What it is not
//! Not what fills it: long timeouts of dead connections do (five days for an established one), and so does a scan.
//! `drop` counts packets that could not be tracked for other reasons, too.
//!
//! # What to do
//! Do not track what needs no tracking (`notrack`), shorten the timeouts, or enlarge the table together with its
//! hash table.
//!
//! # Sources
//! Linux `__nf_conntrack_alloc`, `nf_conntrack_in` (v6.1, `net/netfilter/nf_conntrack_core.c`);
//! Documentation/networking/nf_conntrack-sysctl.rst. 85 %: ours, not measured.

use super::{Check, kernel_log, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Conntrack, Event, Source};

pub(super) const CHECK: Check = Check {
    code: "CONNTRACK_FULL",
    file: include_str!("conntrack_full.rs"),
    group: Group::Connecting,
    judge,
};

const MAX: &str = "net.netfilter.nf_conntrack_max";
const HASH: &str = "nf_conntrack.hashsize";
const FILE: &str = "/proc/net/stat/nf_conntrack";
const FULL: &str = "when it is full the first packet of a new connection is dropped, and the client tries again after \
                    a second.";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    kernel_log::beside(seen, Event::ConntrackFull, counted(seen), |_| Finding {
        scope: Scope::Netns,
        title:
            "the kernel says that it dropped packets, for the table of tracked connections was full"
                .to_owned(),
        why: FULL.to_owned(),
        fixes: vec![words::advise(
            format!(
                "look at net.netfilter.nf_conntrack_count beside {MAX}; track less, or enlarge the table"
            ),
            "",
        )],
        ..Finding::default()
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(table) = seen.now.conntrack.as_ref().ok_or(Missing::all(Source::Conntrack))? else {
        return Ok(Vec::new());
    };
    let before = seen.before.and_then(|look| look.conntrack.as_ref()?.as_ref());
    let grown = |name: &str| {
        let then = before.and_then(|before| before.stat.get(name).copied());
        seen.growth_of(*table.stat.get(name)?, then).filter(|growth| growth.by > 0)
    };
    let (dropped, early) = (grown("drop"), grown("early_drop"));
    let is_near = words::above_percent(table.count, 85, table.max);
    let drops_now = dropped.filter(|growth| !growth.since_start);
    if !is_near && drops_now.is_none() {
        return Ok(Vec::new());
    }
    let mut evidence = vec![
        Evidence::new("net.netfilter.nf_conntrack_count", table.count.to_string()),
        words::setting(MAX, &table.max),
    ];
    let counters =
        [("drop", dropped), ("early_drop", early), ("insert_failed", grown("insert_failed"))];
    evidence.extend(counters.into_iter().filter_map(|(name, growth)| {
        Some(Evidence::new(format!("{FILE} {name}"), words::grown(growth?)))
    }));
    let share = words::share(table.count, table.max);
    let (fixes, with_first) = if is_near { fixes(seen, table) } else { (Vec::new(), 0) };
    Ok(vec![Finding {
        severity: if drops_now.is_some() { Severity::Error } else { Severity::Warning },
        confidence: if is_near { Confidence::High } else { Confidence::Medium },
        scope: Scope::Netns,
        title: match drops_now {
            Some(growth) => {
                format!("connection tracking drops packets, its table is {share} full: {}", words::grown(growth))
            }
            None => format!("the table of tracked connections is {share} full"),
        },
        why: FULL.to_owned(),
        not: if is_near {
            "not what fills it: dead connections with long timeouts, a scan, or honest load"
        } else {
            "not that the table is too small: it has room now, and packets are dropped here for other reasons too"
        }
        .to_owned(),
        evidence,
        fixes,
        with_first,
        ..Finding::default()
    }])
}

/// The table and its hash belong together; the other ways follow.
fn fixes(seen: &Seen<'_>, table: &Conntrack) -> (Vec<Fix>, usize) {
    const TIMEOUT: &str = "net.netfilter.nf_conntrack_tcp_timeout_established";
    let more = table.max.saturating_mul(2);
    let mut fixes = vec![words::set(
        seen,
        MAX,
        &more,
        "enlarge the table",
        words::AT_ONCE,
        "some 300 bytes of kernel memory for each entry",
    )];
    fixes.extend(hash(seen, more / 4));
    let with_first = fixes.iter().filter(|fix| fix.set.is_some()).count().saturating_sub(1);
    if seen.number(TIMEOUT).ok().flatten().is_some_and(|seconds| seconds > 86_400) {
        fixes.push(words::set(
            seen,
            TIMEOUT,
            &86_400,
            "forget an established connection after a day of silence, not five",
            words::AT_ONCE,
            "a connection that is silent for longer is cut at this host",
        ));
    }
    fixes.push(words::advise(
        "do not track what needs no tracking (notrack), such as a busy public port",
        "",
    ));
    (fixes, with_first)
}

/// This many buckets, where there are fewer. A namespace may not set them (`nf_conntrack_set_hashsize`).
fn hash(seen: &Seen<'_>, buckets: u64) -> Option<Fix> {
    let from = seen.snapshot.module_parameters.as_ref()?.get(HASH)?;
    let now: u64 = from.parse().ok().filter(|now| *now < buckets)?;
    let (path, to) =
        ("/sys/module/nf_conntrack/parameters/hashsize", buckets.next_multiple_of(PAGE_OF_BUCKETS));
    let what = "enlarge its hash table with it, or each look-up walks a longer chain";
    let risk = format!("8 bytes for each bucket, {now} now; a short stall while it is built");
    if seen.snapshot.initial_netns == Some(false) {
        let of_the_host = format!("{what}: {path} of the host to {to}, for a namespace may not");
        return Some(words::advise(of_the_host, &risk));
    }
    let set = Change::File { path: path.to_owned(), from: from.clone(), to: to.to_string() };
    let applies = words::AT_ONCE.to_owned();
    Some(Fix { what: what.to_owned(), risk, set: Some(set), applies })
}

/// The kernel fills whole pages with buckets, of 8 bytes each (`nf_ct_alloc_hashtable`): these are all of one of
/// 64 KiB, the largest page, so that what is written is what will be read.
const PAGE_OF_BUCKETS: u64 = (64 << 10) / 8;

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn tracked(count: u64, drops: [u64; 2]) -> Snapshot {
        let settings =
            [(MAX, "1000"), ("net.netfilter.nf_conntrack_tcp_timeout_established", "432000")];
        let mut host = each_look(host(&settings), |nth, look| {
            let stat = [("drop".to_owned(), drops[nth as usize])].into();
            look.conntrack = Some(Some(Conntrack { count, max: 1000, stat }));
        });
        host.module_parameters = Some([(HASH.to_owned(), "250".to_owned())].into());
        host
    }

    #[test]
    fn a_full_table_that_drops_is_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &tracked(1000, [5, 90])));
    }

    #[test]
    fn eighty_five_percent_are_not_enough_and_drops_long_ago_are_nothing() {
        assert_eq!(judged(&CHECK, &tracked(850, [5, 5])), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &tracked(851, [5, 5])).expect("seen")[0].severity,
            Severity::Warning
        );
        assert_eq!(judged(&CHECK, &once(tracked(10, [5, 5]))), Ok(Vec::new()));
    }

    #[test]
    fn drops_with_room_in_the_table_are_not_put_on_its_size() {
        let found = judged(&CHECK, &tracked(10, [5, 6])).expect("seen");
        assert_eq!((found[0].severity, found[0].fixes.len()), (Severity::Error, 0));
    }

    #[test]
    fn the_table_and_its_hash_belong_together_and_are_of_the_host() {
        let of = |initial_netns| {
            let host = Snapshot { initial_netns, ..tracked(1000, [5, 90]) };
            judged(&CHECK, &host).expect("seen").remove(0)
        };
        let found = of(None);
        assert_eq!((found.ways().first.len(), found.ways().others.len()), (2, 1));
        let inside = of(Some(false));
        assert_eq!((inside.with_first, inside.fixes.len()), (0, found.fixes.len()));
        assert!(inside.fixes[..2].iter().all(|fix| fix.set.is_none()));
    }

    #[test]
    fn a_host_that_tracks_nothing_is_well_and_one_not_looked_at_is_not_judged() {
        let mut host = tracked(1000, [0, 9]);
        host.looks[1].conntrack = Some(None);
        assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
        host.looks[1].conntrack = None;
        assert_eq!(missing(&CHECK, &host).source, Source::Conntrack);
    }
}
