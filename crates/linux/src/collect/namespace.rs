//! Network namespaces: to look at another than one's own, and to know whose settings one sees.
//!
//! Settings, counters and sockets are those of the namespace that the asking thread is in. Whoever enters
//! another does so in a thread of its own, which ends there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, fs, thread};

use tcpwhy::host::snapshot::{Settings, Snapshot, Source};

use super::blind::{Blind, shown};
use super::{settings, sys};
use crate::sys::enter_network;

/// A network namespace, as people name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Netns {
    /// Of `ip netns`.
    Name(String),
    /// That of a process.
    Pid(u32),
    /// A file.
    Path(PathBuf),
}

impl Netns {
    /// A number is a process, what has a slash is a file, and all else a name.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(pid) => Self::Pid(pid),
            Err(_) if text.contains('/') || matches!(text, "" | "." | "..") => {
                Self::Path(PathBuf::from(text))
            }
            Err(_) => Self::Name(text.to_owned()),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Name(name) => Path::new("/run/netns").join(name),
            Self::Pid(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
            Self::Path(path) => path.clone(),
        }
    }
}

impl fmt::Display for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Pid(pid) => pid.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// Why a namespace cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// What was named cannot be opened.
    #[error("{}", not_opened(.netns, .error, sys::is_root()))]
    Open {
        /// As it was named.
        netns: Netns,
        /// What the system says; the words above hold it.
        error: io::Error,
    },
    /// It cannot be entered.
    #[error("{}", not_entered(.netns, .error, sys::is_root()))]
    Enter {
        /// As it was named.
        netns: Netns,
        /// What the system says; the words above hold it.
        error: io::Error,
    },
}

fn not_opened(netns: &Netns, error: &io::Error, is_root: bool) -> String {
    let (name, file) = (shown_of(&netns.to_string()), shown_of(&netns.path().to_string_lossy()));
    match (error.kind(), netns) {
        (ErrorKind::NotFound, Netns::Name(_)) => format!(
            "there is no network namespace {name}: `ip netns` lists those with a name; of a container give the \
             number of one of its processes"
        ),
        (ErrorKind::NotFound, Netns::Pid(_)) if is_root => {
            format!("there is no process {name}, or it has just ended: `ps -e` lists processes")
        }
        (ErrorKind::NotFound, Netns::Pid(_)) => format!(
            "no process {name} is to be seen: it has ended, or /proc hides those of others (then run as root)"
        ),
        (ErrorKind::NotFound, Netns::Path(_)) => {
            format!("there is no file `{file}` that could be a network namespace")
        }
        (ErrorKind::PermissionDenied, _) if is_root => format!(
            "may not open {file}: {error}; this root lacks CAP_SYS_PTRACE or CAP_DAC_READ_SEARCH there, as in a \
             container: run it on the host itself"
        ),
        (ErrorKind::PermissionDenied, Netns::Pid(_)) => format!(
            "may not open {file}: {error}; run as root, as the user of that process, or grant CAP_SYS_PTRACE"
        ),
        (ErrorKind::PermissionDenied, _) => {
            format!("may not open {file}: {error}; run as root, or as whoever may read it")
        }
        _ => format!("cannot open {file}: {error}"),
    }
}

/// setns(2): EINVAL for what is no network namespace, EPERM for who lacks `CAP_SYS_ADMIN` in it.
fn not_entered(netns: &Netns, error: &io::Error, is_root: bool) -> String {
    let file = shown_of(&netns.path().to_string_lossy());
    match (error.raw_os_error(), netns) {
        (Some(libc::EINVAL), Netns::Name(name)) => format!(
            "{file} is there and is no network namespace, as the machine's crash or a failed `ip netns add` leaves \
             it: try `ip netns delete {}`, then add it again",
            shown_of(name)
        ),
        (Some(libc::EINVAL), _) => format!(
            "{file} is no network namespace: give a name of `ip netns`, a process's number, or a file such as \
             /proc/PID/ns/net"
        ),
        (Some(libc::EPERM), _) if is_root => format!(
            "may not enter the network namespace {file}: {error}; this root lacks CAP_SYS_ADMIN there, as in a \
             container: run it on the host itself"
        ),
        (Some(libc::EPERM), _) => format!(
            "may not enter the network namespace {file}: {error}; run as root, or grant CAP_SYS_ADMIN"
        ),
        _ => format!("cannot enter the network namespace {file}: {error}"),
    }
}

fn shown_of(name: &str) -> String {
    shown(name.as_bytes())
}

