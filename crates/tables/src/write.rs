//! Tables into a folder of Parquet files.
//!
//! ```text
//! FOLDER/TABLE/day=2026-11-29/host=web1/RUN-0.parquet
//! ```
//!
//! What reads Hive's partitions (`DuckDB`, Spark, polars) sees `day` and `host` as columns. Files are made beside, in
//! `FOLDER/.RUN.part`, and take their names when all of them are whole: a crash leaves no half file under a final name. A
//! run of the same name replaces what it wrote before.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::hash::Hasher as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use tcpwhy::report::Connection;
use tcpwhy::session::Captured;
use twox_hash::XxHash64;

use crate::table::{Table, segments_of};
use crate::whole::{Whole, start};

/// Connections whose rows are made at once. Ours: some megabytes of rows with all their intervals.
const AT_ONCE: usize = 256;

/// Rows of a row group, and its bytes at most. Ours: what is held back of each table before it is written.
const GROUP_ROWS: usize = 1 << 16;
const GROUP_BYTES: usize = 32 << 20;

/// Days whose segments are written at once. Ours: each holds a row group back, and connections that go on over midnight take
/// two.
const DAYS: usize = 4;

/// A partition's value where nothing is known: Hive's, which is read as null.
pub(crate) const NOTHING_KNOWN: &str = "__HIVE_DEFAULT_PARTITION__";

/// The file in a folder of unfinished files that its writer holds locked.
const LOCK: &str = "lock";

/// Why tables could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or folder.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The format's own library.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: ParquetError,
    },
    /// Rows that fit no column.
    #[error("cannot make a row of {table}: {source}")]
    Row {
        /// Which table.
        table: &'static str,
        /// Why.
        source: ArrowError,
    },
    /// A name that would be no folder's.
    #[error(
        "{0:?} cannot be a part of a path: it may have letters, digits, `.`, `_` and `-`, and no dot first"
    )]
    Name(String),
}

/// Writes the tables of one run into a folder.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    staging: Staging,
    run: String,
    host: String,
    open: Vec<Open>,
    /// Files that are whole, with the names that they will have.
    whole: Vec<(PathBuf, PathBuf)>,
    rows: BTreeMap<Table, usize>,
}

/// What a run wrote.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The files.
    pub files: Vec<PathBuf>,
    /// How many rows each table got.
    pub rows: BTreeMap<Table, usize>,
}

/// A name for a run over captures that are told apart by these, in this order.
pub fn run_name(captures: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hasher = XxHash64::with_seed(0);
    for capture in captures {
        let bytes = capture.as_ref();
        // So that "a", "b" are not "ab".
        hasher.write_u64(bytes.len() as u64);
        hasher.write(bytes);
    }
    format!("{:016x}", hasher.finish())
}

/// A file that is being written.
#[derive(Debug)]
struct Open {
    table: Table,
    day: String,
    path: PathBuf,
    name: PathBuf,
    writer: ArrowWriter<File>,
}

