//! A folder for packets that are not yet narrowed, beside the recording. It goes with the recording; what a
//! killed one left is removed by the next recording into the same folder.
//!
//! A spool is locked (flock(2)) as long as its recording lives: the kernel lets go of the lock however the
//! process ends. So a spool is removed only if it has our name, is our user's and nobody else's to read, and
//! nobody holds its lock. On a file system without locks nothing is removed.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

/// The folder of a recording that is under way; removed in the end.
pub(crate) struct Spool {
    folder: TempDir,
    /// Holds the lock, and the way in.
    lock: File,
}

impl Spool {
    /// A new one in `folder`.
    pub(super) fn create_in(folder: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(MODE))
            .tempdir_in(folder)?;
        let lock = File::open(folder.path())?;
        // Where there are no locks, nobody will get this one either.
        let _ = lock.try_lock();
        let spool = Self { folder, lock };
        // Who may write beside it may have put a folder of his own in its place.
        let there = spool.lock.metadata()?;
        let own = tempfile::tempfile_in(spool.inside())?.metadata()?;
        if there.uid() != own.uid() || there.mode() & 0o777 != MODE {
            return Err(io::Error::other("somebody else took its place"));
        }
        Ok(spool)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A way to this folder, whatever becomes of its name: who may write beside it could take that for a folder of his
    /// own, and have root write and read there.
    pub(crate) fn inside(&self) -> PathBuf {
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.lock.as_raw_fd()));
        if open.exists() { open } else { self.path().to_owned() }
    }

    /// Removes what killed recordings of this user left beside this one; gives how many.
    pub(crate) fn sweep(&self) -> usize {
        let (Some(beside), Ok(own)) = (self.path().parent(), self.path().symlink_metadata()) else {
            return 0;
        };
        let Ok(entries) = fs::read_dir(beside) else { return 0 };
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
            .filter(|entry| remove_if_left(&entry.path(), &own))
            .count()
    }
}

/// Removes a spool that its recording left; `own` is one of this process.
fn remove_if_left(path: &Path, own: &Metadata) -> bool {
    let is_ours = |there: &Metadata| {
        there.is_dir()
            && there.uid() == own.uid()
            && there.mode() & 0o777 == MODE
            && there.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNGEST))
    };
    if !path.symlink_metadata().is_ok_and(|there| is_ours(&there)) {
        return false;
    }
    let Ok(lock) = File::open(path) else { return false };
    lock.try_lock().is_ok() && fs::remove_dir_all(path).is_ok()
}

const PREFIX: &str = ".tcpwhy-spool-";
const MODE: u32 = 0o700;
/// Ours: between making a folder and its lock lie microseconds.
const YOUNGEST: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// A spool of a recording that is gone, last changed so long ago.
    fn left(folder: &Path, name: &str, age_s: u64) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir(&path).expect("room");
        fs::set_permissions(&path, Permissions::from_mode(MODE)).expect("ours");
        fs::write(path.join("packets.pcapng"), "packets of others").expect("room");
        age(&path, age_s);
        path
    }

    fn age(path: &Path, age_s: u64) {
        let then = SystemTime::now() - Duration::from_secs(age_s);
        File::open(path).and_then(|folder| folder.set_modified(then)).expect("ours");
    }

    #[test]
    fn what_a_killed_recording_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = left(folder.path(), ".tcpwhy-spool-a", 3600);
        let spool = Spool::create_in(folder.path()).expect("room");
        assert_eq!(spool.sweep(), 1);
        assert!(!old.exists() && spool.path().exists());
        drop(spool);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn the_way_in_stays_where_another_folder_takes_the_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::create_in(folder.path()).expect("room");
        fs::rename(spool.path(), folder.path().join("moved")).expect("ours");
        fs::create_dir(spool.path()).expect("room");
        fs::write(spool.inside().join("packets.pcapng"), "packets").expect("room");
        assert!(folder.path().join("moved/packets.pcapng").exists());
        assert_eq!(fs::read_dir(spool.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn only_what_is_surely_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let living = Spool::create_in(folder.path()).expect("room");
        age(living.path(), 3600);
        let new = left(folder.path(), ".tcpwhy-spool-new", 5);
        let shared = left(folder.path(), ".tcpwhy-spool-shared", 3600);
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).expect("ours");
        let other = left(folder.path(), ".tcpwhy-other", 3600);
        let link = folder.path().join(".tcpwhy-spool-link");
        std::os::unix::fs::symlink(&other, &link).expect("a link");
        let spool = Spool::create_in(folder.path()).expect("room");
        assert_eq!(spool.sweep(), 0);
        for kept in [living.path(), &new, &shared, &other, &link] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }
}
