//! Findings: what would help, why we say so, and what it is not.

use core::fmt::Write as _;

use super::page::{Ink, Page, plain};
use super::words;
use crate::report::{Connection, Finding, Remedy};

/// Findings printed in full.
const FINDINGS: usize = 8;

/// The findings of a connection; nothing if there are none.
pub(super) fn write(page: &mut Page, connection: &Connection) {
    if connection.findings.is_empty() {
        return;
    }
    page.heading("What was found");
    for finding in connection.findings.iter().take(FINDINGS) {
        write_one(page, finding, connection.duration_ns);
    }
    if connection.findings.len() > FINDINGS {
        let more = (connection.findings.len() - FINDINGS) as u64;
        page.wrapped(2, 4, &[plain(format!("and {}", words::count(more, "more finding")))]);
    }
}

fn write_one(page: &mut Page, finding: &Finding, lifetime_ns: i64) {
    let ink = if finding.severity == "error" { Ink::Alarm } else { Ink::Strong };
    let cost = if finding.cost_ns > 0 {
        let share = words::percent(finding.cost_ns, lifetime_ns);
        format!(" ({}, {share})", words::time(finding.cost_ns))
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
        write_remedy(page, remedy);
    }
}

fn write_remedy(page: &mut Page, remedy: &Remedy) {
    let what = words::tie_numbers(&remedy.what);
    let mut text = format!("what would help ({}): {what}", remedy.who);
    if let Some(predicted) = remedy.predicted_ns {
        let _ = write!(
            text,
            "; predicted {} ({} to {})",
            words::time(predicted.best),
            words::time(predicted.low),
            words::time(predicted.high)
        );
    }
    page.wrapped(4, 6, &[plain(text)]);
    for (label, command) in [("do", &remedy.command), ("undo", &remedy.rollback)] {
        if let Some(command) = command {
            page.row(&[plain(format!("      {label}: {command}"))]);
        }
    }
}