/// Where files are until they are whole; gone with this.
#[derive(Debug)]
struct Staging {
    folder: PathBuf,
    _lock: File,
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What stays is found, and removed, by the next run.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Writer {
    /// Begins a run: `run` names it, `host` is whose captures these are.
    ///
    /// # Errors
    /// The folder cannot be made, or a name is none.
    pub fn begin(folder: &Path, run: &str, host: Option<&str>) -> Result<Self, WriteError> {
        for name in [Some(run), host].into_iter().flatten() {
            check_name(name)?;
        }
        at(folder, fs::create_dir_all(folder))?;
        remove_left_over(folder);
        let staging = Staging::new(folder, run)?;
        let host = host.unwrap_or(NOTHING_KNOWN).to_owned();
        let (folder, run) = (folder.to_owned(), run.to_owned());
        let (open, whole, rows) = Default::default();
        Ok(Self { folder, staging, run, host, open, whole, rows })
    }

    /// Takes the next connections.
    ///
    /// # Errors
    /// A file cannot be written, such as on a full disk.
    pub fn push(&mut self, connections: &[Connection]) -> Result<(), WriteError> {
        for same_day in connections.chunk_by(|a, b| day(a) == day(b)) {
            let day = day(&same_day[0]);
            if self.open.iter().any(|open| open.day != day) {
                self.close()?;
            }
            for some in same_day.chunks(AT_ONCE) {
                for table in Table::ALL {
                    self.add(table, &day, table.batch(some))?;
                }
            }
        }
        Ok(())
    }

    /// Adds segments of `connections`, among which each has its own.
    ///
    /// # Errors
    /// As for [`Writer::push`].
    pub fn push_segments(
        &mut self,
        connections: &[Connection],
        segments: &[Captured],
    ) -> Result<(), WriteError> {
        let mut wholes = BTreeMap::new();
        for segment in segments {
            if let Some(connection) = connections.get(segment.connection) {
                let whole = || (Whole::of(connection), day(connection));
                wholes.entry(segment.connection).or_insert_with(whole);
            }
        }
        let mut days: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for segment in segments {
            if let Some((whole, day)) = wholes.get(&segment.connection) {
                days.entry(day).or_default().push((whole, segment));
            }
        }
        for (day, rows) in days {
            self.add(Table::Segments, day, segments_of(rows))?;
        }
        Ok(())
    }

    /// Adds rows of a day to a table.
    fn add(
        &mut self,
        table: Table,
        day: &str,
        rows: Result<RecordBatch, ArrowError>,
    ) -> Result<(), WriteError> {
        let rows = rows.map_err(|source| WriteError::Row { table: table.name(), source })?;
        *self.rows.entry(table).or_default() += rows.num_rows();
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let known = self.open.iter().position(|open| open.table == table && open.day == day);
        let place = match known {
            Some(place) => place,
            None => self.start(table, day)?,
        };
        let Open { path, writer, .. } = &mut self.open[place];
        writer.write(&rows).map_err(|source| WriteError::Parquet { path: path.clone(), source })
    }

    /// Opens the file of this table and day; its place among those that are open.
    fn start(&mut self, table: Table, day: &str) -> Result<usize, WriteError> {
        let is_same = |open: &Open| open.table == table;
        if self.open.iter().filter(|open| is_same(open)).count() >= DAYS
            && let Some(oldest) = self.open.iter().position(is_same)
        {
            let oldest = self.open.remove(oldest);
            self.end(oldest)?;
        }
        let number = self.whole.len() + self.open.len();
        let path = self.staging.folder.join(format!("{number}.parquet"));
        let file = at(&path, File::create_new(&path))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .set_created_by(concat!("tcpwhy ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowWriter::try_new(file, table.schema(), Some(properties));
        let writer = writer.map_err(|source| WriteError::Parquet { path: path.clone(), source })?;
        let (name, day) = (self.name(table, day), day.to_owned());
        self.open.push(Open { table, day, path, name, writer });
        Ok(self.open.len() - 1)
    }

    /// A name for the next file of this table and day. A day may come back.
    fn name(&self, table: Table, day: &str) -> PathBuf {
        let folder = self.folder.join(table.name()).join(format!("day={day}"));
        let folder = folder.join(format!("host={}", self.host));
        let taken = self.whole.iter().filter(|(_, name)| name.parent() == Some(&folder)).count();
        folder.join(format!("{}-{taken}.parquet", self.run))
    }

    /// Ends the open files.
    fn close(&mut self) -> Result<(), WriteError> {
        for open in core::mem::take(&mut self.open) {
            self.end(open)?;
        }
        Ok(())
    }

    fn end(&mut self, Open { path, name, writer, .. }: Open) -> Result<(), WriteError> {
        let failed = |source| WriteError::Parquet { path: path.clone(), source };
        let file = writer.into_inner().map_err(failed)?;
        at(&path, file.sync_all())?;
        self.whole.push((path, name));
        Ok(())
    }

    /// Gives the files their names, and removes what a run of this name left before.
    ///
    /// # Errors
    /// As for [`Writer::push`]. What stood there before still does then, but for files already replaced.
    pub fn finish(mut self) -> Result<Written, WriteError> {
        self.close()?;
        let mut names = BTreeSet::new();
        for (path, name) in &self.whole {
            if let Some(folder) = name.parent() {
                at(folder, fs::create_dir_all(folder))?;
            }
            at(name, fs::rename(path, name))?;
            names.insert(name.clone());
        }
        self.remove_replaced(&names)?;
        Ok(Written { files: names.into_iter().collect(), rows: self.rows })
    }

    /// Removes what an earlier run of this name wrote and this one did not.
    fn remove_replaced(&self, names: &BTreeSet<PathBuf>) -> Result<(), WriteError> {
        let prefix = format!("{}-", self.run);
        let is_ours = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_prefix(&prefix)).is_some_and(|rest| {
                let number = rest.strip_suffix(".parquet");
                number.is_some_and(|number| number.parse::<usize>().is_ok())
            })
        };
        for table in Table::WITH_SEGMENTS {
            for day in inside(&self.folder.join(table.name())) {
                for host in inside(&day).filter(|host| self.is_own(host)) {
                    for old in inside(&host).filter(|old| is_ours(old) && !names.contains(old)) {
                        at(&old, fs::remove_file(&old))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_own(&self, host: &Path) -> bool {
        host.file_name().is_some_and(|name| *name == *format!("host={}", self.host))
    }
}

impl Staging {
    fn new(folder: &Path, run: &str) -> Result<Self, WriteError> {
        // Several may write at once, in one process too.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = folder.join(format!(".{run}.{}.{number}", std::process::id()));
        at(&own, fs::create_dir(&own))?;
        let path = own.join(LOCK);
        let lock = at(&path, File::create_new(&path))?;
        at(&path, lock.lock())?;
        // Without its lock nobody may see it: it would be taken for what a crash left.
        let folder = own.with_added_extension("part");
        at(&folder, fs::rename(&own, &folder))?;
        Ok(Self { folder, _lock: lock })
    }
}

/// Removes what crashed runs left: nobody holds their locks.
fn remove_left_over(folder: &Path) {
    let is_staging = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        name.starts_with('.') && path.extension().is_some_and(|extension| extension == "part")
    };
    for old in inside(folder).filter(is_staging) {
        let Ok(lock) = File::open(old.join(LOCK)) else { continue };
        if !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            let _ = fs::remove_dir_all(&old);
        }
    }
}

/// What is in a folder; nothing if there is none.
fn inside(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn at<T>(path: &Path, done: io::Result<T>) -> Result<T, WriteError> {
    done.map_err(|source| WriteError::File { path: path.to_owned(), source })
}

/// Whether this can be the name of a run or of a host in the path of a file.
///
/// # Errors
/// It cannot.
pub fn check_name(name: &str) -> Result<(), WriteError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(WriteError::Name(name.to_owned()));
    }
    Ok(())
}

/// The day of its first packet, UTC.
fn day(connection: &Connection) -> String {
    let has_date = start(connection).is_some();
    let date = connection.start.split_once('T').map(|(date, _)| date).filter(|_| has_date);
    date.unwrap_or(NOTHING_KNOWN).to_owned()
}
