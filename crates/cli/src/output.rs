//! From the report to the bytes on standard output.

use std::io::{self, ErrorKind, Write};

use tcpwhy::report::Report;
use tcpwhy::view;

use crate::options::{Form, Options};

/// The report in the form asked for; ends with a newline.
pub fn rendered(report: &Report, options: &Options) -> String {
    let mut text = match options.form {
        Form::Json { pretty } => json(report, pretty),
        Form::Csv => view::csv::render(report),
        Form::Text { rounds, plot } => {
            let (sort, top) = options.order();
            let (width, color, connection) = (options.width, options.color, options.connection);
            let options = view::Options { width, color, rounds, plot, top, sort, connection };
            view::text::render(report, &options)
        }
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn json(report: &Report, pretty: bool) -> String {
    let text =
        if pretty { serde_json::to_string_pretty(report) } else { serde_json::to_string(report) };
    text.expect("a report is plain data")
}

/// Writes to standard output. A reader who has seen enough (`| head`) is no error.
///
/// # Errors
/// Whatever else goes wrong, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    print_to(&mut io::stdout().lock(), text)
}

/// Writes an answer to where it was asked for.
///
/// # Errors
/// As [`print`].
pub fn answer(text: &str, options: &Options) -> io::Result<()> {
    if options.on_stderr { print_to(&mut io::stderr().lock(), text) } else { print(text) }
}

fn print_to(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
