//! The path inside a host as text: a row a stage, what has to be known below it.

use core::fmt::Write as _;

use super::{Amount, Queues, RateOf, Stage, Way};
use tcpwhy_words::page::harmless;
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

/// As wide as a terminal beside another.
const WIDTH: usize = 100;
/// Where the columns begin: limit, what waits, what was dropped, the longest wait.
const COLUMNS: [usize; 4] = [24, 57, 72, 86];

/// The text, in lines of at most 100 columns.
pub fn text(queues: &Queues) -> String {
    let mut out = String::new();
    let rate = match (queues.rate, queues.rate_of) {
        (Some(rate), RateOf::Given) => format!("at {}, as given", BitRate(rate)),
        (Some(rate), _) => format!("at {}, the speed of its link", BitRate(rate)),
        (None, _) => {
            "at a rate that was not seen: waits are not known (give one with --rate)".to_owned()
        }
    };
    let mtu = queues.mtu.map_or_else(String::new, |mtu| format!(", packets of {mtu} bytes"));
    paragraph(&mut out, 0, &format!("{}: {rate}{mtu}", queues.dev));
    for (way, head) in [(Way::Sending, "Sending"), (Way::Receiving, "Receiving")] {
        out.push('\n');
        let head = [head, "limit", "waiting now", "dropped", "longest wait"].map(str::to_owned);
        row(&mut out, &head);
        for stage in queues.stages.iter().filter(|stage| stage.way == way) {
            show(&mut out, stage);
        }
    }
    out.push('\n');
    for said in &queues.acknowledgment {
        paragraph(&mut out, 0, said);
    }
    out
}

fn show(out: &mut String, stage: &Stage) {
    let nothing = || "-".to_owned();
    let limit = stage.limit.map_or_else(nothing, |limit| {
        format!("{} {}", amount(limit), stage.each).trim_end().to_owned()
    });
    let dropped = stage.dropped.map_or_else(nothing, |count| match stage.dropped_since {
        Some(since) if since > 0 => format!("{} (+{since})", said::grouped(count)),
        _ => said::grouped(count),
    });
    let wait = stage.longest_wait_ns.and_then(|ns| i64::try_from(ns).ok());
    let cells = [
        stage.name.clone(),
        limit,
        stage.now.map_or_else(nothing, amount),
        dropped,
        wait.map_or_else(nothing, said::time),
    ];
    row(out, &cells);
    let full = Some(&stage.when_full).filter(|text| !text.is_empty());
    let full = full.map(|text| format!("full: {text}"));
    let about: Vec<String> = stage.parameter.iter().cloned().chain(full).collect();
    if !about.is_empty() {
        paragraph(out, 4, &about.join("; "));
    }
    for note in &stage.notes {
        paragraph(out, 4, note);
    }
    if !stage.unseen.is_empty() {
        paragraph(out, 4, &format!("not seen: {}", stage.unseen.join(", ")));
    }
}

fn amount(amount: Amount) -> String {
    match amount {
        Amount::Bytes(bytes) => said::bytes(bytes),
        Amount::Packets(packets) => said::count(packets, "packet"),
    }
}

/// Cells at their columns; one that is too long pushes the next.
fn row(out: &mut String, cells: &[String; 5]) {
    let mut line = plain(&cells[0]);
    for (cell, column) in cells[1..].iter().zip(COLUMNS) {
        let gap = column.saturating_sub(line.chars().count()).max(1);
        let _ = write!(line, "{:gap$}{}", "", plain(cell));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A text broken between words, all lines behind `indent` blanks.
fn paragraph(out: &mut String, indent: usize, text: &str) {
    let mut at = 0;
    for word in text.split_whitespace().map(plain) {
        let length = word.chars().count();
        if at == 0 {
            at = indent + length;
            let _ = write!(out, "{:indent$}{word}", "");
        } else if at + 1 + length > WIDTH {
            let indent = indent + 2;
            at = indent + length;
            let _ = write!(out, "\n{:indent$}{word}", "");
        } else {
            at += 1 + length;
            let _ = write!(out, " {word}");
        }
    }
    out.push('\n');
}

/// Names are the host's, and may hold anything: nothing of them reaches a terminal as a command.
fn plain(text: &str) -> String {
    text.chars().map(harmless).collect()
}
