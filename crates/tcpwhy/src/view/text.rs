//! The report as people read it in a terminal.
//!
//! Up to three connections that carried data are shown in full, one under the other; more of them
//! become a table with the worst first and a hint how to see one. The order within a connection
//! is that of the questions: what was it, what was the reason, does the time add up, where did it
//! go, when, and by which numbers.

use super::page::{Ink, Page, plain};
use super::{
    Options, ceilings, choose, command, failed, finding, head, icmp, numbers, plot, quality,
    rounds, said, spent, strip, sum,
};
use super::{table, traffic, verdict, with, words};
use crate::report::{Connection, Report, With};

/// The whole report.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options.width, options.color);
    quality::write_errors(&mut page, report);
    command::write(&mut page, report);
    match options.connection {
        Some(id) => one(&mut page, report, id, options),
        None => all(&mut page, report, options),
    }
    icmp::write_others(&mut page, report);
    with::write_files(&mut page, report);
    if !(report.captures.is_empty() && report.connections.is_empty()) {
        quality::write(&mut page, report);
    }
    page.into_text()
}

fn one(page: &mut Page, report: &Report, id: u64, options: &Options) {
    if let Some(connection) = report.connections.iter().find(|each| each.id == id) {
        write(page, connection, &report.with, options);
        return;
    }
    let ids = report.connections.iter().map(|each| each.id);
    let text = match (ids.clone().min(), ids.max()) {
        (Some(first), Some(last)) => {
            format!("There is no connection {id} in this report; it holds {first} to {last}.")
        }
        _ => format!("There is no connection {id}: the report holds none."),
    };
    page.wrapped(0, 0, &[plain(text)]);
}

/// Whether the connections that carried data are few enough to show each in full.
pub const fn is_in_full(report: &Report) -> bool {
    let totals = &report.totals;
    let number = totals.connections.saturating_sub(totals.silent);
    number <= choose::FEW as u64 && (number > 0 || totals.connections <= 1)
}

fn all(page: &mut Page, report: &Report, options: &Options) {
    if report.connections.is_empty() {
        if report.captures.is_empty() {
            return;
        }
        let text = if report.provisional {
            "No connection has ended yet: what is open is explained at the end, or on Ctrl-C."
        } else if !report.icmp.is_empty() {
            "No TCP connection was found, only what ICMP errors say of some."
        } else {
            "No TCP connection was found; the remarks below say what the capture holds."
        };
        page.wrapped(0, 0, &[plain(text)]);
        return;
    }
    if !is_in_full(report) {
        table::write(page, report, options);
        return;
    }
    let totals = &report.totals;
    failed::write(page, report);
    let number = totals.connections.saturating_sub(totals.silent);
    let only = totals.connections == 1;
    let mut shown: Vec<&Connection> =
        report.connections.iter().filter(|each| only || each.carried_data()).collect();
    shown.sort_by_key(|each| each.failure.is_none());
    for connection in shown {
        page.blank();
        write(page, connection, &report.with, options);
    }
    let others = totals.connections.saturating_sub(number.max(1));
    if others > 0 {
        page.blank();
        let silent = report.connections.iter().filter(|each| !each.carried_data());
        let failed = silent.filter(|each| each.failure.is_some()).count() as u64;
        let failed = match failed {
            0 => String::new(),
            some => format!(", {} of them failed (see above)", words::grouped(some)),
        };
        let text = format!("{} carried no data{failed}", words::count(others, "more connection"));
        page.wrapped(0, 2, &[plain(text)]);
    }
}

/// One connection in full.
fn write(page: &mut Page, connection: &Connection, with: &[With], options: &Options) {
    head::write(page, connection);
    page.blank();
    said::with_changes(page, connection);
    page.blank();
    verdict::write(page, connection);
    let directions = choose::directions(connection);
    if let Some((at, direction)) = directions.first() {
        page.blank();
        page.wrapped(2, 4, &[(Ink::Strong, sum::line(connection, *at, direction))]);
    }
    with::write(page, with, connection);
    finding::write(page, connection);
    icmp::write(page, connection);
    for (at, direction) in &directions {
        spent::write(page, connection, *at, direction);
        if options.plot {
            plot::write(page, connection, *at, direction);
        } else {
            strip::write(page, connection.duration_ns, direction);
        }
        ceilings::write(page, connection, *at, direction);
        numbers::write(page, connection, *at, direction);
        if options.rounds {
            rounds::write(page, *at, direction);
        }
    }
    traffic::write(page, connection);
}
