//! What can be wrong with a file of evidence, in words that follow its name.

/// Why a file tells nothing.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EvidenceError {
    /// No bytes, or blanks only.
    #[error("it is empty: was the command that wrote it allowed to look?")]
    Empty,
    /// Bytes that no text has.
    #[error(
        "line {line} holds bytes that are no text: captures are named without --with, and of packed or \
         binary files (trace.dat, perf.data) the text is wanted that `trace-cmd report` or `perf script` prints"
    )]
    NotText {
        /// From 1.
        line: usize,
    },
    /// Text of no kind that is known.
    #[error(
        "it is none of the kinds of evidence that --with takes (ss -tin, TCP_INFO as JSON lines, tcp_probe, \
         nstat, /proc/net/netstat, iperf3 -J, strace -T with -ttt, -tt or -r, perf trace), and nothing that a \
         host's tools print; captures and listings are named without --with; line {line} says {text:?}"
    )]
    Unknown {
        /// The first line that says something.
        line: usize,
        /// How it begins.
        text: String,
    },
    /// Of a known kind, but nothing in it can be used.
    #[error("line {line}: {what}")]
    Useless {
        /// Where it shows.
        line: usize,
        /// What is wrong, and the likely cause.
        what: String,
    },
}

/// A line that was passed over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Odd {
    /// From 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Lines that were passed over: the first, and how many.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PassedOver {
    /// The first.
    pub first: Option<Odd>,
    /// How many.
    pub count: usize,
}

impl PassedOver {
    /// Takes down one more.
    pub fn push(&mut self, line: usize, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(Odd { line, what: what() });
        }
    }

    /// In words, if there are any.
    pub fn told(&self) -> Option<String> {
        let Odd { line, what } = self.first.as_ref()?;
        Some(match self.count {
            1 => format!("line {line} was passed over: {what}"),
            count => format!("{count} lines were passed over; the first is line {line}: {what}"),
        })
    }

    /// The error if nothing else was found.
    pub fn into_error(self, otherwise: &str) -> EvidenceError {
        match self.first {
            Some(Odd { line, what }) => EvidenceError::Useless { line, what },
            None => EvidenceError::Useless { line: 1, what: otherwise.to_owned() },
        }
    }
}
