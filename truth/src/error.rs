//! Why there is no truth.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no truth.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// A record cannot be read.
    #[error("cannot read {}: {source}; was the run carried out to its end?", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No event of any connection.
    #[error(
        "{} holds no events of the kernel ({damaged} lines cannot be read): were its tracepoints on?",
        folder.display()
    )]
    NothingRecorded {
        /// Where.
        folder: PathBuf,
        /// Lines that were not understood.
        damaged: u64,
    },
}

impl TruthError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: PathBuf::from(path), source }
    }
}
