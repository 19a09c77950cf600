//! Evidence beside the capture: what the hosts themselves recorded, and what it adds.
//!
//! A capture shows what passed one point. The kernel's own figures, the program's system calls, the
//! host's counters and the path's rate show what it can only infer. [`read`] takes the bytes of a file,
//! tells its format by content and gives [`Evidence`]; [`apply`] lays it beside a finished report: what
//! was estimated becomes measured, what disagrees is shown with both values, and a wait is looked up in
//! the system calls of that time.
//!
//! ```text
//! bytes -> read -> Evidence --.
//!                              > apply -> Report: with[], connections[].beside[], measured rounds
//! capture -> ... -> Report ---'
//! ```
//!
//! Nothing is believed without need. Sockets are matched by their addresses, and placed in the stream by
//! their byte counts, not by their clocks. The stream aligns the clocks, and the report shows the
//! alignment's error.

mod align;
mod apply;
mod controller;
mod ends;
mod explain;
mod host;
mod iperf;
mod kernel;
mod owner;
mod probe;
mod rate;
mod reader;
mod room;
mod sample;
mod scales;
mod setup;
mod ss;
mod stalls;
mod tcp_info;

pub use apply::{apply, attached};
pub use iperf::PathRate;
pub use sample::{Sample, Sequence};
pub use scales::scales;
pub use setup::{lay_beside, lay_by_address};

pub use tcpwhy_words::printed::address::Ends;
pub use tcpwhy_words::printed::calls::{Call, Calls, Clock, Moved, Socket};
pub use tcpwhy_words::printed::counters::Reading;
pub use tcpwhy_words::printed::error::{EvidenceError, Odd, PassedOver};
pub use tcpwhy_words::printed::stamp::Stamp;

use crate::report::{Connection, Direction, Finding, Limit};
use tcpwhy_words::printed::{calls, counters};

/// What one file tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Its name.
    pub source: String,
    /// What is in it.
    pub content: Content,
    /// Lines that were passed over.
    pub passed_over: PassedOver,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Sockets as the kernel saw them, at one or many instants.
    Sockets {
        /// In words: who wrote it.
        format: &'static str,
        /// In the order of the file.
        samples: Vec<Sample>,
    },
    /// A host's counters, read once or several times.
    Counters(Vec<Reading>),
    /// How fast the path is.
    Rate(PathRate),
    /// A program's system calls.
    Calls(Box<Calls>),
    /// Nothing: why it could not be read.
    Unread(String),
}

impl Evidence {
    /// A rate of the path that the user knows.
    pub fn of_rate(source: &str, bps: u64) -> Self {
        let (source, rate) = (source.to_owned(), PathRate { bps, is_tested: false });
        Self { source, content: Content::Rate(rate), passed_over: PassedOver::default() }
    }

    /// A file that could not be read: it is named in the report, and the rest goes on.
    pub fn unread(source: &str, why: String) -> Self {
        let (source, content) = (source.to_owned(), Content::Unread(why));
        Self { source, content, passed_over: PassedOver::default() }
    }
}

impl Content {
    /// Who wrote it, in a word or two.
    fn kind(&self) -> &'static str {
        match self {
            Self::Sockets { format, .. } => format,
            Self::Counters(_) => "nstat",
            Self::Rate(PathRate { is_tested: true, .. }) => "iperf3",
            Self::Rate(_) => "--rate",
            Self::Calls(calls) => calls.tool,
            Self::Unread(_) => "",
        }
    }

    /// How many samples, calls or counters it has.
    fn len(&self) -> usize {
        match self {
            Self::Sockets { samples, .. } => samples.len(),
            Self::Counters(readings) => readings.iter().map(Reading::len).max().unwrap_or(0),
            Self::Rate(_) => 1,
            Self::Calls(calls) => calls.calls.len(),
            Self::Unread(_) => 0,
        }
    }
}

