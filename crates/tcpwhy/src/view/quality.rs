//! What is to be known about the captures: where reading stopped, what was missing or passed over.
//!
//! An error comes at the top of the page, since everything below it may be incomplete. So does a clock that cannot be
//! trusted, since everything below it rests on times. Other remarks come at its end, one line each, and no more than
//! a screen of them.

use super::page::{Ink, Page, plain};
use super::words;
use crate::capture::QualityKind;
use crate::report::Report;

/// Remarks printed one by one.
const REMARKS: usize = 20;

/// Captures that could not be read to their end, first thing on the page.
pub(super) fn write_errors(page: &mut Page, report: &Report) {
    if report.provisional {
        let text = "PROVISIONAL: the capture is still being read, figures may change.";
        page.wrapped(0, 2, &[(Ink::Alarm, text.to_owned())]);
    }
    let errors =
        report.captures.iter().filter_map(|capture| Some((capture, capture.error.as_ref()?)));
    let mut left = 0_u64;
    for (at, (capture, error)) in errors.enumerate() {
        if at >= REMARKS {
            left += 1;
            continue;
        }
        let source = spoken(&capture.source);
        let text = match capture.packets {
            0 => format!("INCOMPLETE: cannot read {source}: {error}"),
            _ => format!("INCOMPLETE: {source} was read only in part: {error}"),
        };
        page.wrapped(0, 2, &[(Ink::Alarm, text)]);
        if capture.packets > 0 {
            let packets = words::count(capture.packets, "packet");
            page.wrapped(2, 2, &[plain(format!("What came before ({packets}) is explained."))]);
        }
    }
    if left > 0 {
        let text = format!("INCOMPLETE: {} as well", words::count(left, "more capture"));
        page.wrapped(0, 2, &[(Ink::Alarm, text)]);
    }
    write_clocks(page, report);
    page.blank();
}

/// Captures whose clock cannot be trusted.
fn write_clocks(page: &mut Page, report: &Report) {
    let clocks = [QualityKind::TimeGoesBack, QualityKind::TimeStandsStill].map(QualityKind::name);
    let remarks = report.captures.iter().flat_map(|capture| {
        let told = capture.quality.iter().filter(|each| clocks.contains(&&*each.kind));
        told.map(|each| (spoken(&capture.source), &each.note))
    });
    for (source, note) in remarks.take(REMARKS) {
        page.wrapped(0, 2, &[(Ink::Alarm, format!("CLOCK: in {source} {note}."))]);
    }
}

/// A capture's name as people say it.
fn spoken(source: &str) -> &str {
    if source == "-" { "standard input" } else { source }
}

/// The captures and what is to be said about them.
pub(super) fn write(page: &mut Page, report: &Report) {
    page.heading("The capture");
    let several = report.captures.len() > 1;
    let mut left = 0_u64;
    let mut lines = 0;
    let mut line = |page: &mut Page, first: usize, text: String| {
        if lines < REMARKS {
            page.wrapped(first, 4, &[plain(text)]);
        } else {
            left += 1;
        }
        lines += 1;
    };
    if several {
        let sum = |of: fn(&crate::report::Capture) -> u64| {
            report.captures.iter().map(of).fold(0_u64, u64::saturating_add)
        };
        let files = words::count(report.captures.len() as u64, "file");
        let packets = words::count(sum(|capture| capture.packets), "packet");
        let tcp = words::grouped(sum(|capture| capture.tcp_segments));
        line(page, 2, format!("{files}: {packets}, {tcp} of them TCP"));
    }
    for capture in &report.captures {
        let remarks =
            capture.quality.len() + capture.skipped.len() + usize::from(capture.icmp_errors > 0);
        if several && remarks == 0 {
            continue;
        }
        let packets = words::count(capture.packets, "packet");
        let tcp = words::grouped(capture.tcp_segments);
        let source = spoken(&capture.source);
        let errors = match capture.icmp_errors {
            0 => String::new(),
            number => format!(", {} about TCP", words::count(number, "ICMP error")),
        };
        line(page, 2, format!("{source}: {packets}, {tcp} of them TCP{errors}"));
        for remark in &capture.quality {
            let number = if remark.count > 0 {
                format!(" ({})", words::grouped(remark.count))
            } else {
                String::new()
            };
            let note = if remark.note.is_empty() {
                remark.kind.replace('_', " ")
            } else {
                remark.note.clone()
            };
            line(page, 4, format!("{note}{number}"));
        }
        for skipped in &capture.skipped {
            line(
                page,
                4,
                format!("passed over: {} {}", words::grouped(skipped.count), skipped.reason),
            );
        }
    }
    if left > 0 {
        page.wrapped(2, 4, &[plain(format!("and {}", words::count(left, "more remark")))]);
    }
}
