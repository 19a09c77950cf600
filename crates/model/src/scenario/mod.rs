//! Experiments: what a user writes, and what a backend carries out.

pub mod plan;
