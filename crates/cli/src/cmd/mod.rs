//! One file for each subcommand.

pub mod check;
pub mod doc;
pub mod explain;
mod hosts;
pub mod lab;
pub mod live;
mod one;
pub mod page;
pub mod predict;
pub mod record;
pub mod repro;
mod signals;
pub mod whatif;
