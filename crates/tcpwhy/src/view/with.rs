//! What lay beside the capture says: in the account of its connection, and file by file at the end.
//!
//! A contradiction comes first, for one of the two must be wrong; then what system calls tell of
//! single waits, each on its own; then what was measured, in one paragraph.

use super::choose;
use super::page::{Ink, Page, plain};
use super::words;
use crate::report::{Beside, Connection, Report, With};

/// Sentences of one file on one connection that are printed. Ours: a screen of them.
const SENTENCES: usize = 12;

/// Sentences of one file on the first screen. Ours.
const SHORT: usize = 2;

/// What each file says of this connection.
pub(super) fn write(page: &mut Page, with: &[With], connection: &Connection) {
    for (source, file) in with.iter().enumerate() {
        let told: Vec<&Beside> = connection
            .beside
            .iter()
            .filter(|each| each.source == source as u64 && is_asked_for(connection, each))
            .collect();
        if told.is_empty() {
            continue;
        }
        page.blank();
        let head = format!("With {}: ", file.source);
        let lines = lines(&told);
        let left = lines.len().saturating_sub(SENTENCES);
        for (at, (ink, line)) in lines.into_iter().take(SENTENCES).enumerate() {
            let head = if at == 0 { head.clone() } else { String::new() };
            let first = if at == 0 { 2 } else { 4 };
            page.wrapped(first, 4, &[(Ink::Strong, head), (ink, line)]);
        }
        if left > 0 {
            let text = format!("and {} (in --json)", words::count(left as u64, "more sentence"));
            page.wrapped(4, 4, &[(Ink::Faint, text)]);
        }
    }
}

/// What contradicts the packets, and what system calls tell of single waits: the first screen has no room for more.
pub(super) fn write_short(page: &mut Page, with: &[With], connection: &Connection) {
    for (source, file) in with.iter().enumerate() {
        let of_file = connection.beside.iter().filter(|each| each.source == source as u64);
        let told: Vec<&Beside> = of_file.filter(|each| stands_alone(each)).collect();
        for (ink, line) in lines(&told).into_iter().take(SHORT) {
            let head = (Ink::Strong, format!("With {}: ", file.source));
            page.wrapped(0, 2, &[head, (ink, line)]);
        }
    }
}

/// Contradictions, what was measured in one sentence, then waits one by one.
fn lines(told: &[&Beside]) -> Vec<(Ink, String)> {
    let text = |each: &&&Beside| words::tie_numbers(&each.text);
    let of = |wanted: fn(&Beside) -> bool| told.iter().filter(move |each| wanted(each));
    let wrong = of(|each| each.verdict == "contradicts");
    let wrong = wrong.map(|each| (Ink::Alarm, format!("contradiction: {}.", text(&each))));
    let joined: Vec<String> = of(|each| !stands_alone(each)).map(|each| text(&each)).collect();
    let joined = (!joined.is_empty()).then(|| (Ink::Plain, format!("{}.", joined.join("; "))));
    let waits = of(|each| each.quantity == "calls");
    let waits = waits.map(|each| (Ink::Plain, format!("{}.", text(&each))));
    wrong.chain(joined).chain(waits).collect()
}

/// Whether it is about the direction that the account explains: the JSON has the rest.
fn is_asked_for(connection: &Connection, each: &Beside) -> bool {
    let Some((at, _)) = choose::directions(connection).into_iter().next() else { return true };
    let ends = words::ends(at);
    match &*each.quantity {
        _ if each.verdict == "contradicts" => true,
        "rcvbuf" | "unread" => each.side == ends.receiver,
        "congestion_control" | "cwnd" | "ssthresh" | "rwnd_limited" | "sndbuf_limited"
        | "min_rtt" | "sndbuf" | "snd_wnd" => each.side == ends.sender,
        _ => true,
    }
}

/// Whether it has a line of its own.
fn stands_alone(each: &Beside) -> bool {
    each.verdict == "contradicts" || each.quantity == "calls"
}

/// The files and what is to be said about each.
pub(super) fn write_files(page: &mut Page, report: &Report) {
    if report.with.is_empty() {
        return;
    }
    page.heading("Beside the capture");
    for file in &report.with {
        let text = match &file.error {
            Some(error) => format!("{}: cannot be used: {error}", file.source),
            None => format!("{}: {}", file.source, held(file)),
        };
        let ink = if file.error.is_some() { Ink::Alarm } else { Ink::Plain };
        page.wrapped(2, 4, &[(ink, text)]);
        for note in &file.notes {
            page.wrapped(4, 6, &[plain(words::tie_numbers(note))]);
        }
    }
}

/// `12 samples of ss, of 1 connection`
fn held(file: &With) -> String {
    let noun = match &*file.kind {
        "nstat" => "counter",
        "strace" | "perf trace" => "system call",
        "iperf3" | "--rate" => return format!("the path's rate ({})", file.kind),
        _ => "sample",
    };
    let items = words::count(file.items, noun);
    let of = match file.connections {
        0 => "of no connection of this report".to_owned(),
        number => format!("of {}", words::count(number, "connection")),
    };
    format!("{items} ({}), {of}", file.kind)
}
