//! What tools print, as data: stamps, addresses, counters, system calls.
//!
//! Nothing here knows what it is read for: [`crate::evidence`] lays it beside a capture, [`crate::host`] makes a
//! snapshot of it.

pub(crate) mod address;
pub(crate) mod calls;
pub(crate) mod controllers;
pub(crate) mod counters;
pub(crate) mod error;
pub(crate) mod stamp;
