//! A window that is full because the program does not read, told by the receiver's own socket.
//!
//! The packets of a reader that takes a little at a time and those of a small receive buffer look alike: the window is
//! full, again and again, at one size. The receiver's kernel knows more. A program that waits for data is woken with the
//! first segment and takes all of the queue (Linux `tcp_data_ready`, `tcp_recvmsg_locked`), so looks at its queue find
//! little in it, by far less than a flight. Where nearly every look finds a flight and more unread, the program is what
//! the sender waits for, and what the packets left open is settled.
//!
//! Only looks whose clock puts them into these waits count, and only where they are spread over them: one look says how it
//! was at that instant.

use std::collections::BTreeMap;

use super::sample::Sample;
use super::{Content, Evidence};
use crate::find;
use tcpwhy_words::printed::address::Ends;

use super::ends::ends_at;
use crate::report::{Connection, Direction, Report, State, TimeIn};
use tcpwhy_words::printed::stamp::Stamp;
use tcpwhy_words::units::{Duration, Time};

/// Fewest looks that tell. Ours: fewer may all have come at unlucky instants.
const LOOKS: usize = 5;

/// Books full windows of `report` on the program that reads, where `evidence` shows that it did not.
pub(super) fn settle(report: &mut Report, evidence: &[Evidence]) {
    let mut by_ends: BTreeMap<Ends, Vec<&Sample>> = BTreeMap::new();
    for each in evidence {
        if let Content::Sockets { samples, .. } = &each.content {
            for sample in samples {
                by_ends.entry(sample.ends).or_default().push(sample);
            }
        }
    }
    let mut is_changed = false;
    for connection in &mut report.connections {
        for side in [0, 1] {
            let Some(samples) = by_ends.get(&ends_at(connection, side)) else { continue };
            if !leaves_unread(connection, 1 - side, samples) {
                continue;
            }
            let before = sums(connection);
            book(connection, 1 - side);
            let after = sums(connection);
            let totals = &mut report.totals;
            for (sum, (before, after)) in
                [&mut totals.time_in, &mut totals.waited].into_iter().zip(before.iter().zip(&after))
            {
                sum.rename(FROM, TO, before.get(FROM) - after.get(FROM));
            }
            is_changed = true;
        }
    }
    if is_changed {
        find::fill(&mut report.connections);
    }
}

const FROM: State = State::RwndCap;
const TO: State = State::RwndReader;

/// Whether nearly all looks at the receiver of direction `at`, taken while its window was full, found a flight unread.
fn leaves_unread(connection: &Connection, at: usize, samples: &[&Sample]) -> bool {
    let Some(direction) = connection.directions[at].as_deref() else { return false };
    let Some(start) = Time::from_rfc3339(&connection.start) else { return false };
    let held: Vec<(i64, i64)> = direction
        .limits
        .iter()
        .filter(|limit| limit.state == FROM)
        .map(|limit| (limit.start_ns, limit.end_ns))
        .collect();
    let (Some(first), Some(last)) = (held.first(), held.last()) else { return false };
    let looks: Vec<(i64, u64)> = samples
        .iter()
        .filter_map(|sample| match sample.at {
            Some(Stamp::Unix(time)) => Some((time.checked_sub(start.0)?, sample.unread?)),
            _ => None,
        })
        .filter(|(time, _)| held.iter().any(|(from, to)| from <= time && time <= to))
        .collect();
    let times = || looks.iter().map(|(time, _)| *time);
    let (Some(earliest), Some(latest)) = (times().min(), times().max()) else { return false };
    let is_spread = (latest - earliest) >= (last.1 - first.0) / 2;
    let full = looks.iter().filter(|(_, unread)| *unread >= direction.max_in_flight_bytes).count();
    looks.len() >= LOOKS && is_spread && full * 10 >= looks.len() * 9
}

/// What held the transfers, and what was waited for.
fn sums(connection: &Connection) -> [TimeIn; 2] {
    let mut sums = [TimeIn::default(), TimeIn::default()];
    connection.add_time_in_transfers(&mut sums[0]);
    connection.add_time_waited(&mut sums[1]);
    sums
}

