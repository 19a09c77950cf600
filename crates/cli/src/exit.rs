//! What the exit status says.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// 0: the input was analysed, whatever was found, even if its end was damaged.
    Analysed,
    /// 1: something was found that `--fail-on` names.
    Found,
    /// 2: the command line makes no sense.
    Usage,
    /// 3: some input could not be read at all, or the answer could not be written.
    Unreadable,
    /// 4: tcpwhy itself is at fault; what it could tell nevertheless is printed.
    Internal,
    /// As the command that was recorded ended.
    OfCommand(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Analysed => 0,
            Exit::Found => 1,
            Exit::Usage => 2,
            Exit::Unreadable => 3,
            Exit::Internal => 4,
            Exit::OfCommand(status) => status,
        })
    }
}
