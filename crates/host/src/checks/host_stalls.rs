//! Does the host itself stand still: its processors, its memory, its disks, its hypervisor.
//!
//! What several checks ask before they blame a program.

use super::words;
use crate::finding::Evidence;
use crate::seen::Seen;
use crate::snapshot::Processor;

/// Share of ten seconds in which some task waited, in hundredths of a percent, from which we say that the
/// resource is short. Ours, not measured: 20 %.
pub(super) const PRESSED: u32 = 2000;

/// Percent of processor time taken by other guests from which we say so. Ours, not measured.
pub(super) const STOLEN_PERCENT: u64 = 5;

/// What is in its way now, in words, with where it was read.
pub(super) fn stalls(seen: &Seen<'_>) -> Vec<(String, Evidence)> {
    let mut found = Vec::new();
    for (what, pressure) in seen.now.pressure.iter().flatten() {
        if pressure.some_avg10 > PRESSED {
            let share = hundredths(pressure.some_avg10);
            let evidence =
                Evidence::new(format!("/proc/pressure/{what} some avg10"), share.clone());
            found
                .push((format!("tasks wait for {} {share} of the time", resource(what)), evidence));
        }
    }
    if let Some((stolen, all)) = stolen(seen).filter(|_| seen.before.is_some())
        && words::above_percent(stolen, STOLEN_PERCENT, all)
    {
        let share = words::share(stolen, all);
        let evidence = Evidence::new("/proc/stat steal", share.clone());
        found.push((format!("other guests take {share} of the processors"), evidence));
    }
    found
}

/// `cpu` as people call it.
pub(super) fn resource(name: &str) -> &str {
    match name {
        "cpu" => "a processor",
        "io" => "disks",
        "irq" => "interrupts",
        other => other,
    }
}

/// `23.4 %`.
pub(super) fn hundredths(share: u32) -> String {
    format!("{}.{} %", share / 100, share % 100 / 10)
}

/// Ticks that other guests took, and all ticks, of all processors: between the looks, or since the start.
pub(super) fn stolen(seen: &Seen<'_>) -> Option<(u64, u64)> {
    let sum = |rows: &[Processor], of: fn(&Processor) -> u64| {
        rows.iter().map(of).fold(0_u64, u64::saturating_add)
    };
    let now = seen.now.processors.as_deref()?;
    let (mut taken, mut whole) = (sum(now, |row| row.steal), sum(now, all_ticks));
    if let Some(before) = seen.before {
        let before = before.processors.as_deref()?;
        taken = taken.checked_sub(sum(before, |row| row.steal))?;
        whole = whole.checked_sub(sum(before, all_ticks))?;
    }
    Some((taken, whole))
}

/// A processor's time. The kernel counts guests' time in `user`.
pub(super) fn all_ticks(row: &Processor) -> u64 {
    [row.user, row.system, row.idle, row.iowait, row.irq, row.softirq, row.steal]
        .into_iter()
        .fold(0, u64::saturating_add)
}
