//! The views: what a [`Report`](crate::report::Report) says, as text.
//!
//! The question each view answers:
//!
//! | view | question |
//! |---|---|
//! | [`first`] | why did this take so long, and what would make it faster? On one screen |
//! | [`text`] | what shows it? One connection in full, many as a table |
//! | [`table`] | which of many connections is the worst, and what held them all? |
//! | [`rounds`] | what happened round by round? The table articles draw by hand |
//! | [`plot`] | what would the time-sequence graph look like? |
//! | [`summary`] | the same in a line each, for scripts |
//! | [`live`] | what holds the connections that are open, by what their kernel told? |
//! | [`csv`] | the same figures for a spreadsheet |
//! | [`web`] | what does a page in the browser show, and from which series are its graphs? |
//! | [`anonymize`] | the same report without its addresses |
//! | [`clip`] | what happened between two instants? |
//!
//! Every view is a pure function: the same report and options give the same bytes. Nobody here
//! asks whether the output is a terminal, how wide it is or which variables are set; that comes
//! in as [`Options`]. What the report does not know is left out or called unknown, never shown as
//! zero. Text that came from a capture is stripped of control characters before it is printed.

mod anonymize;
mod called;
mod ceilings;
mod changes;
mod choose;
mod clip;
mod columns;
mod command;
pub mod csv;
mod doubt;
mod failed;
mod family;
mod faster;
mod finding;
pub mod first;
mod found;
mod head;
mod icmp;
mod link;
pub mod live;
mod numbers;
pub mod open;
pub mod plot;
mod quality;
pub mod rounds;
mod said;
mod spent;
mod strip;
mod sum;
pub mod summary;
pub mod table;
pub mod text;
mod traffic;
mod verdict;
pub mod web;
mod with;
mod words;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

pub use anonymize::{StandIns, anonymize};
pub use changes::{Change, changes};
pub use clip::clip;

use tcpwhy_words::page;

use crate::report::{Connection, Report};
use crate::tracker::{DETAILED, Keep};

/// What the report says: on one screen, or in full if that is asked for or nothing could be shown on one.
pub fn render(report: &Report, options: &Options) -> String {
    if options.full || !first::has_room(report, options) {
        text::render(report, options)
    } else {
        first::render(report, options)
    }
}

/// Keeps at most `number` connections of `report`, in the order asked for.
pub fn keep_first(report: &mut Report, sort: Sort, number: usize) {
    let order = choose::connections(report, sort, number);
    let mut connections: Vec<_> =
        core::mem::take(&mut report.connections).into_iter().map(Some).collect();
    report.connections = order.into_iter().filter_map(|at| connections[at].take()).collect();
}

/// Which accounts a report needs if at most `number` connections will be shown.
pub fn keep(sort: Sort, number: usize) -> Keep {
    let worth = match sort {
        Sort::Worst => |connection: &Connection| choose::key(connection, Sort::Worst),
        Sort::Duration => |connection: &Connection| choose::key(connection, Sort::Duration),
        Sort::Bytes => |connection: &Connection| choose::key(connection, Sort::Bytes),
        Sort::Rate => |connection: &Connection| choose::key(connection, Sort::Rate),
        Sort::Retransmissions => {
            |connection: &Connection| choose::key(connection, Sort::Retransmissions)
        }
        Sort::Start => |connection: &Connection| choose::key(connection, Sort::Start),
    };
    Keep { most: number, worth, first_with_data: DETAILED as usize }
}

/// How a text view is to look and what it is to hold.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag without a value")]
pub struct Options {
    /// Columns of the page; words wrap there. Less than 40 is taken as 40.
    pub width: usize,
    /// Paint with ANSI colours (never the only carrier of a meaning).
    pub color: bool,
    /// All that was found, instead of one screen.
    pub full: bool,
    /// Add the table of rounds to each connection shown in full.
    pub rounds: bool,
    /// Add the time-sequence picture to each connection shown in full.
    pub plot: bool,
    /// Rows of the table of connections.
    pub top: usize,
    /// Order of the table of connections.
    pub sort: Sort,
    /// Show this connection (its `id`) in full, and no other.
    pub connection: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: 100,
            color: false,
            full: false,
            rounds: false,
            plot: false,
            top: 20,
            sort: Sort::Worst,
            connection: None,
        }
    }
}

/// Order of the table of connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Sort {
    /// Longest wait first: a request, the server's application and the answer; the first with the opening.
    #[default]
    Worst,
    /// Longest lifetime first.
    Duration,
    /// Most bytes first.
    Bytes,
    /// Slowest first; connections whose rate is unknown last.
    Rate,
    /// Most retransmissions first.
    Retransmissions,
    /// In the order of their first packets.
    Start,
}
