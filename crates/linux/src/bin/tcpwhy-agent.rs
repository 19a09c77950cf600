//! The lab's small program: applications and recorders that run beside real TCP.

use std::process::ExitCode;

fn main() -> ExitCode {
    tcpwhy_linux::lab::agent::main(std::env::args_os())
}
