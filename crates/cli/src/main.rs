//! The tcpwhy command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tcpwhy_cli::run().into()
}
