//! What would be faster, and how much.

use super::page::{Ink, Page, plain};
use super::words;
use crate::answer::{change, change::Change};
use crate::find;
use crate::report::{Connection, Finding, PredictedBy, Prediction};
use crate::units::Duration;

/// Changes that are listed. Ours.
const CHANGES: usize = 4;

/// A gain below this share of the time is told as nothing. Ours.
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
    // What is known to help stands first, by what it leaves.
    changes.sort_by_key(|change| match change.predicted {
        Some(predicted) => (false, predicted.best.saturating_sub(predicted.now)),
        None => (true, 0),
    });
    changes.truncate(CHANGES);
    page.blank();
    if changes.is_empty() {
        return;
    }
    let now = changes.iter().find_map(|change| change.predicted).map(|predicted| predicted.now);
    let now = now.unwrap_or_else(|| find::active_ns(connection));
    let code = changes.iter().map(|change| change.code.len()).max().unwrap_or(0) + 4;
    let label = page.width().saturating_sub(code + TIME + GAIN);
    let known = changes.iter().any(|change| change.predicted.is_some());
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
    if let Some(command) = changes.first().and_then(|change| change.command) {
        page.row(&[(Ink::Faint, format!("      {command}"))]);
    }
}

fn row(page: &mut Page, change: &Change<'_>, label: usize, known: bool) {
    let code = (Ink::Faint, format!("  [{}]", change.code));
    let mut name = format!("  {}", change.label);
    if name.chars().count() > label {
        page.row(&[plain(name)]);
        name = String::new();
    }
    let figures = match change.predicted {
        Some(predicted) => {
            let (time, gain) = figures(predicted);
            format!("{time:>TIME$}{gain:>GAIN$}")
        }
        None if known => format!("{:>TIME$}{:>GAIN$}", "", "?"),
        None => String::new(),
    };
    page.row(&[plain(format!("{name:<label$}{figures}")), code]);
}

/// The time then, and the gain in per cent: one figure where it is sure, else a range.
fn figures(predicted: Prediction) -> (String, String) {
    let Prediction { low, best, high, now, by } = predicted;
    let gain = |then: i64| Duration(now.saturating_sub(then).max(0)).percent_of(Duration(now));
    let (least, most) = (gain(high), gain(low));
    if most < WORTH_PERCENT {
        return (words::time(best), "nothing".to_owned());
    }
    let text = if by == PredictedBy::Model || most - least < NARROW_PERCENT {
        format!("{:.0} %", gain(best))
    } else if least < WORTH_PERCENT {
        format!("to {most:.0} %")
    } else {
        format!("{least:.0}-{most:.0} %")
    };
    (words::time(best), text)
}
