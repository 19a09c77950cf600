//! What was found in many connections: each kind of finding once, with how many show it and what it costs in all.
//!
//! Findings rest on intervals, and of very many connections only the first with data keep theirs
//! ([`DETAILED`]); where there are more, the heading says so. Costs of different kinds may be of the same time.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::page::{Ink, Page, plain};
use super::words;
use crate::report::{Finding, Report};
use crate::tracker::DETAILED;

/// Kinds that are listed.
const KINDS: usize = 5;

/// Codes of the finding that the server was silent, and of that TCP was not at work.
const THINK_SERVER: &str = "THINK_SERVER";
const NOT_TCP: &str = "NOT_TCP";

/// One kind of finding.
struct Kind<'a> {
    connections: u64,
    cost_ns: i64,
    /// Its most costly, and whose that is.
    worst: (&'a Finding, u64),
}

/// The kinds of findings, the most costly first; nothing if there are none.
pub(super) fn write(page: &mut Page, report: &Report) {
    let mut kinds: BTreeMap<&str, Kind<'_>> = BTreeMap::new();
    let with_data = report.connections.iter().filter(|each| each.carried_data());
    for connection in with_data.take(DETAILED as usize) {
        for finding in &connection.findings {
            let worst = (finding, connection.id);
            let kind = kinds.entry(&finding.code);
            let kind = kind.or_insert(Kind { connections: 0, cost_ns: 0, worst });
            kind.connections += 1;
            kind.cost_ns = kind.cost_ns.saturating_add(finding.cost_ns);
            if finding.cost_ns > kind.worst.0.cost_ns {
                kind.worst = worst;
            }
        }
    }
    if kinds.contains_key(THINK_SERVER) {
        // It speaks of the same time, and says less.
        kinds.remove(NOT_TCP);
    }
    let mut kinds: Vec<(&str, Kind<'_>)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, kind)| Reverse(kind.cost_ns));
    if kinds.is_empty() {
        return;
    }
    let number = report.totals.connections.saturating_sub(report.totals.silent);
    let of = if number > DETAILED {
        format!(" in the first {DETAILED} connections with data")
    } else {
        String::new()
    };
    page.heading(&format!("What was found{of}, the most costly first"));
    for (code, kind) in kinds.iter().take(KINDS) {
        write_one(page, code, kind);
    }
    if kinds.len() > KINDS {
        let codes: Vec<String> =
            kinds[KINDS..].iter().map(|(code, _)| (*code).to_owned()).collect();
        page.wrapped(2, 4, &[(Ink::Faint, format!("less costly: {}", words::listed(&codes)))]);
    }
}

fn write_one(page: &mut Page, code: &str, kind: &Kind<'_>) {
    let (finding, id) = kind.worst;
    let cost = if kind.cost_ns > 0 {
        format!(", {} in all", words::time(kind.cost_ns))
    } else {
        String::new()
    };
    let number = words::count(kind.connections, "connection");
    let text = if kind.connections > 1 {
        format!(": {number}{cost}; most in connection {id}: {}", finding.title)
    } else {
        format!(": {number} (number {id}){cost}: {}", finding.title)
    };
    page.wrapped(2, 4, &[(Ink::Strong, code.to_owned()), plain(words::tie_numbers(&text))]);
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Connection;

    /// Connections with one finding each, of these costs in milliseconds.
    fn shown(costs: &[(&str, i64)]) -> String {
        let example = sample::worked_example().connections.remove(0);
        let mut report = sample::many(costs.len() as u64);
        report.connections = costs
            .iter()
            .zip(0..)
            .map(|((code, ms), id)| {
                let finding = Finding {
                    code: (*code).to_owned(),
                    title: format!("{ms} of it"),
                    cost_ns: ms * 1_000_000,
                    ..Finding::default()
                };
                Connection { id, findings: vec![finding], ..example.clone() }
            })
            .collect();
        let number = costs.len() as u64;
        (report.totals.connections, report.totals.silent) = (number, 0);
        let mut page = Page::new(100, false);
        write(&mut page, &report);
        page.into_text().replace('\u{a0}', " ")
    }

    #[test]
    fn kinds_are_put_in_order_by_what_they_cost_together() {
        let text = shown(&[("LATE", 50), ("SLOW", 30), ("SLOW", 40)]);
        let expected = "SLOW: 2 connections, 70.0 ms in all; most in connection 2: 40 of it\n  \
                        LATE: 1 connection (number 0), 50.0 ms in all: 50 of it\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn the_server_s_silence_is_told_once() {
        let text = shown(&[("NOT_TCP", 50), ("THINK_SERVER", 50)]);
        assert!(!text.contains("NOT_TCP"), "{text}");
        assert!(shown(&[("NOT_TCP", 50)]).contains("NOT_TCP"));
    }

    #[test]
    fn without_findings_there_is_no_heading() {
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn where_there_are_more_than_looked_at_it_says_so() {
        let of = |number: usize| shown(&vec![("SLOW", 1); number]);
        assert!(!of(64).contains("the first 64"));
        let more = of(65);
        assert!(more.contains("in the first 64 connections with data"), "{more}");
        assert!(more.contains("SLOW: 64 connections"), "{more}");
    }
}
