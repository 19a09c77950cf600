//! `--save`: looks go to a file as they are taken, so that one that is cut short holds all before it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tcpwhy_linux::live::Sample;

use super::source::{FORMAT, Head};

/// A file of looks.
pub(crate) struct Save {
    path: PathBuf,
    file: BufWriter<Counted>,
}

impl Save {
    /// Makes it; over one that is there only if `force` says so.
    pub(crate) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        let mut how = OpenOptions::new();
        how.write(true);
        if force {
            how.create(true).truncate(true);
        } else {
            how.create_new(true);
        }
        let file = how.open(path).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                anyhow::anyhow!("{} is there already: --force writes over it", path.display())
            } else {
                anyhow::Error::new(error).context(format!("cannot write {}", path.display()))
            }
        })?;
        let mut file = BufWriter::with_capacity(1 << 18, Counted { file, bytes: 0 });
        let head =
            Head { format: FORMAT.to_owned(), made_by: env!("CARGO_PKG_VERSION").to_owned() };
        serde_json::to_writer(&mut file, &head)?;
        file.write_all(b"\n")?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes a look; the reason, if it is the last one that was written.
    pub(crate) fn put(&mut self, sample: &Sample) -> anyhow::Result<Option<String>> {
        let written = (|| {
            serde_json::to_writer(&mut self.file, sample)?;
            self.file.write_all(b"\n")?;
            self.file.flush()
        })();
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok((self.file.get_ref().bytes > MOST).then(|| {
            format!(
                "{} has {} MiB: no more looks are saved",
                self.path.display(),
                self.file.get_ref().bytes >> 20
            )
        }))
    }
}

struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Ours: an hour of 200 connections, each second.
const MOST: u64 = 1 << 30;
