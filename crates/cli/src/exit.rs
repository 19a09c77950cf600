//! What the exit status says.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// The input was analysed, whatever was found, even if its end was damaged.
    Analysed = 0,
    /// What was found is to fail a build, as asked for.
    Found = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Some input could not be read at all, or the answer could not be written.
    Unreadable = 3,
    /// tcpwhy itself is at fault; what it could tell nevertheless is printed.
    Internal = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
