//! What to read.

use std::path::PathBuf;

/// Something to read a capture from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Input {
    /// Standard input, `-`.
    Stdin,
    /// A file, named pipe or device.
    File(PathBuf),
}

impl Input {
    /// Whether it can be read a second time from its beginning.
    pub fn is_there_again(&self) -> bool {
        matches!(self, Self::File(path) if path.is_file())
    }
}
