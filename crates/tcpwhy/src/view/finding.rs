//! Findings: what would help, why we say so, and what it is not.

use core::cmp::Ordering;
use core::fmt::Write as _;

use super::page::{Ink, Page, plain};
use super::words;
use crate::find;
use crate::report::{Connection, Finding, PredictedBy, Prediction, Remedy, Severity};

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
    let ink = if finding.severity >= Severity::Wrong { Ink::Alarm } else { Ink::Strong };
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
    let head = format!("{}: {}", finding.severity.name(), finding.title);
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
        let _ = write!(text, "; {}", foreseen(predicted));
    }
    page.wrapped(4, 6, &[plain(text)]);
    for (label, command) in [("do", &remedy.command), ("undo", &remedy.rollback)] {
        if let Some(command) = command {
            page.row(&[plain(format!("      {label}: {command}"))]);
        }
    }
}

/// `predicted 1.09 s instead of 1.20 s (from 1.05 s to 1.12 s)`; what may gain nothing says so, and so does what
/// most likely gains none that shows in the figures.
fn foreseen(predicted: Prediction) -> String {
    let Prediction { low, best, high, now, by } = predicted;
    let [then, as_it_was] = [best, now].map(words::time);
    let mut text = match best.cmp(&now) {
        _ if then == as_it_was => format!("predicted to change nothing: {then}"),
        Ordering::Less => format!("predicted {then} instead of {as_it_was}"),
        _ => format!("predicted to gain nothing: {then} instead of {as_it_was}"),
    };
    if by == PredictedBy::Model {
        text += " from the handshake to the last ACK, by a model that repeats it as it was";
    }
    let [least, most] = [low, high].map(words::time);
    match high.cmp(&now) {
        Ordering::Less if least == most => text,
        _ if least == most && then == as_it_was => text,
        Ordering::Less => format!("{text} (from {least} to {most})"),
        Ordering::Equal => format!("{text} ({least} at best; at worst nothing is gained)"),
        Ordering::Greater => format!("{text} ({least} at best, {most} at worst: longer than now)"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_gain_nothing_says_so() {
        let ms = |ms: i64| ms * 1_000_000;
        let said = |low, best, high| {
            let text = foreseen(Prediction {
                low: ms(low),
                best: ms(best),
                high: ms(high),
                now: ms(120),
                ..Prediction::default()
            });
            text.replace('\u{a0}', " ")
        };
        let range = "predicted 100 ms instead of 120 ms (from 90.0 ms to 110 ms)";
        assert_eq!(said(90, 100, 110), range);
        assert_eq!(said(100, 100, 100), "predicted 100 ms instead of 120 ms");
        let nothing =
            "predicted 100 ms instead of 120 ms (90.0 ms at best; at worst nothing is gained)";
        assert_eq!(said(90, 100, 120), nothing);
        assert!(
            said(90, 100, 150).ends_with("(90.0 ms at best, 150 ms at worst: longer than now)")
        );
    }

    #[test]
    fn what_most_likely_gains_nothing_is_shown_as_no_gain() {
        let said = |low, best, high| {
            let [low, best, high] = [low, best, high].map(|us: i64| us * 1_000);
            let now = 1_571_000_000;
            let text = foreseen(Prediction { low, best, high, now, ..Prediction::default() });
            text.replace('\u{a0}', " ")
        };
        let one = "predicted to change nothing: 1.57 s (1.55 s at best, 1.58 s at worst: longer than now)";
        assert_eq!(said(1_550_000, 1_570_000, 1_580_000), one, "1 ms that does not show");
        assert_eq!(said(1_570_000, 1_570_000, 1_570_000), "predicted to change nothing: 1.57 s");
        let longer = "predicted to gain nothing: 1.61 s instead of 1.57 s";
        assert!(said(1_550_000, 1_610_000, 1_620_000).starts_with(longer));
        assert!(said(1_550_000, 1_564_000, 1_570_000).starts_with("predicted 1.56 s instead of"));
    }
}
