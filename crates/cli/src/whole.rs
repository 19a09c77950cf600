//! Files that get their name when they are whole: a full disk or an interruption leaves what had that name before.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::{env, process};

use anyhow::bail;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

/// Writes a file, over one that is there. What is no regular file (a pipe, a terminal) cannot be renamed over, and
/// is written to as it is.
///
/// # Errors
/// It cannot be written, or `content` failed.
pub(crate) fn write<E: From<io::Error>>(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(target) = renamed_over(path)? else {
        let file = File::options().write(true).open(path)?;
        return filled(&file, content);
    };
    let beside = beside(&target)?;
    filled(beside.as_file(), content)?;
    match fs::metadata(&target) {
        Ok(old) => stand_in_for(&old, beside.as_file())?,
        Err(_) => give_to_caller(beside.as_file()),
    }
    beside.as_file().sync_all()?;
    beside.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a file where none is.
///
/// # Errors
/// Something has that name, or it cannot be written.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = beside(path)?;
    beside.write_all(bytes)?;
    give_to_caller(beside.as_file());
    beside.as_file().sync_all()?;
    beside.persist_noclobber(path).map(drop).map_err(|error| error.error)
}

/// Whether [`write`] could begin, which leaves nothing behind.
///
/// # Errors
/// It could not.
pub(crate) fn may_write(path: &Path) -> io::Result<()> {
    renamed_over(path)?.map_or(Ok(()), |target| beside(&target).map(drop))
}

/// Refuses to write over a file without being told to, and to follow another user's link: who may write in a folder
/// could have root write where he may not.
///
/// # Errors
/// It is refused; the sentence says why and what to try.
pub(crate) fn may_replace(path: &Path, force: bool) -> anyhow::Result<()> {
    let name = path.display();
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if there.is_symlink() && ![0, geteuid().as_raw()].contains(&there.uid()) {
        bail!("cannot write {name}: it is another user's link; name another place");
    }
    if !force && fs::metadata(path).is_ok_and(|there| there.is_file()) {
        bail!("cannot write {name}: it is there already; --force writes over it");
    }
    Ok(())
}

/// Gives a file to whoever called sudo; without the right to do so it stays whose it is.
pub(crate) fn give_to_caller(file: &File) {
    let id = |name| env::var(name).ok()?.parse().ok();
    if let (Some(user), Some(group)) = (id("SUDO_UID"), id("SUDO_GID")) {
        let _ = fchown(file, Some(user), Some(group));
    }
}

/// The folder in which `path` is.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

/// The file that a new one takes the place of, links followed; `None` for what is no regular file.
fn renamed_over(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => Ok(None),
        Ok(_) => {
            // What may not be written to must not be replaced either.
            File::options().append(true).open(path)?;
            path.canonicalize().map(Some)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(path.to_owned())),
        Err(error) => Err(error),
    }
}

/// Hidden, and named for whose it is, should it be left over.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = format!(".tcpwhy-{}-", process::id());
    // open(2) takes away from these what the caller's umask says.
    let mode = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(&prefix).permissions(mode).tempfile_in(folder_of(path))
}

fn filled<E: From<io::Error>>(
    file: &File,
    content: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = BufWriter::new(file);
    content(&mut writer)?;
    writer.flush()?;
    Ok(())
}

fn stand_in_for(old: &fs::Metadata, file: &File) -> io::Result<()> {
    // Whoever may not give files away keeps what is in its own.
    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn old() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let old = folder.path().join("old");
        fs::write(&old, "old").expect("room");
        (folder, old)
    }

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write(path, |file| file.write_all(text.as_bytes()))
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn what_fails_midway_leaves_the_old_file_and_nothing_else() {
        let (folder, old) = old();
        let failed = write(&old, |file| {
            file.write_all(b"ne")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
        assert_eq!((text(&old).as_str(), names(folder.path())), ("old", 1));
        may_write(&old).expect("it is ours");
        assert_eq!((text(&old).as_str(), names(folder.path())), ("old", 1), "asked, not written");
        put(&old, "new").expect("room");
        assert_eq!((text(&old).as_str(), names(folder.path())), ("new", 1));
    }

    #[test]
    fn a_new_file_keeps_the_mode_of_the_old_one_and_its_links() {
        let (folder, old) = old();
        fs::set_permissions(&old, Permissions::from_mode(0o640)).expect("ours");
        let link = folder.path().join("link");
        symlink(&old, &link).expect("a link");
        put(&link, "new").expect("room");
        assert!(link.is_symlink());
        assert_eq!(text(&old), "new");
        assert_eq!(old.metadata().expect("a file").mode() & 0o7777, 0o640);
        let fresh = folder.path().join("fresh");
        put(&fresh, "new").expect("room");
        let other = folder.path().join("other");
        File::create(&other).expect("room");
        let mode = |path: &Path| path.metadata().expect("a file").mode();
        assert_eq!(mode(&fresh), mode(&other), "as files are made here");
    }

    #[test]
    fn what_is_no_file_is_written_to_and_a_folder_is_refused() {
        let (folder, _) = old();
        put(Path::new("/dev/null"), "gone").expect("it takes everything");
        assert!(!Path::new("/dev/null").is_file());
        let full = put(Path::new("/dev/full"), "text").map_err(|error| error.kind());
        assert_eq!(full, Err(io::ErrorKind::StorageFull));
        assert!(put(folder.path(), "text").is_err() && may_write(folder.path()).is_err());
        assert!(may_write(&folder.path().join("none/file")).is_err());
    }

    #[test]
    fn a_file_is_replaced_when_told_and_a_strangers_link_never_followed() {
        let (folder, old) = old();
        let why = may_replace(&old, false).expect_err("it is there").to_string();
        assert!(why.contains("--force"), "{why}");
        may_replace(&old, true).expect("told to");
        may_replace(&folder.path().join("fresh"), false).expect("nothing is there");
        may_replace(Path::new("/dev/null"), false).expect("nothing is lost");
        let link = folder.path().join("link");
        symlink(folder.path().join("nowhere"), &link).expect("a link");
        may_replace(&link, false).expect("our own");
        // Root alone can make a link that is not its own.
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_ok() {
            let why = may_replace(&link, true).expect_err("another's").to_string();
            assert!(why.contains("another user's link"), "{why}");
        }
    }

    #[test]
    fn a_file_that_must_be_new_is_written_over_nothing() {
        let (folder, old) = old();
        assert!(write_new(&old, b"new").is_err());
        assert_eq!((text(&old).as_str(), names(folder.path())), ("old", 1));
        let fresh = folder.path().join("fresh");
        write_new(&fresh, b"new").expect("room");
        assert_eq!(text(&fresh), "new");
    }
}
