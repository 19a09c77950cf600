//! From the report to the bytes on standard output.

use std::io::{self, ErrorKind, Write};

use tcpwhy::report::Report;

use crate::options::{Form, Options};

/// The report in the form asked for; ends with a newline.
pub fn rendered(report: &Report, options: &Options) -> String {
    // The views for words and tables are `tcpwhy::view::text` and `::csv`; until they are there,
    // every form is the JSON.
    let pretty = match options.form {
        Form::Json { pretty } => pretty,
        Form::Text { .. } | Form::Csv => true,
    };
    json(report, pretty)
}

fn json(report: &Report, pretty: bool) -> String {
    let text =
        if pretty { serde_json::to_string_pretty(report) } else { serde_json::to_string(report) };
    let mut text = text.expect("a report is plain data");
    text.push('\n');
    text
}

/// Writes to standard output. A reader who has seen enough (`| head`) is no error.
///
/// # Errors
/// Whatever else goes wrong, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
