//! `tcpwhy doc`: what the findings and the states of the account mean. The words are the core's; nothing is written here twice.

use std::fmt::Write as _;

use anyhow::Context as _;
use clap::Args;
use tcpwhy::find::doc;
use tcpwhy::host::doc as checks;

use crate::exit::Exit;
use crate::output;

/// Flags of `tcpwhy doc`.
#[derive(Args, Debug)]
pub struct DocFlags {
    /// The finding or the check, as it stands in brackets behind its title, or a state as
    /// `cwnd.slow_start`; none: list them all
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
    /// Print the whole manual as Markdown (docs/findings.md is made so)
    #[arg(long, conflicts_with = "code")]
    pub manual: bool,
    /// Print the manual of the checks of a host as Markdown (docs/checks.md is made so)
    #[arg(long, conflicts_with_all = ["code", "manual"])]
    pub checks: bool,
}

/// Prints what was asked for.
///
/// # Errors
/// Standard output does not take it.
pub fn run(flags: &DocFlags) -> anyhow::Result<Exit> {
    let text = match &flags.code {
        _ if flags.manual => doc::manual(),
        _ if flags.checks => checks::manual(),
        None => list(),
        Some(code) => match page(code) {
            Some(page) => shown(&page),
            None => return Ok(unknown(code)),
        },
    };
    output::print(&text).context("cannot write the answer")?;
    Ok(Exit::Analysed)
}

fn page(code: &str) -> Option<doc::Page> {
    doc::find(code).or_else(|| checks::find(code)).or_else(|| doc::state(code))
}

/// All findings, one a line.
fn list() -> String {
    let pages = doc::pages();
    let width = pages.iter().map(|page| page.code.len()).max().unwrap_or_default();
    let mut text = String::new();
    for page in pages {
        let _ = writeln!(text, "{:width$}  {}", page.code, page.title);
    }
    text += "\nStates of the account, in the order in which they are tested for:\n\n";
    for page in doc::states() {
        let _ = writeln!(text, "{:width$}  {}", page.code, page.title);
    }
    text + "\n`tcpwhy doc CODE` explains one, `tcpwhy doc STATE` too; the checks of a host: `tcpwhy check --list`.\n"
}

/// A page as people read it in a terminal.
fn shown(page: &doc::Page) -> String {
    let mut text = format!("{}: {}\n\n", page.code, page.title);
    for line in page.text.lines() {
        match line.strip_prefix("# ") {
            Some(section) => writeln!(text, "{section}"),
            None if line.is_empty() => writeln!(text),
            None => writeln!(text, "  {line}"),
        }
        .expect("a string takes everything");
    }
    text
}

fn unknown(code: &str) -> Exit {
    crate::complain(&format!(
        "there is no finding, no check and no state '{code}': `tcpwhy doc` and `tcpwhy check --list` list them"
    ));
    Exit::Usage
}
