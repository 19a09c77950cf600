//! From the report to the bytes on standard output.

use std::io::{self, BufWriter, ErrorKind, Write};

use tcpwhy::report::Report;
use tcpwhy::view;

use crate::options::{Form, Options};
use crate::page;
use crate::pager;

/// Writes the report in the form asked for to where it was asked for. A reader who has seen enough
/// (`| head`) is no error.
///
/// # Errors
/// Whatever else goes wrong, such as a full disk.
pub fn answer(report: &Report, options: &Options) -> io::Result<()> {
    let to: Box<dyn Write> = if options.on_stderr {
        Box::new(io::stderr().lock())
    } else {
        Box::new(io::stdout().lock())
    };
    if let Some(path) = &options.html {
        return unless_seen_enough(page::write(page::shown(report), path));
    }
    unless_seen_enough(match options.form {
        Form::Json { pretty } => json(report, pretty, to),
        Form::Html | Form::Tables => Ok(()),
        Form::Csv => text(&view::csv::render(report), to),
        Form::Summary => text(&view::summary::render(report), to),
        Form::Text { rounds, plot, full } => {
            let words = in_words(report, options, rounds, plot, full);
            if !options.on_stderr && pager::show(&words) { Ok(()) } else { text(&words, to) }
        }
    })
}

/// The report as text for people: the first screen, or all of it.
pub fn in_words(
    report: &Report,
    options: &Options,
    rounds: bool,
    plot: bool,
    full: bool,
) -> String {
    let (sort, top) = options.order();
    let (width, color, connection) = (options.width, options.color, options.connection);
    let options = view::Options { width, color, full, rounds, plot, top, sort, connection };
    view::render(report, &options)
}

/// Writes text to standard output, as [`answer`] does.
///
/// # Errors
/// It cannot be written.
pub fn print(words: &str) -> io::Result<()> {
    unless_seen_enough(text(words, io::stdout().lock()))
}

/// Writes an answer: text for people goes through the pager where it is longer than the terminal, JSON never.
///
/// # Errors
/// It cannot be written.
pub fn tell(answer: &str, is_json: bool) -> io::Result<()> {
    if !is_json && pager::show(answer) { Ok(()) } else { print(answer) }
}

/// Ends with a newline.
fn text(text: &str, mut to: impl Write) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// Written as it is made: of 100,000 connections it takes as much room as all that it is made from.
fn json(report: &Report, pretty: bool, to: impl Write) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(BUFFER, to);
    if pretty {
        serde_json::to_writer_pretty(&mut to, report)?;
    } else {
        serde_json::to_writer(&mut to, report)?;
    }
    to.write_all(b"\n")?;
    to.flush()
}

/// A reader who has seen enough is no error.
pub(crate) fn unless_seen_enough(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Bytes of JSON written at a time. Ours: not measured.
const BUFFER: usize = 1 << 18;
