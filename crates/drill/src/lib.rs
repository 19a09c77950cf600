//! Scripts of packetdrill, run against the model.
//!
//! A script is a tape: packets that come in, packets that must go out, system calls and what they
//! return, and what `TCP_INFO` says meanwhile. The scripts of the Linux kernel
//! (tools/testing/selftests/net/packetdrill) and of google/packetdrill (gtests/net/tcp) were made
//! against the kernel, so they say what the model must do; they run here unmodified.
//!
//! ```text
//! text -> tokens -> Script -> run -> Verdict
//! ```
//!
//! Time is simulated: an event happens exactly when the script says, and takes ten microseconds.
//!
//! The program never runs scripts; it only writes them (`tcpwhy_model::repro`). Those who work on the model run them.

mod error;
mod lexer;
mod packet;
mod parser;
mod python;
mod run;
mod script;
mod shell;

pub use error::{Place, ScriptError};
pub use parser::Definitions;
pub use run::{Setup, Verdict, run};
pub use script::{Action, Body, Call, Command, Event, Expression, Icmp, Packet, Script, When};
