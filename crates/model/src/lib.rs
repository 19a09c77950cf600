//! TCP experiments as data.
//!
//! An experiment is written once and runs anywhere: on the running kernel, on a kernel in
//! simulated time, and in the model. This crate has what they share; it touches no operating
//! system, so that a page can read the same experiments.

mod cc;
pub mod path;
pub mod profile;
pub mod scenario;
pub mod segment;
pub mod socket;
pub mod world;
