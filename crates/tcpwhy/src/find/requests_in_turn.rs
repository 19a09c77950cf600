//! Requests go one after the other: each waits for the answer to the one before it.
//!
//! # What it says
//! The client sent each request only when it had the answer to the one before, on one connection. So each cost a
//! round trip by itself. The finding says how many they were, and what their round trips took but for the first one's.
//!
//! # How we know
//! Three or more requests with answers, each sent within a round trip of the end of the answer before it: the client did
//! not pause, it waited. Of each wait the server's own time is left out; what remains is distance, which the handshake or
//! the connection's least round trip tells as well. All of these together are a tenth of the active time or more, and no
//! less than what the server thought.
//!
//! # What it is not
//! Not a setting of TCP: a round trip takes as long as the path is. Not a server that thinks for longer than the path
//! takes (`THINK_SERVER`), not a user who reads between the requests, not requests that other connections of the client to
//! the same server carried at the same time, and not a dialogue that the server opens (SMTP, SSH, FTP), whose steps cannot
//! overlap. Requests that need each other's answers cannot, either; packets do not tell which do.
//!
//! # What to do
//! Let requests that do not need each other's answers go at once: several connections side by side, HTTP/2, pipelining in
//! the database's or cache's client, one larger request for many small ones. Else bring the client nearer to the server.
//!
//! # Sources
//! RFC 9112 section 9.3.2 (pipelining) and 9.4 (several connections); RFC 9113 section 5 (streams that run side by side).

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use super::case::{active_ns, filter, severity};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Exchange, Finding, Severity, Sure, Transfer};
use crate::units::Time;
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "REQUESTS_IN_TURN",
    severity: Severity::Limit,
    file: include_str!("requests_in_turn.rs"),
    find,
};

/// Two may be chance. Ours.
const TURNS: usize = 3;
/// Waits listed as evidence. Ours.
const EVIDENCE: usize = 8;
/// A share of the active time that is worth a sentence, as in other findings: one in so many. Ours.
const WORTH: i64 = 10;
/// A program on the client takes this long from an answer to the next request, whatever the distance. Ours.
const OWN_NS: i64 = 2_000_000;

/// A round trip counts with this part more than the least. Ours: delays in both hosts.
const QUEUED: i64 = 4;

/// One request's wait: when it began, for distance and for the server, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Trip {
    from: i64,
    distance: i64,
    think: i64,
}

fn find(connection: &Connection) -> Vec<Finding> {
    told(connection).into_iter().collect()
}

fn told(connection: &Connection) -> Option<Finding> {
    let rtt = least_rtt(connection)?;
    // Who opens a dialogue has each step answered before the next.
    if connection.transfers.first()?.from != "client" {
        return None;
    }
    let trips = trips(connection, rtt);
    // The first pays its round trip anyhow.
    let after_first = trips.get(1..).filter(|_| trips.len() >= TURNS)?;
    let sum = |of: fn(&Trip) -> i64| after_first.iter().map(of).fold(0, i64::saturating_add);
    let (cost_ns, thought_ns) = (sum(|trip| trip.distance), sum(|trip| trip.think));
    let of_ns = active_ns(connection);
    if cost_ns.saturating_mul(WORTH) < of_ns || cost_ns < thought_ns {
        return None;
    }
    let cost_ns = cost_ns.min(of_ns);
    let number = said::grouped(trips.len() as u64);
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: severity(RULE.code, cost_ns, Sure::Shown),
        title: format!("{number} requests went in turn, a round trip of {} for each", said::time(rtt)),
        why: format!(
            "the client sent each of them only when it had the answer to the one before; {} of their waits are distance.",
            said::time(cost_ns)
        ),
        not: "no setting of TCP, and not the server's program; requests that need each other's answers cannot go side by \
              side"
            .to_owned(),
        evidence: after_first.iter().take(EVIDENCE).map(|trip| evidence(connection, trip)).collect(),
        cost_ns,
        of_ns,
        remedies: vec![remedies::program(
            remedies::CLIENT,
            "send requests that do not need each other's answers side by side: several connections, HTTP/2, pipelining, or \
             one larger request",
        )],
        sure: Some(Sure::Shown),
        ..Finding::default()
    })
}

fn least_rtt(connection: &Connection) -> Option<i64> {
    let measured = connection.present().filter_map(|(_, direction)| direction.rtt.min_ns);
    measured.chain(connection.handshake_rtt_ns).filter(|rtt| *rtt > 0).min()
}

/// The longest run of requests, each behind the answer to the one before and without a pause.
fn trips(connection: &Connection, rtt: i64) -> Vec<Trip> {
    let (mut longest, mut run) = (Vec::new(), Vec::new());
    let mut answered = None;
    for exchange in &connection.exchanges {
        let Some((trip, end)) = trip(connection, exchange, rtt) else {
            run.clear();
            answered = None;
            continue;
        };
        // The answer's last ACK comes to the server one way behind the answer.
        let follows = answered.is_some_and(|end: i64| trip.from - end <= rtt + OWN_NS);
        if !follows {
            run.clear();
        }
        run.push(trip);
        answered = Some(end);
        if run.len() > longest.len() {
            longest.clone_from(&run);
        }
    }
    longest
}

