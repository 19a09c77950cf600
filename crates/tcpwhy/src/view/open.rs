//! The open connections of a host as text: what holds them now, or where their time went.

use std::collections::{BTreeMap, BTreeSet};

use tcpwhy_words::page::{Ink, Page, Span, plain};
use tcpwhy_words::said::{bytes, count, percent, time};
use tcpwhy_words::units::BitRate;

use super::family;
use super::live::{called, capital, sentence};
use crate::host::snapshot::{Listener, State as Tcp};
use crate::live::{Connection, is_rest};
use crate::report::{State, TimeIn};

/// What there is to tell of a host.
#[derive(Clone, Debug, Default)]
pub struct Open<'a> {
    /// Those that are open, what hurts first.
    pub connections: Vec<&'a Connection>,
    /// Those that have ended.
    pub ended: &'a [Connection],
    /// How many more have ended.
    pub ended_more: u64,
    /// Names of processes.
    pub processes: BTreeMap<u32, &'a str>,
    /// Sockets that listen.
    pub listeners: &'a [Listener],
    /// Connections in `TIME_WAIT`.
    pub time_wait: u64,
    /// When the last look was.
    pub now_ns: u64,
    /// When the first was.
    pub first_ns: u64,
    /// How many there were.
    pub looks: u64,
}

/// What holds them now.
pub fn now(open: &Open<'_>, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let is_shown = |each: &&&Connection| each.held.is_some() || each.lags();
    let shown: Vec<&Connection> = open.connections.iter().filter(is_shown).copied().collect();
    for connection in shown.iter().take(SHOWN) {
        page.blank();
        head(&mut page, open, connection);
        holds(&mut page, open, connection);
    }
    let (more, idle) = (shown.len().saturating_sub(SHOWN), open.connections.len() - shown.len());
    if more > 0 {
        page.blank();
        page.wrapped(0, 2, &[(Ink::Faint, format!("{more} more are held; --json tells all"))]);
    }
    page.blank();
    let idle = count(idle as u64, "connection");
    let resting = if open.connections.is_empty() {
        "No such connection is open.".to_owned()
    } else if shown.is_empty() {
        format!("Nothing holds any connection; {idle} with nothing to send.")
    } else {
        format!("{idle} with nothing to send.")
    };
    page.wrapped(0, 2, &[plain(resting)]);
    listeners(&mut page, open);
    states(&mut page, open);
    page.into_text()
}

fn head(page: &mut Page, open: &Open<'_>, connection: &Connection) {
    let socket = &connection.socket;
    let mut row: Vec<Span> = vec![(Ink::Strong, format!("{} -> {}", socket.local, socket.remote))];
    if let Some(owner) = socket.owner {
        let name = open.processes.get(&owner.pid).copied().unwrap_or("");
        row.push(plain(format!("  {name} ({})", owner.pid)));
    }
    page.wrapped(0, 2, &row);
}

fn holds(page: &mut Page, open: &Open<'_>, connection: &Connection) {
    if let Some(held) = &connection.held {
        let since = open.now_ns.saturating_sub(connection.since_ns);
        let since =
            if since > 0 { format!(" For {}.", time(since.cast_signed())) } else { String::new() };
        let name = format!("{}  ", held.state.name());
        page.wrapped(
            2,
            4,
            &[(family::ink(held.state), name), plain(sentence(held.state, held.sure) + &since)],
        );
        page.wrapped(4, 4, &[(Ink::Faint, held.by.clone())]);
    }
    if let Some(reader) = connection.reader.filter(|_| connection.lags()) {
        page.wrapped(2, 4, &[plain(capital(&reader.words("its program")) + ".")]);
    }
    let figures = figures(connection);
    if !figures.is_empty() {
        page.wrapped(2, 4, &[plain(figures)]);
    }
}

