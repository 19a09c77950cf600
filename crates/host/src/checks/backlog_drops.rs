//! Packets were dropped because a processor's backlog was full.
//!
//! # What it says
//! Packets that come by loopback, `veth`, RPS or an old driver wait in a queue of each processor, of at most
//! `netdev_max_backlog`. When it is full they are dropped. Interfaces with NAPI and without RPS do not use it.
//!
//! # How we know
//! The second column of `/proc/net/softnet_stat` grew, and more than the eleventh: it counts drops of the flow limit, too
//! (`FLOW_LIMIT`).
//!
//! # What it is not
//! Not the ring of an interface (`RING_OVERRUN`), and not that the queue is too short: a processor without time
//! left fills any.
//!
//! # What to do
//! Spread the work first (`ONE_CPU`). Then lengthen the queue.
//!
//! # Sources
//! Linux `enqueue_to_backlog`, `softnet_seq_show` (v6.1, `net/core/dev.c`, `net/core/net-procfs.c`).

use core::cmp::Reverse;

use super::{Check, words};
use crate::finding::{Evidence, Finding, Group, Scope};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::{Softnet, Source};

pub(super) const CHECK: Check = Check {
    code: "BACKLOG_DROPS",
    file: include_str!("backlog_drops.rs"),
    group: Group::Host,
    judge,
};

const KEY: &str = "net.core.netdev_max_backlog";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut dropped = of_full_queues(seen)?;
    dropped.sort_by_key(|(cpu, growth)| (Reverse(growth.by), *cpu));
    let Some((_, first)) = dropped.first() else { return Ok(Vec::new()) };
    let all = Growth { by: dropped.iter().map(|(_, growth)| growth.by).sum(), ..*first };
    let most = seen.number(KEY).ok().flatten();
    let mut evidence: Vec<Evidence> = dropped
        .iter()
        .take(words::WORST)
        .map(|(cpu, growth)| {
            Evidence::new(
                format!("/proc/net/softnet_stat, row of processor {cpu}, column 2 less column 11"),
                words::grown(*growth),
            )
        })
        .collect();
    evidence.extend(most.map(|most| words::setting(KEY, &most)));
    let mut fixes = vec![words::advise(
        "see first whether one processor takes all packets, or has no time left (mpstat -P ALL 1)",
        "",
    )];
    fixes.extend(most.filter(|most| (1..LARGEST).contains(most)).map(|most| {
        words::set(
            seen,
            KEY,
            &most.saturating_mul(4).min(LARGEST),
            "lengthen the queue",
            words::AT_ONCE,
            "more delay and memory while it is full; it is one value for the whole host",
        )
    }));
    Ok(vec![Finding {
        severity: words::of_drops(all),
        confidence: words::sure(all),
        scope: Scope::Host,
        title: format!(
            "packets were dropped, the backlog of {} was full: {}",
            words::count(dropped.len() as u64, "processor"),
            words::grown(all)
        ),
        why: "what comes by loopback, veth or RPS waits there; each packet that is dropped is a loss to TCP.".to_owned(),
        not: "not that the queue is too short: a processor without time left fills any".to_owned(),
        evidence,
        fixes,
        ..Finding::default()
    }])
}

/// Without what the flow limit dropped: that count begins anew when it is switched on again.
fn of_full_queues(seen: &Seen<'_>) -> Asked<Vec<(u32, Growth)>> {
    let limited = dropped(seen, |row| row.flow_limit)?;
    let full = dropped(seen, |row| Some(row.dropped))?.into_iter().map(|(cpu, all)| {
        let of_limit =
            limited.iter().find(|(limited, _)| *limited == cpu).map_or(0, |(_, by)| by.by);
        (cpu, Growth { by: all.by.checked_sub(of_limit).unwrap_or(all.by), ..all })
    });
    Ok(full.filter(|(_, growth)| growth.by > 0).collect())
}

/// Processors whose counter grew. It is of 32 bits and wraps.
pub(super) fn dropped(
    seen: &Seen<'_>,
    of: impl Fn(&Softnet) -> Option<u32>,
) -> Asked<Vec<(u32, Growth)>> {
    let now = seen.now.softnet.as_deref().ok_or(Missing::all(Source::Softnet))?;
    let earlier = seen.before.and_then(|look| look.softnet.as_deref());
    let grown = now.iter().filter_map(|row| {
        let count = of(row)?;
        let growth = if seen.before.is_some() {
            let then = earlier?.iter().find(|then| then.cpu == row.cpu).and_then(&of)?;
            seen.growth_of(u64::from(count.wrapping_sub(then)), Some(0))?
        } else {
            seen.growth_of(u64::from(count), None)?
        };
        (growth.by > 0).then_some((row.cpu, growth))
    });
    Ok(grown.collect())
}

/// Ours, not measured: at 1500 bytes it is 45 MB a processor.
const LARGEST: i64 = 30_000;

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::finding::{Confidence, Severity};
    use crate::snapshot::Snapshot;

    fn backlog(dropped: [u32; 2]) -> Snapshot {
        each_look(host(&[(KEY, "1000")]), |nth, look| {
            let row = |cpu, dropped| Softnet { cpu, dropped, ..Softnet::default() };
            look.softnet = Some(vec![row(0, 5), row(3, dropped[nth as usize])]);
        })
    }

    #[test]
    fn a_backlog_that_drops_is_an_error_of_its_processor() {
        insta::assert_snapshot!(shown(&CHECK, &backlog([7, 70])));
    }

    #[test]
    fn a_counter_that_wraps_went_on_and_one_that_stands_is_nothing() {
        let found = judged(&CHECK, &backlog([u32::MAX, 2])).expect("seen");
        assert!(found[0].title.ends_with("+3 in 10.0 s"), "{}", found[0].title);
        assert_eq!(judged(&CHECK, &backlog([7, 7])), Ok(Vec::new()));
    }

    #[test]
    fn drops_of_the_flow_limit_are_not_those_of_a_full_queue() {
        let limited = |count: u32| {
            each_look(backlog([7, 70]), |nth, look| {
                for row in look.softnet.iter_mut().flatten() {
                    row.flow_limit = Some(5 + count * nth as u32);
                }
            })
        };
        assert_eq!(judged(&CHECK, &limited(63)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &limited(62)).expect("seen").len(), 1);
    }

    #[test]
    fn one_look_is_unsure() {
        let found = judged(&CHECK, &once(backlog([7, 7]))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn without_softnet_stat_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Softnet);
    }
}
