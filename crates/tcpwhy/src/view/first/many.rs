//! Many connections: what failed, the answer for the worst, and a line each.

use std::collections::BTreeMap;

use super::super::page::{Ink, Page, plain};
use super::super::{Options, Sort, called, choose, failed, faster, words};
use crate::answer::{self, change, words as short};
use crate::find;
use crate::report::{Connection, FailureKind, Gain, Report};

/// Columns of a server's name, at least and at most.
const PEER: (usize, usize) = (12, 24);

/// Columns of what was sent, how long it took, and the gain.
const WHAT: usize = 10;
const TOOK: usize = 9;
const GAIN: usize = 8;

/// Changes that are named below the table. Ours.
const CHANGES: usize = 3;

/// Lines around the table, and those that a remedy with its command takes.
const BELOW: usize = 6;
const ADVICE: usize = 5;

/// The table, with the answer for its first row above.
pub(super) fn write(page: &mut Page, report: &Report, options: &Options) {
    let totals = &report.totals;
    if totals.failed > 0 {
        failed::write(page, report);
    } else {
        let head = format!(
            "{}: {}, {}",
            words::count(totals.connections, "connection"),
            words::bytes(totals.bytes),
            words::count(totals.retransmitted, "retransmission"),
        );
        page.wrapped(0, 2, &[(Ink::Strong, head)]);
    }
    let rows = rows(report, options);
    page.blank();
    if let Some(first) = rows.first() {
        let connection = first.connection;
        let said = if connection.answer.is_empty() {
            answer::said(connection).join(" ")
        } else {
            connection.answer.clone()
        };
        let text = format!("Connection {}: {}", connection.id, words::tie_numbers(&said));
        page.wrapped(0, 2, &[plain(text)]);
        let below = rows.len() + BELOW + ADVICE;
        if find::failed(connection).next().is_some() && page.lines() + below <= super::LINES {
            super::advice(page, &answer::causes(connection), 1, usize::MAX);
        }
        page.blank();
    }
    table(page, &rows);
    let told: u64 = rows.iter().map(|row| row.connections).sum();
    let left = totals.connections.saturating_sub(told);
    if left > 0 {
        let silent = |each: &&Connection| !each.carried_data() && each.failure.is_none();
        let silent = match report.connections.iter().filter(silent).count() as u64 {
            0 => String::new(),
            some => format!("; {} in all carried no data", words::grouped(some)),
        };
        let text = format!("and {}{silent} (--top N)", words::count(left, "more connection"));
        page.wrapped(2, 4, &[(Ink::Faint, text)]);
    }
    let changes = changes(&rows);
    if !changes.is_empty() {
        page.wrapped(2, 4, &[plain(format!("gain: {}", changes.join("; ")))]);
    }
    page.blank();
    let mark = if rows.iter().any(|row| row.connection.failure.is_some()) {
        " ! did not work."
    } else {
        ""
    };
    let hint = format!("--connection N shows one of them, --full all that was found.{mark}");
    page.wrapped(0, 0, &[(Ink::Faint, hint)]);
}

/// A connection, or several that failed in one way.
struct Row<'a> {
    connection: &'a Connection,
    connections: u64,
}

fn rows<'a>(report: &'a Report, options: &Options) -> Vec<Row<'a>> {
    let folds = options.sort == Sort::Worst && report.totals.failed > 1;
    let most = options.top;
    let number = if folds { usize::MAX } else { most };
    let mut at_row = BTreeMap::new();
    let mut rows: Vec<Row<'a>> = Vec::new();
    for at in choose::connections(report, options.sort, number) {
        let connection = &report.connections[at];
        let failure = connection.failure.as_ref().filter(|_| folds);
        let kind = failure.map(|failure| (connection.server, failure.kind, &failure.code));
        if let Some(row) = kind.and_then(|kind| at_row.get(&kind)) {
            let row: &mut Row<'a> = &mut rows[*row];
            row.connections += 1;
        } else if rows.len() < most {
            at_row.extend(kind.map(|kind| (kind, rows.len())));
            rows.push(Row { connection, connections: 1 });
        } else if failure.is_none() {
            // Those that failed come first.
            break;
        }
    }
    rows
}

