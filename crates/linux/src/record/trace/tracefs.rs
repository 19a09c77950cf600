//! The tracing system's files.
//!
//! If nobody has mounted them, they are mounted for this process alone: as a file descriptor that
//! hangs in no directory (`fsmount`, Linux 5.2), so there is nothing to unmount.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::{fs, io};

use crate::sys;

/// The root of the tracing system.
#[derive(Debug)]
pub(super) struct Tracefs(OwnedFd);

impl Tracefs {
    pub(super) fn open() -> io::Result<Self> {
        for place in PLACES {
            if fs::exists(format!("{place}/events")).unwrap_or(false) {
                return Ok(Self(fs::File::open(place)?.into()));
            }
        }
        sys::detached_mount(c"tracefs").map(Self)
    }

    /// The path of a file here, good for this process.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{file}", self.0.as_raw_fd()))
    }

    pub(super) fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.path(file))
    }

    /// Writes a word; the file is there already.
    pub(super) fn write(&self, file: &str, word: &str) -> io::Result<()> {
        use io::Write as _;
        fs::OpenOptions::new().write(true).open(self.path(file))?.write_all(word.as_bytes())
    }
}

impl AsFd for Tracefs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Where it is mounted by custom; the second one before Linux 4.1.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
