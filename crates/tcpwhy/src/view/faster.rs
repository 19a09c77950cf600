//! What would be faster, and how much.

use core::cmp::Reverse;

use super::page::{Ink, Page, plain};
use super::words;
use crate::answer::{change, change::Change};
use crate::find;
use crate::report::{Connection, Finding, Gain, PredictedBy};
use crate::units::Duration;

/// Changes that are listed. Ours.
const CHANGES: usize = 4;

/// A gain below this share of the time is printed as nothing. Ours.
const WORTH_PERCENT: f64 = 4.0;

/// A range narrower than this share of the time is one figure. Ours.
const NARROW_PERCENT: f64 = 12.0;

/// Columns of the time and of the gain.
const TIME: usize = 10;
const GAIN: usize = 9;

/// The table of changes; nothing if there are none.
pub(super) fn write(page: &mut Page, connection: &Connection, causes: &[&Finding]) {
    let mut changes: Vec<Change<'_>> = Vec::new();
    for change in causes.iter().flat_map(|finding| change::of(connection, finding)) {
        if changes.iter().all(|each| each.label != change.label) {
            changes.push(change);
        }
    }
    // What is known to help comes first, by what it leaves.
    changes.sort_by_key(|change| Reverse(change.gain.map_or(-1, |gain| gain.best_ns)));
    changes.truncate(CHANGES);
    page.blank();
    if changes.is_empty() {
        return;
    }
    let now = changes.iter().find_map(|change| change.gain).map(|gain| gain.now_ns);
    let now = now.unwrap_or_else(|| find::active_ns(connection));
    let code = changes.iter().map(|change| change.code.len()).max().unwrap_or(0) + 4;
    let label = page.width().saturating_sub(code + TIME + GAIN);
    let known = changes.iter().any(|change| change.gain.is_some());
    let head = if known {
        let now = format!("now {}", words::time(now));
        format!("{:<label$}{now:>TIME$}{:>GAIN$}", "Would be faster", "gain")
    } else {
        "Would be faster".to_owned()
    };
    page.row(&[(Ink::Strong, head)]);
    for change in &changes {
        row(page, change, label, known);
    }
    let command = changes.first().and_then(|change| change.command);
    if let Some(command) = command.filter(|command| command.chars().count() + 6 <= page.width()) {
        page.row(&[(Ink::Faint, format!("      {command}"))]);
    }
    if causes.first().is_some_and(|first| first.code == "BOTTLENECK") {
        let text = "or fewer bytes (compress, cache). No setting of TCP makes a full link faster.";
        page.wrapped(2, 2, &[plain(text)]);
    }
}

fn row(page: &mut Page, change: &Change<'_>, label: usize, known: bool) {
    let code = (Ink::Faint, format!("  [{}]", change.code));
    let mut name = format!("  {}", change.label);
    if name.chars().count() > label {
        page.row(&[plain(name)]);
        name = String::new();
    }
    let figures = match change.gain {
        Some(gain) => {
            let (time, gain) = figures(gain);
            format!("{time:>TIME$}{gain:>GAIN$}")
        }
        None if known => format!("{:>TIME$}{:>GAIN$}", "", "?"),
        None => String::new(),
    };
    page.row(&[plain(format!("{name:<label$}{figures}")), code]);
}

/// The time then, and the gain in per cent: one figure where it is sure, else a range.
pub(super) fn figures(gain: Gain) -> (String, String) {
    let Gain { low_ns, best_ns, high_ns, now_ns, by } = gain;
    let share = |saved: i64| Duration(saved).percent_of(Duration(now_ns));
    let (least, most) = (share(low_ns), share(high_ns));
    let after = |saved: i64| words::time(now_ns.saturating_sub(saved));
    if most < WORTH_PERCENT {
        return (after(best_ns), "nothing".to_owned());
    }
    // A range is given by its ends, and the time by what can be hoped for.
    if by == PredictedBy::Model || most - least < NARROW_PERCENT {
        (after(best_ns), format!("{:.0} %", share(best_ns)))
    } else if least < WORTH_PERCENT {
        (after(high_ns), format!("to {most:.0} %"))
    } else {
        (after(high_ns), format!("{least:.0}-{most:.0} %"))
    }
}
