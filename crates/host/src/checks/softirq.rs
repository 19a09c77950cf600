//! A processor that handles packets has no time left.
//!
//! # What it says
//! When softirqs and interrupts take all of a processor's time, packets wait and then drop, and programs on
//! it do not run.
//!
//! # How we know
//! More than 90 % of the time of a processor went into softirqs and interrupts between the looks, while it took at least
//! 1,000 packets a second.
//!
//! # What it is not
//! Not what it does with them: firewall rules, `tc` filters, encryption and small packets all cost. Where one processor
//! does all the work and others idle, `ONE_CPU` tells it and this does not.
//!
//! # What to do
//! See what it does (`perf top -C N`). Merge packets (GRO, larger MTU), shorten the rules, or spread to more processors.
//!
//! # Sources
//! Linux `net_rx_action`, `account_softirq` (v6.1); proc(5) `/proc/stat`. 90 % and 1,000 a second: ours, not measured.

use super::load::{Load, loads, lonely};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "SOFTIRQ", file: include_str!("softirq.rs"), group: Group::Host, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let (loads, apart_ns) = loads(seen)?;
    if loads.iter().all(|load| load.softirq_of.is_none()) {
        return Err(Missing::all(Source::Processors));
    }
    let alone = lonely(&loads, apart_ns).map(|(load, _)| load.cpu);
    let per_second = |load: &Load| load.packets as f64 * 1e9 / apart_ns as f64;
    let full = |load: &&Load| {
        let is_full =
            load.softirq_of.is_some_and(|(softirq, all)| words::above_percent(softirq, 90, all));
        is_full && per_second(load) >= 1000.0 && alone != Some(load.cpu)
    };
    let full: Vec<&Load> = loads.iter().filter(full).collect();
    if full.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = full.iter().map(|load| load.cpu.to_string()).collect();
    let evidence = full.iter().take(words::WORST).filter_map(|load| {
        let (softirq, all) = load.softirq_of?;
        Some(Evidence::new(
            format!("/proc/stat cpu{} softirq and irq", load.cpu),
            format!("{}, {:.0} packets a second", words::share(softirq, all), per_second(load)),
        ))
    });
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!(
            "{} {} no time left: packets take it all",
            if names.len() == 1 { format!("processor {}", names[0]) } else { format!("processors {}", words::named(&names)) },
            if names.len() == 1 { "has" } else { "have" }
        ),
        why: "what comes faster waits in rings and backlogs, and is dropped when these are full; programs there do not run."
            .to_owned(),
        not: "not what the time goes into: rules, filters, encryption, small packets".to_owned(),
        evidence: evidence.collect(),
        fixes: vec![words::advise(
            format!("see what it does: perf top -C {}", names[0]),
            "",
        )],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::processors;
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;

    #[test]
    fn processors_without_time_are_named() {
        let full = processors(host(&[]), &[(50_000, 95), (50_000, 99)]);
        insta::assert_snapshot!(shown(&CHECK, &full));
    }

    #[test]
    fn ninety_percent_few_packets_or_one_alone_are_nothing_here() {
        let judged = |rows: &[(u32, u64)]| judged(&CHECK, &processors(host(&[]), rows));
        assert_eq!(judged(&[(50_000, 90), (50_000, 0)]), Ok(Vec::new()));
        assert_eq!(judged(&[(50_000, 91), (50_000, 0)]).expect("seen").len(), 1);
        assert_eq!(judged(&[(9_999, 99), (0, 0)]), Ok(Vec::new()));
        assert_eq!(judged(&[(500_000, 99), (0, 0), (0, 0), (0, 0)]), Ok(Vec::new()));
    }

    #[test]
    fn without_packets_times_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Softnet);
        let mut timeless = processors(host(&[]), &[(50_000, 95)]);
        timeless.looks[0].processors = None;
        assert_eq!(missing(&CHECK, &timeless).source, Source::Processors);
        assert_eq!(missing(&CHECK, &once(timeless)).source, Source::SecondLook);
    }
}
