//! Folders for the time of a run. They go with the run; what a killed one left is found by the next.
//!
//! A folder is locked (flock(2)) as long as its run lives: the kernel lets go of the lock however the process ends. So
//! it counts as left only if it has our name, is our user's and nobody else's to read, and nobody holds its lock. On a
//! file system without locks nothing is found.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

/// The folder of a run that is under way; removed in the end.
pub(crate) struct Held {
    folder: TempDir,
    /// Holds the lock, and the way in.
    lock: File,
}

impl Held {
    /// A new one in `folder`, whose name begins with `prefix`.
    pub(crate) fn create_in(folder: &Path, prefix: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(MODE))
            .tempdir_in(folder)?;
        let lock = File::open(folder.path())?;
        // Where there are no locks, nobody will get this one either.
        let _ = lock.try_lock();
        let held = Self { folder, lock };
        // Who may write beside it may have put a folder of his own in its place.
        let there = held.lock.metadata()?;
        let own = tempfile::tempfile_in(held.inside())?.metadata()?;
        if there.uid() != own.uid() || there.mode() & 0o777 != MODE {
            return Err(io::Error::other("somebody else took its place"));
        }
        Ok(held)
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A way to this folder, whatever becomes of its name: who may write beside it could take that for a folder of his
    /// own, and have root write and read there. It leads there for this process alone.
    pub(crate) fn inside(&self) -> PathBuf {
        way(&self.lock).unwrap_or_else(|| self.path().to_owned())
    }
}

/// The folder of a run that was killed.
pub(crate) struct Left {
    path: PathBuf,
    /// Held until it is removed, so that no other run takes it up, too.
    lock: File,
}

impl Left {
    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// As [`Held::inside`].
    pub(crate) fn inside(&self) -> PathBuf {
        way(&self.lock).unwrap_or_else(|| self.path.clone())
    }

    /// Takes it away with all that is in it.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

/// What killed runs of this user left in `folder`, by their name.
pub(crate) fn left(folder: &Path, prefix: &str) -> Vec<Left> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    names.sort();
    names.into_iter().filter_map(taken_up).collect()
}

fn taken_up(path: PathBuf) -> Option<Left> {
    let own = rustix::process::geteuid().as_raw();
    let is_ours =
        |there: &Metadata| there.is_dir() && there.uid() == own && there.mode() & 0o777 == MODE;
    let named = path.symlink_metadata().ok().filter(is_ours)?;
    let is_old = named.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNGEST));
    let lock = File::open(&path).ok().filter(|_| is_old)?;
    let opened = lock.metadata().ok().filter(is_ours)?;
    let is_same = (opened.dev(), opened.ino()) == (named.dev(), named.ino());
    (is_same && lock.try_lock().is_ok()).then_some(Left { path, lock })
}

/// The way to an open folder that no other name can take.
fn way(folder: &File) -> Option<PathBuf> {
    let open = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    open.exists().then_some(open)
}

const MODE: u32 = 0o700;
/// Ours: between making a folder and its lock lie microseconds.
const YOUNGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    const PREFIX: &str = ".tcpwhy-run-";

    /// A folder of a run that is gone, last changed so long ago.
    fn gone(folder: &Path, name: &str, age_s: u64) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir(&path).expect("room");
        fs::set_permissions(&path, Permissions::from_mode(MODE)).expect("ours");
        fs::write(path.join("packets.pcapng"), "packets").expect("room");
        age(&path, age_s);
        path
    }

    fn age(path: &Path, age_s: u64) {
        let then = SystemTime::now() - Duration::from_secs(age_s);
        File::open(path).and_then(|folder| folder.set_modified(then)).expect("ours");
    }

    #[test]
    fn what_a_killed_run_left_is_found_and_goes_when_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = gone(folder.path(), ".tcpwhy-run-a", 3600);
        let held = Held::create_in(folder.path(), PREFIX).expect("room");
        let found = left(folder.path(), PREFIX);
        assert_eq!(found.iter().map(Left::path).collect::<Vec<_>>(), [&old]);
        assert_eq!(fs::read(found[0].inside().join("packets.pcapng")).expect("there"), b"packets");
        assert_eq!(left(folder.path(), PREFIX).len(), 0, "it is taken up already");
        for left in found {
            left.remove().expect("ours");
        }
        assert!(!old.exists() && held.path().exists());
        drop(held);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn the_way_in_stays_where_another_folder_takes_the_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = Held::create_in(folder.path(), PREFIX).expect("room");
        fs::rename(held.path(), folder.path().join("moved")).expect("ours");
        fs::create_dir(held.path()).expect("room");
        fs::write(held.inside().join("packets.pcapng"), "packets").expect("room");
        assert!(folder.path().join("moved/packets.pcapng").exists());
        assert_eq!(fs::read_dir(held.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn only_what_is_surely_left_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let living = Held::create_in(folder.path(), PREFIX).expect("room");
        age(living.path(), 3600);
        gone(folder.path(), ".tcpwhy-run-new", 0);
        let shared = gone(folder.path(), ".tcpwhy-run-shared", 3600);
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).expect("ours");
        let other = gone(folder.path(), ".tcpwhy-other", 3600);
        std::os::unix::fs::symlink(&other, folder.path().join(".tcpwhy-run-link")).expect("a link");
        assert_eq!(left(folder.path(), PREFIX).len(), 0);
    }
}
