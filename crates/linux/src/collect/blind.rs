//! What could not be seen, and why.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

pub(super) use tcpwhy::host::shown;
use tcpwhy::host::snapshot::{Source, Unseen};

use crate::netlink::Answer;

/// What could not be seen, gathered on the way.
#[derive(Debug, Default)]
pub(crate) struct Blind(Vec<Unseen>);

impl Blind {
    /// All of it.
    pub(crate) fn into_unseen(self) -> Vec<Unseen> {
        self.0
    }

    /// Something was not seen, for this reason.
    pub(super) fn say(&mut self, source: Source, of: Option<&str>, why: impl Into<String>) {
        self.add(source, of, why.into(), None);
    }

    /// The same, and what would have to be granted or done to see it.
    pub(super) fn say_with(
        &mut self,
        source: Source,
        of: Option<&str>,
        why: impl Into<String>,
        grant: &str,
    ) {
        self.add(source, of, why.into(), Some(grant));
    }

    /// Something was refused; what is to be granted follows from what it is.
    pub(super) fn refused(&mut self, source: Source, of: Option<&str>, error: &io::Error) {
        let grant = match error.kind() {
            ErrorKind::PermissionDenied => Some(right_to_see(source)),
            _ => None,
        };
        self.add(source, of, error.to_string(), grant);
    }

    /// Says so if a list of the kernel's is not whole.
    pub(super) fn unless_whole(&mut self, source: Source, answer: Answer) {
        match answer {
            Answer::Whole => {}
            Answer::Interrupted => self.say(
                source,
                None,
                "it changed each time while it was listed: something may be missing or there twice",
            ),
            Answer::Cut => self.say(source, None, "the kernel's list was cut: a part is missing"),
        }
    }

    /// A small file; `None`, and a word why, if it cannot be read.
    pub(super) fn file(&mut self, source: Source, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        match read(path) {
            Ok(text) => self.unless_empty(source, path, text),
            Err(error) => {
                self.refused(source, Some(&path.to_string_lossy()), &error);
                None
            }
        }
    }

    /// The same where its absence means that there is no such thing here.
    pub(super) fn file_if_there(
        &mut self,
        source: Source,
        path: impl AsRef<Path>,
    ) -> Option<String> {
        let path = path.as_ref();
        match read(path) {
            Ok(text) => self.unless_empty(source, path, text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                self.refused(source, Some(&path.to_string_lossy()), &error);
                None
            }
        }
    }

    /// Every file of the kernel's that is asked for says something: one without a word was put over it, as container
    /// engines mask files with `/dev/null`.
    fn unless_empty(&mut self, source: Source, path: &Path, text: String) -> Option<String> {
        if !text.trim().is_empty() {
            return Some(text);
        }
        let why = "it is empty, which the kernel's is not: something hides it";
        self.say_with(source, Some(&path.to_string_lossy()), why, "look outside of the container");
        None
    }

    fn add(&mut self, source: Source, of: Option<&str>, why: String, grant: Option<&str>) {
        let unseen = Unseen {
            source: source.name().to_owned(),
            of: of.map(|of| shown(of.as_bytes())),
            why,
            grant: grant.map(str::to_owned),
        };
        if self.0.len() < MOST && !self.0.contains(&unseen) {
            self.0.push(unseen);
        }
    }
}

/// A small file as text.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_FILE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|odd| shown_lines(odd.as_bytes())))
}

/// A whole file of strangers as text, which keeps its lines and tabs.
fn shown_lines(bytes: &[u8]) -> String {
    let line = |line: &[u8]| {
        let words = line.split(|&byte| byte == b'\t').map(shown).collect::<Vec<_>>();
        words.join("\t")
    };
    bytes.split(|&byte| byte == b'\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A name that the kernel ends by a zero.
pub(crate) fn name(value: &[u8]) -> String {
    shown(value.split(|&byte| byte == 0).next().unwrap_or_default())
}

const fn right_to_see(source: Source) -> &'static str {
    match source {
        Source::Processes => "run as root, or grant CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
        Source::Locks => "run as root, or grant CAP_SYS_PTRACE",
        Source::Ethtool | Source::TcpMetrics | Source::Links | Source::Qdiscs => {
            "run as root, or grant CAP_NET_ADMIN"
        }
        _ => "run as root",
    }
}

/// Ours: whoever cannot see a thousand things will not miss the next.
const MOST: usize = 1000;

/// Ours: `/proc/interrupts` of 1,000 processors and 10,000 interrupts is 110 MB, and nobody has those;
/// of 256 and 4,000 it is 11 MB.
const LONGEST_FILE: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_its_zero() {
        assert_eq!(name(b"lo\0rest"), "lo");
    }

    #[test]
    fn a_file_without_a_word_was_not_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("snmp");
        let seen = |text: &str| {
            std::fs::write(&path, text).expect("room");
            let mut blind = Blind::default();
            let read =
                [blind.file(Source::Counters, &path), blind.file_if_there(Source::Counters, &path)];
            (read.map(|text| text.is_some()), blind.into_unseen().len())
        };
        assert_eq!(seen(""), ([false, false], 1));
        assert_eq!(seen("\n"), ([false, false], 1));
        assert_eq!(seen("0\n"), ([true, true], 0));
    }

    #[test]
    fn the_same_is_said_once() {
        let mut blind = Blind::default();
        let denied = io::Error::from(ErrorKind::PermissionDenied);
        blind.refused(Source::Locks, None, &denied);
        blind.refused(Source::Locks, None, &denied);
        blind.refused(Source::Counters, Some("x\n"), &io::Error::from(ErrorKind::NotFound));
        let [locks, counters] = blind.into_unseen().try_into().expect("two");
        assert_eq!((locks.source.as_str(), locks.grant.is_some()), ("socket options", true));
        assert_eq!((counters.of.as_deref(), counters.grant), (Some(r"x\n"), None));
    }
}
