//! The interrupts of an interface come to one processor, though it has several queues.
//!
//! # What it says
//! Each receive queue has an interrupt. The processor that takes it does most of the work for the packets of that
//! queue. If all queues of an interface call the same processor, that one is the limit, and the others look on.
//!
//! # How we know
//! `/proc/interrupts` counts each interrupt by processor: nine tenths of those of an interface with several queues
//! came to one. Or their masks (`smp_affinity`) allow the same single processor for all queues.
//!
//! # What it is not
//! Not that this processor is too busy: see `ONE_CPU`. Counts are those since the host started, or since the masks
//! were changed long ago. RPS (`rps_cpus`) may spread the work behind the interrupt. One queue has one interrupt:
//! an interface with one is not told.
//!
//! # What to do
//! Start `irqbalance`, or write another processor into each `smp_affinity_list`.
//!
//! # Sources
//! Documentation/core-api/irq/irq-affinity.rst; Documentation/networking/scaling.rst (RSS: IRQ Configuration);
//! Linux `show_interrupts` (v6.1, `kernel/irq/proc.c`). Nine tenths and a million interrupts: ours, not measured.

use std::collections::BTreeMap;

use super::{Check, devices, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Interrupt, Source};

pub(super) const CHECK: Check = Check {
    code: "INTERRUPT_SPREAD",
    file: include_str!("interrupt_spread.rs"),
    group: Group::Host,
    judge,
};

/// Fewer interrupts are no load. Ours: a busy queue makes this many in a few minutes.
const MANY: u64 = 1_000_000;
/// Queues with fewer than this of the interface's interrupts are idle, as a vector for its own events.
const IDLE_PERCENT: u64 = 1;

/// An interface whose interrupts one processor takes.
struct Alone<'a> {
    dev: &'a str,
    cpu: usize,
    queues: usize,
    /// Of it, and of all.
    counts: Option<(u64, u64)>,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let all = seen.now.interrupts.as_ref().ok_or(Missing::all(Source::Interrupts))?;
    let mut by_device: BTreeMap<&str, Vec<&Interrupt>> = BTreeMap::new();
    for each in all {
        by_device.entry(&each.dev).or_default().push(each);
    }
    let alone: Vec<Alone<'_>> =
        by_device.iter().filter_map(|(dev, irqs)| alone(seen, dev, irqs)).collect();
    let Some(first) = alone.first() else { return Ok(Vec::new()) };
    let names: Vec<&str> = alone.iter().map(|each| each.dev).collect();
    let evidence = alone.iter().take(words::WORST).map(|each| {
        let Alone { dev, cpu, queues, counts } = each;
        match counts {
            Some((most, of)) => Evidence::new(
                format!("/proc/interrupts {dev}"),
                format!(
                    "{} of {of} on processor {cpu}, {}",
                    words::share(*most, *of),
                    words::count(*queues as u64, "queue")
                ),
            ),
            None => Evidence::new(
                format!("/proc/irq/*/smp_affinity_list of {dev}"),
                format!("{cpu} for each of {}", words::count(*queues as u64, "queue")),
            ),
        }
    });
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: devices::scope(&names),
        title: format!(
            "the interrupts of all queues of {} come to processor {}",
            devices::told(&names),
            first.cpu
        ),
        why: format!(
            "{} queues could call different processors; one does the work for all of them.",
            first.queues
        ),
        not: "not that this processor is too busy; RPS may spread the work behind the interrupt"
            .to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            "spread them: start irqbalance, or write another processor into /proc/irq/N/smp_affinity_list of each queue",
            "irqbalance undoes what is written by hand",
        )],
        ..Finding::default()
    }])
}

