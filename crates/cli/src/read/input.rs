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
