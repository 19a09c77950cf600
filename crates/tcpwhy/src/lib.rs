//! From captured bytes to an account of what a TCP transfer waited for.
//!
//! The modules follow the data:
//!
//! ```text
//! capture -> wire -> tracker, flow -> measure -> limits -> analysis -> find -> evidence -> answer -> view
//!  bytes     Segment   Connection     Measures   Intervals   Report   Findings   with[]    words     text, pictures
//! ```
//!
//! Below them lie [`units`], `clocks`, `frame`, [`cc`], [`report`] and [`gain`], what a cause costs; beside them [`manual`], which
//! explains words, and [`host`], a crate of its own, which judges what was seen of a host. No module imports itself
//! by way of others (`tests/rooms.rs`).
//!
//! Everything here is pure: bytes come in as chunks, plain data goes out. Files, clocks, threads
//! and terminals belong to the callers.

mod ahead;
mod analysis;
#[cfg(feature = "ablation")]
pub use limits::rule::ablation;

pub mod answer;
pub mod capture;
pub mod cc;
mod clocks;
pub mod command;
mod dns;
pub mod evidence;
pub mod find;
mod flow;
mod frame;
pub mod gain;
mod icmp;
mod limits;
pub mod live;
pub mod manual;
mod measure;
pub mod names;
mod offsets;
mod packed;
pub mod report;
mod segments;
pub mod session;
pub mod tracker;
pub mod view;
pub mod wire;
pub use tcpwhy_host as host;
pub use tcpwhy_words::units;
