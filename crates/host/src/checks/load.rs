//! How packets and time fell on the processors between the looks.

use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Processor, Source};

use super::host_stalls::all_ticks;

/// What a processor did between the looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) cpu: u32,
    /// Packets that it took from interfaces and backlogs.
    pub(super) packets: u64,
    /// Ticks in softirqs and interrupts, and all ticks; `None` where they were not seen.
    pub(super) softirq_of: Option<(u64, u64)>,
}

/// All processors and the nanoseconds between the looks.
pub(super) fn loads(seen: &Seen<'_>) -> Asked<(Vec<Load>, u64)> {
    let now = seen.now.softnet.as_deref().ok_or(Missing::all(Source::Softnet))?;
    let before = seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let earlier = before.softnet.as_deref().ok_or(Missing::all(Source::Softnet))?;
    let apart_ns =
        seen.apart_ns().filter(|apart| *apart > 0).ok_or(Missing::all(Source::SecondLook))?;
    let rows = now.iter().filter_map(|row| {
        let then = earlier.iter().find(|then| then.cpu == row.cpu)?;
        // The counters are of 32 bits and wrap.
        let packets = u64::from(row.processed.wrapping_sub(then.processed));
        Some(Load { cpu: row.cpu, packets, softirq_of: softirq(seen, row.cpu) })
    });
    Ok((rows.collect(), apart_ns))
}

fn softirq(seen: &Seen<'_>, cpu: u32) -> Option<(u64, u64)> {
    let of = |rows: &[Processor]| rows.iter().find(|row| row.cpu == cpu).copied();
    let now = of(seen.now.processors.as_deref()?)?;
    let then = of(seen.before?.processors.as_deref()?)?;
    let busy = |row: Processor| row.softirq.saturating_add(row.irq);
    Some((busy(now).checked_sub(busy(then))?, all_ticks(&now).checked_sub(all_ticks(&then))?))
}

/// The processor that took most packets, where it took more than 70 % of at least 10,000 a second on a host
/// of four or more. Ours, not measured.
pub(super) fn lonely(loads: &[Load], apart_ns: u64) -> Option<(Load, u64)> {
    const SHARE: u64 = 70;
    const PER_SECOND: u64 = 10_000;
    const PROCESSORS: usize = 4;
    let all: u64 = loads.iter().map(|load| load.packets).sum();
    let busiest = *loads.iter().max_by_key(|load| load.packets)?;
    let is_many = u128::from(all) * 1_000_000_000 >= u128::from(PER_SECOND) * u128::from(apart_ns);
    let is_most = super::words::above_percent(busiest.packets, SHARE, all);
    (loads.len() >= PROCESSORS && is_many && is_most).then_some((busiest, all))
}
