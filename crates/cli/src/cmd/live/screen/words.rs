//! Words and figures in cells.

use std::net::{IpAddr, SocketAddr};

use ratatui::style::{Color, Modifier, Style};
use tcpwhy::live::Connection;
use tcpwhy::report::State;
use tcpwhy::view::live::{cell, color};

use super::Seen;
use crate::printable;

pub(super) fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// The colour of a state's family.
pub(super) fn ink(state: State) -> Style {
    color(state).map_or_else(Style::new, |index| Style::new().fg(Color::Indexed(index)))
}

/// What holds it, in a word or two.
pub(super) fn held(connection: &Connection) -> &'static str {
    match &connection.held {
        Some(held) => cell(held.state),
        None if connection.lags() => "reads too slowly",
        None => "",
    }
}

/// The program that has it: its name is text of whoever started it.
pub(super) fn process(seen: &Seen<'_>, connection: &Connection) -> String {
    let owner = connection.socket.owner.and_then(|owner| seen.processes.get(&owner.pid));
    owner.map_or_else(String::new, |name| printable(name))
}

/// The larger of its two directions, in bits per second.
pub(super) fn rate_of(connection: &Connection) -> Option<u64> {
    connection.sent_bps.max(connection.received_bps)
}

/// `7.2M`: bits per second in six letters.
pub(super) fn rate(bps: Option<u64>) -> String {
    let Some(bps) = bps.filter(|bps| *bps > 0) else { return String::new() };
    let units = [(1_000_000_000_u64, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = units.into_iter().find(|(size, _)| bps >= *size);
    let Some((size, unit)) = unit else { return bps.to_string() };
    let value = bps as f64 / size as f64;
    if value < 9.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// `28ms`: a time in six letters.
pub(super) fn span(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000_000 => return format!("{}us", ns / 1_000),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        1_000_000_000..100_000_000_000 => (ns as f64 / 1e9, "s"),
        _ if ns < 6_000_000_000_000 => return format!("{}m", ns / 60_000_000_000),
        _ => return format!("{}h", ns / 3_600_000_000_000),
    };
    if value < 9.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// An end in at most `width` letters: of a long address the middle goes.
pub(super) fn end(end: SocketAddr, width: usize) -> String {
    // An IPv4 peer of an IPv6 socket is called by its own address.
    let ip = end.ip().to_canonical();
    let text = match ip {
        IpAddr::V6(ip) => format!("[{ip}]:{}", end.port()),
        IpAddr::V4(ip) => format!("{ip}:{}", end.port()),
    };
    let letters = text.chars().count();
    if letters <= width || width < 8 {
        return text;
    }
    let keep = width - 1;
    let (first, last) = (keep / 2, keep - keep / 2);
    let head: String = text.chars().take(first).collect();
    let tail: String = text.chars().skip(letters - last).collect();
    format!("{head}~{tail}")
}
