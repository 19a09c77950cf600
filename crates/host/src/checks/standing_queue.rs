//! Packets stand in a FIFO of this host: all that leaves waits behind them.
//!
//! # What it says
//! A FIFO keeps the packets of all connections in one line. While one connection fills it, every other waits as long as the
//! line takes to drain: its round trips grow by that (bufferbloat).
//!
//! # How we know
//! A queueing discipline is a FIFO (`pfifo_fast`, `pfifo`, `bfifo`), or a shaper has none of another kind below it: a `tbf`, or a class of
//! `htb` without classes of its own. Bytes waited in it at both looks, and at the rate at which it drained between them they take more
//! than 20 ms.
//!
//! # What it is not
//! Not that the line stood all the time: it was looked at twice. Queues on the path beyond are not seen here.
//!
//! # What to do
//! Put `fq_codel` or `fq` there: each connection gets a line of its own. Where several send queues hang below `mq`, each has its
//! own discipline, and `net.core.default_qdisc` decides at the next start of the interface. A shaper keeps its rate: put `fq_codel`
//! below it.
//!
//! # Sources
//! Linux `pfifo_fast_enqueue` (v6.1, `net/sched/sch_generic.c`), `tbf_change`, `htb_change_class` (their own FIFOs, which tc does not show); RFC 8290 (`fq_codel`). 20 ms: ours, not measured.

use core::cmp::Reverse;

use super::devices::{self, ROOT};
use super::shaper::tc_handle;
use super::{Check, qdisc_change, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Qdisc, Source};

pub(super) const CHECK: Check = Check {
    code: "STANDING_QUEUE",
    file: include_str!("standing_queue.rs"),
    group: Group::Queues,
    judge,
};

const LONG_MS: f64 = 20.0;

struct Standing<'a> {
    /// A discipline, or a class of one.
    line: &'a Qdisc,
    is_class: bool,
    wait_ms: f64,
    before: u64,
    bits_per_second: f64,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut hit = standing(seen)?;
    hit.sort_by_key(|each| (Reverse(each.wait_ms as u64), &each.line.dev));
    let Some(worst) = hit.first() else { return Ok(Vec::new()) };
    let mut names: Vec<&str> = hit.iter().map(|each| each.line.dev.as_str()).collect();
    names.dedup();
    let root = hit.iter().find(|each| !each.is_class && each.line.parent == ROOT);
    let fixes = match root {
        Some(each) if qdisc_change::is_fifo(each.line) => {
            qdisc_change::keep_flows_apart(seen, each.line)
        }
        _ => hit.iter().find(|each| !qdisc_change::is_fifo(each.line)).map(below_shaper),
    };
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!(
            "what leaves through {} waits {:.0} ms in {}",
            worst.line.dev,
            worst.wait_ms,
            place(worst)
        ),
        why: "all connections stand in one line: a short answer waits for the bulk transfer before it.".to_owned(),
        not: "not that it stood there all the time: it was looked at twice".to_owned(),
        evidence: hit.iter().take(words::WORST).map(evidence).collect(),
        fixes: fixes.into_iter().collect(),
        ..Finding::default()
    }])
}

/// Lines that stand at both looks.
fn standing<'a>(seen: &Seen<'a>) -> Asked<Vec<Standing<'a>>> {
    let all = seen.counted_qdiscs()?;
    let before = seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let earlier = before.qdiscs.as_deref().ok_or(Missing::all(Source::Qdiscs))?;
    let seconds = seen.apart_ns().unwrap_or(0) as f64 / 1e9;
    let classes = seen.now.classes.as_deref().unwrap_or_default();
    let lines = all.iter().filter(|each| is_line(seen, each)).map(|each| (each, false, earlier));
    let leaves = classes.iter().filter(|each| is_leaf(each, classes, all));
    let earlier_classes = before.classes.as_deref().unwrap_or_default();
    let leaves = leaves.map(|each| (each, true, earlier_classes));
    let standing = lines.chain(leaves).filter_map(|(line, is_class, earlier)| {
        let is_same = |then: &&Qdisc| {
            (&then.dev, &then.kind, then.parent, then.handle)
                == (&line.dev, &line.kind, line.parent, line.handle)
        };
        let then = earlier.iter().find(is_same)?;
        let sent = line.bytes.checked_sub(then.bytes)? as f64 / seconds;
        let wait_ms = then.backlog.min(line.backlog) as f64 * 1000.0 / sent;
        let stands = wait_ms.is_finite() && wait_ms > LONG_MS;
        stands.then_some(Standing {
            line,
            is_class,
            wait_ms,
            before: then.backlog,
            bits_per_second: sent * 8.0,
        })
    });
    Ok(standing.collect())
}

