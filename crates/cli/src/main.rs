//! The tcpwhy command.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    tcpwhy_cli::cmd::lab::inner(&words).unwrap_or_else(|| tcpwhy_cli::run(words).into())
}
