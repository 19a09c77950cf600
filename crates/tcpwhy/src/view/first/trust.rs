//! What the answer rests on, in a line.

use super::super::page::{Ink, Page};
use super::super::words;
use crate::report::{Connection, Report, State, Vantage, WindowScaling};

/// Where it was taken, what it lacks, and where to read on.
pub(super) fn write(page: &mut Page, report: &Report, connection: &Connection) {
    // A single remark is printed here, more in full.
    let mut notes = report.captures.iter().flat_map(|capture| &capture.quality);
    if let (Some(only), None) = (notes.next(), notes.next()) {
        let note = words::tie_numbers(&format!("Remark: {}.", only.note.trim_end_matches('.')));
        page.wrapped(0, 0, &[(Ink::Faint, note)]);
    }
    let rests_on = rests_on(report, connection);
    let text = format!("{rests_on}. --full for evidence, tcpwhy doc CODE");
    page.wrapped(0, 0, &[(Ink::Faint, text)]);
}

/// `Taken on the server, complete`
pub(in crate::view) fn rests_on(report: &Report, connection: &Connection) -> String {
    let place = match connection.vantage {
        Vantage::Client => "Taken on the client",
        Vantage::Server => "Taken on the server",
        Vantage::Middle => "Taken between the hosts",
        Vantage::Unknown => "Taken at an unknown place",
    };
    let gap = |direction: &crate::report::Direction| direction.time_in.get(State::CaptureGap).0 > 0;
    let lacks = connection.directions.iter().flatten().any(|direction| gap(direction));
    let cut = report.captures.iter().any(|capture| capture.error.is_some());
    let complete = match () {
        () if lacks => "packets are missing",
        () if cut => "read in part",
        () if connection.window_scaling == WindowScaling::HandshakeNotSeen => {
            "without the handshake"
        }
        () if connection.truncated => "lists cut short",
        () => "complete",
    };
    let remarks: usize = report.captures.iter().map(|capture| capture.quality.len()).sum();
    let remarks = match remarks {
        0 | 1 => String::new(),
        number => format!(", {number} remarks"),
    };
    format!("{place}, {complete}{remarks}")
}
