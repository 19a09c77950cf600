//! Evidence laid beside a report: which connection each file speaks of.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::{Connection, Report, With};
use tcpwhy_words::said;

use super::kernel::Case;
use super::owner::{self, Fate};
use super::sample::Sample;
use super::{Content, Evidence, controller, host, rate, stalls};
use tcpwhy_words::printed::address::Ends;

use super::ends::ends_at;
use tcpwhy_words::printed::calls::{Calls, Socket};
use tcpwhy_words::printed::counters::{Growth, Kind, Reading};

/// What `tcpwhy record` attached to the packets of `report` that is evidence: samples of sockets and
/// events. The rest (settings, counters' growth) is of no kind that [`super::read`] knows.
pub fn attached(report: &Report) -> Vec<Evidence> {
    let several = report.captures.len() > 1;
    let read = |((capture, name), bytes): (&(usize, String), &Vec<u8>)| {
        let of = report.captures.get(*capture).filter(|_| several);
        let name = of.map_or_else(|| name.clone(), |of| format!("{}: {name}", of.source));
        super::read(&name, bytes).ok()
    };
    report.attachments.iter().filter_map(read).collect()
}

/// Lays all of `evidence` beside `report`, in the order given.
pub fn apply(report: &mut Report, evidence: &[Evidence]) {
    // Counters that wait for their second reading.
    let mut before: Option<(usize, &Reading)> = None;
    let mut controllers = BTreeMap::new();
    super::reader::settle(report, evidence);
    let left_out = left_out(report);
    for (at, each) in evidence.iter().enumerate() {
        let source = report.with.len();
        let mut with = With {
            source: each.source.clone(),
            kind: each.content.kind().into(),
            items: each.content.len() as u64,
            ..With::default()
        };
        match &each.content {
            Content::Unread(why) => with.error = Some(why.clone()),
            content if let Some(first) = first_of(content, &evidence[..at]) => {
                with.connections = report.with[source - at + first].connections;
                with.notes.push(twice(content, &evidence[first].source));
            }
            Content::Sockets { samples, .. } => {
                let named = sockets(&mut report.connections, source, samples, &mut with);
                controllers.extend(named.into_iter().map(|(of, name)| (of, (source, name))));
                with.notes.extend(left_out.clone());
            }
            Content::Counters(readings) => {
                counters(report, &mut before, (source, readings), &mut with);
            }
            Content::Rate(path) => {
                for connection in &mut report.connections {
                    let told = rate::apply(source, short(&each.source), *path, connection);
                    with.connections += u64::from(!told.is_empty());
                    connection.beside.extend(told);
                }
            }
            Content::Calls(trace) => {
                calls(&mut report.connections, source, trace, &mut with);
                with.notes.extend(left_out.clone());
            }
        }
        with.notes.extend(each.passed_over.told());
        report.with.push(with);
    }
    for ((at, side), (source, name)) in controllers {
        let connection = &mut report.connections[at];
        let told = controller::apply(source, &name, connection, side);
        connection.beside.extend(told);
    }
    super::room::settle(report);
    if let Some((source, reading)) = before {
        one_reading(report, source, reading);
    }
}

/// What is to be said where evidence may be of connections that are not shown.
fn left_out(report: &Report) -> Option<String> {
    let shown = report.connections.len() as u64;
    let left_out = report.totals.connections.saturating_sub(shown);
    (left_out > 0).then(|| {
        format!(
            "looked for among the {} of this report; {left_out} others are not in it (`--top` tells how many are)",
            said::count(shown, "connection")
        )
    })
}

/// Which of the evidence before has the same content: a file named twice, or its copy.
fn first_of(content: &Content, before: &[Evidence]) -> Option<usize> {
    before.iter().position(|earlier| earlier.content == *content)
}

/// What is said of evidence that was laid beside the report already.
fn twice(content: &Content, first: &str) -> String {
    match content {
        Content::Counters(_) => format!(
            "it has just the counts of {first}: the same reading, for not even a packet was counted between \
             them"
        ),
        _ => format!("it holds just what {first} does, and is not told again"),
    }
}

/// Counters without a second reading.
fn one_reading(report: &mut Report, source: usize, reading: &Reading) {
    let names = short(&report.with[source].source).to_owned();
    let growth = Growth::alone(reading);
    for connection in &mut report.connections {
        let told = host::apply(source, &names, &growth, connection);
        connection.beside.extend(told);
    }
    report.with[source].notes.push(
        "one reading tells nothing but what is zero: counters are read before and after".to_owned(),
    );
}

/// The name of a file without its folders, for sentences; a rate that was typed stays.
fn short(source: &str) -> &str {
    match source.rsplit_once('/') {
        Some((_, name)) if !source.starts_with("--") => name,
        _ => source,
    }
}

/// Readings of a host: the first and the last of a file, or those of two files in turn.
fn counters<'a>(
    report: &mut Report,
    before: &mut Option<(usize, &'a Reading)>,
    (source, readings): (usize, &'a [Reading]),
    with: &mut With,
) {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return };
    let (names, first) = match before.take() {
        _ if readings.len() > 1 => (short(&with.source).to_owned(), first),
        Some((earlier, first)) => {
            let earlier = short(&report.with[earlier].source);
            (format!("{earlier} and {}", short(&with.source)), first)
        }
        None => {
            *before = Some((source, first));
            return;
        }
    };
    let growth = Growth::between(first, last);
    for connection in &mut report.connections {
        let told = host::apply(source, &names, &growth, connection);
        with.connections += u64::from(!told.is_empty());
        connection.beside.extend(told);
    }
    with.notes.extend(host::grown(&growth));
    with.notes.push(host::whose(&growth, &report.connections));
    with.notes.extend(match growth.kind {
        Kind::Counts => None,
        Kind::Growth => Some(
            "a counter is less in the second reading: that is taken as what grew since the first"
                .to_owned(),
        ),
        Kind::Unclear => Some(
            "counters are less in the second reading: was it the first? (`nstat -a` prints what can be \
             compared; name the earlier one first)"
                .to_owned(),
        ),
    });
}

