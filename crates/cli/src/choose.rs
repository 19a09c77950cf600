//! Which connections does the user want to see, and in which order?

use tcpwhy::report::{Report, Totals};
use tcpwhy::units::Time;
use tcpwhy::view;

use crate::filter::Filter;

/// The order of connections in a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Sort {
    /// As they began.
    Start,
    /// Longest wait first: a request, the server's time to answer and the answer, the first with the handshake;
    /// silence between an answer and the next request not counted.
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
#[error("there is no connection {number}: {}", held(*.span))]
pub struct NoSuchConnection {
    number: u64,
    /// The least and the greatest number there is.
    span: Option<(u64, u64)>,
}

fn held(span: Option<(u64, u64)>) -> String {
    match span {
        None => "none was found".to_owned(),
        Some((first, last)) if first == last => format!("the only one has number {first}"),
        Some((first, last)) => format!("they are numbered {first} to {last}"),
    }
}

/// Keeps the connections that `filter` accepts, under their numbers; what to say if that is none, without an address
/// where those are hidden.
pub fn matching(report: &mut Report, filter: &Filter, hides: bool) -> Option<String> {
    let connections = core::mem::take(&mut report.connections);
    let number = connections.len();
    let example = connections.first().map(|first| {
        format!("{} (client) -> {} (server)", first.client_shown(), first.server_shown())
    });
    report.connections = connections.into_iter().filter(|each| filter.accepts(each)).collect();
    report.totals = Totals::of(&report.connections);
    let example = example.filter(|_| report.connections.is_empty())?;
    let mut text = match number {
        1 if hides => "the filter does not match the only connection there is".to_owned(),
        _ if hides => format!("the filter matches none of the {number} connections"),
        1 => format!("the filter does not match the only connection there is, {example}"),
        _ => format!("the filter matches none of the {number} connections; the first is {example}"),
    };
    if filter.names_a_host() {
        text.push_str("; names are known only where a packet listing prints them: try the address");
    }
    Some(text)
}

/// What to say when no connection has packets in the window of time that was asked for.
pub fn outside(first: Time, last: Time) -> String {
    format!(
        "nothing happened between --from and --to: the TCP packets begin at {} and end {} later",
        first.rfc3339(),
        last.since(first)
    )
}

/// Keeps connection `number` alone.
///
/// # Errors
/// There is none of that number.
pub fn only(report: &mut Report, number: u64) -> Result<(), NoSuchConnection> {
    let numbers = || report.connections.iter().map(|connection| connection.id);
    let span = numbers().min().zip(numbers().max());
    report.connections.retain(|connection| connection.id == number);
    if report.connections.is_empty() {
        return Err(NoSuchConnection { number, span });
    }
    report.totals = Totals::of(&report.connections);
    Ok(())
}
