//! What did not work, before everything that only took its time: by server and kind.

use core::cmp::Reverse;

use super::page::{Ink, Page};
use super::words;
use crate::report::{Connection, FailedPeer, Failure, FailureKind, Report};

/// Servers told one by one.
const PEERS: usize = 5;

/// The failures of a report of several connections; nothing if there are none.
pub(super) fn write(page: &mut Page, report: &Report) {
    let totals = &report.totals;
    if totals.failed == 0 || totals.connections <= 1 {
        return;
    }
    let head = format!(
        "{} of {} failed",
        words::grouped(totals.failed),
        words::count(totals.connections, "connection")
    );
    page.wrapped(0, 2, &[(Ink::Alarm, head)]);
    let mut peers: Vec<&FailedPeer> = totals.failures.iter().collect();
    peers.sort_by_key(|peer| Reverse((peer.longest_ns, peer.connections)));
    for peer in peers.iter().take(PEERS) {
        let code = peer.code.as_ref().map_or_else(String::new, |code| format!(" [{code}]"));
        let text = words::tie_numbers(&told(peer, report));
        page.wrapped(2, 4, &[(Ink::Plain, text), (Ink::Faint, code)]);
    }
    if peers.len() > PEERS {
        let more = words::count((peers.len() - PEERS) as u64, "more line");
        page.wrapped(2, 4, &[(Ink::Faint, format!("and {more} like these, by server and kind"))]);
    }
    page.blank();
}

/// `192.0.2.4:80 gave no answer to the SYNs of 9 connections: up to 11 SYNs each, 67.4 s at the longest`
fn told(peer: &FailedPeer, report: &Report) -> String {
    let same = |each: &&Connection| each.server == peer.server;
    let known = report.connections.iter().find(same);
    let server = known.map_or_else(|| peer.server.to_string(), Connection::server_shown);
    let connections = words::count(peer.connections, "connection");
    let longest = words::time(peer.longest_ns);
    let longest = if peer.connections > 1 { format!("{longest} at the longest") } else { longest };
    match peer.kind {
        FailureKind::NoAnswer if peer.tries <= 1 => {
            format!("{server} gave no answer to the SYN of {connections}")
        }
        FailureKind::NoAnswer => {
            let tries = words::count(u64::from(peer.tries), "SYN");
            let tries = if peer.connections > 1 { format!("up to {tries} each") } else { tries };
            format!("{server} gave no answer to the SYNs of {connections}: {tries}, {longest}")
        }
        FailureKind::Refused => format!("{server} refused {connections} with a reset: {longest}"),
        FailureKind::RequestUnanswered => {
            format!("{server} sent no answer to the last request of {connections}: {longest}")
        }
        FailureKind::Found => {
            let code = |each: &crate::report::Finding| Some(&*each.code) == peer.code.as_deref();
            let titles = report.connections.iter().filter(same).flat_map(|each| &each.findings);
            let title = titles.into_iter().find(|each| code(each)).map(|each| &*each.title);
            format!("{server}: {connections}: {}", title.unwrap_or("did not work"))
        }
    }
}

/// The same of one connection, for a cell of a table.
pub(super) fn cell(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::NoAnswer => "no answer".to_owned(),
        FailureKind::Refused => "refused".to_owned(),
        FailureKind::RequestUnanswered => "request, no answer".to_owned(),
        FailureKind::Found => {
            failure.code.as_ref().map_or_else(|| "failed".to_owned(), ToString::to_string)
        }
    }
}
