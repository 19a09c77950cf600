//! What tools print, as data: stamps, addresses, counters, system calls.
//!
//! Nothing here knows what it is read for: evidence beside a capture, or the snapshot of a host.

pub mod address;
pub mod calls;
pub mod controllers;
pub mod counters;
pub mod error;
pub mod stamp;
