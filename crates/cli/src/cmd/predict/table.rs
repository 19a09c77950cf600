//! What predictions look like: a table with a bar for each run, CSV, JSON.

use core::fmt::Write;

use serde_json::{Value, json};
use tcpwhy::units::Bytes;
use tcpwhy_model::predict::FORMAT;
use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::world::Limit;

use super::grid::Axis;
use super::rounds::{self, duration};
use super::{KERNEL, Run};
use crate::cmd::columns::table;

/// Columns of the bar of the longest run.
const BAR: u64 = 24;

/// A link that is busy for this share of the time is what the transfer waits for. Ours.
const FULL_PERCENT: u64 = 50;

/// A table: what all runs share above it, what differs in its first columns.
pub(super) fn text(axes: &[Axis], runs: &[Run]) -> String {
    let varies: Vec<bool> = axes.iter().map(|axis| axis.values.len() > 1).collect();
    let has_variants = runs.iter().any(|run| !run.variant.is_empty());
    let mut text = "predicted by the model".to_owned();
    for axis in axes.iter().filter(|axis| axis.values.len() == 1) {
        let _ = write!(text, ", {} {}", axis.title, axis.values[0]);
    }
    text.push_str("\n\n");
    let mut titles: Vec<&str> = Vec::new();
    titles.extend(has_variants.then_some("variant"));
    titles.extend(
        axes.iter().zip(&varies).filter(|(_, varies)| **varies).map(|(axis, _)| &*axis.title),
    );
    let is_by_chance = runs.iter().any(|run| run.throws > 1);
    titles.push("time");
    titles.extend(is_by_chance.then_some(["at best", "at worst"]).into_iter().flatten());
    titles.extend(["rounds", "resent", "size/rate", "slow start", "most of it", ""]);
    let longest = runs.iter().map(|run| run.prediction.time_ns).max().unwrap_or_default().max(1);
    let rows = runs.iter().map(|run| {
        let mut cells: Vec<String> = Vec::new();
        cells.extend(has_variants.then(|| run.variant.clone()));
        let values = run.values.iter().zip(&varies).filter(|(_, varies)| **varies);
        cells.extend(values.map(|(value, _)| value.clone()));
        let [time, rest @ ..] = figures(run);
        cells.push(time);
        if is_by_chance {
            let of = |ns| if run.throws > 1 { duration(ns) } else { "-".to_owned() };
            cells.extend([run.range_ns.0, run.range_ns.1].map(of));
        }
        cells.extend(rest);
        let bar = (run.prediction.time_ns * BAR).div_ceil(longest);
        cells.push(format!("{:<1$}", "█".repeat(bar as usize), BAR as usize));
        cells
    });
    table(&mut text, &titles, rows.collect());
    text += &connections(runs);
    if is_by_chance {
        let throws = runs.iter().map(|run| run.throws).max().unwrap_or(1);
        let _ = write!(
            text,
            "\nwhere chance decides: of {throws} throws of the dice the one in the middle, the least and the most; --set seed=N \
             asks for one\n"
        );
    }
    for run in runs.iter().filter(|run| !run.prediction.unfinished.is_empty()) {
        let waiting = run.prediction.unfinished.join("; ");
        let _ = write!(text, "\nnot finished ({}): {waiting}", run.values.join(", "));
    }
    text + &unproven(axes)
}

/// Connections of a run whose times are shown one by one.
const CONNECTIONS: usize = 8;

