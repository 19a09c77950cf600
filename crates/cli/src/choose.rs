//! Which connections does the user want to see, and in which order?

use tcpwhy::report::Report;
use tcpwhy::view;

/// The order of connections in a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Sort {
    /// As they began.
    Start,
    /// Longest transfer first, time in which an application was silent not counted.
    Time,
    /// Longest lifetime first.
    Duration,
    /// Most payload first.
    Bytes,
    /// Slowest first.
    Rate,
    /// Most retransmitted segments first.
    Loss,
}

impl From<Sort> for view::Sort {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Start => Self::Start,
            Sort::Time => Self::Worst,
            Sort::Duration => Self::Duration,
            Sort::Bytes => Self::Bytes,
            Sort::Rate => Self::Rate,
            Sort::Loss => Self::Retransmissions,
        }
    }
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
