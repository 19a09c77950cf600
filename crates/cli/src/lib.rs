//! Command line of tcpwhy: opens what the user names, calls the core, prints its report.
//!
//! ```text
//! flags -> options -> cmd/* -> read -> (core) -> choose -> output
//! typed    checked    run      bytes    report    asked     text
//! ```
//!
//! Nothing here judges packets; that is the core's. Files, terminals, signals and the environment
//! are touched here and nowhere else.

pub mod ask;
pub mod choose;
pub mod cmd;
pub mod commands;
pub mod exit;
pub mod fail;
pub mod filter;
pub mod flags;
mod graphs;
pub mod mcp;
pub mod metrics;
mod number;
pub mod options;
pub mod output;
mod page;
pub mod pager;
pub mod rate;
pub mod read;
mod recording;
mod run_folder;
pub mod screen;
mod tables;
mod whole;
pub mod window;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use tcpwhy::host::shown;
use tcpwhy::manual::distance;

use commands::{Command, Flags};
use exit::Exit;
use flags::ExplainFlags;
use options::{Options, OptionsError, Surroundings};

/// Runs a command line, the program's name first: that of this process, or what a program around it was given.
pub fn run(words: Vec<OsString>) -> Exit {
    panic::set_hook(Box::new(own_up));
    or_internal(|| command(words))
}

/// Carries out `work`. A panic in it is a mistake of ours, and [`own_up`] has reported it.
fn or_internal(work: impl FnOnce() -> Exit + UnwindSafe) -> Exit {
    panic::catch_unwind(work).unwrap_or(Exit::Internal)
}

/// Says that tcpwhy is at fault, and what to do about it.
fn own_up(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let what = panic.payload_as_str().unwrap_or("no more is known");
    complain(&format!(
        "this is a mistake in tcpwhy{place}: {what}\n  your capture may be all right; please report \
         this with tcpwhy's version ({}) and, if you can share it, the capture",
        commands::VERSION
    ));
}

fn command(mut words: Vec<OsString>) -> Exit {
    // As git has it: before the command, too, where all other flags are those of `explain`.
    let is_first = words.get(1).is_some_and(|word| word == "--no-pager");
    if is_first {
        words.remove(1);
    }
    let flags = match Flags::try_parse_from(&words) {
        Ok(flags) => flags,
        Err(error) => return not_flags(&error, &words),
    };
    if flags.no_pager || is_first {
        pager::switch_off();
    }
    let around = Surroundings::of_process();
    match flags.command {
        None => explain(&flags.explain, &around),
        Some(Command::Explain(flags)) => explain(&flags, &around),
        Some(other) => carry_out(other, &around),
    }
}

fn explain(flags: &ExplainFlags, around: &Surroundings) -> Exit {
    if let Some(meant) = mistyped(&flags.files) {
        complain(&meant);
        return Exit::Usage;
    }
    match Options::check(flags, around) {
        Ok(options) => told(cmd::explain::run(options, around)),
        Err(error) => refuse(&error),
    }
}

fn carry_out(command: Command, around: &Surroundings) -> Exit {
    told(match command {
        Command::Explain(flags) => return explain(&flags, around),
        Command::Lab(flags) => return cmd::lab::run(&flags, around),
        Command::Record(flags) => return cmd::record::run(&flags, around),
        Command::Predict(flags) => return cmd::predict::run(&flags),
        Command::Check(flags) => cmd::check::run(&flags, around),
        Command::Live(flags) => cmd::live::run(&flags, around),
        Command::Repro(flags) => cmd::repro::run(&flags),
        Command::Whatif(flags) => cmd::whatif::run(&flags),
        Command::Summary(flags) => cmd::summary::run(&flags, around),
        Command::Fleet(flags) => return cmd::fleet::run(&flags),
        Command::Generate(flags) => cmd::generate::run(&flags, whole_command()),
        Command::Page => cmd::page::run(),
        Command::Mcp(flags) => mcp::run(&flags),
        Command::Doc(flags) => cmd::doc::run(&flags, around),
    })
}

/// All commands with their flags.
fn whole_command() -> clap::Command {
    Flags::command()
}

/// What to say where the first file is none and its name is nearly a command's.
fn mistyped(files: &[PathBuf]) -> Option<String> {
    let (first, others) = files.split_first()?;
    let typed = first.to_str().filter(|name| !name.contains(['.', '/', '-']))?;
    if typed.len() < 3 || first.exists() {
        return None;
    }
    let command = Flags::command();
    let names = command.get_subcommands().map(|each| each.get_name().to_owned());
    let near = names.map(|name| (distance(typed, &name), name)).min()?;
    let (_, name) = Some(near).filter(|(distance, _)| *distance <= 2)?;
    let others: Vec<_> = others.iter().map(|file| file.display().to_string()).collect();
    let others = others.join(" ");
    let whole = format!("tcpwhy {name} {others}");
    Some(format!("there is no file {typed}; did you mean the command `{}`?", whole.trim_end()))
}

