//! What the commands answer, for a program that has tcpwhy inside, such as the Python module: they are asked in the words
//! of the command line, and nothing is printed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Parser;
use tcpwhy::report::Report;
use tcpwhy::session::{Cut, Joined};
use tcpwhy::tracker::Config;
#[cfg(feature = "tables")]
use tcpwhy::{answer, evidence};
#[cfg(feature = "tables")]
use tcpwhy_model::whatif::advise;
#[cfg(feature = "tables")]
use tcpwhy_tables::{Writer, Written};

use crate::cmd::{check, explain, predict, whatif};
use crate::commands::{Command, Flags};
use crate::exit::{Refused, Told};
use crate::options::{Options, OptionsError, Parquet, Surroundings};
use crate::read::{Input, Progress, SamePackets, Takes, by_first_packet, read_apart};
use crate::{page, tables};

/// An answer, and what is to be said beside it.
#[derive(Clone, Debug, Default)]
pub struct Asked<T> {
    /// The answer.
    pub answer: T,
    /// Such as that a capture was read only in part.
    pub remarks: Vec<String>,
}

/// Explains captures: `words` are those behind `tcpwhy explain`. Where `graphs` are wanted, what is drawn of packets is
/// kept. `tick` is called about twenty times a second; when `stop` becomes true, reading ends and the report covers
/// what was read up to then.
///
/// # Errors
/// The words make no sense, or nothing can be read.
pub fn explain(
    words: &[OsString],
    graphs: bool,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(Progress),
) -> Result<Asked<Report>, Refused> {
    let Command::Explain(flags) = parsed("explain", words)? else { return Err(other("explain")) };
    let around = Surroundings::default();
    let options = Options::check(&flags, &around).map_err(|error| match error {
        OptionsError::Open(ref all) => {
            let refused = Refused::unreadable(&error);
            let first = all.first().map(|unreadable| unreadable.name.as_str());
            first.map_or_else(|| refused.clone(), |name| refused.clone().about(name))
        }
        _ => Refused::usage(error),
    })?;
    with_remarks(|say| explain::asked(options, graphs, stop, tick, say))
}

/// Predicts by the model: `words` are those behind `tcpwhy predict`. The answer is JSON.
///
/// # Errors
/// The words make no sense.
pub fn predict(words: &[OsString]) -> Result<Asked<String>, Refused> {
    let words = [words, &["--json".into()]].concat();
    let Command::Predict(flags) = parsed("predict", &words)? else { return Err(other("predict")) };
    with_remarks(|say| predict::asked(&flags, say))
}

/// What a captured transfer would have taken otherwise: `words` are those behind `tcpwhy whatif`. The answer is JSON, or
/// with `--scenario` a scenario.
///
/// # Errors
/// The words make no sense, or the capture cannot be read.
pub fn whatif(words: &[OsString], stop: &AtomicBool) -> Result<Asked<String>, Refused> {
    let Asked { answer, remarks } = whatif_told(words, stop)?;
    Ok(Asked { answer: answer.json, remarks })
}

/// The same in both forms.
///
/// # Errors
/// The words make no sense, or the capture cannot be read.
pub fn whatif_told(words: &[OsString], stop: &AtomicBool) -> Result<Asked<Told>, Refused> {
    let Command::Whatif(flags) = parsed("whatif", words)? else { return Err(other("whatif")) };
    with_remarks(|say| whatif::asked(&flags, stop, say))
}

/// What is wrong with this host, or with those whose tools printed a text: `words` are those behind `tcpwhy check`. The
/// answers are JSON, one for each host.
///
/// # Errors
/// The words make no sense, or what they name cannot be read.
pub fn check(words: &[OsString]) -> Result<Vec<String>, Refused> {
    Ok(check_told(words)?.into_iter().map(|told| told.json).collect())
}

/// The same in both forms.
///
/// # Errors
/// The words make no sense, or what they name cannot be read.
pub fn check_told(words: &[OsString]) -> Result<Vec<Told>, Refused> {
    let Command::Check(flags) = parsed("check", words)? else { return Err(other("check")) };
    check::asked(&flags).map_err(|error| Refused::unreadable(format!("{error:#}")))
}

/// Writes the page for the browser that shows a report.
///
/// # Errors
/// The file cannot be written.
pub fn write_page(report: &Report, path: &Path) -> io::Result<()> {
    page::write(page::shown(report), path)
}

/// Writes a report as tables into a folder of Parquet files; what was written, in a sentence.
///
/// # Errors
/// A file cannot be written, or the host's name would be no folder's.
pub fn write_tables(
    report: &Report,
    folder: PathBuf,
    host: Option<String>,
) -> anyhow::Result<String> {
    let captures = report.captures.iter().map(|capture| Input::named(Path::new(&capture.source)));
    let parquet = Parquet { folder, host, captures: captures.collect(), segments: false };
    tables::write(report, &parquet, &[], &AtomicBool::new(false))
}

/// The places of captures in the order in which they were begun.
///
/// # Errors
/// The places of two that hold the same packets, which are no parts of one capture.
pub fn in_order(paths: &[PathBuf]) -> Result<Vec<usize>, SamePackets> {
    let named = |path: &PathBuf| Input::named(path);
    let ordered = by_first_packet(paths.iter().map(named).collect())?;
    let place = |input: &Input| paths.iter().position(|path| *input == named(path));
    Ok(ordered.iter().filter_map(place).collect())
}

/// Reads a capture for an analysis elsewhere: hands on its pieces; what it holds beside them.
pub fn cut(path: &Path, stop: &AtomicBool, take: &mut Takes<'_>) -> Cut {
    read_apart(&Input::named(path), stop, take)
}

/// A run over captures that were cut.
pub fn joined() -> Joined {
    Joined::new(Config { predicts: true, ..Config::default() })
}

/// Writes the tables of captures that were cut, as [`write_tables`] does under the name of this `run`.
///
/// # Errors
/// A file cannot be written, or a name would be no folder's.
#[cfg(feature = "tables")]
pub fn write_joined(
    joined: Joined,
    folder: &Path,
    run: &str,
    host: Option<&str>,
) -> anyhow::Result<Written> {
    let mut report = joined.finish();
    evidence::apply(&mut report, &[]);
    advise(&mut report);
    answer::fill(&mut report);
    let mut writer = Writer::begin(folder, run, host)?;
    writer.push(&report.connections)?;
    Ok(writer.finish()?)
}

/// The flags of a command.
fn parsed(command: &str, words: &[OsString]) -> Result<Command, Refused> {
    let first = ["tcpwhy", command].map(OsString::from);
    let flags = Flags::try_parse_from(first.iter().chain(words)).map_err(Refused::usage)?;
    flags.command.ok_or_else(|| other(command))
}

/// The parser took another command than the one that was named; it cannot.
fn other(command: &str) -> Refused {
    Refused::usage(format!("these are no words of `tcpwhy {command}`"))
}

fn with_remarks<T>(
    ask: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T, Refused>,
) -> Result<Asked<T>, Refused> {
    let mut remarks = Vec::new();
    let answer = ask(&mut |remark| remarks.push(remark.to_owned()))?;
    Ok(Asked { answer, remarks })
}
