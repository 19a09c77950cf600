//! The tcpwhy command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tcpwhy_cli::cmd::lab::inner().unwrap_or_else(|| tcpwhy_cli::run().into())
}