/// The wait of a request that was answered, and when the last byte of the answer was sent or acknowledged.
fn trip(connection: &Connection, exchange: &Exchange, rtt: i64) -> Option<(Trip, i64)> {
    let transfer =
        |at: u64| -> Option<&Transfer> { connection.transfers.get(usize::try_from(at).ok()?) };
    let request = transfer(exchange.request)?;
    let answer = transfer(exchange.response?)?;
    // The steps of a TLS handshake are no requests.
    if let Some(tls) = &connection.tls
        && tls.end_ns.is_none_or(|end| request.start_ns < end)
    {
        return None;
    }
    let (first_byte, think) = (exchange.first_byte_ns?, exchange.server_think_ns?.max(0));
    // What a long request took to send, or a queue, is no distance.
    let distance = (first_byte - think).min(rtt.saturating_add(rtt / QUEUED));
    (distance > 0).then_some((Trip { from: request.start_ns, distance, think }, answer.end_ns))
}

fn evidence(connection: &Connection, trip: &Trip) -> Evidence {
    let to_ns = (trip.from + trip.distance + trip.think).min(connection.duration_ns);
    let limits = connection.directions[0].iter().flat_map(|direction| &direction.limits);
    let mut within = limits.filter(|limit| limit.end_ns > trip.from && limit.start_ns < to_ns);
    let frames = within.next().map_or(connection.frames, |limit| limit.evidence.frames);
    Evidence { from_ns: trip.from, to_ns, frames, filter: filter(frames), text: String::new() }
}

/// A client's address and its server.
type Pair = (IpAddr, SocketAddr);

/// Takes the finding away where other connections of the client to the same server carried data at the same time.
pub(super) fn unless_side_by_side(connections: &mut [Connection]) {
    let is_told = |connection: &Connection| {
        connection.findings.iter().any(|finding| finding.code == RULE.code)
    };
    if !connections.iter().any(is_told) {
        return;
    }
    let mut spans: BTreeMap<Pair, Vec<(i64, i64, u64)>> = BTreeMap::new();
    for connection in connections.iter().filter(|each| !each.exchanges.is_empty()) {
        let Some((from, to)) = span(connection) else { continue };
        spans.entry(pair(connection)).or_default().push((from, to, connection.id));
    }
    for connection in connections {
        if !is_told(connection) {
            continue;
        }
        let Some((from, to)) = span(connection) else { continue };
        let others = spans.get(&pair(connection)).into_iter().flatten();
        let mut others = others.filter(|other| other.2 != connection.id);
        // A tenth of the time may be chance: one connection ended while the next began.
        let beside = |other: &(i64, i64, u64)| other.1.min(to) - other.0.max(from);
        if others.any(|other| beside(other).saturating_mul(WORTH) > to - from) {
            connection.findings.retain(|finding| finding.code != RULE.code);
        }
    }
}

fn pair(connection: &Connection) -> Pair {
    (connection.client.ip(), connection.server)
}

/// From the first byte of data to the last.
fn span(connection: &Connection) -> Option<(i64, i64)> {
    let start = Time::from_rfc3339(&connection.start)?.0;
    let from = connection.transfers.iter().map(|each| each.start_ns).min()?;
    let to = connection.transfers.iter().map(|each| each.end_ns).max()?;
    Some((start.saturating_add(from), start.saturating_add(to)))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    /// Requests of 1 kB on one connection, with a pause before each next, and a think time.
    fn requests(times: usize, pause: i64, think: i64) -> Connection {
        let sim = Sim { bytes: 1_000, times, pause, think, ..Sim::default() };
        sim.run()
    }

    #[test]
    fn ten_requests_in_turn_are_told_with_nine_round_trips() {
        let found = find(&requests(10, 0, 100_000));
        assert_eq!(found.len(), 1);
        assert!((175 * MS..=185 * MS).contains(&found[0].cost_ns), "{}", found[0].cost_ns);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn two_may_be_chance() {
        assert!(find(&requests(1, 0, 100_000)).is_empty());
        assert!(find(&requests(2, 0, 100_000)).is_empty());
        assert_eq!(find(&requests(3, 0, 100_000)).len(), 1);
    }

    #[test]
    fn a_client_that_pauses_does_not_wait() {
        assert!(find(&requests(10, 60 * MS, 100_000)).is_empty());
    }

    #[test]
    fn a_server_that_thinks_for_longer_is_the_cause() {
        assert!(find(&requests(10, 0, 50 * MS)).is_empty());
        assert_eq!(find(&requests(10, 0, 15 * MS)).len(), 1);
    }

    #[test]
    fn a_download_is_no_row_of_requests() {
        assert!(find(&sample::download()).is_empty());
    }

    #[test]
    fn requests_side_by_side_are_not_in_turn() {
        let told = |shift: i64| {
            let mut first = requests(10, 0, 100_000);
            first.findings = find(&first);
            let mut second = first.clone();
            second.id = 1;
            second.start =
                Time(Time::from_rfc3339(&first.start).expect("a time").0 + shift).rfc3339();
            let mut both = [first, second];
            unless_side_by_side(&mut both);
            both.map(|connection| connection.findings.len())
        };
        assert_eq!(told(MS), [0, 0]);
        assert_eq!(told(5_000 * MS), [1, 1], "one behind the other");
    }
}
