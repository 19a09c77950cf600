//! `tcpwhy summary`: what to change where, over a folder of tables.

use std::path::PathBuf;

use clap::Args;

use crate::exit::Exit;
use crate::number;
use crate::options::Surroundings;

/// What is shown below the flags.
pub const AFTER: &str = "\
Gains are those of each connection's first screen, added up. Changes of one connection share its time, so that the
gains of several changes do not add up to one of all.

  tcpwhy web1/*.pcap.gz --parquet tables --host web1
  tcpwhy summary tables
  tcpwhy summary tables --since 2026-11-24 --host web1 --json";

/// Flags of `tcpwhy summary`.
#[derive(Args, Debug)]
pub struct SummaryFlags {
    /// A folder that `tcpwhy FILE... --parquet DIR` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Of captures of this host only, as --host named it when the tables were written
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Of connections that began on this day (UTC) or later: 2026-11-24
    #[arg(long, value_name = "DAY", value_parser = number::day)]
    pub since: Option<String>,
    /// Of connections that began on this day (UTC) or earlier
    #[arg(long, value_name = "DAY", value_parser = number::day)]
    pub until: Option<String>,
    /// Show at most this many changes, and as many kinds of failure
    #[arg(long, value_name = "N", value_parser = number::lines, default_value = "10")]
    pub top: usize,
    /// Print the summary as JSON, with all changes
    #[arg(long)]
    pub json: bool,
    /// Width of the text in columns [default: that of the terminal, else 100]
    #[arg(long, value_name = "COLUMNS", value_parser = number::width)]
    pub width: Option<u16>,
}

/// Reads, adds up, prints.
///
/// # Errors
/// The folder holds no tables, one cannot be read, or the answer cannot be written.
#[cfg(feature = "tables")]
pub fn run(flags: &SummaryFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    use anyhow::Context as _;
    use tcpwhy_tables::summary::{Asked, Summary};

    let asked =
        Asked { host: flags.host.clone(), since: flags.since.clone(), until: flags.until.clone() };
    let summary = Summary::of(&flags.folder, &asked)?;
    let text = if flags.json {
        words::json(&summary)?
    } else {
        words::text(&summary, around.columns(flags.width), flags.top)
    };
    crate::output::tell(&text, flags.json).context("cannot write the answer")?;
    Ok(Exit::Analysed)
}

/// Says that this program has no tables.
///
/// # Errors
/// None.
#[cfg(not(feature = "tables"))]
pub fn run(_: &SummaryFlags, _: &Surroundings) -> anyhow::Result<Exit> {
    crate::complain(&crate::options::OptionsError::NoTables.to_string());
    Ok(Exit::Usage)
}

#[cfg(feature = "tables")]
mod words;
