//! `tcpwhy page`: the page for the browser without a report, ready for a capture to be dropped on it.

use std::io;

use anyhow::Context;

use crate::exit::Exit;
use crate::{output, page};

/// Prints the page.
///
/// # Errors
/// It cannot be written.
pub fn run() -> anyhow::Result<Exit> {
    let printed = page::empty(io::stdout().lock());
    output::unless_seen_enough(printed).context("cannot write the page")?;
    Ok(Exit::Analysed)
}