fn figures(connection: &Connection) -> String {
    let info = connection.socket.info.as_deref();
    let rate = |bps: Option<u64>| bps.filter(|bps| *bps > 0).map(BitRate);
    let round = info.and_then(|info| info.rtt_ns.zip(info.min_rtt_ns));
    let all = [
        rate(connection.sent_bps).map(|rate| format!("sends {rate}")),
        rate(connection.received_bps).map(|rate| format!("receives {rate}")),
        round.map(|(rtt, least)| {
            format!(
                "round trip {}, at least {}",
                time(rtt.cast_signed()),
                time(least.cast_signed())
            )
        }),
        (connection.retransmitted > 0)
            .then(|| format!("{} retransmitted", count(connection.retransmitted, "segment"))),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Those with something in their queue, or that lost something, and how many others there are.
fn listeners(page: &mut Page, open: &Open<'_>) {
    if open.listeners.is_empty() {
        return;
    }
    let has_trouble =
        |each: &&Listener| each.accept_queue > 0 || each.drops.is_some_and(|drops| drops > 0);
    let mut shown: Vec<&Listener> = open.listeners.iter().filter(has_trouble).collect();
    shown.sort_by_key(|each| (core::cmp::Reverse(each.accept_queue), each.local));
    page.heading("Listeners");
    for listener in shown.iter().take(SHOWN) {
        let owner = listener.owner.map(|owner| {
            format!("  {} ({})", open.processes.get(&owner.pid).copied().unwrap_or(""), owner.pid)
        });
        let drops = listener.drops.filter(|drops| *drops > 0);
        let drops =
            drops.map_or_else(String::new, |drops| format!(", {drops} dropped since it listens"));
        page.wrapped(
            2,
            4,
            &[plain(format!(
                "{}{}  {} of {} wait to be accepted{drops}",
                listener.local,
                owner.unwrap_or_default(),
                listener.accept_queue,
                listener.accept_max
            ))],
        );
    }
    let rest = open.listeners.len() - shown.len().min(SHOWN);
    if rest > 0 {
        page.wrapped(
            2,
            4,
            &[(Ink::Faint, format!("{} with an empty queue", count(rest as u64, "listener")))],
        );
    }
}

fn states(page: &mut Page, open: &Open<'_>) {
    let mut totals: BTreeMap<Tcp, u64> = BTreeMap::new();
    for connection in &open.connections {
        *totals.entry(connection.socket.state).or_default() += 1;
    }
    let mut parts: Vec<String> =
        totals.iter().map(|(state, number)| format!("{number} {}", tcp(*state))).collect();
    if open.time_wait > 0 {
        parts.push(format!("{} TIME_WAIT", open.time_wait));
    }
    if !parts.is_empty() {
        page.heading("States of TCP");
        page.wrapped(2, 4, &[plain(parts.join(", "))]);
    }
}

const fn tcp(state: Tcp) -> &'static str {
    match state {
        Tcp::Established => "ESTABLISHED",
        Tcp::SynSent => "SYN_SENT",
        Tcp::SynRecv => "SYN_RECV",
        Tcp::FinWait1 => "FIN_WAIT1",
        Tcp::FinWait2 => "FIN_WAIT2",
        Tcp::Close => "CLOSE",
        Tcp::CloseWait => "CLOSE_WAIT",
        Tcp::LastAck => "LAST_ACK",
        Tcp::Closing => "CLOSING",
    }
}

/// Where their time went.
pub fn summary(open: &Open<'_>, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let span = open.now_ns.saturating_sub(open.first_ns);
    let mut all: Vec<&Connection> = open.connections.iter().copied().chain(open.ended).collect();
    all.sort_by_key(|each| {
        (core::cmp::Reverse(held_ns(&each.times)), each.socket.remote, each.socket.local)
    });
    let ended = open.ended.len() as u64 + open.ended_more;
    let ended = if ended > 0 { format!(", {ended} of them ended") } else { String::new() };
    page.wrapped(
        0,
        2,
        &[plain(format!(
            "{} in {}: {}{ended}.",
            count(open.looks, "look"),
            time(span.cast_signed()),
            count(all.len() as u64 + open.ended_more, "connection"),
        ))],
    );
    let shown = all.iter().filter(|each| held_ns(&each.times) > 0);
    let mut letters = Vec::new();
    for connection in shown.clone().take(SHOWN) {
        page.blank();
        head(&mut page, open, connection);
        strip(&mut page, connection, &mut letters);
        spent(&mut page, connection);
        let figures = figures(connection);
        if !figures.is_empty() {
            page.wrapped(2, 4, &[plain(format!("At last: {figures}."))]);
        }
    }
    if !letters.is_empty() {
        page.blank();
        letters.sort_unstable();
        letters.dedup();
        let legend: Vec<String> = letters
            .iter()
            .map(|state: &State| format!("{} {}", state.letter(), called(*state)))
            .collect();
        page.wrapped(2, 4, &[(Ink::Faint, legend.join(", ") + ", . nothing to send")]);
    }
    let more = shown.count().saturating_sub(SHOWN);
    if more > 0 {
        page.blank();
        page.wrapped(0, 2, &[(Ink::Faint, format!("{more} more were held"))]);
    }
    totals(&mut page, open, &all);
    listeners(&mut page, open);
    states(&mut page, open);
    page.into_text()
}

/// Time in which something held it that is not a program at rest.
fn held_ns(times: &TimeIn) -> i64 {
    times.iter().filter(|(state, _)| !is_rest(*state)).map(|(_, span)| span.0).sum()
}

fn strip(page: &mut Page, connection: &Connection, letters: &mut Vec<State>) {
    let room = page.width().saturating_sub(2);
    let cells: Vec<Option<State>> = connection.strip.iter().map(|cell| cell.state).collect();
    let cells = &cells[cells.len().saturating_sub(room)..];
    if cells.is_empty() {
        return;
    }
    let mut row: Vec<Span> = vec![plain("  ")];
    for run in cells.chunk_by(|a, b| a == b) {
        let (letter, ink) =
            run[0].map_or(('.', Ink::Faint), |state| (state.letter(), family::ink(state)));
        letters.extend(run[0]);
        row.push((ink, core::iter::repeat_n(letter, run.len()).collect()));
    }
    page.row(&row);
}

fn spent(page: &mut Page, connection: &Connection) {
    let total = connection.times.total();
    let part = |(state, span): &(State, _)| -> String {
        let span: &tcpwhy_words::units::Duration = span;
        format!("{} {} ({})", time(span.0), called(*state), percent(span.0, total.0))
    };
    let parts: Vec<String> = connection.times.ranked().iter().take(4).map(part).collect();
    page.wrapped(2, 4, &[plain(format!("Of {}: {}.", time(total.0), parts.join(", ")))]);
}

/// Sums over connections that have something in common.
#[derive(Default)]
struct Sum {
    connections: u64,
    acked: u64,
    received: u64,
    again: u64,
    held_ns: i64,
    times: TimeIn,
}

impl Sum {
    fn add(&mut self, connection: &Connection) {
        let info = connection.socket.info.as_deref();
        self.connections += 1;
        self.acked += info.and_then(|info| info.bytes_acked).unwrap_or(0);
        self.received += info.and_then(|info| info.bytes_received).unwrap_or(0);
        self.again += connection.retransmitted;
        self.held_ns += held_ns(&connection.times);
        self.times.add_all(connection.times.iter());
    }

    fn words(&self) -> String {
        let again = if self.again > 0 {
            format!(", {} retransmitted", count(self.again, "segment"))
        } else {
            String::new()
        };
        let total = self.times.total();
        let most = self
            .times
            .ranked()
            .first()
            .map(|(state, span)| format!(", {} {}", percent(span.0, total.0), called(*state)));
        format!(
            "{}, {} sent, {} received{again}{}",
            count(self.connections, "connection"),
            bytes(self.acked),
            bytes(self.received),
            most.unwrap_or_default()
        )
    }
}

/// By process, peer and local port, those that were held longest first.
fn totals(page: &mut Page, open: &Open<'_>, all: &[&Connection]) {
    let process = |each: &Connection| {
        let owner = each.socket.owner?;
        Some(format!("{} ({})", open.processes.get(&owner.pid).copied().unwrap_or(""), owner.pid))
    };
    let peer = |each: &Connection| Some(each.socket.remote.ip().to_string());
    // The port of the side that listens; the other was chosen by a kernel and names nobody.
    let listening: BTreeSet<u16> = open.listeners.iter().map(|each| each.local.port()).collect();
    let port = |each: &Connection| {
        let [local, remote] = [each.socket.local, each.socket.remote].map(|end| end.port());
        Some(format!("port {}", if listening.contains(&local) { local } else { remote }))
    };
    by(page, "By process", all, process);
    by(page, "By peer", all, peer);
    by(page, "By port", all, port);
}

fn by(
    page: &mut Page,
    title: &str,
    all: &[&Connection],
    key: impl Fn(&Connection) -> Option<String>,
) {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for connection in all {
        if let Some(key) = key(connection) {
            sums.entry(key).or_default().add(connection);
        }
    }
    if sums.is_empty() {
        return;
    }
    let mut sums: Vec<(String, Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| core::cmp::Reverse((sum.held_ns, sum.acked + sum.received)));
    page.heading(title);
    for (key, sum) in sums.iter().take(GROUPS) {
        page.wrapped(2, 4, &[(Ink::Strong, key.clone()), plain(format!("  {}", sum.words()))]);
    }
    let more = sums.len().saturating_sub(GROUPS);
    if more > 0 {
        page.wrapped(2, 4, &[(Ink::Faint, format!("{more} more"))]);
    }
}

/// Connections that are shown; the others are counted. Ours: a few screens.
const SHOWN: usize = 20;
/// Groups that are shown. Ours.
const GROUPS: usize = 8;
