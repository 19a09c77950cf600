//! Looks at the sockets of the network namespace, at given times of the run.
//!
//! What was seen is a snapshot, as `tcpwhy check --save` writes it, so that the checks of hosts judge it.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use crate::collect::Alone;
use crate::sys::{Clock, Stop};

/// When to look, and where to write it down.
#[derive(Args)]
pub(super) struct Asked {
    /// When the first application of the run starts: ns since 1970; absent means now.
    #[arg(long, value_name = "NS")]
    start: Option<u64>,
    /// Look so long after that; may be given several times, in order.
    #[arg(long = "at", value_name = "NS", required = true)]
    at: Vec<u64>,
    /// The file to write, as JSON.
    #[arg(long)]
    output: PathBuf,
}

/// Looks as often as asked; a signal to end leaves out the looks that are not due yet.
pub(super) fn run(asked: &Asked, stop: &Stop, ready: impl FnOnce()) -> Result<(), String> {
    let name = asked.output.display();
    let start = asked.start.unwrap_or_else(|| Clock::Real.now());
    let mut alone = Alone::begin();
    ready();
    for at in &asked.at {
        let left = start.saturating_add(*at).saturating_sub(Clock::Real.now());
        let is_over =
            stop.within(Some(left)).map_err(|e| format!("cannot wait for a look: {e}"))?;
        if is_over {
            break;
        }
        alone.look().map_err(|e| format!("cannot look at the sockets: {e}"))?;
    }
    let write = || -> io::Result<()> {
        let mut file = std::fs::File::create(&asked.output)?;
        file.write_all(&serde_json::to_vec(&alone.end())?)?;
        file.write_all(b"\n")
    };
    write().map_err(|e| format!("cannot write {name}: {e}"))
}
