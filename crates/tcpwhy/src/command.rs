//! Where did the time of a recorded command go: names, opening connections, TLS, requests, the
//! server, responses, or the command itself?
//!
//! What each connection did is laid over the command's time as phases, and each instant counts for
//! one: where several went on at once, for the one furthest in the order of [`Phase`]. So the parts
//! add up to the duration to the nanosecond. At the client a request's phase ends, and the server's
//! begins, when the first byte of the response comes in, less the server's time: both ways of the
//! path belong to the request.
//!
//! A connection to a name server's port counts as asking for names, up to its last answer.
//!
//! Left out: whose a connection was; a recording holds those of the command. Phases of connections
//! whose account is not in the report count as the command's own time.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Deserialize;

use crate::report::{Command, Connection, Exchange, Lookup, Report, Spent, State};
use tcpwhy_words::units::Time;

/// What `tcpwhy record` notes of a command (`command.json`).
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize)]
pub struct Noted {
    /// Its program.
    pub program: String,
    /// When it was started, in nanoseconds since 1970.
    pub start: i64,
    /// When it had ended.
    pub end: i64,
    /// Its exit status.
    pub status: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i64>,
}

impl Noted {
    /// What makes its times absurd: anybody may have written them.
    fn odd(&self, report: &Report) -> Option<&'static str> {
        let Self { start, end, .. } = *self;
        if end < start {
            return Some("it is said to have ended before it began");
        }
        if start < 0 || end - start > LONGEST_NS {
            return Some("it is said to have taken longer than a year, or to be from before 1970");
        }
        let life = |connection: &Connection| {
            let from = Time::from_rfc3339(&connection.start)?.0;
            Some((from, from.saturating_add(connection.duration_ns)))
        };
        let lives: Vec<(i64, i64)> = report.connections.iter().filter_map(life).collect();
        let strange =
            !lives.is_empty() && lives.iter().all(|(from, to)| *to < start || *from > end);
        strange.then_some("no connection of this report is of its time")
    }
}

/// Ours: nobody waits for a command of a year.
const LONGEST_NS: i64 = 366 * 86_400 * 1_000_000_000;

/// Fills in the command of a report over its recording.
///
/// # Errors
/// Its times are absurd, in words to follow its name: then the report has no command.
pub fn account(report: &mut Report, noted: &Noted) -> Result<(), &'static str> {
    if let Some(odd) = noted.odd(report) {
        return Err(odd);
    }
    let span = (noted.start, noted.end);
    let mut phases = Vec::new();
    for lookup in &report.lookups {
        let Some(start) = Time::from_rfc3339(&lookup.start) else { continue };
        let end = match lookup.duration_ns {
            Some(took) => Some(start.0.saturating_add(took)),
            None => given_up(report, lookup, start).map(|next| next.0),
        };
        phases.extend(end.map(|end| (Phase::Dns, start.0, end)));
    }
    for connection in &report.connections {
        if let Some(start) = Time::from_rfc3339(&connection.start) {
            phases_of(connection, |phase, from, to| {
                phases.push((phase, start.0.saturating_add(from), start.0.saturating_add(to)));
            });
        }
    }
    report.command = Some(Command {
        program: noted.program.clone(),
        start: Time(noted.start).rfc3339(),
        duration_ns: span.1.saturating_sub(span.0),
        status: noted.status,
        signal: noted.signal,
        spent: spent(span, &phases),
    });
    Ok(())
}

/// When nobody waited any more for the answer to a question that got none: another one for that name is asked, or a
/// connection begins to where another answer said. Where neither came, a question that was repeated shows the time after
/// which its resolver gives a try up, and the last try was given as much. The question may have been another program's:
/// nothing else tells.
fn given_up(report: &Report, lookup: &Lookup, asked: Time) -> Option<Time> {
    let alike = || report.lookups.iter().filter(|other| other.name == lookup.name);
    let addresses: BTreeSet<IpAddr> = alike().flat_map(|other| &other.addresses).copied().collect();
    let is_its = |each: &&Connection| addresses.contains(&each.server.ip());
    let again = alike().filter(|other| other.kind == lookup.kind || is_later(asked, other));
    let again = again.map(|other| &other.start);
    let begun = report.connections.iter().filter(is_its).map(|connection| &connection.start);
    let next = again.chain(begun).filter_map(|start| Time::from_rfc3339(start));
    let next = next.filter(|next| *next > asked).min();
    next.or_else(|| last_try_ends(report, lookup, asked))
}

