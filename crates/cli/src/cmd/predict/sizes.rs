//! `--sizes`: between which sizes slow start is felt on a path, and what a larger first flight saves.

use core::fmt::Write;

use anyhow::bail;
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::world::Limit;

use super::grid::Axis;
use super::rounds::duration;
use super::{PredictFlags, Run};
use crate::cmd::columns::table;

/// What is downloaded: from one packet to what takes a second at 800 Mbit/s. Ours.
const SIZES: &str = "1kB,2kB,5kB,10kB,20kB,50kB,100kB,200kB,500kB,1MB,2MB,5MB,10MB,20MB,50MB,100MB";

/// Linux's own (`TCP_INIT_CWND`), and one that content networks use.
const FLIGHTS: &str = "10,32";

/// Slow start is felt if it takes this share of the time, in percent. Ours.
const FELT_PERCENT: u64 = 10;

/// A flight saves something if it is this share of a round trip and of the time, in percent. Ours: less is no round trip, and
/// as `whatif` has it for first flights.
const SAVED_PERCENT: u64 = 50;
const WORTH_PERCENT: u64 = 5;

/// The sizes, and the first flights that are compared, unless others are asked for.
pub(super) fn axes(flags: &PredictFlags) -> [Option<String>; 2] {
    if !flags.sizes {
        return [flags.size.clone(), flags.initcwnd.clone()];
    }
    let flights = flags.initcwnd.clone().unwrap_or_else(|| FLIGHTS.to_owned());
    [Some(SIZES.to_owned()), Some(flights)]
}

/// One size with each first flight.
struct Row<'a> {
    size: &'a str,
    runs: Vec<&'a Run>,
}

impl Row<'_> {
    /// Share of the time in slow start with the first of the flights, in percent; what the link needs for the bytes is not
    /// slow start's.
    fn slow_start(&self) -> u64 {
        self.runs.first().map_or(0, |run| {
            let time = run.prediction.time_ns;
            let beside = time.saturating_sub(run.prediction.least_ns(&run.plan).unwrap_or(0));
            run.prediction.waited_ns(Limit::SlowStart).min(beside) * 100 / time.max(1)
        })
    }

    /// Whether this flight saves what counts.
    fn is_saved(&self, flight: usize, rtt: u64) -> bool {
        let saved = self.saved_ns(flight);
        let time = self.runs.first().map_or(0, |run| run.prediction.time_ns);
        saved * 100 > rtt * SAVED_PERCENT && saved * 100 >= time * WORTH_PERCENT && saved > 0
    }

    /// What this flight saves of the first one's time.
    fn saved_ns(&self, flight: usize) -> u64 {
        let time = |at: usize| self.runs.get(at).map_or(0, |run| run.prediction.time_ns);
        time(0).saturating_sub(time(flight))
    }
}

/// The table and what it says.
///
/// # Errors
/// More than sizes and first flights differ.
pub(super) fn text(axes: &[Axis], runs: &[Run]) -> anyhow::Result<String> {
    let place = |title: &str| axes.iter().position(|axis| axis.title == title);
    let (Some(size), Some(flight)) = (place("size"), place("initcwnd")) else {
        bail!("--sizes has no sizes");
    };
    let others = axes.iter().enumerate().filter(|(at, _)| ![size, flight].contains(at));
    if others.clone().any(|(_, axis)| axis.values.len() > 1) || runs.iter().any(is_a_variant) {
        bail!("--sizes tells of one path: besides --initcwnd give one value each");
    }
    let mut text = "predicted by the model".to_owned();
    for (_, axis) in others {
        let _ = write!(text, ", {} {}", axis.title, axis.values[0]);
    }
    text.push_str("\n\n");
    let rows: Vec<Row<'_>> = axes[size]
        .values
        .iter()
        .map(|value| {
            let runs = runs.iter().filter(|run| run.values[size] == *value).collect();
            Row { size: value, runs }
        })
        .filter(|row: &Row<'_>| row.runs.len() == axes[flight].values.len())
        .collect();
    let mut titles = vec!["size".to_owned(), "time".to_owned(), "slow start".to_owned()];
    titles.extend(axes[flight].values.iter().skip(1).map(|value| format!("with initcwnd {value}")));
    let cells = rows.iter().map(|row| {
        let time = |run: &&Run| duration(run.prediction.time_ns);
        let mut cells = vec![row.size.to_owned(), row.runs.first().map(time).unwrap_or_default()];
        cells.push(format!("{} %", row.slow_start()));
        cells.extend(row.runs.iter().skip(1).map(time));
        cells
    });
    table(&mut text, &titles.iter().map(String::as_str).collect::<Vec<_>>(), cells.collect());
    let _ = write!(text, "\n{}\n", felt(&rows));
    let rtt = runs.first().map_or(0, |run| round_trip(&run.plan));
    for (at, value) in axes[flight].values.iter().enumerate().skip(1) {
        let _ = writeln!(text, "{}", saves(&rows, at, value, rtt));
    }
    Ok(text)
}

const fn is_a_variant(run: &Run) -> bool {
    !run.variant.is_empty()
}

fn round_trip(plan: &Plan) -> u64 {
    plan.path.down.delay_ns + plan.path.up.delay_ns
}

/// Between which sizes slow start is felt.
fn felt(rows: &[Row<'_>]) -> String {
    let felt: Vec<_> = rows.iter().filter(|row| row.slow_start() >= FELT_PERCENT).collect();
    match (felt.first(), felt.last()) {
        (Some(first), Some(last)) => format!(
            "slow start is felt {}: it takes {FELT_PERCENT} % of the time or more",
            between(first, last)
        ),
        _ => format!("slow start is felt nowhere: it takes less than {FELT_PERCENT} % of the time"),
    }
}

/// What a larger first flight saves, and at which sizes.
fn saves(rows: &[Row<'_>], flight: usize, value: &str, rtt: u64) -> String {
    let saved: Vec<_> = rows.iter().filter(|row| row.is_saved(flight, rtt)).collect();
    let (Some(first), Some(last)) = (saved.first(), saved.last()) else {
        return format!("initcwnd {value} saves nothing that counts at any size");
    };
    let most = saved.iter().map(|row| row.saved_ns(flight)).max().unwrap_or(0);
    let trips = (most + rtt / 2).checked_div(rtt).unwrap_or(0);
    let trips =
        if trips == 1 { "one round trip".to_owned() } else { format!("{trips} round trips") };
    format!(
        "initcwnd {value} saves up to {trips} ({}) {}; below and above, nothing that counts",
        duration(most),
        between(first, last)
    )
}

fn between(first: &Row<'_>, last: &Row<'_>) -> String {
    if first.size == last.size {
        return format!("at {}", first.size);
    }
    format!("from {} to {}", first.size, last.size)
}
