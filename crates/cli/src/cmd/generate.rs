//! `tcpwhy generate`: manual pages, completions for shells, and the schemas of its answers; for whoever packs or scripts it.

mod man;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use crate::exit::Exit;
use crate::{complain, output};

/// What is shown below the flags.
pub const AFTER: &str = "\
  tcpwhy generate man --to ~/.local/share/man
  tcpwhy generate complete-bash > ~/.local/share/bash-completion/completions/tcpwhy
  tcpwhy generate schema > report.schema.json";

/// Flags of `tcpwhy generate`.
#[derive(Args, Debug)]
pub struct GenerateFlags {
    /// What to print
    #[arg(value_enum)]
    pub what: What,
    /// Write every manual page into this folder (man1/, man7/), and print none
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// What is generated.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum What {
    /// The manual page tcpwhy(1); with --to also those of its commands, findings, states and checks
    Man,
    /// Completions for bash
    CompleteBash,
    /// Completions for zsh
    CompleteZsh,
    /// Completions for fish
    CompleteFish,
    /// Completions for PowerShell
    CompletePowershell,
    /// The JSON Schema of the report (`tcpwhy --json`)
    Schema,
    /// The JSON Schema of `tcpwhy check --json`
    SchemaCheck,
    /// The JSON Schema of `tcpwhy lab run --json`
    SchemaLab,
    /// The JSON Schema of `tcpwhy lab verify --json`
    SchemaVerify,
}

/// Prints or writes what was asked for, of the whole command line.
///
/// # Errors
/// It cannot be written.
pub fn run(flags: &GenerateFlags, mut whole: Command) -> anyhow::Result<Exit> {
    whole.build();
    if let Some(folder) = &flags.to {
        if flags.what != What::Man {
            complain("--to is for manual pages; the others are one file each: redirect them");
            return Ok(Exit::Usage);
        }
        man::write(&whole, folder)
            .with_context(|| format!("cannot write the manual pages into {}", folder.display()))?;
        return Ok(Exit::Analysed);
    }
    output::print(&text(flags.what, &mut whole)).context("cannot write what was asked for")?;
    Ok(Exit::Analysed)
}

fn text(what: What, whole: &mut Command) -> String {
    match what {
        What::Man => man::in_roff(whole),
        What::CompleteBash => completions(whole, Shell::Bash),
        What::CompleteZsh => completions(whole, Shell::Zsh),
        What::CompleteFish => completions(whole, Shell::Fish),
        What::CompletePowershell => completions(whole, Shell::PowerShell),
        What::Schema => include_str!("../../carried/report.schema.json").to_owned(),
        What::SchemaCheck => include_str!("../../carried/check.schema.json").to_owned(),
        What::SchemaLab => include_str!("../../carried/lab.schema.json").to_owned(),
        What::SchemaVerify => include_str!("../../carried/verify.schema.json").to_owned(),
    }
}

fn completions(whole: &mut Command, shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, whole, "tcpwhy", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
