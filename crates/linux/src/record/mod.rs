//! Records of what real TCP does: packets, the kernel's tracepoints, `TCP_INFO`, counters.
//!
//! Nothing here judges. Every time is `CLOCK_REALTIME` in nanoseconds since 1970, the clock of
//! packet captures. Nothing of the host changes: no setting, no mount outside a namespace of our
//! own, and of the tracing system at most an instance of our own that goes when we do.

pub mod capture;
pub mod clock;
pub mod counters;
mod filter;
pub mod host;
mod link;
mod memory;
pub(crate) mod pcapng;
pub mod recording;
pub mod tcp_info;
pub mod trace;

pub use crate::sys::{Clock, Ender, Stop, ask_to_end};
pub use filter::Wanted;
