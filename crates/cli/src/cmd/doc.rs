//! `tcpwhy doc`: what the words of tcpwhy mean, and the settings that people tune. The words are the core's; nothing is
//! written here twice.

use anyhow::Context as _;
use clap::Args;
use tcpwhy::find::doc;
use tcpwhy::host::doc as checks;
use tcpwhy::manual;

use crate::exit::Exit;
use crate::number;
use crate::options::Surroundings;
use crate::output;

/// Flags of `tcpwhy doc`.
#[derive(Args, Debug)]
pub struct DocFlags {
    /// A finding or a check by its code, a state such as `cwnd.slow_start`, a term such as `BDP`,
    /// a sysctl, a route metric or a socket option; none: list them all
    #[arg(value_name = "WORD", num_args = 0..)]
    pub words: Vec<String>,
    /// Print the whole manual of findings as Markdown (docs/findings.md is made so)
    #[arg(long, conflicts_with = "words")]
    pub manual: bool,
    /// Print the rules of the account in the order in which they are asked, as Markdown
    #[arg(long, conflicts_with_all = ["words", "manual", "checks"])]
    pub rules: bool,
    /// Print the manual of the checks of a host as Markdown (docs/checks.md is made so)
    #[arg(long, conflicts_with_all = ["words", "manual"])]
    pub checks: bool,
    /// Columns of the text, if not the terminal's
    #[arg(long, value_name = "COLUMNS", value_parser = number::width)]
    pub width: Option<u16>,
}

/// Prints what was asked for.
///
/// # Errors
/// Standard output does not take it.
pub fn run(flags: &DocFlags, around: &Surroundings) -> anyhow::Result<Exit> {
    let is_narrow = flags.width.is_none() && !around.stdout_is_terminal;
    let columns = if is_narrow { COLUMNS } else { around.columns(flags.width) };
    let text = match &flags.words[..] {
        _ if flags.manual => doc::manual(),
        _ if flags.checks => checks::manual(),
        _ if flags.rules => doc::rules(),
        [] => manual::list(columns),
        words => {
            let word = words.join(" ");
            let pages = manual::look_up(&word);
            if pages.is_empty() {
                return Ok(unknown(&word));
            }
            let set: Vec<String> = pages.iter().map(|page| manual::set(page, columns)).collect();
            set.join("\n")
        }
    };
    output::tell(&text, false).context("cannot write the answer")?;
    Ok(Exit::Analysed)
}

/// Columns where there is no terminal, as manual pages have them.
const COLUMNS: usize = 80;

fn unknown(word: &str) -> Exit {
    let known = manual::meant(word);
    let meant = match &known[..] {
        [] => "`tcpwhy doc` lists every word".to_owned(),
        [one] => format!("did you mean `tcpwhy doc {one}`? (`tcpwhy doc` lists every word)"),
        [first, others @ ..] => {
            let others = others.join(", ");
            format!(
                "did you mean `tcpwhy doc {first}`, or {others}? (`tcpwhy doc` lists every word)"
            )
        }
    };
    crate::complain(&format!("nothing is known of '{word}': {meant}"));
    Exit::Usage
}
