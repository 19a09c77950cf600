//! Who has the answers: the commands, asked in their own words.
//!
//! The report of the capture that was asked about last is kept, for questions about one capture follow each other.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::MemfdFlags;
use tcpwhy::manual;
use tcpwhy::report::{Connection, Report};
use tcpwhy::view::{self, Options, Sort};
use tcpwhy_mcp::{
    Account, Answer, Answers, Changes, Checked, Explained, Found, Frames, Opened, Page, Refused,
    Said,
};

use super::{facts, frames};
use crate::ask::{self, Asked};
use crate::exit;

/// Connections that `explain` lists; as the command's table has it.
const LISTED: usize = 10;

/// Columns of an answer's text; as where there is no terminal.
const COLUMNS: usize = 100;

/// Answers by what the commands answer.
#[derive(Default)]
pub struct Teller {
    last: Mutex<Option<(Key, Arc<Read>)>>,
}

/// What tells whether a file is the one that was read: its device and number, length, and when it was changed.
type Key = (u64, u64, u64, [i64; 4]);

/// A capture that was read.
struct Read {
    report: Report,
    /// Numbers of its connections: those that failed, then those that waited longest.
    worst: Vec<u64>,
    remarks: Vec<String>,
}

impl Read {
    /// What the words behind `tcpwhy explain` give of a file.
    fn of(file: &Opened, words: &[String], stop: &AtomicBool) -> Result<Self, Refused> {
        let words = words.iter().map(OsString::from).chain([file.path().into()]);
        let words: Vec<OsString> = [OsString::from("--json")].into_iter().chain(words).collect();
        let asked = ask::explain(&words, false, stop, &mut |_| {});
        let Asked { answer: mut report, remarks } = asked.map_err(|why| named(file, &why))?;
        if stop.load(Ordering::Relaxed) {
            return Err(Refused("the question was cancelled".to_owned()));
        }
        for capture in &mut report.captures {
            file.name().clone_into(&mut capture.source);
        }
        view::keep_first(&mut report, Sort::Worst, usize::MAX);
        report.connections.sort_by_key(|each| each.failure.is_none());
        let worst = report.connections.iter().map(|each| each.id).collect();
        view::keep_first(&mut report, Sort::Start, usize::MAX);
        let remarks = remarks.iter().map(|remark| with_name(file, remark)).collect();
        Ok(Self { report, worst, remarks })
    }

    /// The connection of that number, else the one with most data.
    fn connection(&self, number: Option<u64>) -> Result<&Connection, Refused> {
        let all = &self.report.connections;
        let Some(number) = number else {
            let most = all.iter().rev().max_by_key(|each| each.bytes());
            return most.ok_or_else(|| Refused("the capture holds no connection".to_owned()));
        };
        all.iter().find(|each| each.id == number).ok_or_else(|| {
            let ids = || all.iter().map(|each| each.id);
            Refused(match (ids().min(), ids().max()) {
                (Some(first), Some(last)) if first < last => {
                    format!("there is no connection {number}: they are numbered {first} to {last}")
                }
                (Some(only), _) => {
                    format!("there is no connection {number}: the only one has number {only}")
                }
                _ => "the capture holds no connection".to_owned(),
            })
        })
    }

    fn answer<T>(&self, text: String, facts: T) -> Answer<T> {
        Answer { text, facts, remarks: self.remarks.clone() }
    }
}

/// A sentence about a file under the name that was asked for.
fn with_name(file: &Opened, sentence: &str) -> String {
    sentence.replace(&file.path().display().to_string(), file.name())
}

fn named(file: &Opened, refused: &exit::Refused) -> Refused {
    Refused(with_name(file, &refused.why))
}

impl Teller {
    /// The whole capture, read again only where it is another than last time.
    fn read(&self, file: &Opened, stop: &AtomicBool) -> Result<Arc<Read>, Refused> {
        let key = key(file.file()).ok();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((of, read)), Some(key)) = (&*last, &key)
            && of == key
        {
            return Ok(Arc::clone(read));
        }
        // Two of them need not be held at once.
        *last = None;
        let read = Arc::new(Read::of(file, &[], stop)?);
        *last = key.map(|key| (key, Arc::clone(&read)));
        Ok(read)
    }
}

fn key(file: &File) -> io::Result<Key> {
    let is = file.metadata()?;
    Ok((is.dev(), is.ino(), is.len(), [is.mtime(), is.mtime_nsec(), is.ctime(), is.ctime_nsec()]))
}

fn options(full: bool, connection: Option<u64>) -> Options {
    Options { width: COLUMNS, full, top: LISTED, connection, ..Options::default() }
}

