//! `tcpwhy mcp`: its words. What it does asks other commands, and is in [`crate::mcp`].

use std::path::PathBuf;

use clap::Args;

/// What is shown below the flags.
pub const AFTER: &str = "\
An assistant starts this program and asks it over standard input and output: why a transfer was slow (explain,
connection, finding, frames), what another setting would give (whatif), what is wrong with a host (check), and what a
word means (doc). docs/mcp.md says how to register it.

  tcpwhy mcp ~/captures

Files are read below the folders that are named, and nowhere else: `..` and symbolic links that lead out are refused.
Nothing is written, no command is run, no packet's payload is given, and the network is not used. Answers have a
stated length. The server ends when its standard input does.";

/// Flags of `tcpwhy mcp`.
#[derive(Args, Debug)]
pub struct McpFlags {
    /// Folders whose captures may be read, with what is below them
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
}
