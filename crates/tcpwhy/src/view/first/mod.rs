//! The first screen: the answer, what would be faster, where the time went, and what it rests on.
//!
//! One connection takes 24 lines at 80 columns or fewer. What does not fit goes from the bottom up, never the answer:
//! bars first, then the third and fourth change, then the strip. Many connections take a line each, failures first,
//! under the answer for the worst. All else is in `--full` ([`super::text`]).

pub(super) mod bars;
pub(super) mod head;
pub(super) mod many;
pub(super) mod trust;

use super::page::{Ink, Page, plain};
use super::{Options, choose, command, faster, icmp, plot, quality, rounds, said, with, words};
use crate::answer;
use crate::find;
use crate::report::{Connection, Finding, Report};

/// Lines of a terminal that nobody has made larger.
const LINES: usize = 24;

/// Whether there is a connection to show: else the account in full says what there is.
pub(super) fn has_room(report: &Report, options: &Options) -> bool {
    !shown(report, options).is_empty()
}

/// The first screen of a report.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options.width, options.color);
    quality::write_errors(&mut page, report);
    command::write(&mut page, report);
    let shown = shown(report, options);
    match &*shown {
        [one] => {
            screen(&mut page, report, one);
            let others = report.totals.connections.saturating_sub(1);
            if options.connection.is_none() && others > 0 {
                let text = format!("{} carried no data.", words::count(others, "more connection"));
                page.wrapped(0, 0, &[(Ink::Faint, text)]);
            }
        }
        [] => {}
        _ => many::write(&mut page, report, options),
    }
    for connection in shown.iter().take(choose::FEW) {
        pictures(&mut page, connection, options);
    }
    icmp::write_others(&mut page, report);
    page.into_text()
}

/// The connections that the screen is about: the one asked for, else those that carried data or failed, else all.
fn shown<'a>(report: &'a Report, options: &Options) -> Vec<&'a Connection> {
    if let Some(id) = options.connection {
        return report.connections.iter().filter(|each| each.id == id).collect();
    }
    let worth = |each: &&Connection| each.carried_data() || each.failure.is_some();
    let worth: Vec<&Connection> = report.connections.iter().filter(worth).collect();
    if worth.is_empty() { report.connections.iter().collect() } else { worth }
}

/// What `--rounds` and `--plot` ask for, under the screen.
fn pictures(page: &mut Page, connection: &Connection, options: &Options) {
    for (at, direction) in choose::directions(connection) {
        if options.plot {
            plot::write(page, connection, at, direction);
        }
        if options.rounds {
            rounds::write(page, at, direction);
        }
    }
}

/// One connection.
fn screen(page: &mut Page, report: &Report, connection: &Connection) {
    let before = page.lines();
    head::write(page, connection);
    page.blank();
    let causes = answer::causes(connection);
    said::write(page, connection, &causes);
    with::write_short(page, &report.with, connection);
    if find::failed(connection).next().is_some() {
        page.blank();
        icmp::write(page, connection);
        let used = page.lines() - before;
        advice(page, &causes, TOLD, LINES.saturating_sub(used));
    } else {
        faster::write(page, connection, &causes);
        icmp::write(page, connection);
        let used = page.lines() - before;
        bars::write(page, connection, LINES.saturating_sub(used));
    }
    page.blank();
    trust::write(page, report, connection);
}

/// Remedies that are printed. Ours.
const TOLD: usize = 3;

/// What to do about what did not work, in at most `told` remedies.
fn advice(page: &mut Page, causes: &[&Finding], told: usize, room: usize) {
    /// What comes below, and what one remedy takes.
    const BELOW: usize = 3 + 4;
    let begun = page.lines();
    for finding in causes.iter().take(1) {
        for remedy in finding.remedies.iter().take(told) {
            if page.lines() - begun + BELOW > room && page.lines() > begun {
                return;
            }
            let who = remedy.on.as_deref().unwrap_or(&remedy.who);
            let place = match who {
                "client" | "server" => format!("On the {who}: "),
                "path" => "On the path: ".to_owned(),
                _ => String::new(),
            };
            page.wrapped(2, 4, &[plain(words::tie_numbers(&format!("{place}{}.", remedy.what)))]);
            if let Some(command) = &remedy.command {
                page.wrapped(6, 8, &[plain(command.clone())]);
            }
        }
    }
}