/// Does something inside a namespace, in a thread of its own.
pub(crate) fn within<T: Send>(
    netns: &Netns,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NetnsError> {
    // A named pipe would wait for its writer.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(netns.path());
    let file = opened.map_err(|error| NetnsError::Open { netns: netns.clone(), error })?;
    thread::scope(|scope| {
        let inside = scope.spawn(move || enter_network(file.as_fd()).map(|()| work()));
        match inside.join() {
            Ok(done) => done.map_err(|error| NetnsError::Enter { netns: netns.clone(), error }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Whether settings of the whole host are at home here: only the first namespace has them
/// (`net_core_table`, Linux `net/core/sysctl_net_core.c`). `None` where nothing was seen.
pub(super) fn is_initial(settings: Option<&Settings>) -> Option<bool> {
    let settings = settings?;
    let has = |key: &str| settings.values.contains_key(key) || settings.unread.contains(key);
    // Without this one not even the folder was seen.
    has("net.core.somaxconn").then(|| has("net.core.netdev_max_backlog"))
}

/// The settings of this thread's namespace, if it is the first.
pub(super) fn settings_of_host() -> Option<BTreeMap<String, String>> {
    let settings = settings::settings(&mut Blind::default())?;
    (is_initial(Some(&settings)) == Some(true)).then_some(settings.values)
}

/// How it is called among what was not seen.
pub(super) const OF_PROCESS_1: &str = "the namespace of process 1";

/// What the namespace of process 1 is set to, if this thread is in another.
pub(super) fn of_process_1(
    snapshot: &Snapshot,
    blind: &mut Blind,
) -> Option<BTreeMap<String, String>> {
    if snapshot.initial_netns == Some(true) {
        return None;
    }
    let number = |path: &str| fs::metadata(path).map(|file| file.st_ino());
    let refused = |blind: &mut Blind, error: &io::Error| {
        blind.refused(Source::Settings, Some(OF_PROCESS_1), error);
    };
    match number("/proc/1/ns/net")
        .and_then(|first| Ok(first == number("/proc/thread-self/ns/net")?))
    {
        Ok(true) => return None,
        Ok(false) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            refused(blind, &error);
            return None;
        }
    }
    match within(&Netns::Pid(1), || settings::settings(&mut Blind::default())) {
        Ok(settings) => settings.map(|settings| settings.values),
        Err(NetnsError::Open { error, .. } | NetnsError::Enter { error, .. }) => {
            refused(blind, &error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_files() {
        assert_eq!(Netns::parse("7"), Netns::Pid(7));
        assert_eq!(Netns::parse("blue"), Netns::Name("blue".to_owned()));
        assert_eq!(Netns::parse("/run/x"), Netns::Path("/run/x".into()));
    }

    fn error_of(netns: &str) -> String {
        within(&Netns::parse(netns), || ()).expect_err("no namespace").to_string()
    }

    #[test]
    fn one_that_is_not_there_is_named() {
        let told = error_of("no such");
        assert!(told.starts_with("there is no network namespace no such: `ip netns`"), "{told}");
        assert!(error_of("/no/such").starts_with("there is no file `/no/such` "));
        // Above PID_MAX_LIMIT, `include/linux/threads.h`.
        assert!(error_of("4194305").contains("process 4194305"));
        assert!(error_of("/no\u{1b}[2J").contains(r"/no\u{1b}[2J"), "shown on one line");
    }

    #[test]
    fn what_is_no_namespace_is_called_so_whoever_asks() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("room");
        for other in [file.as_path(), folder.path(), Path::new("/proc/self/ns/mnt")] {
            let told = error_of(&other.display().to_string());
            let start = format!("{} is no network namespace: give ", other.display());
            assert!(told.starts_with(&start), "{told}");
        }
    }

    #[test]
    fn who_is_refused_is_told_what_it_lacks() {
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        let [process, file] = ["7", "/run/netns/blue"].map(Netns::parse);
        for netns in [&process, &file] {
            for is_root in [false, true] {
                let told = not_opened(netns, &denied, is_root);
                assert!(told.starts_with("may not open "), "it exists: {told}");
                assert_eq!(told.contains("run as root"), !is_root, "{told}");
                let not_permitted = io::Error::from_raw_os_error(libc::EPERM);
                let told = not_entered(netns, &not_permitted, is_root);
                assert!(told.starts_with("may not enter ") && told.contains("CAP_SYS_ADMIN"));
                assert_eq!(told.contains("run as root"), !is_root, "{told}");
            }
        }
        let gone = io::Error::from_raw_os_error(libc::EINVAL);
        let told = not_entered(&Netns::parse("blue"), &gone, true);
        assert!(told.contains("try `ip netns delete blue`"), "{told}");
    }

    #[test]
    fn settings_of_the_whole_host_are_in_the_first_namespace_only() {
        let with = |keys: &[&str]| Settings {
            values: keys.iter().map(|key| ((*key).to_owned(), String::new())).collect(),
            ..Settings::default()
        };
        let told = |keys: &[&str]| is_initial(Some(&with(keys)));
        assert_eq!(told(&["net.core.somaxconn", "net.core.netdev_max_backlog"]), Some(true));
        assert_eq!(told(&["net.core.somaxconn"]), Some(false));
        assert_eq!((told(&[]), is_initial(None)), (None, None));
    }
}
