//! Network namespaces: to look at another than one's own, and to know whose settings one sees.
//!
//! Settings, counters and sockets are those of the namespace that the asking thread is in. Whoever enters
//! another does so in a thread of its own, which ends there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, fs, thread};

use tcpwhy::host::snapshot::{Settings, Snapshot, Source};

use super::blind::Blind;
use super::{settings, sys};

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
            Err(_) if text.contains('/') => Self::Path(PathBuf::from(text)),
            Err(_) => Self::Name(text.to_owned()),
        }
    }

    fn path(&self) -> PathBuf {
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
    /// There is none of this name.
    #[error(
        "no network namespace {netns}: {source}; names are those of `ip netns`, numbers are processes"
    )]
    Open {
        /// As it was named.
        netns: Netns,
        /// What the system says.
        source: io::Error,
    },
    /// It cannot be entered.
    #[error(
        "cannot enter the network namespace {netns}: {source}; run as root, or grant CAP_SYS_ADMIN"
    )]
    Enter {
        /// As it was named.
        netns: Netns,
        /// What the system says.
        source: io::Error,
    },
}

/// Does something inside a namespace, in a thread of its own.
pub(super) fn within<T: Send>(
    netns: &Netns,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NetnsError> {
    let file = File::open(netns.path())
        .map_err(|source| NetnsError::Open { netns: netns.clone(), source })?;
    thread::scope(|scope| {
        let inside = scope.spawn(move || sys::enter_network(file.as_fd()).map(|()| work()));
        match inside.join() {
            Ok(done) => done.map_err(|source| NetnsError::Enter { netns: netns.clone(), source }),
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
        Err(NetnsError::Open { source, .. } | NetnsError::Enter { source, .. }) => {
            refused(blind, &source);
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

    #[test]
    fn one_that_is_not_there_is_named() {
        let error = within(&Netns::Name("no such".to_owned()), || ()).expect_err("not there");
        assert!(error.to_string().starts_with("no network namespace no such: "), "{error}");
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