/// Whether what was typed begins with a command's name.
fn begins_with_a_command(words: &[OsString]) -> bool {
    let first = words.get(1).and_then(|word| word.to_str());
    Flags::command().get_subcommands().any(|each| Some(each.get_name()) == first)
}

/// Tells what clap has to say: help, which has to arrive, or what is wrong with the flags.
fn not_flags(error: &clap::Error, words: &[OsString]) -> Exit {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return match output::unless_seen_enough(printed) {
            Ok(()) => Exit::Analysed,
            Err(error) => {
                complain(&format!("cannot write the help: {error}"));
                Exit::Unreadable
            }
        };
    }
    // A mistyped command's flags are none of `explain`.
    let rest: Vec<PathBuf> = words.iter().skip(1).map(PathBuf::from).collect();
    let may_be_mistyped =
        error.kind() == ErrorKind::UnknownArgument && !begins_with_a_command(words);
    if let Some(meant) = mistyped(&rest).filter(|_| may_be_mistyped) {
        complain(&meant);
        return Exit::Usage;
    }
    let is_plain = |word: &OsString| printable(&word.to_string_lossy()) == word.to_string_lossy();
    // A closed standard error leaves nobody to tell.
    let _ = if words.iter().all(is_plain) {
        error.print()
    } else {
        // It repeats what was typed.
        write!(io::stderr(), "{}", printable(&error.render().to_string()))
    };
    Exit::Usage
}

/// How a command ended. What kept it from ending well is printed.
fn told(ran: anyhow::Result<Exit>) -> Exit {
    ran.unwrap_or_else(|error| {
        complain(&in_words(&error));
        Exit::Unreadable
    })
}

/// An error and its causes; what one of them repeats of another is said once.
fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Says why the options cannot be carried out.
fn refuse(error: &OptionsError) -> Exit {
    match error {
        OptionsError::NothingToRead => {
            complain("nothing to read: name a capture, or pipe one in\n");
            // A closed standard error leaves nobody to tell.
            let _ = write!(io::stderr(), "{}", Flags::command().render_help());
        }
        OptionsError::Open(unreadable) => {
            for error in unreadable {
                complain(&error.to_string());
            }
            return Exit::Unreadable;
        }
        _ => complain(&error.to_string()),
    }
    Exit::Usage
}

/// Tells the user something on standard error. Names of files and what was typed or read may be in it, so that
/// what a terminal would obey is shown escaped.
fn complain(sentence: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(io::stderr(), "tcpwhy: {}", printable(sentence));
}

/// A text of several lines in which nothing but their ends is obeyed by a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.split('\n').map(|line| shown(line.as_bytes())).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_is_repeated_is_said_once() {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let told = anyhow::Error::new(gone()).context(format!("no eth7: {}", gone()));
        assert_eq!(
            in_words(&told.context("cannot record")),
            "cannot record: no eth7: entity not found"
        );
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped_but_for_ends_of_lines() {
        let said = printable("cannot read a\u{1b}[31m\u{7}b\r:\n  größer \u{9b}2J\u{202e}");
        assert_eq!(said, "cannot read a\\u{1b}[31m\\u{7}b\\r:\n  größer \\u{9b}2J\\u{202e}");
    }

    #[test]
    fn a_name_that_is_nearly_a_command_is_asked_about() {
        let meant = |names: &[&str]| mistyped(&names.iter().map(PathBuf::from).collect::<Vec<_>>());
        let said = meant(&["chek", "ss.txt"]).expect("check");
        assert!(said.contains("did you mean the command `tcpwhy check ss.txt`"), "{said}");
        assert!(meant(&["exlpain", "a.pcap"]).expect("explain").contains("tcpwhy explain a.pcap"));
        for name in ["src", "chek.pcap", "capture", "dc", "./chek"] {
            assert_eq!(meant(&[name]), None, "{name}");
        }
    }

    #[test]
    fn a_mistake_of_ours_has_an_exit_status_of_its_own() {
        assert_eq!(or_internal(|| Exit::Analysed), Exit::Analysed);
        assert_eq!(or_internal(|| panic!("a mistake made for a test")), Exit::Internal);
    }
}
