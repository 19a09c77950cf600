//! The host reads its time from a slow clock.
//!
//! # What it says
//! TCP asks for the time with every packet. From the processor's own counter that takes some tens of nanoseconds; from `hpet` or `acpi_pm` it
//! takes a microsecond or more, through the bus, one processor after the other.
//!
//! # How we know
//! The current clock source is `hpet`, `acpi_pm`, `pit` or `jiffies`.
//!
//! # What it is not
//! Not that the time is wrong. The kernel chooses such a clock when it found the counter unstable: see `dmesg`.
//!
//! # What to do
//! Look in `dmesg` for why `tsc` was refused; update the firmware; on a virtual machine use the hypervisor's clock (`kvm-clock`).
//!
//! # Sources
//! Linux `clocksource_watchdog` (v6.1, `kernel/time/clocksource.c`), `tcp_clock_ns`; Documentation/admin-guide/kernel-parameters.txt (`clocksource`).

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "CLOCK_SOURCE",
    file: include_str!("clock_source.rs"),
    group: Group::Host,
    judge,
};

const SLOW: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let source = seen
        .snapshot
        .clock_source
        .as_deref()
        .ok_or(Missing::part(Source::Machine, "clock source"))?;
    if !SLOW.contains(&source) {
        return Ok(Vec::new());
    }
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Host,
        title: format!("time is read from a slow clock: {source}"),
        why: "TCP and pacing ask for the time with every packet, and each answer takes a microsecond or more through the bus.".to_owned(),
        not: "not that the time is wrong, nor that packets are so many that it matters".to_owned(),
        evidence: vec![Evidence::new("/sys/devices/system/clocksource/clocksource0/current_clocksource", source)],
        fixes: vec![words::advise("look in dmesg for why tsc was refused; update firmware, or use the hypervisor's clock", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn clock(source: &str) -> Snapshot {
        Snapshot { clock_source: Some(source.to_owned()), ..host(&[]) }
    }

    #[test]
    fn a_slow_clock_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &clock("hpet")));
    }

    #[test]
    fn the_processors_counter_and_that_of_a_hypervisor_are_well() {
        for well in ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"] {
            assert_eq!(judged(&CHECK, &clock(well)), Ok(Vec::new()));
        }
    }

    #[test]
    fn without_the_clock_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Machine);
    }
}
