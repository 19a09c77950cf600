//! One processor takes nearly all packets, and others could help.
//!
//! # What it says
//! Packets are handled on the processor that the interface's queue interrupts. When one does it all, its time is the
//! host's limit, while the others idle.
//!
//! # How we know
//! Of at least 10,000 packets a second one processor of four or more took over 70 %, and more than half of its time went
//! into softirqs and interrupts.
//!
//! # What it is not
//! One large connection always stays on one processor: spreading cannot divide it. Without the processors' times it
//! is only a warning of what may come.
//!
//! # What to do
//! More queues (`ethtool -L`), their interrupts on different processors, or, where there is one queue only, RPS. `irqbalance`
//! undoes what is set by hand.
//!
//! # Sources
//! Documentation/networking/scaling.rst; Linux `net_rx_action`, `softnet_seq_show` (v6.1). 70 %, a half, 10,000 a second: ours,
//! not measured.

use super::load::{Load, loads, lonely};
use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::{Interrupt, Link};

pub(super) const CHECK: Check =
    Check { code: "ONE_CPU", file: include_str!("one_cpu.rs"), group: Group::Host, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let (loads, apart_ns) = loads(seen)?;
    let Some((busiest, all)) = lonely(&loads, apart_ns) else { return Ok(Vec::new()) };
    let is_busy = match busiest.softirq_of {
        Some((softirq, ticks)) if words::above_percent(softirq, 50, ticks) => true,
        Some(_) => return Ok(Vec::new()),
        None => false,
    };
    let dev = device(seen, busiest.cpu);
    let Load { cpu, packets, softirq_of } = busiest;
    let per_second = packets as f64 * 1e9 / apart_ns as f64;
    let mut evidence = vec![Evidence::new(
        format!("/proc/net/softnet_stat, row of processor {cpu}, column 1"),
        format!("{} of all packets, {per_second:.0} a second", words::share(packets, all)),
    )];
    evidence.extend(softirq_of.map(|(softirq, ticks)| {
        Evidence::new(format!("/proc/stat cpu{cpu} softirq and irq"), words::share(softirq, ticks))
    }));
    evidence.extend(dev.iter().map(|(link, irq)| {
        Evidence::new(
            format!("/proc/interrupts {} ({})", irq.irq, irq.name),
            format!("{} on processor {cpu}", link.name),
        )
    }));
    Ok(vec![Finding {
        severity: if is_busy { Severity::Warning } else { Severity::Info },
        confidence: if is_busy { Confidence::High } else { Confidence::Low },
        scope: Scope::Host,
        title: format!("processor {cpu} takes {} of the packets", words::share(packets, all)),
        why: format!(
            "it handles {per_second:.0} packets a second{}; {} others could help.",
            softirq_of.map_or_else(String::new, |(softirq, ticks)| format!(
                " and spends {} of its time on that",
                words::share(softirq, ticks)
            )),
            loads.len() - 1
        ),
        not: "not that spreading helps one large connection: that stays on one processor"
            .to_owned(),
        evidence,
        fixes: fixes(seen, dev.map(|(link, _)| link)),
        unseen: softirq_of.is_none().then(|| "processor times".to_owned()).into_iter().collect(),
        ..Finding::default()
    }])
}

/// The interface whose interrupt came most often on this processor between the looks.
fn device<'a>(seen: &Seen<'a>, cpu: u32) -> Option<(&'a Link, &'a Interrupt)> {
    let count = |irq: &Interrupt| irq.counts.get(cpu as usize).copied();
    let earlier = seen.before?.interrupts.as_deref()?;
    let busiest = seen.now.interrupts.as_deref()?.iter().filter_map(|irq| {
        let then = earlier.iter().find(|then| then.irq == irq.irq)?;
        Some((irq, count(irq)?.checked_sub(count(then)?)?))
    });
    let (irq, grown) = busiest.max_by_key(|(_, grown)| *grown)?;
    let link = seen.links().ok()?.iter().find(|link| link.name == irq.dev)?;
    (grown > 0).then_some((link, irq))
}

