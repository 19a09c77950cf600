//! Segments to connections in capture order: unwrapped, without copies, with their handshake.

pub(crate) mod connection;
pub(crate) mod copies;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod gathered;
pub(crate) mod peers;
pub(crate) mod run;
pub(crate) mod side;
pub(crate) mod usual;