impl Answers for Teller {
    fn explain(&self, file: &Opened, filter: Option<&str>, stop: &AtomicBool) -> Said<Explained> {
        let read = match filter {
            None => self.read(file, stop)?,
            Some(filter) => Arc::new(Read::of(file, &[format!("--filter={filter}")], stop)?),
        };
        let text = view::render(&read.report, &options(false, None));
        let facts = facts::explained(file.name(), &read.report, read.worst.iter().take(LISTED));
        Ok(read.answer(text, facts))
    }

    fn connection(&self, file: &Opened, number: Option<u64>, stop: &AtomicBool) -> Said<Account> {
        let read = self.read(file, stop)?;
        let connection = read.connection(number)?;
        let text = view::render(&read.report, &options(true, Some(connection.id)));
        Ok(read.answer(text, facts::account(connection)))
    }

    fn finding(
        &self,
        file: &Opened,
        number: Option<u64>,
        code: &str,
        stop: &AtomicBool,
    ) -> Said<Found> {
        let read = self.read(file, stop)?;
        let connection = read.connection(number);
        let here = connection.as_ref().ok().copied();
        let of_it = here.into_iter().flat_map(|connection| &connection.findings);
        let with_code = |findings: &mut dyn Iterator<Item = &tcpwhy::report::Finding>| {
            findings
                .filter(|each| each.code.eq_ignore_ascii_case(code))
                .map(facts::opinion)
                .collect()
        };
        let mut found = Found {
            connection: here.map(|connection| connection.id),
            findings: with_code(&mut of_it.clone()),
        };
        if found.findings.is_empty() {
            found =
                Found { connection: None, findings: with_code(&mut read.report.findings.iter()) };
        }
        if found.findings.is_empty() {
            let connection = connection?;
            let mut codes: Vec<&str> = of_it.map(|each| &*each.code).collect();
            codes.dedup();
            let codes = if codes.is_empty() { "nothing".to_owned() } else { codes.join(", ") };
            return Err(Refused(format!(
                "{code} was not found of connection {}: what was found is {codes}",
                connection.id
            )));
        }
        Ok(read.answer(facts::in_words(&found), found))
    }

    fn frames(
        &self,
        file: &Opened,
        number: Option<u64>,
        from: u64,
        most: usize,
        stop: &AtomicBool,
    ) -> Said<Frames> {
        let read = self.read(file, stop)?;
        let connection = read.connection(number)?;
        let found = frames::listed(file, connection, from, most, stop)?;
        Ok(read.answer(frames::in_words(&found, connection), found))
    }

    fn whatif(
        &self,
        file: &Opened,
        number: Option<u64>,
        set: &[String],
        stop: &AtomicBool,
    ) -> Said<Changes> {
        let number = number.map(|number| format!("--connection={number}").into());
        let set = set.iter().map(|set| format!("--set={set}").into());
        let words: Vec<OsString> =
            number.into_iter().chain(set).chain([file.path().into()]).collect();
        let asked = ask::whatif_told(&words, stop).map_err(|why| named(file, &why))?;
        let told = asked.answer;
        let remarks = asked.remarks.iter().map(|remark| with_name(file, remark)).collect();
        Ok(Answer { text: told.text, facts: facts::changes(&told.json)?, remarks })
    }

    fn check(&self, text: Option<&str>, seconds: u64) -> Said<Checked> {
        let pasted = text.map(held).transpose();
        let pasted =
            pasted.map_err(|error| Refused(format!("there is no room for the text: {error}")))?;
        let (word, path) = match &pasted {
            Some(file) => {
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                (path.clone(), Some(path))
            }
            None => (format!("--for={seconds}s"), None),
        };
        let named = |said: &str| {
            path.as_ref().map_or_else(|| said.to_owned(), |path| said.replace(path, "the text"))
        };
        let told = ask::check_told(&[word.into()]).map_err(|why| Refused(named(&why.why)))?;
        let texts: Vec<String> = told.iter().map(|told| named(&told.text)).collect();
        let hosts = told.iter().map(|told| facts::object(&named(&told.json)));
        let facts = Checked { hosts: hosts.collect::<Result<_, _>>()? };
        Ok(Answer { text: texts.join("\n"), facts, remarks: Vec::new() })
    }

    fn doc(&self, word: &str) -> Said<Page> {
        let pages = manual::look_up(word);
        if pages.is_empty() {
            let near = manual::meant(word).join(", ");
            let meant =
                if near.is_empty() { String::new() } else { format!("; did you mean {near}?") };
            return Err(Refused(format!("nothing is known of '{word}'{meant}")));
        }
        let set: Vec<String> = pages.iter().map(|page| manual::set(page, COLUMNS)).collect();
        let titles = pages.iter().map(|page| page.title.to_owned()).collect();
        Ok(Answer { text: set.join("\n"), facts: Page { titles }, remarks: Vec::new() })
    }
}

/// A file without a name that holds a text.
fn held(text: &str) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("text", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}
