//! The file of a recording. It gets its name when it is whole: until then what had that name stays as it is.
//! `-` is standard output, which gets it when it is whole, too.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, IsTerminal as _, Seek as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{env, io};

use anyhow::{Context as _, bail};
use tempfile::NamedTempFile;

use crate::run_folder::Held;
use crate::whole::{folder_of, give_to_caller};

/// The file of a recording; removed unless it was kept.
pub(crate) struct Output {
    target: Target,
    /// Goes before the spool that it is in.
    file: NamedTempFile,
    spool: Held,
}

enum Target {
    File { path: PathBuf, force: bool },
    Stdout,
}

impl Output {
    /// Never writes over a file without being told to, and never over what is no file.
    pub(crate) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        let target = if is_stdout(path) {
            if io::stdout().is_terminal() {
                bail!(
                    "a recording is no text for a terminal: redirect standard output, or name a file with -o"
                );
            }
            Target::Stdout
        } else {
            refuse_what_is_there(path, force)?;
            Target::File { path: path.to_owned(), force }
        };
        let folder = match &target {
            Target::File { path, .. } => folder_of(path).to_owned(),
            Target::Stdout => env::temp_dir(),
        };
        let spool = Held::create_in(&folder, SPOOL).map_err(|error| no_room(&folder, &error))?;
        let file = tempfile::Builder::new()
            .prefix("recording-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(spool.inside())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { target, file, spool })
    }

    pub(crate) fn file(&self) -> anyhow::Result<File> {
        self.file.as_file().try_clone().context("no file descriptor is left")
    }

    /// Where packets wait that are not yet narrowed.
    pub(crate) const fn spool(&self) -> &Held {
        &self.spool
    }

    /// Gives it to whoever called sudo, and its name; or prints it.
    pub(crate) fn keep(self) -> anyhow::Result<()> {
        let Self { target, mut file, spool: _spool } = self;
        let Target::File { path, force } = target else {
            file.rewind().context("cannot read the recording again")?;
            return match io::copy(&mut file, &mut io::stdout().lock()) {
                // Whoever read it had enough.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                copied => copied.map(drop).context("cannot write to standard output"),
            };
        };
        give_to_caller(file.as_file());
        // Something else may have taken the name since.
        refuse_what_is_there(&path, force)?;
        let named = if force { file.persist(&path) } else { file.persist_noclobber(&path) };
        let named = named.map(drop).map_err(|error| error.error);
        named.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Why nothing can be written in `folder`, and what to try.
fn no_room(folder: &Path, error: &io::Error) -> anyhow::Error {
    let name = folder.display();
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("cannot write in {name}: there is no such folder"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            anyhow::anyhow!("cannot write in {name}: it is not allowed; name another place")
        }
        _ => anyhow::anyhow!("cannot make a folder for packets in {name}: {error}"),
    }
}

/// What the names of folders begin with in which packets wait.
pub(crate) const SPOOL: &str = ".tcpwhy-spool-";

/// Whether the recording is to be printed.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn refuse_what_is_there(path: &Path, force: bool) -> anyhow::Result<()> {
    let name = path.display();
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            bail!("cannot write {name}: something is there that is no regular file")
        }
        Ok(_) if !force => bail!(
            "cannot write {name}: {}; --force writes over it",
            io::Error::from(ErrorKind::AlreadyExists)
        ),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot write {name}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a file `old` that everybody may read.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let old = folder.path().join("old");
        fs::write(&old, "old").expect("a file");
        fs::set_permissions(&old, Permissions::from_mode(0o644)).expect("ours");
        (folder, old)
    }

    fn write(output: &Output) {
        output.file().expect("a file").write_all(b"new").expect("room");
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn an_old_file_is_lost_only_to_a_whole_new_one() {
        let (folder, old) = folder();
        let output = Output::create(&old, true).expect("may write");
        write(&output);
        drop(output);
        assert_eq!(fs::read_to_string(&old).expect("a file"), "old");
        assert_eq!(names(folder.path()), 1);

        let output = Output::create(&old, true).expect("may write");
        write(&output);
        output.keep().expect("renamed");
        assert_eq!(fs::read_to_string(&old).expect("a file"), "new");
        assert_eq!(old.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn without_force_nothing_is_written_over() {
        let (folder, old) = folder();
        assert!(Output::create(&old, false).is_err());
        let new = folder.path().join("new");
        let output = Output::create(&new, false).expect("may write");
        fs::write(&new, "another's").expect("room");
        assert!(output.keep().is_err(), "it came while the recording ran");
        assert_eq!(fs::read_to_string(&new).expect("a file"), "another's");
        assert_eq!(names(folder.path()), 2);
    }

    #[test]
    fn only_files_are_written_over() {
        let (folder, old) = folder();
        let link = folder.path().join("link");
        symlink(&old, &link).expect("a link");
        for path in [&link, folder.path(), Path::new("/dev/null")] {
            assert!(Output::create(path, true).is_err(), "{}", path.display());
        }
        let output = Output::create(&old, true).expect("may write");
        fs::rename(&link, &old).expect("swapped");
        symlink("/dev/null", &link).expect("a link");
        assert!(output.keep().is_err(), "it was swapped while the recording ran");
        assert!(old.is_symlink() && link.is_symlink());
    }
}