/// Books what was the window's ceiling on the reader, in everything that counts it.
fn book(connection: &mut Connection, at: usize) {
    let Some(direction) = connection.directions[at].as_deref_mut() else { return };
    let Direction { limits, rounds, time_in, .. } = direction;
    for limit in limits.iter_mut().filter(|limit| limit.state == FROM) {
        limit.state = TO;
        // The packets alone allow the buffer's size too, as where they name a reader by late answers.
        limit.alternative.retain(|state| *state != TO);
        limit.alternative.push(FROM);
        limit.evidence.text.push_str("; the receiver's socket held a flight and more unread");
    }
    for round in rounds.iter_mut().filter(|round| round.limited_by == FROM) {
        round.limited_by = TO;
    }
    time_in.rename(FROM, TO, Duration(i64::MAX));
    let from = ["client", "server"][at];
    for transfer in connection.transfers.iter_mut().filter(|transfer| transfer.from == from) {
        transfer.time_in.rename(FROM, TO, Duration(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Limit, LimitEvidence, Sure, Transfer};
    use crate::view::sample;

    const MS: i64 = 1_000_000;

    /// Whether the wait is the reader's after looks each 100 ms, with these bytes unread in each, at a window that was
    /// full from 100 ms to 900 ms of a second with 30,000 bytes in flight.
    fn is_reader(unread: &[u64]) -> bool {
        let (client, server) = ("10.0.0.7:4000", "10.0.0.8:80");
        let mut connection = sample::connection(0, client, server, 1000 * MS);
        let limit = Limit {
            start_ns: 100 * MS,
            end_ns: 900 * MS,
            state: FROM,
            confidence: Sure::Likely,
            alternative: vec![TO],
            evidence: LimitEvidence::default(),
        };
        let mut time_in = TimeIn::default();
        time_in.add(FROM, Duration(800 * MS));
        connection.directions[1] = Some(Box::new(Direction {
            max_in_flight_bytes: 30_000,
            limits: vec![limit],
            time_in: time_in.clone(),
            ..Direction::default()
        }));
        connection.transfers = vec![Transfer {
            from: "server".into(),
            end_ns: 1000 * MS,
            time_in,
            ..Transfer::default()
        }];
        let start = Time::from_rfc3339(&connection.start).expect("a time").0;
        let mut report = Report { connections: vec![connection], ..Report::default() };
        report.totals.time_in.add(FROM, Duration(900 * MS));
        let line = |(at, unread): (usize, &u64)| {
            let time = start + 150 * MS + 100 * MS * at as i64;
            format!(
                "{{\"t\":{time},\"local\":\"{client}\",\"peer\":\"{server}\",\"snd_cwnd\":10,\"rqueue\":{unread}}}\n"
            )
        };
        let text: String = unread.iter().enumerate().map(line).collect();
        let evidence = super::super::read("info.jsonl", text.as_bytes()).expect("samples");
        settle(&mut report, &[evidence]);
        let direction = report.connections[0].directions[1].as_deref().expect("a direction");
        let is_moved = direction.limits[0].state == TO;
        let moved = Duration(if is_moved { 800 * MS } else { 0 });
        assert_eq!(direction.time_in.get(TO), moved);
        assert_eq!(report.connections[0].transfers[0].time_in.get(TO), moved);
        assert_eq!(report.totals.time_in.get(TO), moved);
        assert_eq!(report.totals.time_in.total(), Duration(900 * MS));
        is_moved
    }

    #[test]
    fn a_flight_that_lies_unread_at_every_look_is_the_readers() {
        assert!(is_reader(&[47_000, 81_000, 60_000, 47_000, 30_000, 70_000, 47_000]));
    }

    #[test]
    fn a_reader_that_keeps_up_leaves_little_at_some_looks() {
        assert!(!is_reader(&[47_000, 0, 60_000, 47_000, 1448, 70_000, 47_000]));
        assert!(!is_reader(&[29_999; 7]), "less than a flight");
    }

    #[test]
    fn few_looks_or_looks_of_one_moment_tell_nothing() {
        assert!(!is_reader(&[81_000; 4]));
        assert!(is_reader(&[81_000; 5]));
    }
}
