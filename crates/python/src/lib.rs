//! The compiled half of the Python module `tcpwhy`; `python/tcpwhy` has what people import.
//!
//! Questions come as the words of the command line, and answers go as JSON or as Arrow tables by the `PyCapsule`
//! interface. Python's lock is released while tcpwhy works; Ctrl-C is heard meanwhile.

mod apart;
mod question;
mod report;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use tcpwhy_cli::cmd::lab;

#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::apart::{Cutting, Joining, cut, in_order};
    #[pymodule_export]
    use super::command;
    #[pymodule_export]
    use super::question::{check, explain, predict, whatif};
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::table::{Table, tables};
}

/// Runs a command line, the program's name first; its exit status. `program` with the words of `lead` before those of a
/// command line starts this again.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<OsString>, program: PathBuf, lead: Vec<OsString>) -> u8 {
    lab::runs_inside(program, lead);
    py.detach(|| match lab::inner(&words) {
        // Its status is not told; what it has to say was said.
        Some(ended) => u8::from(ended != std::process::ExitCode::SUCCESS),
        None => tcpwhy_cli::run(words).status(),
    })
}
