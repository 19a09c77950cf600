//! Who sent what to whom, how long it took, and at which distance.

use super::super::page::{Ink, Page};
use super::super::{called, words};
use crate::answer;
use crate::find;
use crate::report::Connection;

/// Exchanges from which on a connection is one of requests.
const REQUESTS: usize = 3;

/// `10.0.0.1:80 -> 10.0.0.2          512 KiB in 56.2 ms at 6.86 ms round trip`
pub(super) fn write(page: &mut Page, connection: &Connection) {
    let who = who(connection);
    let what = what(connection);
    let length = who.chars().count() + what.chars().count();
    if length + 3 <= page.width() {
        let gap = " ".repeat(page.width() - length);
        page.row(&[(Ink::Strong, format!("{who}{gap}{what}"))]);
    } else {
        page.wrapped(0, 2, &[(Ink::Strong, who)]);
        page.wrapped(2, 2, &[(Ink::Strong, what)]);
    }
    if let Some(talk) = called::talk(connection) {
        page.wrapped(2, 4, &[(Ink::Faint, talk)]);
    }
}

/// `10.0.0.1:80 -> 10.0.0.2`
pub(in crate::view) fn who(connection: &Connection) -> String {
    let shown = connection.client_shown();
    let program = called::program(connection, 0);
    let program = program.map_or_else(String::new, |program| format!(" ({program})"));
    let server = called::server(connection);
    match answer::main(connection) {
        Some((1, _)) => format!("{server} -> {}{program}", without_port(&shown)),
        _ => format!("{shown}{program} -> {server}"),
    }
}

/// The client's port tells nobody anything.
fn without_port(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(host, _)| host)
}

/// `512 KiB in 56.2 ms at 6.86 ms round trip`
pub(in crate::view) fn what(connection: &Connection) -> String {
    let failed = find::failed(connection).next().is_some();
    let active = if failed {
        connection.duration_ns
    } else {
        match find::active_ns(connection) {
            0 => connection.duration_ns,
            active => active,
        }
    };
    let took = words::time(active);
    let requests = connection.exchanges.len();
    let what = match answer::main(connection) {
        None if failed => format!("failed after {took}"),
        None => format!("no data in {took}"),
        Some(_) if requests >= REQUESTS => {
            format!("{} in {took}", words::count(requests as u64, "request"))
        }
        Some((at, direction)) => {
            let part = connection.part.and_then(|part| part.bytes[at]);
            format!("{} in {took}", words::bytes(part.unwrap_or(direction.bytes)))
        }
    };
    let rtt = answer::main(connection).and_then(|(_, main)| main.rtt.min_ns);
    match connection.handshake_rtt_ns.or(rtt) {
        Some(rtt) => format!("{what} at {} round trip", words::time(rtt)),
        None => what,
    }
}
