//! The command line as typed: what to do, each with its flags.

use clap::{Parser, Subcommand};

use crate::cmd::{
    check, doc, fleet, generate, lab, live, mcp, predict, record, repro, summary, whatif,
};
use crate::flags::ExplainFlags;

/// The version, with commit and date of its source where it was built to be given away.
pub const VERSION: &str = env!("TCPWHY_VERSION");

/// Tells why a TCP transfer took as long as it did, from a capture of it.
#[derive(Debug, Parser)]
#[command(
    name = "tcpwhy",
    version = VERSION,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 analysed, 1 found what --fail-on names, 2 wrong usage, 3 input that\n\
                  cannot be read, 4 a mistake in tcpwhy itself; of `record -- COMMAND` the command's.\n\
                  `tcpwhy FILE...` is short for `tcpwhy explain FILE...`."
)]
pub struct Flags {
    /// What to do, if not to explain.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print to the terminal at once, however long the text is
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// The flags of `explain`.
    #[command(flatten)]
    pub explain: ExplainFlags,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explain what the transfers in a capture waited for
    Explain(ExplainFlags),
    /// Record the connections of a command, and explain them
    #[command(after_help = record::AFTER)]
    Record(record::RecordFlags),
    /// Predict how long a transfer takes, by a model of Linux TCP
    #[command(after_help = predict::AFTER)]
    Predict(predict::PredictFlags),
    /// Answer what a captured transfer would have taken with another setting
    #[command(after_help = whatif::AFTER)]
    Whatif(whatif::WhatifFlags),
    /// Run experiments with a real kernel's TCP over an emulated path
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// Check whether this machine is set up for fast TCP, and what its counters say goes wrong
    #[command(after_help = check::AFTER)]
    Check(check::CheckFlags),
    /// Show what holds the connections that are open now
    #[command(after_help = live::AFTER)]
    Live(live::LiveFlags),
    /// Rank what to change where, over a folder of tables
    #[command(after_help = summary::AFTER)]
    Summary(summary::SummaryFlags),
    /// Explain the captures of many hosts into tables, here or on a Spark cluster (with the Python module)
    #[command(after_help = fleet::AFTER)]
    Fleet(fleet::FleetFlags),
    /// Print a captured connection as a packetdrill script
    Repro(repro::ReproFlags),
    /// Print an empty page for the browser: captures dropped on it are explained there, and nothing is uploaded
    Page,
    /// Answer an assistant's questions about captures, by the Model Context Protocol
    #[command(after_help = mcp::AFTER)]
    Mcp(mcp::McpFlags),
    /// Explain a finding, a check, a state, a term, a kernel setting, a route metric or a socket option
    Doc(doc::DocFlags),
    /// Print manual pages, completions for shells, and the schemas of answers
    #[command(after_help = generate::AFTER)]
    Generate(generate::GenerateFlags),
}
