//! A summary as text and as JSON.

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy_tables::summary::{Change, Failure, Place, Summary};
use tcpwhy_words::page::{Ink, Page, plain};
use tcpwhy_words::tied;

/// The summary as programs read it.
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub(super) fn json(summary: &Summary) -> anyhow::Result<String> {
    let answer = Answer { format: "tcpwhy-summary/1", summary };
    let json = serde_json::to_string_pretty(&answer).context("a summary is plain data")?;
    Ok(json + "\n")
}

pub(super) fn text(summary: &Summary, width: usize, top: usize) -> String {
    let mut page = Page::new(width, false);
    page.wrapped(0, 2, &[(Ink::Strong, head(summary))]);
    if summary.connections == 0 {
        return page.into_text();
    }
    page.blank();
    if summary.changes.is_empty() {
        page.wrapped(0, 2, &[plain("Nothing is known that would make these transfers faster.")]);
    } else {
        page.wrapped(0, 2, &[(Ink::Strong, "What would save most".to_owned())]);
    }
    for (rank, change) in summary.changes.iter().take(top).enumerate() {
        write_change(&mut page, rank + 1, change, summary.hosts);
    }
    more(&mut page, summary.changes.len(), top, "change");
    if !summary.failures.is_empty() {
        page.blank();
        page.wrapped(0, 2, &[(Ink::Strong, "What did not work".to_owned())]);
        for failure in summary.failures.iter().take(top) {
            write_failure(&mut page, failure);
        }
        more(&mut page, summary.failures.len(), top, "kind");
    }
    if summary.changes.len() > 1 {
        page.blank();
        let note = "Changes of one connection share its time: their gains do not add up.";
        page.wrapped(0, 2, &[(Ink::Faint, note.to_owned())]);
    }
    page.into_text()
}

fn head(summary: &Summary) -> String {
    if summary.connections == 0 {
        return "No connection is in what was asked for.".to_owned();
    }
    let days = match &summary.days {
        None => String::new(),
        Some([first, last]) if first == last => format!(", {first}"),
        Some([first, last]) => format!(", {first} to {last}"),
    };
    let failed = match summary.failed {
        0 => String::new(),
        failed => format!(" ({} did not work)", tcpwhy_words::said::grouped(failed)),
    };
    format!(
        "{}{days}: {}{failed}, {} in which somebody waited",
        tied::count(summary.hosts as u64, "host"),
        tied::count(summary.connections, "connection"),
        span(summary.active_ns),
    )
}

fn write_change(page: &mut Page, rank: usize, change: &Change, hosts: usize) {
    let values = match change.values {
        None => String::new(),
        Some([least, most]) if least == most => format!(" {least}"),
        Some([least, most]) => format!(" {least} to {most}"),
    };
    let range = if change.gain_low_ns == change.gain_high_ns {
        String::new()
    } else {
        format!(" ({} to {})", span(change.gain_low_ns), span(change.gain_high_ns))
    };
    let what = format!("{rank}. {}{values}: saves {}{range}", change.kind, span(change.gain_ns));
    page.wrapped(0, 3, &[plain(what)]);
    let by = if change.by_model_ns * 2 > change.gain_ns { "by the model" } else { "by arithmetic" };
    let of_hosts = if hosts > 1 {
        format!(", in captures of {}", tied::count(change.hosts as u64, "host"))
    } else {
        String::new()
    };
    let why = format!(
        "{}{of_hosts}; {} ({}), {by}",
        tied::count(change.connections, "connection"),
        change.code,
        change.confidence
    );
    page.wrapped(3, 3, &[plain(why)]);
    page.wrapped(3, 3, &[plain(places(&change.places, change.of_places))]);
    if let Some(command) = &change.command {
        page.wrapped(3, 5, &[(Ink::Faint, command.clone())]);
    }
}

/// Where it is to be done.
fn places(places: &[Place], of: usize) -> String {
    let named = places
        .iter()
        .map(|place| format!("{} ({})", place.name, tied::count(place.connections, "connection")));
    format!("at {}", listed(named.collect(), of))
}

fn write_failure(page: &mut Page, failure: &Failure) {
    let named =
        failure.servers.iter().map(|(server, count)| format!("{server} ({count})")).collect();
    let text = format!(
        "! {}: {}, to {}",
        failure.code,
        tied::count(failure.connections, "connection"),
        listed(named, failure.of_servers)
    );
    page.wrapped(0, 2, &[(Ink::Alarm, text)]);
}

/// Some of them, and how many more there are.
fn listed(mut named: Vec<String>, of: usize) -> String {
    if of > named.len() {
        named.push(format!("{} more", of - named.len()));
    }
    tcpwhy_words::said::listed(&named)
}

fn more(page: &mut Page, of: usize, top: usize, noun: &str) {
    if of > top {
        let text =
            format!("and {} (--top N)", tied::count((of - top) as u64, &format!("more {noun}")));
        page.wrapped(3, 3, &[(Ink::Faint, text)]);
    }
}

/// A span that may be hours.
fn span(ns: i64) -> String {
    const MINUTE: i64 = 60_000_000_000;
    match ns / MINUTE {
        ..2 => tied::time(ns),
        minutes @ 2..120 => format!("{minutes}\u{a0}min"),
        minutes => format!("{}\u{a0}h {}\u{a0}min", minutes / 60, minutes % 60),
    }
}
