//! Whole runs in a simulated kernel: the path does what the plan says, and does it again.
//!
//! Skipped, with the reason, where no kernel is built; `make uml` builds one.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod backend;
mod netem;
mod packets;
mod path;
mod run;
