//! What the connections of one capture tell of each other: who else filled the link between the same hosts, and
//! what a round trip between them takes at the least.
//!
//! One pass gathers the directions that had a full path, by the two addresses in their order: packets between the same
//! two addresses take the same way, as far as routers choose it by addresses. A second pass asks for each connection
//! what the others of its pair did in its time. Of a pair the 32 that carried most are kept, so that the work grows with
//! the number of connections and not with its square.
//!
//! Left out: links that connections to different hosts share; captures whose connections have no common clock.

use core::cmp::Reverse;
use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::net::IpAddr;

use super::others::{Filler, Hosts, Others};
use super::others_queue;
use crate::report::{Connection, Direction, Finding, Round, State};
use tcpwhy_words::said;
use tcpwhy_words::units::{BitRate, Bytes, Duration, Time};

/// Fillers of a pair that are kept. Ours: bounds the work.
const MOST: usize = 32;
/// Others are said to share a link where they sent this part of what the transfer itself sent, in percent: what two
/// connections of the same hosts send one way at one time waits in one queue. Ours.
const SHARED_PERCENT: u128 = 10;
/// Connections told by number.
const NAMED: usize = 3;

/// Two addresses, the lower one first.
type Pair = (IpAddr, IpAddr);

fn pair(connection: &Connection) -> Pair {
    let (a, b) = (connection.client.ip(), connection.server.ip());
    (a.min(b), a.max(b))
}

/// Says of each connection what its neighbours show.
pub(super) fn fill(connections: &mut [Connection]) {
    let hosts = gather(connections);
    if hosts.is_empty() {
        return;
    }
    for connection in connections {
        let Some(hosts) = hosts.get(&pair(connection)) else { continue };
        let Some(start_ns) = begins(connection) else { continue };
        let others =
            Others { id: connection.id, start_ns, hosts, least_rtt_ns: hosts.least_rtt_ns };
        if others.fillers().next().is_none() || !connection.carried_data() {
            continue;
        }
        let mut found = core::mem::take(&mut connection.findings);
        for finding in &mut found {
            name_who_shares(connection, finding, &others);
        }
        let has_account = connection.directions.iter().flatten().any(|d| !d.limits.is_empty());
        if has_account {
            found.extend(others_queue::beside(connection, &others));
            super::put_in_order(&mut found);
        }
        connection.findings = found;
    }
}

/// Those that filled a link, by their hosts, with the least round trip between them.
fn gather(connections: &[Connection]) -> BTreeMap<Pair, Hosts> {
    let mut hosts: BTreeMap<Pair, Hosts> = BTreeMap::new();
    for connection in connections {
        let filler = [0, 1].into_iter().filter_map(|at| filler(connection, at));
        if let Some(filler) = filler.max_by_key(|filler| filler.bytes) {
            hosts.entry(pair(connection)).or_default().fillers.push(filler);
        }
    }
    for each in hosts.values_mut() {
        each.fillers.sort_by_key(|filler| (Reverse(filler.bytes), filler.id));
        each.fillers.truncate(MOST);
    }
    if !hosts.is_empty() {
        for connection in connections {
            let Some(known) = hosts.get_mut(&pair(connection)) else { continue };
            let measured = connection.present().filter_map(|(_, d)| d.rtt.min_ns);
            // A segment that was not captured may make a round trip of next to nothing.
            let least = measured.chain(connection.handshake_rtt_ns).filter(|rtt| *rtt > 0).min();
            known.least_rtt_ns = known.least_rtt_ns.into_iter().chain(least).min();
        }
    }
    for Hosts { fillers, least_rtt_ns } in hosts.values_mut() {
        if let Some(least) = *least_rtt_ns {
            for filler in fillers {
                filler.add_standing(least);
            }
        }
    }
    hosts
}

/// Direction `at` of a connection, if its path was full at times.
fn filler(connection: &Connection, at: usize) -> Option<Filler> {
    let direction: &Direction = connection.directions[at].as_deref()?;
    let mut full = direction.limits.iter().filter(|limit| limit.state.is_path()).peekable();
    full.peek()?;
    let start = begins(connection)?;
    let spans = full
        .map(|limit| (start.saturating_add(limit.start_ns), start.saturating_add(limit.end_ns)));
    Some(Filler {
        id: connection.id,
        from: [connection.client, connection.server][at].ip(),
        rtt_ns: direction.rtt.median_ns,
        full: spans.collect(),
        rounds: rounds(direction, start),
        trips: trips(direction, start),
        bytes: direction.bytes,
    })
}

