//! What devices on the way said: ICMP errors about a connection, and about those that are not in the capture.

use super::page::{Page, plain};
use super::words;
use crate::icmp::{reaction, reaction_in_words, said};
use crate::report::{Connection, IcmpErrors, Report};

/// Errors that get a line of their own.
const LINES: usize = 6;

/// Those about `connection`; nothing if there are none.
pub(super) fn write(page: &mut Page, connection: &Connection) {
    if connection.icmp.is_empty() {
        return;
    }
    page.heading("What ICMP errors said of it");
    for errors in connection.icmp.iter().take(LINES) {
        let side = errors.about.as_deref().unwrap_or("sender");
        let when = errors
            .first_ns
            .map_or_else(String::new, |at| format!(", first at {}", words::time(at)));
        let frames = words::frames(errors.frames).map_or_else(String::new, |f| format!(", {f}"));
        let mut text = format!("{}; about the {side}'s packets{when}{frames}", said(errors));
        if errors.kind == "too_big"
            && let Some(reaction) = reaction(connection, errors)
        {
            text = format!("{text}; {}", reaction_in_words(reaction, side));
        }
        page.wrapped(2, 4, &[plain(text)]);
    }
    more(page, connection.icmp.len());
}

/// Those about connections that are not there.
pub(super) fn write_others(page: &mut Page, report: &Report) {
    if report.icmp.is_empty() {
        return;
    }
    page.heading("What ICMP errors said of connections that are not in this capture");
    for errors in report.icmp.iter().take(LINES) {
        let frames = words::frames(errors.frames).map_or_else(String::new, |f| format!(", {f}"));
        let text = format!("{}; {}{frames}", said(errors), packets(errors));
        page.wrapped(2, 4, &[plain(text)]);
    }
    more(page, report.icmp.len());
    if report.icmp.iter().any(|errors| errors.kind == "too_big") {
        let help = "what would help: the sender takes smaller segments as soon as it hears this, so let ICMP through \
                    to it; else clamp the MSS of SYNs to the path's MTU where the narrow link begins";
        page.wrapped(2, 4, &[plain(help)]);
    }
}

/// Whose packets, in words.
fn packets(errors: &IcmpErrors) -> String {
    let port = |port: Option<u16>| port.map_or_else(String::new, |port| format!(" port {port}"));
    let from = format!("{}{}", errors.source, port(errors.source_port));
    match errors.destination {
        Some(to) => format!("about packets from {from} to {to}{}", port(errors.destination_port)),
        None => format!("about packets from {from}"),
    }
}

fn more(page: &mut Page, number: usize) {
    if number > LINES {
        let text = format!("and {}", words::count((number - LINES) as u64, "more kind"));
        page.wrapped(2, 4, &[plain(text)]);
    }
}
