//! What is wrong with a script, and where.

use std::fmt;

/// A place in a script: both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a script cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// It is not in the language.
    Syntax {
        /// Where.
        place: Place,
        /// What the language asks for there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// It is in the language, but this part of it is not read here.
    Unsupported {
        /// Where.
        place: Place,
        /// The construct, by its name.
        construct: String,
    },
}

impl ScriptError {
    pub(super) fn syntax(place: Place, expected: &str, found: &str) -> ScriptError {
        ScriptError::Syntax { place, expected: expected.into(), found: found.into() }
    }

    pub(super) fn unsupported(place: Place, construct: impl Into<String>) -> ScriptError {
        ScriptError::Unsupported { place, construct: construct.into() }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::Syntax { place, expected, found } => {
                write!(f, "{place}: expected {expected}, found {found}")
            }
            ScriptError::Unsupported { place, construct } => {
                write!(f, "{place}: {construct} is not supported")
            }
        }
    }
}

impl std::error::Error for ScriptError {}
