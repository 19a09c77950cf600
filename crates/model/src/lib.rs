//! TCP experiments as data, and a model of Linux TCP that carries them out.
//!
//! An experiment is written once and runs anywhere: on the running kernel, on a kernel in
//! simulated time, and in the model. [`scenario`] has what they share. The model is a
//! discrete-event simulation: a [`world`] of two hosts' [`socket`]s with their kernels
//! ([`profile`]), joined by a [`path`]. Nothing here touches an operating system, a clock or a
//! float that decides, so that a page gets the same run, bit by bit.

mod cc;
pub mod chance;
pub mod fit;
pub mod ladder;
pub mod path;
pub mod predict;
pub mod profile;
pub mod repro;
pub mod scenario;
pub mod segment;
pub mod socket;
pub mod whatif;
mod windowed;
pub mod world;

pub use cc::TEXTBOOKS;
