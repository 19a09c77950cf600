//! Which files may be read: those below the folders that were named at the start.
//!
//! A folder is opened once. A file is opened from there by the kernel's own rule (`openat2(2)`, `RESOLVE_BENEATH`): no
//! step, be it `..` or a symbolic link, leads out, and what is swapped between a look and the opening helps nobody, for
//! there is no look. Where the kernel has no such call (before Linux 5.6, or under a filter of system calls), no
//! symbolic link is followed at all. A hard link, or a mount below the folder, is the file that it says.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
use tcpwhy_host::shown;

/// Bytes of a path. Linux v6.18 `include/uapi/linux/limits.h`, `PATH_MAX`.
const MOST_PATH: usize = 4096;

/// Tries of an opening that a rename disturbed (`EAGAIN`, `openat2(2)`). Ours.
const TRIES: usize = 16;

/// The folders whose files may be read.
#[derive(Debug)]
pub struct Folders(Vec<Folder>);

#[derive(Debug)]
struct Folder {
    /// As it was named, from the root on.
    named: PathBuf,
    /// The same without symbolic links.
    real: PathBuf,
    opened: OwnedFd,
}

/// A file that may be read.
#[derive(Debug)]
pub struct Opened {
    file: File,
    name: String,
}

impl Opened {
    /// As it was asked for, on one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// A path that leads to this file and no other for as long as it is open.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// The path is none.
    #[error("a path has 1 to {MOST_PATH} bytes, none of them 0")]
    NoPath,
    /// It has `..` in it.
    #[error("{0}: a path with `..` is refused; name the file from its folder on")]
    Upwards(String),
    /// It is not below a folder.
    #[error("{0} is not below a folder that may be read: {1}")]
    Outside(String, String),
    /// A symbolic link leads out.
    #[error("{0} leads out of its folder by a symbolic link: it is refused")]
    LeadsOut(String),
    /// There is nothing of that name.
    #[error("there is no file {0} in the folders that may be read: {1}")]
    Missing(String, String),
    /// It is a folder, a pipe or a device.
    #[error("{0} is {1}: name a file")]
    NoFile(String, &'static str),
    /// The system says why.
    #[error("cannot open {0}: {1}")]
    Failed(String, io::Error),
}

impl Folders {
    /// Opens the folders.
    ///
    /// # Errors
    /// The first that is none, or cannot be opened.
    pub fn open(named: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
        let open = |path: &PathBuf| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = || {
                let opened = rustix::fs::open(path, flags, Mode::empty())?;
                Ok(Folder { named: std::path::absolute(path)?, real: path.canonicalize()?, opened })
            };
            folder().map_err(|error| (path.clone(), error))
        };
        named.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// The folders in words.
    pub fn listed(&self) -> String {
        let names = self.0.iter().map(|folder| shown(folder.named.as_os_str().as_encoded_bytes()));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Opens a file that a client names: from the root on, or from one of the folders on.
    ///
    /// # Errors
    /// It is not to be read, or cannot be.
    pub fn file(&self, asked: &str) -> Result<Opened, NotOpened> {
        if asked.is_empty() || asked.len() > MOST_PATH || asked.contains('\0') {
            return Err(NotOpened::NoPath);
        }
        let (path, name) = (Path::new(asked), shown(asked.as_bytes()));
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(NotOpened::Upwards(name));
        }
        let mut refused = NotOpened::Outside(name.clone(), self.listed());
        for (folder, inside) in
            self.0.iter().filter_map(|folder| Some((folder, folder.inside(path)?)))
        {
            match folder.beneath(&inside) {
                Ok(opened) => return plain(opened, name),
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    if matches!(refused, NotOpened::Outside(..)) {
                        refused = NotOpened::Missing(name.clone(), self.listed());
                    }
                }
                Err(Errno::XDEV | Errno::LOOP) => refused = NotOpened::LeadsOut(name.clone()),
                Err(error) => refused = NotOpened::Failed(name.clone(), error.into()),
            }
        }
        Err(refused)
    }
}

impl Folder {
    /// The way from this folder on, if `path` may lead into it.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let inside = if path.is_absolute() {
            path.strip_prefix(&self.named).or_else(|_| path.strip_prefix(&self.real)).ok()?
        } else {
            path
        };
        let steps: PathBuf =
            inside.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        Some(if steps.as_os_str().is_empty() { ".".into() } else { steps })
    }

    /// Opens what lies below it, and nothing else.
    fn beneath(&self, inside: &Path) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match openat2(&self.opened, inside, READING, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                // There is no such call, or a filter of system calls forbids it.
                Err(Errno::NOSYS | Errno::PERM) => return self.step_by_step(inside),
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The same without following any link.
    fn step_by_step(&self, inside: &Path) -> Result<OwnedFd, Errno> {
        let mut parts = inside.components().peekable();
        let mut at: Option<OwnedFd> = None;
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_some() {
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
            } else {
                READING
            };
            let from = at.as_ref().unwrap_or(&self.opened);
            at = Some(openat(from, part.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty())?);
        }
        at.ok_or(Errno::NOENT)
    }
}

/// A pipe without a writer must not be waited for.
const READING: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// What was opened, if it is a plain file.
fn plain(opened: OwnedFd, name: String) -> Result<Opened, NotOpened> {
    let kind = match fstat(&opened) {
        Ok(status) => FileType::from_raw_mode(status.st_mode),
        Err(error) => return Err(NotOpened::Failed(name, error.into())),
    };
    match kind {
        FileType::RegularFile => Ok(Opened { file: opened.into(), name }),
        FileType::Directory => Err(NotOpened::NoFile(name, "a folder")),
        FileType::Fifo => Err(NotOpened::NoFile(name, "a pipe")),
        _ => Err(NotOpened::NoFile(name, "a device or a socket")),
    }
}

#[cfg(test)]
mod tests;
