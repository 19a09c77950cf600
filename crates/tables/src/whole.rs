//! What all rows of one connection share.

use std::hash::Hasher as _;

use tcpwhy::report::Connection;
use tcpwhy::units::Time;
use twox_hash::XxHash64;

use crate::column::{Column, int, text};

/// A connection, and what its rows are found by.
pub(crate) struct Whole<'a> {
    pub(crate) connection: &'a Connection,
    /// The same in every run over the same packets.
    pub(crate) key: String,
    /// Its first packet; `None` where the input has no dates.
    pub(crate) start: Option<i64>,
}

/// A row of a connection.
pub(crate) trait OfConnection {
    /// The connection.
    fn whole(&self) -> &Whole<'_>;
}

impl OfConnection for Whole<'_> {
    fn whole(&self) -> &Whole<'_> {
        self
    }
}

impl<'a> Whole<'a> {
    pub(crate) fn of(connection: &'a Connection) -> Self {
        Self { connection, key: key(connection), start: start(connection) }
    }

    /// The instant so long after its first packet.
    pub(crate) fn at(&self, since_start_ns: i64) -> Option<i64> {
        self.start?.checked_add(since_start_ns)
    }
}

/// When its first packet passed, in nanoseconds since 1970.
pub(crate) fn start(connection: &Connection) -> Option<i64> {
    Time::from_rfc3339(&connection.start).map(|time| time.0)
}

/// 16 digits that name the connection: of its network, its ends, and its first packet's time.
fn key(connection: &Connection) -> String {
    let mut hasher = XxHash64::with_seed(0);
    let named = format!(
        "{} {} {} {}",
        connection.network, connection.client, connection.server, connection.start
    );
    hasher.write(named.as_bytes());
    format!("{:016x}", hasher.finish())
}

/// The first columns of every table.
pub(crate) fn keys<R: OfConnection>() -> Vec<Column<R>> {
    vec![
        text(
            "connection_key",
            "Names the connection in all tables: made from its network, addresses, ports and first packet's time.",
            |row| Some(row.whole().key.as_str().into()),
        ),
        int("connection", "Its number in the report that the row came from.", |row| {
            count(row.whole().connection.id)
        }),
    ]
}

/// A count as tables have it; none that a capture could hold is larger.
#[expect(clippy::unnecessary_wraps, reason = "a column takes what may be absent")]
pub(crate) fn count(number: u64) -> Option<i64> {
    Some(i64::try_from(number).unwrap_or(i64::MAX))
}
