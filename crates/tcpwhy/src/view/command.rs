//! A recorded command: where its time went, and the names that were asked for.

use core::cmp::Reverse;

use super::page::{Ink, Page, plain};
use super::{sum, words};
use crate::report::{Command, Finding, Lookup, Report, Severity};

/// Names told one by one.
const LOOKUPS: usize = 3;

/// What heads the page of a recorded command.
pub(super) fn write(page: &mut Page, report: &Report) {
    if let Some(command) = &report.command {
        page.wrapped(0, 2, &[(Ink::Strong, headline(command))]);
        page.wrapped(2, 4, &[plain(line(command))]);
    }
    for finding in &report.findings {
        write_finding(page, finding);
    }
    let is_told = |lookup: &&Lookup| lookup.duration_ns.is_none() && !report.findings.is_empty();
    let rest: Vec<&Lookup> = report.lookups.iter().filter(|each| !is_told(each)).collect();
    write_lookups(page, rest);
    page.blank();
}

fn headline(command: &Command) -> String {
    let took = words::time(command.duration_ns);
    let program = &command.program;
    match (command.status, command.signal) {
        (Some(0), _) => format!("{program} took {took}"),
        (Some(status), _) => format!("{program} took {took} and ended with status {status}"),
        (None, Some(signal)) => format!("{program} was ended by signal {signal} after {took}"),
        (None, None) => format!("{program} went on when the recording ended, after {took}"),
    }
}

/// The line of parts, which add up to the command's time as it is printed.
fn line(command: &Command) -> String {
    let spent = &command.spent;
    let parts = [
        ("start of the command", spent.start_ns),
        ("DNS", spent.dns_ns),
        ("connect", spent.connect_ns),
        ("TLS", spent.tls_ns),
        ("request", spent.request_ns),
        ("server", spent.server_ns),
        ("transfer", spent.transfer_ns),
        ("rest", spent.rest_ns),
    ];
    let parts: Vec<sum::Part> = parts
        .into_iter()
        .filter(|(_, ns)| *ns != 0)
        .map(|(name, ns)| (name.to_owned(), i128::from(ns)))
        .collect();
    sum::print(&parts)
}

/// What was found that belongs to no connection.
fn write_finding(page: &mut Page, finding: &Finding) {
    let ink = if finding.severity >= Severity::Wrong { Ink::Alarm } else { Ink::Strong };
    let code = format!(" [{}]", finding.code);
    let head = words::tie_numbers(&format!("DNS: {}", finding.title));
    page.wrapped(2, 4, &[(ink, head), (Ink::Faint, code)]);
    page.wrapped(4, 4, &[plain(words::tie_numbers(&finding.why))]);
    for remedy in &finding.remedies {
        page.wrapped(4, 6, &[plain(format!("on the {}: {}", remedy.who, remedy.what))]);
        if let Some(command) = &remedy.command {
            page.row(&[plain(format!("      do: {command}"))]);
        }
    }
}

/// The names that took longest, those without an answer first.
fn write_lookups(page: &mut Page, lookups: Vec<&Lookup>) {
    let number = lookups.len() as u64;
    let mut worst = lookups;
    worst.sort_by_key(|lookup| (lookup.duration_ns.is_some(), Reverse(lookup.duration_ns)));
    for lookup in worst.iter().take(LOOKUPS) {
        page.wrapped(2, 4, &[plain(told(lookup))]);
    }
    if worst.len() > LOOKUPS {
        let number = words::count(number, "question");
        let text = format!("(the {LOOKUPS} longest of {number} to name servers)");
        page.wrapped(4, 4, &[(Ink::Faint, text)]);
    }
}

/// `DNS: example.org (A) at 192.0.2.53 after 12.0 ms: 198.51.100.7`
fn told(lookup: &Lookup) -> String {
    let Lookup { name, kind, asked, .. } = lookup;
    let resolver = lookup.resolver.ip();
    let again = if *asked > 1 { format!(", asked {asked} times") } else { String::new() };
    let Some(took) = lookup.duration_ns else {
        return format!("DNS: {name} ({kind}): the capture holds no answer of {resolver}{again}");
    };
    let took = words::time(took);
    let addresses: Vec<String> = lookup.addresses.iter().map(ToString::to_string).collect();
    let answer = match (addresses.is_empty(), lookup.answer.as_deref()) {
        (false, _) => words::listed(&addresses),
        (true, Some("NOERROR") | None) if !matches!(&**kind, "A" | "AAAA") => "answered".to_owned(),
        (true, Some("NOERROR") | None) => "no address".to_owned(),
        (true, Some(code)) => code.to_owned(),
    };
    format!("DNS: {name} ({kind}) at {resolver} after {took}{again}: {answer}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Spent;

    fn command() -> Command {
        Command {
            program: "curl".to_owned(),
            duration_ns: 152_400_000,
            status: Some(0),
            spent: Spent {
                start_ns: 10_040_000,
                dns_ns: 12_040_000,
                connect_ns: 20_040_000,
                request_ns: 85_040_000,
                server_ns: 5_040_000,
                transfer_ns: 15_040_000,
                rest_ns: 5_160_000,
                ..Spent::default()
            },
            ..Command::default()
        }
    }

    fn shown(report: &Report) -> String {
        let mut page = Page::new(100, false);
        write(&mut page, report);
        page.into_text()
    }

    fn lookup(name: &str, took: Option<i64>) -> Lookup {
        Lookup {
            name: name.to_owned(),
            kind: "A".into(),
            client: "192.0.2.1:4000".parse().expect("an address"),
            resolver: "192.0.2.53:53".parse().expect("an address"),
            start: String::new(),
            id: 1,
            asked: 1 + u64::from(took.is_none()),
            last_asked_ns: 0,
            duration_ns: took,
            answer: took.map(|_| "NOERROR".into()),
            addresses: took.map(|_| [198, 51, 100, 7].into()).into_iter().collect(),
            frame: 1,
        }
    }

    #[test]
    fn the_parts_of_a_command_add_up_as_printed() {
        let report = Report {
            command: Some(command()),
            lookups: vec![
                lookup("a.example", Some(1_000_000)),
                lookup("b.example", Some(12_040_000)),
                lookup("c.example", None),
                lookup("d.example", Some(2_000_000)),
            ],
            ..Report::default()
        };
        insta::assert_snapshot!(shown(&report));
    }

    #[test]
    fn how_a_command_ended_is_said_where_it_is_no_success() {
        let said = |status, signal| headline(&Command { status, signal, ..command() });
        assert!(said(Some(7), None).ends_with("ended with status 7"));
        assert!(said(None, Some(15)).starts_with("curl was ended by signal 15 after"));
        assert!(said(None, None).starts_with("curl went on"));
    }

    #[test]
    fn a_capture_of_other_origin_has_no_such_head() {
        assert_eq!(shown(&Report::default()), "");
    }
}
