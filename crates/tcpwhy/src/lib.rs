//! From captured bytes to an account of what a TCP transfer waited for.
//!
//! The modules follow the data, nothing looks back:
//!
//! ```text
//! capture -> wire -> flow -> measure -> limits -> find -> view
//!  bytes     Segment  Connection  Measures  Intervals  Findings  text / JSON
//! ```
//!
//! Everything here is pure: bytes come in as chunks, plain data goes out. Files, clocks, threads
//! and terminals belong to the callers.

mod ahead;
mod analysis;
pub mod capture;
pub mod cc;
pub mod command;
mod dns;
pub mod evidence;
pub mod find;
mod flow;
pub mod host;
mod icmp;
mod limits;
mod measure;
pub mod report;
pub mod session;
pub mod tracker;
pub mod units;
pub mod view;
pub mod wire;
mod words;
