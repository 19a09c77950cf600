//! One file for each subcommand.

pub mod check;
pub mod doc;
pub mod explain;
pub mod lab;
mod one;
pub mod predict;
pub mod record;
pub mod repro;
pub mod whatif;
