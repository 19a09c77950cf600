//! Reports as tables: what a folder of captures says, for SQL, data frames and Parquet.
//!
//! [`Table`] names the tables; [`Table::schema`] documents each column in its metadata (`description`), and
//! `docs/tables.md` prints them. All times in a row count in nanoseconds; what ends in `_time` is an instant (UTC), what
//! ends in `_ns` a span, or a moment since the connection's first packet. Null is "not known", never zero.
//!
//! [`Writer`] puts tables into a folder of Parquet files, partitioned by day and host; [`summary`] reads from there what
//! to change where.

mod column;
mod read;
pub mod summary;
mod table;
mod whole;
mod write;

pub use read::ReadError;
pub use table::Table;
pub use write::{WriteError, Writer, Written, check_name, run_name};

/// The version of the columns' names, types and meanings: in the metadata of each schema under [`VERSION_KEY`].
/// A new column leaves it as it is; a changed or removed one does not.
pub const VERSION: &str = "1";

/// Where a schema's metadata has the version.
pub const VERSION_KEY: &str = "tcpwhy.tables";
