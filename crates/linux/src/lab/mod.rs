//! The lab: a path to run real TCP over, and the kernel's own record of it.
//!
//! A [`backend`] carries out a [`tcpwhy_model::scenario::plan::Plan`] and leaves a folder, the
//! same whatever the backend; [`folder`] has its names.

pub mod agent;
pub mod backend;
pub mod folder;
pub mod live;
pub mod model;
pub mod queue;
pub mod uml;