/// The time of each connection, where a run has several: the table has that of the one with the most data.
fn connections(runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs.iter().filter(|run| !run.prediction.each_ns.is_empty()) {
        let each = &run.prediction.each_ns;
        let times: Vec<String> = each
            .iter()
            .take(CONNECTIONS)
            .map(|ns| if *ns == 0 { "-".to_owned() } else { duration(*ns) })
            .collect();
        let more = each.len().saturating_sub(CONNECTIONS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named =
            if run.variant.is_empty() { run.values.join(", ") } else { run.variant.clone() };
        let (count, named, times) = (each.len(), named, times.join(", "));
        let _ = write!(text, "\neach of {count} connections ({named}): {times}{more}");
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// Which kernels were asked for that the model was never compared with.
fn unproven(axes: &[Axis]) -> String {
    let proven = KernelProfile::HELD_AGAINST_KERNELS;
    let asked = axes.iter().filter(|axis| axis.key == KERNEL).flat_map(|axis| &axis.values);
    let asked = asked
        .filter(|typed| typed.parse().map_or(true, |version: Version| !proven.contains(&version)));
    let names: Vec<_> = asked.map(String::as_str).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "\nthe model of {} was never compared with such a kernel; with 5.10, 6.1 and 6.12 it was \
         (docs/model.md)\n",
        names.join(", ")
    )
}

fn figures(run: &Run) -> [String; 6] {
    let told = &run.prediction;
    let least = told.least_ns(&run.plan);
    let full = least.map_or(0, |ns| percent(ns, told.time_ns));
    let most = match told.waits.first() {
        // That time goes to the link, whatever stops the sender meanwhile.
        _ if full >= FULL_PERCENT => format!("the path's rate {full} %"),
        Some((Limit::Application, ns)) if told.behind_repairs_ns * 2 > *ns => {
            let whose = told.sender.peer().name();
            format!(
                "repairs of the {whose}'s data {} %",
                percent(told.behind_repairs_ns, told.time_ns)
            )
        }
        Some((limit, ns)) => format!("{} {} %", limit.name(), percent(*ns, told.time_ns)),
        None => String::new(),
    };
    let slow_start = told.waited_ns(Limit::SlowStart);
    let finished = told.unfinished.is_empty();
    [
        if finished { duration(told.time_ns) } else { format!("over {}", duration(told.time_ns)) },
        told.rounds.to_string(),
        Bytes(told.resent_bytes).to_string(),
        least.map_or_else(|| "-".to_owned(), duration),
        format!("{} %", percent(slow_start, told.time_ns)),
        most,
    ]
}

fn percent(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100).checked_div(u128::from(whole)).map_or(0, |share| share as u64)
}

/// One line for each run, times in nanoseconds.
pub(super) fn csv(axes: &[Axis], runs: &[Run]) -> String {
    let mut titles: Vec<&str> = axes.iter().map(|axis| &*axis.title).collect();
    titles.extend([
        "variant",
        "finished",
        "time_ns",
        "bytes",
        "resent_bytes",
        "rounds",
        "slow_start_ns",
        "low_ns",
        "high_ns",
        "throws",
    ]);
    let mut text = titles.join(",") + "\n";
    for run in runs {
        let told = &run.prediction;
        let mut cells: Vec<String> = run.values.iter().map(|value| quoted(value)).collect();
        cells.push(quoted(&run.variant));
        cells.push(told.unfinished.is_empty().to_string());
        let figures = [told.time_ns, told.bytes, told.resent_bytes, u64::from(told.rounds)];
        cells.extend(figures.iter().map(u64::to_string));
        cells.push(told.waited_ns(Limit::SlowStart).to_string());
        cells.extend([run.range_ns.0, run.range_ns.1].iter().map(u64::to_string));
        cells.push(run.throws.to_string());
        text += &(cells.join(",") + "\n");
    }
    text
}

/// RFC 4180 section 2.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// All that is known of each run, as JSON.
///
/// # Errors
/// None that is known of.
pub(super) fn json(axes: &[Axis], runs: &[Run]) -> serde_json::Result<String> {
    let one = |run: &Run| {
        let settings = axes.iter().zip(&run.values);
        let settings = settings.map(|(axis, value)| (&*axis.title, &**value)).collect();
        let mut told = serde_json::to_value(run.prediction.told(&run.plan, settings))?;
        (told["low_ns"], told["high_ns"]) = (run.range_ns.0.into(), run.range_ns.1.into());
        told["throws"] = run.throws.into();
        if !run.ladder.is_empty() {
            told["ladder"] = rounds::json(&run.ladder).into();
        }
        Ok(told)
    };
    let runs: Vec<Value> = runs.iter().map(one).collect::<Result<_, _>>()?;
    serde_json::to_string_pretty(&json!({ "format": FORMAT, "runs": runs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
    }

    #[test]
    fn shares_of_nothing_are_none() {
        assert_eq!((percent(1, 3), percent(5, 0)), (33, 0));
    }
}
