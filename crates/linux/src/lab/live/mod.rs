//! The lab on the running kernel: two network namespaces without names, joined by our own process.

pub mod emulate;
