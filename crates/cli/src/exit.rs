//! What the exit status says.

use std::fmt::Display;
use std::process::ExitCode;

use tcpwhy::report::Damage;

use crate::complain;

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

/// An answer in both forms.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Told {
    /// For people, 100 columns wide.
    pub text: String,
    /// For programs.
    pub json: String,
}

/// Why a command has no answer, and how it ends.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// How it ends.
    pub exit: Exit,
    /// What is wrong, in words.
    pub why: String,
    /// The file that it is about, where it is one.
    pub at: Option<At>,
}

/// A place in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct At {
    /// Its name.
    pub file: String,
    /// Where in it.
    pub damage: Option<Damage>,
}

impl Refused {
    /// The command makes no sense.
    pub fn usage(why: impl Display) -> Self {
        Self { exit: Exit::Usage, why: why.to_string(), at: None }
    }

    /// Something cannot be read.
    pub fn unreadable(why: impl Display) -> Self {
        Self { exit: Exit::Unreadable, why: why.to_string(), at: None }
    }

    /// The same, about a file.
    #[must_use]
    pub fn about(self, file: &str) -> Self {
        Self { at: Some(At { file: file.to_owned(), damage: None }), ..self }
    }

    /// Says so on standard error.
    pub(crate) fn told(&self) -> Exit {
        complain(&self.why);
        self.exit
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}

impl Exit {
    /// The number that the process ends with.
    pub const fn status(self) -> u8 {
        match self {
            Self::Analysed => 0,
            Self::Found => 1,
            Self::Usage => 2,
            Self::Unreadable => 3,
            Self::Internal => 4,
            Self::OfCommand(status) => status,
        }
    }
}
