//! Findings: what would help, why we say so, and what it is not.

use core::fmt::Write as _;

use super::page::{Ink, Page, plain};
use super::words;
use crate::find;
use crate::report::{Connection, Finding, Remedy};

/// Findings printed in full.
const FINDINGS: usize = 8;

/// The findings of a connection; nothing if there are none.
pub(super) fn write(page: &mut Page, connection: &Connection) {
    if connection.findings.is_empty() {
        return;
    }
    page.heading("What was found, the most costly first");
    if connection.part.is_some() {
        let text =
            "what is said and counted is of the whole connection, costs are of the part asked for";
        page.wrapped(2, 4, &[(Ink::Faint, text.to_owned())]);
    }
    for finding in connection.findings.iter().take(FINDINGS) {
        write_one(page, connection, finding);
    }
    if connection.findings.len() > FINDINGS {
        let more = (connection.findings.len() - FINDINGS) as u64;
        page.wrapped(2, 4, &[plain(format!("and {}", words::count(more, "more finding")))]);
    }
}

fn write_one(page: &mut Page, connection: &Connection, finding: &Finding) {
    let ink = if finding.severity == "error" { Ink::Alarm } else { Ink::Strong };
    let cost = if finding.cost_ns > 0 {
        let share = words::percent(finding.cost_ns, finding.of_ns);
        let whole = match finding.of_ns {
            of if of == find::active_ns(connection) => "the active time",
            of if of < connection.duration_ns => "the time before the closing",
            _ => "all the time",
        };
        format!(" ({}, {share} of {whole})", words::time(finding.cost_ns))
    } else {
        String::new()
    };
    let head = format!("{}: {}", finding.severity, finding.title);
    let head = words::tie_numbers(&head);
    page.wrapped(2, 4, &[(ink, head), plain(cost), (Ink::Faint, format!(" [{}]", finding.code))]);
    for (label, text) in [("why", &finding.why), ("not", &finding.not)] {
        if !text.is_empty() {
            page.wrapped(4, 6, &[plain(words::tie_numbers(&format!("{label}: {text}")))]);
        }
    }
    for remedy in &finding.remedies {
        write_remedy(page, connection, remedy);
    }
}

fn write_remedy(page: &mut Page, connection: &Connection, remedy: &Remedy) {
    let what = words::tie_numbers(&remedy.what);
    let who = match host(connection, remedy) {
        Some(host) if remedy.on.as_ref() == Some(&remedy.who) => format!("on {host}"),
        Some(host) => format!("{}, on {host}", remedy.who),
        None => remedy.who.clone(),
    };
    let mut text = format!("what would help ({who}): {what}");
    if let Some(predicted) = remedy.predicted_ns {
        let nothing = if predicted.high >= predicted.now { ", perhaps nothing" } else { "" };
        let _ = write!(
            text,
            "; predicted {} instead of {} ({} at best{nothing})",
            words::time(predicted.best),
            words::time(predicted.now),
            words::time(predicted.low)
        );
    }
    page.wrapped(4, 6, &[plain(text)]);
    for (label, command) in [("do", &remedy.command), ("undo", &remedy.rollback)] {
        if let Some(command) = command {
            page.row(&[plain(format!("      {label}: {command}"))]);
        }
    }
}

/// The host that a remedy is for, as people know it: `the server 10.0.0.2`.
fn host(connection: &Connection, remedy: &Remedy) -> Option<String> {
    let (name, address) = match remedy.on.as_deref()? {
        "client" => (&connection.client_name, connection.client),
        _ => (&connection.server_name, connection.server),
    };
    let name = name.as_deref().map(|name| name.rsplit_once(':').map_or(name, |(host, _)| host));
    let shown = name.map_or_else(|| address.ip().to_string(), str::to_owned);
    Some(format!("the {} {shown}", remedy.on.as_deref()?))
}