/// Whether a question comes too late to be one of a pair of types asked for at once.
fn is_later(asked: Time, other: &Lookup) -> bool {
    Time::from_rfc3339(&other.start).is_some_and(|start| start.since(asked).0 > PAIR_NS)
}

/// Ours: resolvers ask for A and AAAA within a millisecond, and wait for a second and more before they ask again.
const PAIR_NS: i64 = 100_000_000;

/// When the last try of a question that was tried before is over; `None` where it was asked once.
fn last_try_ends(report: &Report, lookup: &Lookup, asked: Time) -> Option<Time> {
    let last = asked.0.saturating_add(lookup.last_asked_ns);
    let repeats = i64::try_from(lookup.asked.saturating_sub(1)).unwrap_or(i64::MAX);
    if repeats > 0 {
        return Some(Time(last.saturating_add(lookup.last_asked_ns / repeats)));
    }
    let is_its = |other: &&Lookup| {
        (&other.name, &other.kind, other.client.ip())
            == (&lookup.name, &lookup.kind, lookup.client.ip())
    };
    let sent_last = |other: &Lookup| {
        Some(Time::from_rfc3339(&other.start)?.0.saturating_add(other.last_asked_ns))
    };
    let before = report.lookups.iter().filter(is_its).filter_map(sent_last);
    let before = before.filter(|before| *before < asked.0).max()?;
    Some(Time(last.saturating_add(asked.0 - before)))
}

/// What goes on, in the order of progress.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Dns,
    Connect,
    Tls,
    Request,
    Server,
    Transfer,
}

impl Phase {
    const COUNT: usize = 6;
    /// The furthest first.
    const FURTHEST: [Self; Self::COUNT] =
        [Self::Transfer, Self::Server, Self::Request, Self::Tls, Self::Connect, Self::Dns];
}

/// Ports of name servers that are asked over a connection: DNS (RFC 7766) and DNS over TLS (RFC 7858).
const NAMES: [u16; 2] = [53, 853];

/// The phases of a connection, relative to its first packet.
fn phases_of(connection: &Connection, mut add: impl FnMut(Phase, i64, i64)) {
    let opened = opened_ns(connection);
    if NAMES.contains(&connection.server.port()) {
        let answered = connection.transfers.iter().map(|transfer| transfer.end_ns).max();
        return add(Phase::Dns, 0, answered.unwrap_or(opened));
    }
    add(Phase::Connect, 0, opened);
    let mut free = opened;
    if let Some(tls) = &connection.tls {
        // A handshake that never ended goes on to the last packet.
        free = tls.end_ns.unwrap_or(connection.duration_ns);
        add(Phase::Tls, tls.start_ns, free);
    }
    let mut add = |phase, from: i64, to: i64| add(phase, from.max(free), to.max(free));
    let mut answered = vec![false; connection.transfers.len()];
    for exchange in &connection.exchanges {
        let request = usize::try_from(exchange.request).ok();
        let Some(request) = request.filter(|at| *at < answered.len()) else { continue };
        answered[request] = true;
        let (from, end) =
            (connection.transfers[request].start_ns, connection.transfers[request].end_ns);
        // What cannot be decided is the server's time in either reading.
        let early = exchange.early.as_ref();
        let first_byte = exchange.first_byte_ns.or(early.map(|early| early.first_byte_ns));
        let Some(first_byte) = first_byte.filter(|_| exchange.response.is_some()) else {
            add(Phase::Request, from, end);
            continue;
        };
        let think = exchange.server_think_ns.or(early.map(|early| early.server_think_ns));
        let think = think.unwrap_or(0).clamp(0, first_byte.max(0));
        let response = from.saturating_add(first_byte);
        add(Phase::Request, from, response - think);
        add(Phase::Server, response - think, response);
        add(Phase::Transfer, response, end_of(connection, exchange, from).max(response));
        let response = exchange.response.and_then(|at| usize::try_from(at).ok());
        let upto = response.map_or(request, |response| response.min(answered.len() - 1));
        // Whatever lies between is no answer.
        answered[request..=upto.max(request)].fill(true);
    }
    for (transfer, answered) in connection.transfers.iter().zip(answered) {
        // What the client sent and no exchange has asks for nothing: it closes TLS.
        if !answered && transfer.from == "server" {
            add(Phase::Transfer, transfer.start_ns, transfer.end_ns);
        }
    }
}

