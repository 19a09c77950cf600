//! The table of neighbours is full or nearly so: connections to hosts on the same network stall.
//!
//! # What it says
//! To send to a host on the same network the kernel needs its hardware address, kept in a table of
//! `gc_thresh3` entries for all namespaces together. When it is full and none can be dropped, packets to new neighbours
//! are lost; connections stall at random.
//!
//! # How we know
//! `table_fulls` of `/proc/net/stat/arp_cache` or `ndisc_cache` grew, or the entries are above four fifths of
//! `gc_thresh3`; or the kernel's log says `table overflow`.
//!
//! # What it is not
//! Not which network is so full: a large flat network, thousands of containers, and a scan all do it.
//!
//! # What to do
//! Raise the three thresholds together. Each entry takes some hundred bytes.
//!
//! # Sources
//! Linux `neigh_alloc`, `neigh_forced_gc` (v6.1, `net/core/neighbour.c`); arp(7). Four fifths: ours, not measured.

use super::{Check, kernel_log, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Event, Neighbours, Source};

pub(super) const CHECK: Check = Check {
    code: "NEIGHBOUR_TABLE",
    file: include_str!("neighbour_table.rs"),
    group: Group::Connecting,
    judge,
};

const FULL: &str = "packets to a neighbour that finds no room are lost until another entry goes; a connection to it stalls.";
const TABLES: [(&str, &str); 2] = [("arp_cache", "IPv4"), ("ndisc_cache", "IPv6")];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    kernel_log::beside(seen, Event::NeighboursFull, counted(seen), |said| {
        Finding {
            scope: Scope::Host,
            title: format!(
                "the kernel says that a table of neighbours was full: {}",
                kernel_log::whose(said)
            ),
            why: FULL.to_owned(),
            fixes: TABLES
                .iter()
                .filter(|(name, _)| said.iter().any(|said| said.of.as_deref() == Some(name)))
                .flat_map(|(_, family)| fixes(seen, family))
                .collect(),
            ..Finding::default()
        }
        .all_together()
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let tables = seen.now.neighbours.as_ref().ok_or(Missing::all(Source::Neighbours))?;
    let found =
        TABLES.iter().filter_map(|(name, family)| of_table(seen, name, family, tables.get(*name)?));
    Ok(found.collect())
}

fn of_table(seen: &Seen<'_>, name: &str, family: &str, table: &Neighbours) -> Option<Finding> {
    let before = seen.before.and_then(|look| look.neighbours.as_ref()?.get(name));
    let full = seen.growth_of(table.table_fulls, before.map(|before| before.table_fulls));
    let full = full.filter(|growth| growth.by > 0);
    let key = key(family, 3);
    let most = seen.number(&key).ok().flatten().and_then(|most| u64::try_from(most).ok());
    let is_near = most.is_some_and(|most| words::above_percent(table.entries, 80, most));
    if full.is_none() && !is_near {
        return None;
    }
    let mut evidence =
        vec![Evidence::new(format!("/proc/net/stat/{name} entries"), table.entries.to_string())];
    evidence.extend(full.map(|growth| {
        Evidence::new(format!("/proc/net/stat/{name} table_fulls"), words::grown(growth))
    }));
    evidence.extend(most.map(|most| words::setting(&key, &most)));
    let found = Finding {
        severity: full.map_or(Severity::Warning, words::of_drops),
        confidence: full.map_or(Confidence::High, words::sure),
        scope: Scope::Host,
        title: match full {
            Some(growth) => {
                format!("the {family} neighbour table was full: {}", words::grown(growth))
            }
            None => format!(
                "the {family} neighbour table holds {} entries, near its limit",
                table.entries
            ),
        },
        why: FULL.to_owned(),
        not: "not which network or container fills it: all namespaces share the limit".to_owned(),
        evidence,
        fixes: fixes(seen, family),
        ..Finding::default()
    };
    Some(found.all_together())
}

/// Four times each threshold that was seen (ours, not measured), the largest first: each must stay above the next.
fn fixes(seen: &Seen<'_>, family: &str) -> Vec<Fix> {
    let raise = |nth: u8| {
        let key = key(family, nth);
        let from = seen.number(&key).ok().flatten()?;
        Some(words::set(
            seen,
            &key,
            &from.saturating_mul(4),
            "allow more neighbours",
            words::AT_ONCE,
            "some hundred bytes of kernel memory for each",
        ))
    };
    [3, 2, 1].into_iter().filter_map(raise).collect()
}

fn key(family: &str, nth: u8) -> String {
    format!("net.{}.neigh.default.gc_thresh{nth}", family.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn neighbours(entries: u64, fulls: [u64; 2]) -> Snapshot {
        let key = |nth: &str| format!("net.ipv4.neigh.default.gc_thresh{nth}");
        let (one, two, three) = (key("1"), key("2"), key("3"));
        let host = host(&[(&*one, "128"), (&*two, "512"), (&*three, "1024")]);
        each_look(host, |nth, look| {
            let table = Neighbours { entries, table_fulls: fulls[nth as usize] };
            look.neighbours = Some([("arp_cache".to_owned(), table)].into());
        })
    }

    #[test]
    fn a_table_that_was_full_is_an_error_with_all_three_thresholds() {
        insta::assert_snapshot!(shown(&CHECK, &neighbours(1024, [2, 9])));
    }

    #[test]
    fn four_fifths_are_not_enough_and_one_look_is_unsure() {
        assert_eq!(judged(&CHECK, &neighbours(819, [2, 2])), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &neighbours(820, [2, 2])).expect("seen")[0].severity,
            Severity::Warning
        );
        assert_eq!(
            judged(&CHECK, &once(neighbours(3, [2, 2]))).expect("seen")[0].confidence,
            Confidence::Low
        );
    }

    #[test]
    fn without_the_tables_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Neighbours);
    }
}
