//! Packets stand in a FIFO of this host: all that leaves waits behind them.
//!
//! # What it says
//! A FIFO keeps the packets of all connections in one line. While one connection fills it, every other waits as long as the
//! line takes to drain: its round trips grow by that (bufferbloat).
//!
//! # How we know
//! The root of an interface is a FIFO (`pfifo_fast`, `pfifo`, `bfifo`), bytes waited in it at both looks, and at the rate at which it
//! drained between them they take more than 20 ms.
//!
//! # What it is not
//! Not that the line stood all the time: it was looked at twice. Queues on the path beyond are not seen here.
//!
//! # What to do
//! Put `fq_codel` or `fq` there: each connection gets a line of its own. Where several send queues hang below `mq`, each has its
//! own discipline, and `net.core.default_qdisc` decides at the next start of the interface.
//!
//! # Sources
//! Linux `pfifo_fast_enqueue` (v6.1, `net/sched/sch_generic.c`); RFC 8290 (`fq_codel`). 20 ms: ours, not measured.

use core::cmp::Reverse;

use super::devices::{self, ROOT, qdisc_growth};
use super::{Check, qdisc_change, words};
use crate::host::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::host::seen::{Asked, Missing, Seen};
use crate::host::snapshot::{Qdisc, Source};

pub(super) const CHECK: Check = Check {
    code: "STANDING_QUEUE",
    file: include_str!("standing_queue.rs"),
    group: Group::Queues,
    judge,
};

const LONG_MS: f64 = 20.0;

struct Standing<'a> {
    qdisc: &'a Qdisc,
    wait_ms: f64,
    before: u64,
    bits_per_second: f64,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    devices::counted_roots(seen)?;
    let all = seen.counted_qdiscs()?;
    let before = seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let earlier = before.qdiscs.as_deref().ok_or(Missing::all(Source::Qdiscs))?;
    let fifos =
        all.iter().enumerate().filter(|(_, each)| qdisc_change::is_fifo(each) && each.backlog > 0);
    let mut hit: Vec<Standing<'_>> = fifos
        .filter_map(|(place, qdisc)| {
            let sent =
                qdisc_growth(seen, place, qdisc, |q| q.bytes).filter(|sent| !sent.since_start)?;
            let sent = sent.per_second();
            let same = |then: &&Qdisc| {
                then.dev == qdisc.dev && then.parent == qdisc.parent && then.handle == qdisc.handle
            };
            let before = earlier.iter().find(same)?.backlog;
            let wait_ms = before.min(qdisc.backlog) as f64 * 1000.0 / sent;
            let stands = wait_ms.is_finite() && wait_ms > LONG_MS;
            stands.then_some(Standing { qdisc, wait_ms, before, bits_per_second: sent * 8.0 })
        })
        .collect();
    hit.sort_by_key(|each| (Reverse(each.wait_ms as u64), &each.qdisc.dev));
    let Some(worst) = hit.first() else { return Ok(Vec::new()) };
    let mut names: Vec<&str> = hit.iter().map(|each| each.qdisc.dev.as_str()).collect();
    names.dedup();
    let evidence = hit.iter().take(words::WORST).map(|each| {
        Evidence::new(
            format!("tc -s qdisc show dev {}", each.qdisc.dev),
            format!(
                "{}: {} bytes waited, then {}; {:.1} Mbit/s left",
                each.qdisc.kind,
                each.before,
                each.qdisc.backlog,
                each.bits_per_second / 1e6
            ),
        )
    });
    let root = hit.iter().find(|each| each.qdisc.parent == ROOT);
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!("what leaves through {} waits {:.0} ms in a FIFO", worst.qdisc.dev, worst.wait_ms),
        why: "all connections stand in one line: a short answer waits for the bulk transfer before it.".to_owned(),
        not: "not that it stood there all the time: it was looked at twice".to_owned(),
        evidence: evidence.collect(),
        fixes: root.and_then(|each| qdisc_change::keep_flows_apart(seen, each.qdisc)).into_iter().collect(),
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::host::snapshot::Snapshot;

    /// 8 Mbit/s leave: 20,000 bytes take 20 ms.
    fn waiting(kind: &str, backlog: [u64; 2]) -> Snapshot {
        each_look(host(&[]), |nth, look| {
            let qdisc =
                Qdisc { backlog: backlog[nth as usize], bytes: 10_000_000 * nth, ..root(kind) };
            look.qdiscs = Some(vec![qdisc]);
        })
    }

    #[test]
    fn a_line_that_stands_at_both_looks_is_told_with_its_wait() {
        insta::assert_snapshot!(shown(&CHECK, &waiting("pfifo_fast", [300_000, 304_800])));
    }

    #[test]
    fn twenty_milliseconds_one_look_of_it_or_another_kind_are_nothing() {
        assert_eq!(judged(&CHECK, &waiting("pfifo_fast", [20_000, 300_000])), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &waiting("pfifo_fast", [20_001, 300_000])).expect("seen").len(),
            1
        );
        assert_eq!(judged(&CHECK, &waiting("pfifo_fast", [0, 300_000])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &waiting("fq_codel", [300_000, 300_000])), Ok(Vec::new()));
    }

    #[test]
    fn without_queueing_disciplines_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
        assert_eq!(missing(&CHECK, &once(waiting("pfifo", [1, 1]))).source, Source::SecondLook);
    }
}