/// How long it took to open a connection; all of its time if nobody answered.
fn opened_ns(connection: &Connection) -> i64 {
    // As its opener has it, if it sent data: the other side may send some round trip later.
    if let Some((_, first)) = connection.present().next() {
        return (first.time_in.get(State::Handshake) + first.time_in.get(State::SynRetry)).0;
    }
    let unanswered = connection.syns[1].is_none();
    connection.handshake_rtt_ns.filter(|_| !unanswered).unwrap_or(connection.duration_ns)
}

fn end_of(connection: &Connection, exchange: &Exchange, from: i64) -> i64 {
    let response =
        exchange.response.and_then(|at| connection.transfers.get(usize::try_from(at).ok()?));
    let end = response.map_or(from, |response| response.end_ns);
    exchange.total_ns.map_or(end, |total| from.saturating_add(total))
}

/// Counts each instant of `span` once.
fn spent(span: (i64, i64), phases: &[(Phase, i64, i64)]) -> Spent {
    let mut borders = Vec::with_capacity(2 * phases.len());
    for &(phase, from, to) in phases {
        let (from, to) = (from.clamp(span.0, span.1), to.clamp(span.0, span.1));
        if from < to {
            borders.push((from, phase, 1));
            borders.push((to, phase, -1));
        }
    }
    borders.sort_unstable_by_key(|&(at, phase, step)| (at, phase as usize, step));
    let mut spent = Spent::default();
    let mut under_way = [0_i64; Phase::COUNT];
    let mut before = span.0;
    for (number, &(at, phase, step)) in borders.iter().enumerate() {
        let furthest = Phase::FURTHEST.iter().find(|phase| under_way[**phase as usize] > 0);
        let part = match furthest {
            None if number == 0 => &mut spent.start_ns,
            None => &mut spent.rest_ns,
            Some(Phase::Dns) => &mut spent.dns_ns,
            Some(Phase::Connect) => &mut spent.connect_ns,
            Some(Phase::Tls) => &mut spent.tls_ns,
            Some(Phase::Request) => &mut spent.request_ns,
            Some(Phase::Server) => &mut spent.server_ns,
            Some(Phase::Transfer) => &mut spent.transfer_ns,
        };
        *part += at - before;
        before = at;
        under_way[phase as usize] += step;
    }
    spent.rest_ns += span.1 - before;
    spent
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::{Direction, TimeIn, Tls, Transfer};
    use tcpwhy_words::units::Duration;

    const MS: i64 = 1_000_000;

    fn transfer(from: &'static str, start_ms: i64, end_ms: i64) -> Transfer {
        let (start_ns, end_ns) = (start_ms * MS, end_ms * MS);
        Transfer { from: from.into(), start_ns, end_ns, bytes: 1000, ..Transfer::default() }
    }

    /// Opened in 20 ms; a request of 30 ms whose answer begins 45 ms after it, the server's part 5 ms.
    fn connection(start_ms: i64) -> Connection {
        let mut connection =
            crate::view::sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 120 * MS);
        connection.start = Time(start_ms * MS).rfc3339();
        connection.tls = None;
        let mut time_in = TimeIn::default();
        time_in.add(State::Handshake, Duration(20 * MS));
        time_in.add(State::Closing, Duration(100 * MS));
        connection.directions =
            [Some(Box::new(Direction { time_in, ..Direction::default() })), None];
        connection.transfers = vec![transfer("client", 20, 50), transfer("server", 65, 80)];
        connection.exchanges = vec![Exchange {
            request: 0,
            response: Some(1),
            think_ns: Some(15 * MS),
            server_think_ns: Some(5 * MS),
            first_byte_ns: Some(45 * MS),
            total_ns: Some(60 * MS),
            early: None,
            http: None,
        }];
        connection
    }

    fn spent_ms(report: &mut Report, start_ms: i64, end_ms: i64) -> [i64; 8] {
        let (start, end) = (start_ms * MS, end_ms * MS);
        account(report, &Noted { start, end, ..Noted::default() }).expect("a sensible time");
        let command = report.command.as_ref().expect("was just made");
        let spent = command.spent;
        assert_eq!(spent.total_ns(), command.duration_ns);
        [
            spent.start_ns,
            spent.dns_ns,
            spent.connect_ns,
            spent.tls_ns,
            spent.request_ns,
            spent.server_ns,
            spent.transfer_ns,
            spent.rest_ns,
        ]
        .map(|ns| ns / MS)
    }

    fn lookup(start_ms: i64, took_ms: i64) -> Lookup {
        Lookup {
            name: "example.org".into(),
            kind: "A".into(),
            client: "192.0.2.1:4000".parse().expect("an address"),
            resolver: "192.0.2.53:53".parse().expect("an address"),
            start: Time(start_ms * MS).rfc3339(),
            id: 1,
            asked: 1,
            last_asked_ns: 0,
            duration_ns: Some(took_ms * MS),
            answer: None,
            addresses: Vec::new(),
            frame: 1,
        }
    }

    #[test]
    fn a_name_server_that_is_silent_is_waited_for_until_another_is_asked() {
        let silent = |start_ms| Lookup { duration_ns: None, ..lookup(start_ms, 0) };
        let mut report = Report {
            lookups: vec![silent(10), lookup(5_010, 20)],
            connections: vec![connection(5_030)],
            ..Report::default()
        };
        let [start, dns, ..] = spent_ms(&mut report, 0, 5_150);
        assert_eq!((start, dns), (10, 5_020));
        // Of another name, it may be another program's.
        report.lookups[0].name = "example.net".into();
        let [start, dns, ..] = spent_ms(&mut report, 0, 5_150);
        assert_eq!((start, dns), (5_010, 20));
        let mut alone = Report { lookups: vec![silent(10)], ..Report::default() };
        assert_eq!(spent_ms(&mut alone, 0, 9_000)[1], 0, "nothing shows that it was waited for");
    }

    #[test]
    fn questions_that_were_repeated_and_never_answered_are_waited_for_to_the_last_try() {
        let silent = |start_ms| Lookup { duration_ns: None, ..lookup(start_ms, 0) };
        let both = ["A", "AAAA"].map(|kind| {
            let kind = kind.into();
            Lookup { kind, asked: 3, last_asked_ns: 4_000 * MS, ..silent(10) }
        });
        let mut report = Report { lookups: both.to_vec(), ..Report::default() };
        assert_eq!(spent_ms(&mut report, 0, 6_015)[1], 6_000);
        assert_eq!(spent_ms(&mut report, 0, 60_000)[1], 6_000, "then it did something else");
        // Each try is a question of its own.
        let tries = vec![silent(10), silent(2_510)];
        let mut report = Report { lookups: tries, ..Report::default() };
        assert_eq!(spent_ms(&mut report, 0, 9_000)[1], 5_000);
    }

    #[test]
    fn a_request_is_told_from_its_name_to_the_command_s_end() {
        let mut report = Report {
            lookups: vec![lookup(1010, 12)],
            connections: vec![connection(1030)],
            ..Report::default()
        };
        let spent = spent_ms(&mut report, 1000, 1150);
        assert_eq!(spent, [10, 12, 20, 0, 40, 5, 15, 48]);
    }

    #[test]
    fn tls_takes_what_it_takes_from_the_first_request() {
        let mut connection = connection(1000);
        connection.tls =
            Some(Tls { start_ns: 20 * MS, end_ns: Some(35 * MS), flights: Vec::new() });
        let mut report = Report { connections: vec![connection], ..Report::default() };
        assert_eq!(spent_ms(&mut report, 1000, 1080), [0, 0, 20, 15, 25, 5, 15, 0]);
    }

    #[test]
    fn what_came_before_the_answer_is_the_server_s_time_and_what_closes_tls_nobody_s() {
        let mut connection = connection(1000);
        connection.transfers = vec![
            transfer("client", 20, 30),
            transfer("server", 31, 35),
            transfer("server", 65, 80),
            transfer("client", 90, 110),
        ];
        connection.exchanges[0].response = Some(2);
        connection.exchanges[0].server_think_ns = Some(25 * MS);
        let parts = [0, 0, 20, 0, 20, 25, 15, 20];
        let mut report = Report { connections: vec![connection], ..Report::default() };
        assert_eq!(spent_ms(&mut report, 1000, 1100), parts);
        let exchange = &mut report.connections[0].exchanges[0];
        (exchange.first_byte_ns, exchange.server_think_ns) = (None, None);
        exchange.early = Some(crate::report::Early {
            first_byte_ns: 45 * MS,
            server_think_ns: 25 * MS,
            or_server_think_ns: Some(0),
            ..crate::report::Early::default()
        });
        exchange.response = Some(1);
        assert_eq!(spent_ms(&mut report, 1000, 1100), parts, "whichever reading is true");
    }

    #[test]
    fn what_goes_on_at_once_counts_once_and_for_the_furthest() {
        let both = vec![connection(1000), connection(1010)];
        let mut report = Report { connections: both, ..Report::default() };
        assert_eq!(spent_ms(&mut report, 1000, 1100), [0, 0, 20, 0, 40, 5, 25, 10]);
    }

    #[test]
    fn a_command_without_packets_did_it_all_itself() {
        assert_eq!(spent_ms(&mut Report::default(), 1000, 1100), [0, 0, 0, 0, 0, 0, 0, 100]);
    }

    #[test]
    fn a_name_asked_for_over_a_connection_is_dns() {
        let mut names = connection(1000);
        names.server.set_port(53);
        let mut report = Report { connections: vec![names, connection(1090)], ..Report::default() };
        assert_eq!(spent_ms(&mut report, 1000, 1200), [0, 80, 20, 0, 40, 5, 15, 40]);
    }

    #[test]
    fn absurd_times_are_not_believed() {
        let mut report = Report { connections: vec![connection(1000)], ..Report::default() };
        let year = 400 * 86_400_000;
        for (start, end) in [(1150, 1000), (0, year), (-5, 1150), (5000, 6000), (10, 999)] {
            let noted = Noted { start: start * MS, end: end * MS, ..Noted::default() };
            assert!(account(&mut report, &noted).is_err(), "{start} to {end}");
            assert_eq!(report.command, None);
        }
        let noted = Noted { start: i64::MIN, end: i64::MAX, ..Noted::default() };
        assert!(account(&mut report, &noted).is_err());
    }

    #[test]
    fn what_goes_on_after_the_end_does_not_count() {
        let mut report = Report { connections: vec![connection(1000)], ..Report::default() };
        assert_eq!(spent_ms(&mut report, 1000, 1030), [0, 0, 20, 0, 10, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn parts_add_up_whatever_overlaps(
            spans in prop::collection::vec((0..Phase::COUNT, -50_i64..150, -50_i64..150), 0..20),
        ) {
            let phase = |at: usize| Phase::FURTHEST[at];
            let phases: Vec<_> = spans.into_iter().map(|(at, a, b)| (phase(at), a, b)).collect();
            prop_assert_eq!(spent((0, 100), &phases).total_ns(), 100);
        }
    }
}
