//! One file for each subcommand.

pub mod check;
mod columns;
pub mod doc;
pub mod explain;
pub mod fleet;
pub mod generate;
mod hosts;
pub mod lab;
pub mod live;
pub mod mcp;
mod one;
pub mod page;
pub mod predict;
pub mod record;
pub mod repro;
mod scenarios;
mod signals;
pub mod summary;
pub mod whatif;
