//! One line a connection, for scripts and for a glance at many.
//!
//! The columns are separated by tabs, always these and in this order; new ones come behind them. What is unknown is `-`.
//!
//! | column | meaning |
//! |---|---|
//! | 1 | number of the connection, as `--connection` takes it |
//! | 2, 3 | client and server, with ports |
//! | 4 | the gravest of its findings: `broken`, `wrong`, `limit`, `note`, or `ok` without one |
//! | 5 | seconds from its first packet to its last |
//! | 6, 7 | bytes of payload from the client, from the server |
//! | 8, 9 | what held the side with more data longest (a state), and for which share of the time in percent |
//! | 10 | seconds that would most likely be saved without the cause that gains most |
//! | 11 | codes of its findings, the first first, separated by commas |
//! | 12 | the answer in a sentence |
//! | 13 | the server's name, where the capture tells it |
//! | 14 | the first HTTP/1 request in clear, and its status |

use core::fmt::Write as _;

use super::page::harmless;
use super::{called, choose};
use crate::report::{Connection, Report, Severity, State};

/// All connections of `report`, in its order.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    for connection in &report.connections {
        line(&mut out, connection);
    }
    out
}

fn line(out: &mut String, connection: &Connection) {
    let gravest = connection.findings.iter().map(|finding| finding.severity).max();
    let mut codes: Vec<&str> = Vec::new();
    for finding in &connection.findings {
        if !codes.contains(&&*finding.code) {
            codes.push(&finding.code);
        }
    }
    let bytes = |at: usize| {
        connection.directions[at].as_deref().map_or(0, |direction| direction.bytes).to_string()
    };
    let (state, share) = longest(connection).unzip();
    let known =
        |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or("-".to_owned());
    let gain = connection
        .findings
        .iter()
        .filter_map(|finding| finding.gain)
        .map(|gain| gain.best_ns)
        .max();
    let fields = [
        connection.id.to_string(),
        connection.client_shown(),
        connection.server_shown(),
        gravest.map_or("ok", Severity::name).to_owned(),
        seconds(connection.duration_ns),
        bytes(0),
        bytes(1),
        known(state.map(|state| state.name().to_owned())),
        known(share.map(|share| share.to_string())),
        known(gain.map(seconds)),
        known(Some(codes.join(","))),
        known(Some(answer(connection))),
        known(connection.names.as_ref().and_then(|names| names.server.clone())),
        known(called::first_request(connection)),
    ];
    let fields: Vec<String> =
        fields.iter().map(|field| field.chars().map(harmless).collect()).collect();
    let _ = writeln!(out, "{}", fields.join("\t"));
}

/// To the microsecond.
fn seconds(ns: i64) -> String {
    let us = ns / 1000;
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// What held the side with more data longest, and for how many percent of its time.
fn longest(connection: &Connection) -> Option<(State, i64)> {
    let (_, direction) =
        connection.present().max_by_key(|(at, direction)| (direction.bytes, *at))?;
    let (state, span) = choose::dominant(&direction.time_in)?;
    let whole = direction.time_in.total();
    #[expect(clippy::cast_possible_truncation, reason = "a share is at most 100")]
    let share = span.percent_of(whole).round() as i64;
    Some((state, share))
}

/// The answer, or what the first finding says.
fn answer(connection: &Connection) -> String {
    match connection.findings.first() {
        Some(first) if connection.answer.is_empty() => first.title.clone(),
        _ => connection.answer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Finding;
    use crate::view::sample;

    #[test]
    fn a_line_has_all_columns_whatever_is_known() {
        let finding = |code: &str, severity| Finding {
            code: code.to_owned(),
            severity,
            title: "it\twaits\nfor one".to_owned(),
            ..Finding::default()
        };
        let (client, server) = ("10.0.0.7:4000", "10.0.0.8:80");
        let mut connection = sample::connection(0, client, server, 1_234_567_890);
        let shown = |connection: &Connection| {
            let report = Report { connections: vec![connection.clone()], ..Report::default() };
            let text = render(&report);
            assert_eq!(text.matches('\n').count(), 1, "{text}");
            text.trim_end().split('\t').map(str::to_owned).collect::<Vec<_>>()
        };
        let bare = shown(&connection);
        assert_eq!(bare.len(), 14);
        assert_eq!(bare[..5], ["0", client, server, "ok", "1.234567"]);
        assert_eq!(bare[9..], ["-"; 5]);
        connection.findings = vec![
            finding("SLOW_START", Severity::Limit),
            finding("NO_ANSWER", Severity::Broken),
            finding("SLOW_START", Severity::Limit),
        ];
        let told = shown(&connection);
        assert_eq!((&*told[3], &*told[10]), ("broken", "SLOW_START,NO_ANSWER"));
        assert!(told[11].starts_with("it") && told[11].ends_with("for one"));
    }
}
