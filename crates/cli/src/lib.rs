//! Command line of tcpwhy: opens what the user names, calls the core, prints its report.
//!
//! ```text
//! flags -> options -> cmd/* -> read -> (core) -> choose -> output
//! typed    checked    run      bytes    report    asked     text
//! ```
//!
//! Nothing here judges packets; that is the core's. Files, terminals, signals and the environment
//! are touched here and nowhere else.

pub mod choose;
pub mod cmd;
pub mod exit;
pub mod filter;
pub mod flags;
pub mod options;
pub mod output;
pub mod read;
pub mod screen;
pub mod window;

use std::io::{self, Write};

use clap::{CommandFactory, Parser};

use exit::Exit;
use flags::{Command, Flags};
use options::{Options, OptionsError, Surroundings};

/// Runs the command line of this process.
pub fn run() -> Exit {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) => {
            // A closed standard error leaves nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Analysed };
        }
    };
    let explain = match flags.command {
        Some(Command::Explain(explain)) => explain,
        None => flags.explain,
    };
    let around = Surroundings::of_process();
    let ran = match Options::check(&explain, &around) {
        Ok(options) => cmd::explain::run(options, &around),
        Err(error) => return refuse(&error),
    };
    ran.unwrap_or_else(|error| {
        complain(&format!("{error:#}"));
        Exit::Unreadable
    })
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

/// Tells the user something on standard error.
fn complain(sentence: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(io::stderr(), "tcpwhy: {sentence}");
}