/// Reads the bytes of the file `source`, of any of the formats.
///
/// # Errors
/// It is of none of them, or nothing in it can be used.
pub fn read(source: &str, bytes: &[u8]) -> Result<Evidence, EvidenceError> {
    let text = text_of(bytes)?;
    let sockets = |format, (samples, odd)| (Content::Sockets { format, samples }, odd);
    let (content, passed_over) = match Format::of(text)? {
        Format::Ss => sockets("ss", ss::read(text)?),
        Format::TcpInfo => sockets("TCP_INFO", tcp_info::read(text)?),
        Format::TcpProbe => sockets("tcp_probe", probe::read(text)?),
        Format::Counters => {
            let (readings, odd) = counters::read(text)?;
            (Content::Counters(readings), odd)
        }
        Format::Iperf => (Content::Rate(iperf::read(text)?), PassedOver::default()),
        Format::Strace => {
            let (calls, odd) = calls::strace::read(text)?;
            (Content::Calls(Box::new(calls)), odd)
        }
        Format::PerfTrace => {
            let (calls, odd) = calls::perf::read(text)?;
            (Content::Calls(Box::new(calls)), odd)
        }
    };
    Ok(Evidence { source: source.to_owned(), content, passed_over })
}

/// Which tool wrote a file that begins with `first`, if it is one whose words are evidence.
pub fn written_by(first: &str) -> Option<&'static str> {
    Format::of(first).ok().map(Format::tool)
}

/// Which tool wrote it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Format {
    Ss,
    TcpInfo,
    TcpProbe,
    Counters,
    Iperf,
    Strace,
    PerfTrace,
}

/// Lines looked at for a format. Ours: banners and prompts before the first line that counts are shorter.
const LOOKED_AT: usize = 200;

impl Format {
    /// Told by the first line that only one of the tools writes.
    fn of(text: &str) -> Result<Self, EvidenceError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((at, first)) = lines.next() else { return Err(EvidenceError::Empty) };
        if iperf::is_text(text) {
            return Ok(Self::Iperf);
        }
        let unknown = EvidenceError::Unknown { line: at + 1, text: beginning(first) };
        core::iter::once(first)
            .chain(lines.map(|(_, line)| line))
            .take(LOOKED_AT)
            .find_map(Self::of_line)
            .ok_or(unknown)
    }

    const fn tool(self) -> &'static str {
        match self {
            Self::Ss => "ss",
            Self::TcpInfo => "a table of TCP_INFO",
            Self::TcpProbe => "tcp_probe",
            Self::Counters => "nstat or /proc/net",
            Self::Iperf => "iperf3 -J",
            Self::Strace => "strace",
            Self::PerfTrace => "perf trace",
        }
    }

    fn of_line(line: &str) -> Option<Self> {
        Some(match line {
            _ if ss::is_line(line) => Self::Ss,
            _ if tcp_info::is_line(line) => Self::TcpInfo,
            _ if probe::is_line(line) => Self::TcpProbe,
            _ if counters::is_line(line) => Self::Counters,
            _ if calls::perf::is_line(line) => Self::PerfTrace,
            _ if calls::strace::is_line(line) => Self::Strace,
            _ => return None,
        })
    }
}

/// The bytes as text.
fn text_of(bytes: &[u8]) -> Result<&str, EvidenceError> {
    let bad = match core::str::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => return Ok(text),
            Some(at) => at,
        },
        Err(error) => error.valid_up_to(),
    };
    Err(EvidenceError::NotText { line: bytes[..bad].split(|byte| *byte == b'\n').count() })
}

/// The direction whose intervals a finding names; `None` where it names none, or those of both alike.
fn direction_of(connection: &Connection, finding: &Finding) -> Option<usize> {
    let named = |(at, direction): (usize, &Direction)| {
        let is_named = |limit: &&Limit| {
            finding.evidence.iter().any(|each| {
                (each.from_ns, each.to_ns, &each.text)
                    == (limit.start_ns, limit.end_ns, &limit.evidence.text)
            })
        };
        (direction.limits.iter().filter(is_named).count(), at)
    };
    let mut all: Vec<(usize, usize)> = connection.present().map(named).collect();
    all.sort_unstable();
    let (most, at) = all.pop()?;
    (most > 0 && all.iter().all(|(count, _)| *count < most)).then_some(at)
}

/// The beginning of a line, to be shown.
fn beginning(line: &str) -> String {
    line.trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        read("x", bytes).expect_err("no evidence").to_string()
    }

    #[test]
    fn what_is_no_evidence_is_named_with_its_line() {
        assert!(error(b"\n \n").starts_with("it is empty"));
        assert!(error(b"a\nb\xff\n").starts_with("line 2 holds bytes that are no text"));
        assert!(error(b"\nhello there\n").ends_with("line 2 says \"hello there\""));
    }
}
