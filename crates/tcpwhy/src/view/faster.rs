//! What would be faster, and how much.

use core::cmp::Reverse;

use super::page::{Ink, Page, plain};
use super::words;
use crate::answer::{self, change, change::Change};
use crate::find;
use crate::report::{Connection, Finding, Gain, PredictedBy};
use tcpwhy_words::units::Duration;

/// Changes that are listed. Ours.
const CHANGES: usize = 4;

/// A gain below this share of the time is printed as nothing. Ours.
const WORTH_PERCENT: f64 = 4.0;

/// A range narrower than this share of the time is one figure. Ours.
const NARROW_PERCENT: f64 = 12.0;

/// Causes whose change is listed though it gains nothing. Ours: as many as the answer names.
const NAMED: usize = 2;

/// Lines that a command may take. Ours: to see a setting and to change it.
const COMMAND_LINES: usize = 2;

/// Columns of the time and of the gain.
const TIME: usize = 10;
const GAIN: usize = 9;

/// What would be faster.
pub(super) struct Faster<'a> {
    /// The time that all gains are of.
    pub(super) now: i64,
    /// The changes to be listed, the best first.
    pub(super) changes: Vec<Change<'a>>,
}

/// Whether a change saves what is worth a line.
pub(super) fn helps(change: &Change<'_>, now: i64) -> bool {
    change
        .gain
        .is_some_and(|gain| Duration(gain.high_ns).percent_of(Duration(now)) >= WORTH_PERCENT)
}

/// What would make `connection` faster by taking away its `causes`.
pub(super) fn list<'a>(connection: &Connection, causes: &[&'a Finding]) -> Faster<'a> {
    let mut changes: Vec<Change<'_>> = Vec::new();
    for change in causes.iter().flat_map(|finding| change::of(connection, finding)) {
        if changes.iter().all(|each| each.label != change.label) {
            changes.push(change);
        }
    }
    // All gains are of one time, the longest that one of them is of; pauses that nobody waited in are in none.
    let active = find::active_ns(connection);
    let times = changes.iter().filter_map(|change| change.gain);
    let now = times.map(|gain| gain.now_ns.min(active.max(gain.high_ns))).max().unwrap_or(active);
    for gain in changes.iter_mut().filter_map(|change| change.gain.as_mut()) {
        gain.now_ns = now;
    }
    // What helps comes first; what does not is shown for the causes that the answer names.
    let named: Vec<&str> = causes.iter().take(NAMED).map(|cause| &*cause.code).collect();
    changes.retain(|change| helps(change, now) || named.contains(&change.code));
    changes.sort_by_key(|change| Reverse(change.gain.map_or(-1, answer::worth)));
    changes.truncate(CHANGES);
    Faster { now, changes }
}

/// What is to be said below the changes, if a full link is the first cause.
pub(super) fn below(causes: &[&Finding]) -> Option<&'static str> {
    causes
        .first()
        .filter(|first| first.code == "BOTTLENECK")
        .map(|_| "or fewer bytes (compress, cache). No setting of TCP makes a full link faster.")
}

/// The table of changes; nothing if there are none.
pub(super) fn write(page: &mut Page, connection: &Connection, causes: &[&Finding]) {
    let Faster { now, changes } = list(connection, causes);
    page.blank();
    if changes.is_empty() {
        return;
    }
    let code = changes.iter().map(|change| change.code.len()).max().unwrap_or(0) + 4;
    let label = page.width().saturating_sub(code + TIME + GAIN);
    let known = changes.iter().any(|change| change.gain.is_some());
    let head = if known {
        let now = format!("now {}", words::time(now));
        {
            let title = format!("{:<label$} ", "Would be faster");
            let title = title.get(..label.max(16)).unwrap_or(&title).to_owned();
            format!("{title}{now:>TIME$}{:>GAIN$}", "gain")
        }
    } else {
        "Would be faster".to_owned()
    };
    page.row(&[(Ink::Strong, head)]);
    for (index, change) in changes.iter().enumerate() {
        row(page, change, label, known);
        let is_first = index == 0 && (helps(change, now) || change.gain.is_none());
        if let Some(command) = change.command.filter(|_| is_first) {
            for line in command_lines(command, page.width().saturating_sub(6)) {
                page.row(&[(Ink::Faint, format!("      {line}"))]);
            }
        }
    }
    if let Some(text) = below(causes) {
        page.wrapped(2, 2, &[plain(text)]);
    }
}

/// A command in as many lines as it has parts, where it does not fit one; none where a part is too long or the parts are many.
fn command_lines(command: &str, columns: usize) -> Vec<&str> {
    let fits = |line: &&str| line.chars().count() <= columns;
    if fits(&command) {
        return vec![command];
    }
    let parts: Vec<&str> = command.split("; ").collect();
    if parts.len() <= COMMAND_LINES && parts.iter().all(fits) { parts } else { Vec::new() }
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
    // The best guess of a model that is nothing leaves what may be saved at most.
    let is_one = by == PredictedBy::Model && share(best_ns) >= 0.5;
    if is_one || most - least < NARROW_PERCENT {
        (after(best_ns), format!("{:.0} %", share(best_ns)))
    } else if least < WORTH_PERCENT {
        (after(high_ns), format!("to {most:.0} %"))
    } else {
        (after(high_ns), format!("{least:.0}-{most:.0} %"))
    }
}
