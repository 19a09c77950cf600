//! The tables, one file each.

mod changes;
mod connections;
mod findings;
mod limits;
mod requests;
mod rounds;
mod segments;
mod transfers;

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use tcpwhy::report::Connection;
use tcpwhy::session::Captured;

use crate::column::{self, Column};
use crate::whole::Whole;
use crate::{VERSION, VERSION_KEY};

/// Who sends in each direction.
const SENDERS: [&str; 2] = ["client", "server"];

/// One table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Table {
    /// A row for each connection.
    Connections,
    /// A row for each run of application data of one direction.
    Transfers,
    /// A row for each request.
    Requests,
    /// A row for each interval and what held the sender in it.
    Limits,
    /// A row for each round trip of data.
    Rounds,
    /// A row for each finding.
    Findings,
    /// A row for each change that would help a connection.
    Changes,
    /// A row for each captured segment. It is made of a second reading, and only on request.
    Segments,
}

impl Table {
    /// Those that a report has.
    pub const ALL: [Self; 7] = [
        Self::Connections,
        Self::Transfers,
        Self::Requests,
        Self::Limits,
        Self::Rounds,
        Self::Findings,
        Self::Changes,
    ];

    /// All of them.
    pub const WITH_SEGMENTS: [Self; 8] = [
        Self::Connections,
        Self::Transfers,
        Self::Requests,
        Self::Limits,
        Self::Rounds,
        Self::Findings,
        Self::Changes,
        Self::Segments,
    ];

    /// Its name, which is its folder's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Transfers => "transfers",
            Self::Requests => "requests",
            Self::Limits => "limits",
            Self::Rounds => "rounds",
            Self::Findings => "findings",
            Self::Changes => "changes",
            Self::Segments => "segments",
        }
    }

    /// What its rows are, in a sentence.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Connections => "One TCP connection a row.",
            Self::Transfers => "One run of application data of one direction a row.",
            Self::Requests => "One request with its answer a row.",
            Self::Limits => "One interval a row, with what held the sender in it.",
            Self::Rounds => {
                "One round a row: from the first send to the ACK of the first data sent after that."
            }
            Self::Findings => "One finding a row, with what would be saved without its cause.",
            Self::Changes => {
                "One change a row that would make the connection faster, as its first screen ranks them."
            }
            Self::Segments => "One captured segment a row, copies too; written with `--segments`.",
        }
    }

    /// Its columns.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Connections => schema(self, &connections::columns()),
            Self::Transfers => schema(self, &transfers::columns()),
            Self::Requests => schema(self, &requests::columns()),
            Self::Limits => schema(self, &limits::columns()),
            Self::Rounds => schema(self, &rounds::columns()),
            Self::Findings => schema(self, &findings::columns()),
            Self::Changes => schema(self, &changes::columns()),
            Self::Segments => schema(self, &segments::columns()),
        }
    }

    /// The rows of these connections, in their order. A report has no segments: of these see
    /// [`Writer::push_segments`](crate::Writer::push_segments).
    ///
    /// # Errors
    /// Texts of more than 2 GiB in one column.
    pub fn batch(self, connections: &[Connection]) -> Result<RecordBatch, ArrowError> {
        let all: Vec<_> = connections.iter().map(Whole::of).collect();
        match self {
            Self::Connections => batch(self, &connections::columns(), &all),
            Self::Transfers => batch(self, &transfers::columns(), &transfers::rows(&all)),
            Self::Requests => batch(self, &requests::columns(), &requests::rows(&all)),
            Self::Limits => batch(self, &limits::columns(), &limits::rows(&all)),
            Self::Rounds => batch(self, &rounds::columns(), &rounds::rows(&all)),
            Self::Findings => batch(self, &findings::columns(), &findings::rows(&all)),
            Self::Changes => batch(self, &changes::columns(), &changes::rows(&all)),
            Self::Segments => batch(self, &segments::columns(), &[]),
        }
    }
}

/// The rows of segments, all of them of these connections: each with the place of its own among them.
///
/// # Errors
/// As of [`Table::batch`].
pub(crate) fn segments_of<'a>(
    rows: impl IntoIterator<Item = (&'a Whole<'a>, &'a Captured)>,
) -> Result<RecordBatch, ArrowError> {
    let rows = rows.into_iter().map(|(whole, captured)| segments::Row { whole, captured });
    let rows: Vec<_> = rows.collect();
    batch(Table::Segments, &segments::columns(), &rows)
}

fn schema<R>(table: Table, columns: &[Column<R>]) -> SchemaRef {
    let metadata = [
        (VERSION_KEY.to_owned(), VERSION.to_owned()),
        ("description".to_owned(), table.doc().to_owned()),
    ];
    column::schema(columns, HashMap::from(metadata))
}

fn batch<R>(table: Table, columns: &[Column<R>], rows: &[R]) -> Result<RecordBatch, ArrowError> {
    column::batch(columns, &schema(table, columns), rows)
}