fn table(page: &mut Page, rows: &[Row<'_>]) {
    let longest = rows.iter().map(|row| called::in_a_row(row.connection).chars().count()).max();
    let peer = longest.unwrap_or(0).clamp(PEER.0, PEER.1);
    let why = page.width().saturating_sub(6 + peer + 1 + WHAT + TOOK + 1 + GAIN);
    let fits = why >= 12;
    if fits {
        let titles = format!(
            "{:>5} {:<peer$} {:<WHAT$}{:>TOOK$} {:<why$}{:>GAIN$}",
            "#", "peer", "what", "took", "why", "gain"
        );
        page.row(&[(Ink::Faint, titles)]);
    }
    for row in rows {
        let cells = cells(row);
        let ink = if cells.failed { Ink::Alarm } else { Ink::Plain };
        if fits {
            let name = cut(&cells.peer, peer, true);
            let text = format!(
                "{:>5} {name:<peer$} {:<WHAT$}{:>TOOK$} {:<why$}{:>GAIN$}",
                cells.number,
                cut(&cells.what, WHAT - 1, false),
                cells.took,
                cut(&cells.why, why, false),
                cells.gain
            );
            page.row(&[(ink, text)]);
        } else {
            let head = format!("{} {} {}", cells.number, cells.peer, cells.what);
            page.wrapped(0, 4, &[(ink, head)]);
            page.wrapped(
                4,
                4,
                &[plain(format!("{}, {}, gain {}", cells.took, cells.why, cells.gain))],
            );
        }
    }
}

/// What a row of the table says.
pub(in crate::view) struct Cells {
    number: String,
    pub(in crate::view) peer: String,
    pub(in crate::view) what: String,
    pub(in crate::view) took: String,
    pub(in crate::view) why: String,
    pub(in crate::view) gain: String,
    pub(in crate::view) failed: bool,
}

/// What the row of one connection says.
pub(in crate::view) fn cells_of(connection: &Connection) -> Cells {
    cells(&Row { connection, connections: 1 })
}

fn cells(row: &Row<'_>) -> Cells {
    let connection = row.connection;
    let mark = if connection.failure.is_some() { "!" } else { " " };
    let number = match row.connections {
        1 => connection.id.to_string(),
        several => format!("{several}x"),
    };
    let number = format!("{mark}{number:>4}");
    let peer = called::in_a_row(connection);
    if let Some(failure) = connection.failure.as_deref() {
        let why = match (failure.kind, failure.tries) {
            (FailureKind::NoAnswer, tries @ 1..) => {
                format!("{}, none answered", words::count(u64::from(tries), "SYN"))
            }
            (FailureKind::Refused, _) => "the server reset it".to_owned(),
            _ => find::failed(connection)
                .next()
                .map_or_else(|| failed::cell(failure), |finding| finding.title.clone()),
        };
        let what = match failure.kind {
            FailureKind::NoAnswer => "no answer",
            FailureKind::Refused => "refused",
            FailureKind::RequestUnanswered => "unanswered",
            FailureKind::Found => "failed",
        };
        let took = words::time(failure.waited_ns);
        return Cells {
            number,
            peer,
            what: what.to_owned(),
            took,
            why,
            gain: UNKNOWN.to_owned(),
            failed: true,
        };
    }
    let active = find::active_ns(connection);
    let active = if active > 0 { active } else { connection.duration_ns };
    Cells {
        number,
        peer,
        what: if connection.carried_data() {
            words::bytes(connection.bytes())
        } else {
            "no data".to_owned()
        },
        took: words::time(active),
        why: why(connection),
        gain: best(connection)
            .map_or_else(|| UNKNOWN.to_owned(), |(_, gain)| faster::figures(gain).1),
        failed: false,
    }
}

/// Where no gain is known.
const UNKNOWN: &str = "-";

/// `slow start 36 %, server think 20 %`
fn why(connection: &Connection) -> String {
    let causes = answer::causes(connection);
    if !causes.is_empty() {
        let named = causes.iter().take(2).map(|cause| {
            let cell = short::cell(&cause.code);
            if cell == "see --full" {
                cause.code.clone()
            } else {
                format!("{cell} {}", words::percent(cause.cost_ns, cause.of_ns))
            }
        });
        return named.collect::<Vec<_>>().join(", ");
    }
    let time_in = choose::time_waited(connection);
    match choose::dominant(&time_in) {
        Some((state, span)) => {
            let at = answer::main(connection).map_or(1, |main| main.0);
            let name = short::Ends::of(at).put_in(short::bar(state));
            format!("{name} {}", words::percent(span.0, time_in.total().0))
        }
        None => short::without_data(connection).to_owned(),
    }
}

/// The change that saves the most, and what it saves.
fn best(connection: &Connection) -> Option<(String, Gain)> {
    let causes = answer::causes(connection);
    let changes = causes.iter().flat_map(|cause| change::of(connection, cause));
    let known = changes.filter_map(|change| change.gain.map(|gain| (change.label, gain)));
    known.max_by_key(|(_, gain)| gain.best_ns)
}

/// By what the gains of the rows are had: `client: reuse the connection (1, 8)`, in the order of the rows.
fn changes(rows: &[Row<'_>]) -> Vec<String> {
    let mut of: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.connection.failure.is_none()) {
        let Some((label, gain)) = best(row.connection) else { continue };
        if gain.high_ns <= 0 {
            continue;
        }
        let id = row.connection.id.to_string();
        match of.iter_mut().find(|each| each.0 == label) {
            Some(each) => each.1.push(id),
            None => of.push((label, vec![id])),
        }
    }
    of.truncate(CHANGES);
    of.into_iter().map(|(label, ids)| format!("{label} ({})", ids.join(", "))).collect()
}

/// `text` in at most `columns`: its end where the end tells more.
fn cut(text: &str, columns: usize, keep_end: bool) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.to_owned();
    }
    if keep_end {
        text.chars().skip(length - columns).collect()
    } else {
        text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
    }
}
