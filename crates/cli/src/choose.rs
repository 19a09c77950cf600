//! Which connections come first, and how many are shown?

use std::cmp::Reverse;

use tcpwhy::report::{Connection, Direction, Report};

/// The order of connections in a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Sort {
    /// As they began.
    Start,
    /// Longest transfer first.
    Time,
    /// Most payload first.
    Bytes,
    /// Least payload per second first.
    Rate,
    /// Most retransmitted segments first.
    Loss,
    /// Longest round trip first.
    Rtt,
}

/// The connection asked for is not in the report.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no connection {number}: {}", held(*.connections))]
pub struct NoSuchConnection {
    number: u64,
    connections: usize,
}

fn held(connections: usize) -> String {
    match connections {
        0 => "none was found".to_owned(),
        1 => "the only one has number 0".to_owned(),
        _ => format!("they are numbered 0 to {}", connections - 1),
    }
}

/// Keeps connection `number` alone.
///
/// # Errors
/// There is none of that number.
pub fn only(report: &mut Report, number: u64) -> Result<(), NoSuchConnection> {
    let connections = report.connections.len();
    report.connections.retain(|connection| connection.id == number);
    if report.connections.is_empty() {
        return Err(NoSuchConnection { number, connections });
    }
    Ok(())
}

/// Puts the connections in order; equal ones stay as they began.
pub fn sort(report: &mut Report, by: Sort) {
    let connections = &mut report.connections;
    match by {
        Sort::Start => connections.sort_by_key(|c| c.id),
        Sort::Time => connections.sort_by_key(|c| Reverse((longest_transfer(c), c.duration_ns))),
        Sort::Bytes => connections.sort_by_key(|c| Reverse(total(c, |d| d.bytes))),
        Sort::Rate => connections.sort_by(|a, b| {
            // bytes_a / ns_a against bytes_b / ns_b, without dividing; nothing sent comes last.
            let [bytes_a, bytes_b] = [a, b].map(|c| u128::from(total(c, |d| d.bytes)));
            let [ns_a, ns_b] = [a, b].map(|c| u128::from(c.duration_ns.max(0).unsigned_abs()));
            (bytes_a == 0).cmp(&(bytes_b == 0)).then((bytes_a * ns_b).cmp(&(bytes_b * ns_a)))
        }),
        Sort::Loss => connections.sort_by_key(|c| {
            let repeats = |d: &Direction| {
                let by_cause = &d.retransmitted;
                by_cause.fast + by_cause.rto + by_cause.tlp + by_cause.unnecessary + by_cause.syn
            };
            Reverse(total(c, repeats))
        }),
        Sort::Rtt => connections.sort_by_key(|c| Reverse(round_trip(c))),
    }
}

/// Keeps the first `count` connections.
pub fn top(report: &mut Report, count: usize) {
    report.connections.truncate(count);
}

fn directions(connection: &Connection) -> impl Iterator<Item = &Direction> {
    connection.directions.iter().flatten().map(AsRef::as_ref)
}

fn total(connection: &Connection, of: impl Fn(&Direction) -> u64) -> u64 {
    directions(connection).map(of).fold(0, u64::saturating_add)
}

fn longest_transfer(connection: &Connection) -> Option<i64> {
    connection.transfers.iter().map(|t| t.end_ns.saturating_sub(t.start_ns)).max()
}

fn round_trip(connection: &Connection) -> Option<i64> {
    connection.handshake_rtt_ns.max(directions(connection).filter_map(|d| d.rtt.min_ns).max())
}