/// Each connection gets the calls on its own socket; a trace of none of them is explained by itself.
fn calls(connections: &mut [Connection], source: usize, trace: &Calls, with: &mut With) {
    let mut met = vec![false; trace.sockets.len()];
    let sockets = trace.sockets.iter().enumerate();
    let by_ends: BTreeMap<Ends, u32> =
        sockets.clone().filter_map(|(at, socket)| Some((socket.ends()?, at as u32))).collect();
    let vague: Vec<(u32, &Socket)> = sockets
        .filter(|(_, socket)| socket.ends().is_none())
        .map(|(at, socket)| (at as u32, socket))
        .collect();
    for connection in connections.iter_mut() {
        let exact = [0, 1]
            .into_iter()
            .find_map(|side| by_ends.get(&ends_at(connection, side)).map(|socket| (*socket, side)));
        let free = || vague.iter().filter(|(at, _)| !met[*at as usize]).copied();
        let Some((socket, side)) = exact.or_else(|| likely(trace, connection, free())) else {
            continue;
        };
        met[socket as usize] = true;
        with.connections += 1;
        connection.beside.extend(stalls::apply(source, trace, socket, connection, side));
    }
    if with.connections == 0 {
        if !connections.is_empty() {
            with.notes.push("none of its sockets is one of this report".to_owned());
        }
        with.notes.extend(stalls::alone(trace));
        with.notes.push("tracing slows the program down".to_owned());
    }
}

/// Which of the sockets whose ends are not both known `connection` has, and on which side: by the end
/// that is known if that is one only or the bytes are the same, else by the bytes alone.
fn likely<'a>(
    trace: &Calls,
    connection: &Connection,
    sockets: impl Iterator<Item = (u32, &'a Socket)>,
) -> Option<(u32, usize)> {
    let held = |at: usize| connection.directions[at].as_deref().map_or(0, |each| each.bytes);
    let same_bytes = |at: u32, side: usize| {
        let moved = trace.moved(at);
        moved == (held(side), held(1 - side)) && moved != (0, 0)
    };
    let fits = |at: u32, socket: &Socket, side: usize| {
        let ends = ends_at(connection, side);
        socket.side.is_none_or(|own| own == side)
            && socket.local.is_none_or(|local| local == ends.local)
            && socket.peer.is_none_or(|peer| peer == ends.peer)
            && (socket.peer.is_some() || same_bytes(at, side))
    };
    let candidates: Vec<(u32, usize)> = sockets
        .flat_map(|(at, socket)| [0, 1].map(|side| (at, socket, side)))
        .filter(|(at, socket, side)| fits(*at, socket, *side))
        .map(|(at, _, side)| (at, side))
        .collect();
    let exact = candidates.iter().find(|(at, side)| same_bytes(*at, *side));
    exact.or_else(|| candidates.first().filter(|_| candidates.len() == 1)).copied()
}

/// Each connection gets the samples of its own sockets. Gives the controllers that they name, by connection
/// and side.
fn sockets(
    connections: &mut [Connection],
    source: usize,
    samples: &[Sample],
    with: &mut With,
) -> BTreeMap<(usize, usize), Box<str>> {
    let mut by_ends: BTreeMap<Ends, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        by_ends.entry(sample.ends).or_default().push(sample);
    }
    let mut holders: BTreeMap<Ends, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, connection) in connections.iter().enumerate() {
        for side in [0, 1] {
            let ends = ends_at(connection, side);
            if by_ends.contains_key(&ends) {
                holders.entry(ends).or_default().push((at, side));
            }
        }
    }
    let mut fate = Fate::default();
    let mut of_sides: BTreeMap<(usize, usize), Vec<&Sample>> = BTreeMap::new();
    for (ends, sides) in &holders {
        let held: Vec<(&Connection, usize)> =
            sides.iter().map(|(at, side)| (&connections[*at], *side)).collect();
        let shared = owner::share(&by_ends[ends], &held);
        fate = fate.and(shared.fate);
        of_sides.extend(sides.iter().copied().zip(shared.of));
    }
    of_sides.retain(|_, samples| !samples.is_empty());
    let met: BTreeSet<usize> = of_sides.keys().map(|(at, _)| *at).collect();
    with.connections = met.len() as u64;
    for ((at, side), samples) in &of_sides {
        let connection = &mut connections[*at];
        let told = Case { source, side: *side, samples }.apply(connection);
        connection.beside.extend(told);
    }
    with.notes.extend(fate.notes());
    if holders.is_empty() {
        let named: Vec<String> =
            by_ends.keys().take(3).map(|ends| format!("{} - {}", ends.local, ends.peer)).collect();
        with.notes.push(format!(
            "none of its {} is a connection of this report; it has {}{}",
            said::count(by_ends.len() as u64, "socket"),
            said::listed(&named),
            if by_ends.len() > 3 { " and others" } else { "" }
        ));
    }
    let named = |samples: &Vec<&Sample>| samples.iter().rev().find_map(|s| s.controller.clone());
    of_sides.iter().filter_map(|(of, samples)| Some((*of, named(samples)?))).collect()
}