fn fixes(seen: &Seen<'_>, link: Option<&Link>) -> Vec<Fix> {
    let unknown = words::advise(
        "give the interface more queues (ethtool -L DEV combined N), and their interrupts to different processors",
        "the link goes down for a moment with many drivers",
    );
    let Some(link) = link else { return vec![unknown] };
    let queues = link.queues.as_ref();
    let processors = seen.snapshot.processors.unwrap_or(1);
    if let Some([now, most]) = queues.and_then(|queues| queues.combined)
        && now < most.min(processors)
    {
        return vec![Fix {
            what: format!("give {} more queues", link.name),
            risk: "the link goes down for a moment with many drivers".to_owned(),
            set: Some(Change::Ethtool {
                dev: link.name.clone(),
                option: "-L".to_owned(),
                from: format!("combined {now}"),
                to: format!("combined {}", most.min(processors)),
            }),
            applies: words::AT_ONCE.to_owned(),
        }];
    }
    match queues {
        Some(queues) if queues.rx == Some(1) => rps(link, queues.rps_cpus.first(), processors),
        Some(_) => vec![words::advise(
            format!(
                "put the interrupts of {} on different processors (smp_affinity_list, or start irqbalance)",
                link.name
            ),
            "",
        )],
        None => vec![unknown],
    }
}

/// All processors up to 32 in the mask: the file wants words of 32 bits, and more help little.
fn rps(link: &Link, from: Option<&String>, processors: u32) -> Vec<Fix> {
    let mask = u32::MAX.checked_shr(32_u32.saturating_sub(processors)).unwrap_or(0);
    vec![Fix {
        what: format!(
            "let the kernel spread the packets of {} (RPS): it has one receive queue",
            link.name
        ),
        risk: "an interrupt of another processor for many packets".to_owned(),
        set: from.filter(|_| mask > 0).map(|from| Change::File {
            path: format!("/sys/class/net/{}/queues/rx-0/rps_cpus", link.name),
            from: from.clone(),
            to: format!("{mask:x}"),
        }),
        applies: words::AT_ONCE.to_owned(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link, processors};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Queues, Snapshot, Source};

    fn spread(rows: &[(u32, u64)], queues: &Queues) -> Snapshot {
        let mut host = each_look(processors(host(&[]), rows), |nth, look| {
            let irq = Interrupt {
                irq: 51,
                dev: "eth0".to_owned(),
                name: "eth0-rx-0".to_owned(),
                counts: vec![0, 0, 9000 * nth, 0],
                ..Interrupt::default()
            };
            look.interrupts = Some(vec![irq]);
            look.links = Some(vec![Link { queues: Some(queues.clone()), ..link("eth0") }]);
        });
        host.processors = Some(4);
        host
    }

    const LONELY: [(u32, u64); 4] = [(1000, 1), (1000, 1), (98_000, 80), (0, 0)];

    #[test]
    fn one_processor_with_all_packets_is_told_with_its_interface() {
        let combined = Queues { combined: Some([1, 8]), ..Queues::default() };
        insta::assert_snapshot!(shown(&CHECK, &spread(&LONELY, &combined)));
    }

    #[test]
    fn one_queue_alone_is_spread_by_the_kernel() {
        let one = Queues { rx: Some(1), rps_cpus: vec!["0".to_owned()], ..Queues::default() };
        let found = judged(&CHECK, &spread(&LONELY, &one)).expect("seen");
        assert!(format!("{:?}", found[0].fixes[0].set).contains("to: \"f\""), "{found:?}");
    }

    #[test]
    fn seventy_percent_few_packets_or_a_processor_with_time_left_are_nothing() {
        let none = Queues::default();
        let even = [(30_000, 80), (0, 0), (70_000, 80), (0, 0)];
        assert_eq!(judged(&CHECK, &spread(&even, &none)), Ok(Vec::new()));
        let few = [(0, 0), (0, 0), (99_999, 80), (0, 0)];
        assert_eq!(judged(&CHECK, &spread(&few, &none)), Ok(Vec::new()));
        let idle = [(0, 0), (0, 0), (100_000, 50), (0, 0)];
        assert_eq!(judged(&CHECK, &spread(&idle, &none)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &spread(&LONELY[1..], &none)), Ok(Vec::new()));
    }

    #[test]
    fn without_the_processors_times_it_is_only_told() {
        let mut unseen = spread(&LONELY, &Queues::default());
        unseen.looks[1].processors = None;
        assert_eq!(judged(&CHECK, &unseen).expect("seen")[0].severity, Severity::Info);
    }

    #[test]
    fn without_softnet_stat_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Softnet);
        let one = once(spread(&LONELY, &Queues::default()));
        assert_eq!(missing(&CHECK, &one).source, Source::SecondLook);
    }
}