fn alone<'a>(seen: &Seen<'_>, dev: &'a str, irqs: &[&Interrupt]) -> Option<Alone<'a>> {
    let counts: Vec<Vec<u64>> = irqs.iter().map(|irq| grown(seen, irq)).collect();
    let total = |of: &Vec<u64>| of.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let all = counts.iter().map(total).fold(0, u64::saturating_add);
    let processors = counts.iter().map(Vec::len).max().unwrap_or(0);
    let busy: Vec<&Vec<u64>> =
        counts.iter().filter(|of| words::above_percent(total(of), IDLE_PERCENT, all)).collect();
    if all >= MANY && processors > 1 {
        let on = |cpu: usize| {
            let each = busy.iter().filter_map(|of| of.get(cpu));
            each.fold(0_u64, |sum, count| sum.saturating_add(*count))
        };
        let cpu = (0..processors).max_by_key(|cpu| on(*cpu))?;
        let is_alone = busy.len() > 1 && words::above_percent(on(cpu), 90, all);
        return is_alone.then(|| Alone {
            dev,
            cpu,
            queues: busy.len(),
            counts: Some((on(cpu), all)),
        });
    }
    let masks: Vec<&str> = irqs.iter().filter_map(|irq| irq.affinity.as_deref()).collect();
    let cpu = masks.first()?.parse().ok()?;
    let is_one =
        masks.len() > 1 && masks.len() == irqs.len() && masks.iter().all(|mask| mask == &masks[0]);
    // On a host with one processor there is nothing to spread.
    let has_others =
        cpu > 0 || processors > 1 || seen.snapshot.processors.is_some_and(|all| all > 1);
    (is_one && has_others).then_some(Alone { dev, cpu, queues: masks.len(), counts: None })
}

/// How often it came on each processor: between the looks if it came often then, else in all.
fn grown(seen: &Seen<'_>, irq: &Interrupt) -> Vec<u64> {
    let earlier = seen.before.and_then(|look| {
        look.interrupts.as_ref()?.iter().find(|then| then.irq == irq.irq && then.name == irq.name)
    });
    let then = |cpu: usize| earlier.and_then(|then| then.counts.get(cpu).copied()).unwrap_or(0);
    let between: Vec<u64> =
        irq.counts.iter().enumerate().map(|(cpu, count)| count.saturating_sub(then(cpu))).collect();
    let is_many = between.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)) >= MANY;
    if is_many { between } else { irq.counts.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn irq(queue: u32, counts: &[u64], affinity: Option<&str>) -> Interrupt {
        Interrupt {
            irq: 50 + queue,
            dev: "eth0".to_owned(),
            name: format!("eth0-TxRx-{queue}"),
            counts: counts.to_vec(),
            affinity: affinity.map(str::to_owned),
            effective: None,
        }
    }

    fn with(all: Vec<Interrupt>) -> Snapshot {
        let mut host = once(host(&[]));
        host.looks[0].interrupts = Some(all);
        host
    }

    #[test]
    fn all_queues_on_one_processor_are_told() {
        let all = (0..4).map(|queue| irq(queue, &[900_000, 3, 0, 0], None)).collect();
        insta::assert_snapshot!(shown(&CHECK, &with(all)));
    }

    #[test]
    fn queues_that_are_spread_few_interrupts_and_one_queue_are_silent() {
        let spread = (0..4)
            .map(|queue| {
                let mut counts = [0; 4];
                counts[queue as usize] = 900_000;
                irq(queue, &counts, None)
            })
            .collect();
        assert_eq!(judged(&CHECK, &with(spread)), Ok(Vec::new()));
        let few = (0..4).map(|queue| irq(queue, &[200_000, 0, 0, 0], None)).collect();
        assert_eq!(judged(&CHECK, &with(few)), Ok(Vec::new()));
        let one = vec![irq(0, &[9_000_000, 0], None), irq(1, &[40, 0], None)];
        assert_eq!(judged(&CHECK, &with(one)), Ok(Vec::new()));
    }

    #[test]
    fn nine_tenths_are_the_boundary() {
        let at = |other| {
            let all = (0..2).map(|queue| irq(queue, &[900_000, other], None)).collect();
            judged(&CHECK, &with(all)).expect("seen").len()
        };
        assert_eq!((at(99_999), at(100_000)), (1, 0));
    }

    #[test]
    fn masks_tell_where_there_are_no_counts() {
        let masked = |masks: [&str; 2]| {
            let all = vec![irq(0, &[], Some(masks[0])), irq(1, &[], Some(masks[1]))];
            judged(&CHECK, &with(all)).expect("seen").len()
        };
        assert_eq!([masked(["2", "2"]), masked(["2", "3"]), masked(["0-3", "0-3"])], [1, 0, 0]);
    }

    #[test]
    fn without_interrupts_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Interrupts);
    }
}
