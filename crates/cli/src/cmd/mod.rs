//! One file for each subcommand.

pub mod explain;
pub mod lab;
