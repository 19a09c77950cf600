//! Tables out of a folder of Parquet files, a few columns of them at a time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use crate::Table;
use crate::write::NOTHING_KNOWN;

/// Why tables could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file or folder.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is no such table, or a damaged one.
    #[error("cannot read {}: {source}", path.display())]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: ParquetError,
    },
    /// A table of another version.
    #[error(
        "{} has no column {column}: another version of tcpwhy wrote it; write the tables anew", path.display()
    )]
    Column {
        /// Which file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
    },
    /// A folder that nobody wrote tables into.
    #[error("{} holds no table {table}: `tcpwhy FILE... --parquet DIR` writes them", folder.display())]
    NoTables {
        /// The folder.
        folder: PathBuf,
        /// What is missing.
        table: &'static str,
    },
}

/// A file of a table.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Part {
    /// The day of its connections, `2026-11-29`; `None` where their input has no dates.
    pub(crate) day: Option<String>,
    /// Whose captures; `None` where nobody said.
    pub(crate) host: Option<String>,
    pub(crate) path: PathBuf,
}

/// The files of a table, in the order of days, hosts and names.
pub(crate) fn parts(folder: &Path, table: Table) -> Result<Vec<Part>, ReadError> {
    let name = table.name();
    let root = folder.join(name);
    if !root.is_dir() {
        return Err(ReadError::NoTables { folder: folder.to_owned(), table: name });
    }
    let mut parts = Vec::new();
    for (day, path) in values(&root, "day=")? {
        for (host, path) in values(&path, "host=")? {
            for path in inside(&path)? {
                if path.extension().is_some_and(|extension| extension == "parquet") {
                    parts.push(Part { day: day.clone(), host: host.clone(), path });
                }
            }
        }
    }
    parts.sort();
    Ok(parts)
}

/// The folders that hold a partition each, with its value.
fn values(folder: &Path, key: &str) -> Result<Vec<(Option<String>, PathBuf)>, ReadError> {
    let of = |path: PathBuf| {
        let value = path.file_name()?.to_str()?.strip_prefix(key)?;
        let value = (value != NOTHING_KNOWN).then(|| value.to_owned());
        Some((value, path))
    };
    Ok(inside(folder)?.into_iter().filter_map(of).collect())
}

fn inside(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |source| ReadError::File { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// Hands on these columns of a file, some rows at a time.
pub(crate) fn each(
    path: &Path,
    columns: &[&'static str],
    mut take: impl FnMut(&RecordBatch),
) -> Result<(), ReadError> {
    let failed = |source| ReadError::Parquet { path: path.to_owned(), source };
    let file =
        File::open(path).map_err(|source| ReadError::File { path: path.to_owned(), source })?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    let is_missing = |name: &&&'static str| builder.schema().field_with_name(name).is_err();
    if let Some(column) = columns.iter().find(is_missing) {
        return Err(ReadError::Column { path: path.to_owned(), column });
    }
    let wanted = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    for batch in builder.with_projection(wanted).build().map_err(failed)? {
        take(&batch.map_err(|error| failed(ParquetError::ArrowError(error.to_string())))?);
    }
    Ok(())
}