/// When each round began, in order, and what was sent by its end.
fn rounds(direction: &Direction, start: i64) -> Vec<(i64, u64)> {
    let (mut sent, mut last) = (0_u64, i64::MIN);
    let round = |round: &Round| {
        sent = sent.saturating_add(round.bytes);
        last = last.max(start.saturating_add(round.start_ns));
        (last, sent)
    };
    let mut rounds: Vec<(i64, u64)> = direction.rounds.iter().map(round).collect();
    let full = direction.limits.iter().filter(|limit| limit.state.is_path());
    if let Some(end) = full.map(|limit| start.saturating_add(limit.end_ns)).max()
        && let Some((last, sent)) = rounds.last().copied()
    {
        rounds.push((last.max(end), sent));
    }
    rounds
}

/// When each round began and ended, and its least round trip; the last one's data waits in the queue for that long.
fn trips(direction: &Direction, start: i64) -> Vec<((i64, i64), i64)> {
    let begin = |round: &Round| start.saturating_add(round.start_ns);
    let each = direction.rounds.iter().enumerate().filter_map(|(at, round)| {
        let (from, rtt) = (begin(round), round.rtt_ns?);
        let to = direction.rounds.get(at + 1).map_or(from.saturating_add(rtt), begin);
        Some(((from, to.max(from)), rtt))
    });
    each.collect()
}

/// When a connection began; listings without dates have one clock, too.
fn begins(connection: &Connection) -> Option<i64> {
    let time = Time::from_rfc3339(&connection.start)
        .or_else(|| Time::from_rfc3339(&format!("1970-01-01T{}Z", connection.start)))?;
    Some(time.0)
}