/// A FIFO, or a `tbf` that has none but its own.
fn is_line(seen: &Seen<'_>, qdisc: &Qdisc) -> bool {
    let is_bare_tbf = || qdisc.kind == "tbf" && !devices::has_children(seen, qdisc);
    qdisc.backlog > 0 && (qdisc_change::is_fifo(qdisc) || is_bare_tbf())
}

/// A class of `htb` below which nothing was put: the kernel gives it a FIFO.
fn is_leaf(class: &Qdisc, classes: &[Qdisc], qdiscs: &[Qdisc]) -> bool {
    let is_below = |each: &Qdisc| each.dev == class.dev && each.parent == class.handle;
    class.kind == "htb"
        && class.backlog > 0
        && !class.uncounted
        && !classes.iter().chain(qdiscs).any(is_below)
}

fn place(standing: &Standing<'_>) -> String {
    let Standing { line, is_class, .. } = standing;
    if *is_class {
        format!("the FIFO of class {} of a shaper ({})", tc_handle(line.handle), line.kind)
    } else if qdisc_change::is_fifo(line) {
        "a FIFO".to_owned()
    } else {
        format!("the FIFO of a shaper ({})", line.kind)
    }
}

fn evidence(standing: &Standing<'_>) -> Evidence {
    let Standing { line, is_class, before, bits_per_second, .. } = standing;
    let what = if *is_class { "class" } else { "qdisc" };
    Evidence::new(
        format!("tc -s {what} show dev {}", words::device(&line.dev)),
        format!(
            "{}: {before} bytes waited, then {}; {:.1} Mbit/s left",
            line.kind,
            line.backlog,
            bits_per_second / 1e6
        ),
    )
}

fn below_shaper(standing: &Standing<'_>) -> Fix {
    let Standing { line, is_class, .. } = standing;
    // The only class of a `tbf` is its first (`tbf_dump_class`).
    let parent = if *is_class { line.handle } else { line.handle | 1 };
    words::advise(
        format!(
            "keep flows apart below the shaper: tc qdisc add dev {} parent {} fq_codel",
            words::device(&line.dev),
            tc_handle(parent)
        ),
        "what waits in the old queue is lost",
    )
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, root};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

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
    fn a_shaper_has_a_fifo_of_its_own_unless_another_is_below_it() {
        let tbf = each_look(waiting("tbf", [300_000, 304_800]), |_, look| {
            look.qdiscs.iter_mut().flatten().for_each(|shaper| shaper.handle = 0x8002_0000);
        });
        insta::assert_snapshot!(shown(&CHECK, &tbf));
        let with_child = each_look(tbf, |_, look| {
            let child = Qdisc { parent: 0x8002_0001, handle: 0x10_0000, ..root("fq_codel") };
            look.qdiscs.iter_mut().for_each(|all| all.push(child.clone()));
        });
        assert_eq!(judged(&CHECK, &with_child), Ok(Vec::new()));
    }

    #[test]
    fn a_class_of_htb_is_a_line_where_nothing_is_below_it() {
        let shaped = |child: &str, parent| {
            each_look(host(&[]), |nth, look| {
                let class = |handle, parent, backlog| {
                    let bytes = 10_000_000 * nth;
                    Qdisc { handle, parent, bytes, backlog, ..root("htb") }
                };
                look.classes =
                    Some(vec![class(0x1_0001, ROOT, 300_000), class(0x1_0010, 0x1_0001, 300_000)]);
                let own = Qdisc { handle: 0x1_0000, ..root("htb") };
                let child = Qdisc { handle: 0x2_0000, parent, ..root(child) };
                look.qdiscs = Some(vec![own, child]);
            })
        };
        let found = judged(&CHECK, &shaped("fq_codel", 0x1_0020)).expect("seen");
        assert!(found[0].title.contains("class 1:10 of a shaper (htb)"), "{}", found[0].title);
        assert_eq!(found[0].evidence.len(), 1);
        assert!(found[0].fixes[0].what.ends_with("parent 1:10 fq_codel"));
        assert_eq!(judged(&CHECK, &shaped("fq_codel", 0x1_0010)), Ok(Vec::new()));
    }

    #[test]
    fn without_queueing_disciplines_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Qdiscs);
        assert_eq!(missing(&CHECK, &once(waiting("pfifo", [1, 1]))).source, Source::SecondLook);
    }
}