/// Names in a finding about a full path those that sent into it at the same time, and what they got together.
fn name_who_shares(connection: &Connection, finding: &mut Finding, others: &Others<'_>) {
    let state = match &*finding.code {
        "BOTTLENECK" => State::BandwidthSelfQueue,
        "BOTTLENECK_SHARED" => State::BandwidthExternal,
        _ => return,
    };
    let own = [0, 1].into_iter().filter_map(|at| filler(connection, at));
    let Some(own) = own.max_by_key(|filler| filler.bytes) else { return };
    let at = usize::from(own.from != connection.client.ip());
    let Some(direction) = connection.directions[at].as_deref() else { return };
    let limits = direction.limits.iter().filter(|limit| limit.state == state);
    let in_time = |at: i64| others.start_ns.saturating_add(at);
    let spans: Vec<(i64, i64)> =
        limits.map(|limit| (in_time(limit.start_ns), in_time(limit.end_ns))).collect();
    let whole: i64 = spans.iter().map(|span| span.1 - span.0).sum();
    let sent = |filler: &Filler| spans.iter().map(|span| filler.bytes_in(*span)).sum::<u64>();
    let own_sent = sent(&own);
    let mut sharing: Vec<(u64, u64)> = others
        .fillers()
        .filter(|filler| filler.from == own.from)
        .map(|filler| (sent(filler), filler.id))
        .filter(|(sent, _)| u128::from(*sent) * 100 >= u128::from(own_sent) * SHARED_PERCENT)
        .filter(|(sent, _)| *sent > 0)
        .collect();
    sharing.sort_by_key(|(sent, id)| (Reverse(*sent), *id));
    if sharing.is_empty() || whole <= 0 {
        return;
    }
    let theirs = sharing.iter().map(|(sent, _)| *sent).fold(0, u64::saturating_add);
    let rate = BitRate::of(Bytes(own_sent.saturating_add(theirs)), Duration(whole));
    let rate = rate
        .map_or_else(String::new, |rate| format!("; together they got about {rate} of payload"));
    let names: Vec<String> = sharing.iter().take(NAMED).map(|(_, id)| id.to_string()).collect();
    let noun = if sharing.len() == 1 { "connection" } else { "connections" };
    let more = match sharing.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let who = format!("{noun} {}{more}", said::listed(&names));
    let _ = write!(
        finding.why,
        " In that time {who} of this capture sent {} between the same hosts, the same way{rate}.",
        said::bytes(theirs)
    );
    if finding.code == "BOTTLENECK" {
        finding.title = format!("the path is full: this transfer shares it with {who}");
    } else {
        finding.not =
            format!("not this transfer's windows or buffers; the link is shared with {who}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;
    use crate::report::Rtt;

    const MS: i64 = 1_000_000;

    fn later(ms: i64, mut connection: Connection) -> Connection {
        let start = Time::from_rfc3339(&connection.start).expect("a time");
        connection.start = (start + Duration(ms * MS)).rfc3339();
        connection
    }

    /// A small connection of the same hosts within the time of a transfer that fills the path, both with these
    /// median round trips.
    fn beside(filler_rtt_ms: i64, small_rtt_ms: i64) -> [Connection; 2] {
        let mut filler = held_by(State::BandwidthSelfQueue, 9_000);
        filler.id = 0;
        let (lifetime, half) = (filler.duration_ns, filler.duration_ns / 2);
        let direction = filler.directions[1].as_mut().expect("data");
        direction.rtt.median_ns = Some(filler_rtt_ms * MS);
        direction.rtt.min_ns = Some(2 * MS);
        // It is full from end to end.
        direction.limits.truncate(1);
        let limit = &mut direction.limits[0];
        (limit.state, limit.start_ns, limit.end_ns) = (State::BandwidthSelfQueue, 0, lifetime);
        let round = direction.rounds[0];
        let round = |start_ns, bytes| Round { start_ns, bytes, ..round };
        direction.rounds = vec![round(0, 500_000), round(half, 500_000)];
        let mut small = Connection { id: 1, duration_ns: half, ..sample::download() };
        (small.client, small.server) = (filler.client, filler.server);
        small.client.set_port(50_000);
        small.handshake_rtt_ns = Some(small_rtt_ms * MS);
        for direction in small.directions.iter_mut().flatten() {
            direction.bytes = 900;
            let rtt = Some(small_rtt_ms * MS);
            direction.rtt = Rtt { min_ns: rtt, median_ns: rtt, ..Rtt::default() };
            direction.limits.retain(|limit| !limit.state.is_path());
        }
        let start = Time::from_rfc3339(&filler.start).expect("a time");
        small.start = (start + Duration(lifetime / 4)).rfc3339();
        [filler, small]
    }

    /// What the second connection's finding says of the others.
    fn told(mut both: [Connection; 2]) -> Vec<String> {
        fill(&mut both);
        let found = both[1].findings.iter().filter(|finding| finding.code == "OTHERS_QUEUE");
        found.map(|finding| finding.title.clone()).collect()
    }

    #[test]
    fn a_small_connection_in_a_neighbours_queue_names_the_neighbour() {
        assert_eq!(told(beside(60, 50)), ["its packets wait behind the data of connection 0"]);
    }

    #[test]
    fn an_idle_neighbour_another_host_and_another_distance_are_not_blamed() {
        let [filler, small] = beside(60, 50);
        let gone = later(10_000_000, small.clone());
        assert!(told([filler.clone(), gone]).is_empty(), "the neighbour had ended");
        let mut elsewhere = small.clone();
        elsewhere.server.set_ip([203, 0, 113, 9].into());
        assert!(told([filler.clone(), elsewhere]).is_empty());
        let mut short = filler;
        short.directions[1].as_mut().expect("data").rtt.median_ns = Some(20 * MS);
        assert!(told([short, small]).is_empty(), "its queue is shorter than that");
    }

    #[test]
    fn a_queue_shows_in_the_round_trips_of_either_direction() {
        let [filler, mut small] = beside(60, 50);
        let quick = Rtt { min_ns: Some(MS), median_ns: Some(2 * MS), ..Rtt::default() };
        let [client, server] = &mut small.directions;
        let (client, server) = (client.as_mut().expect("data"), server.as_mut().expect("data"));
        // Rebuilt from what passed the client's tap, the server's round trips lack the queue.
        (client.bytes, server.bytes, server.rtt) = (100, 900, quick.clone());
        assert_eq!(told([filler.clone(), small.clone()]).len(), 1);
        small.directions[0].as_mut().expect("data").rtt = quick;
        assert!(told([filler, small]).is_empty());
    }

    #[test]
    fn while_the_neighbour_repairs_losses_its_queue_still_stands() {
        let repairing = |rtt_ms: i64| {
            let [mut filler, small] = beside(60, 50);
            let direction = filler.directions[1].as_mut().expect("data");
            // The path is called full for its first eighth, and the small connection begins behind that.
            direction.limits[0].end_ns = filler.duration_ns / 8;
            direction.rounds[0].rtt_ns = Some(rtt_ms * MS);
            let end = Round { start_ns: filler.duration_ns, bytes: 0, ..direction.rounds[0] };
            direction.rounds[1].rtt_ns = Some(rtt_ms * MS);
            direction.rounds.push(end);
            told([filler, small])
        };
        assert_eq!(repairing(60).len(), 1);
        assert_eq!(repairing(7).len(), 1, "the least is 2 ms");
        assert!(repairing(6).is_empty(), "4 ms more are no queue worth telling");
    }

    #[test]
    fn a_small_excess_is_no_queue_worth_telling() {
        assert!(told(beside(6, 6)).is_empty());
        assert_eq!(told(beside(7, 7)).len(), 1);
    }

    #[test]
    fn what_was_sent_is_spread_over_its_round() {
        let [filled, _] = beside(60, 50);
        let half = filled.duration_ns / 2;
        let filler = filler(&filled, 1).expect("a full path");
        let start = begins(&filled).expect("a time");
        assert_eq!(filler.bytes_in((start, start + half)), 500_000);
        assert_eq!(filler.bytes_in((start, start + half / 2)), 250_000);
        assert_eq!(filler.bytes_in((start - half, start)), 0);
    }
}
