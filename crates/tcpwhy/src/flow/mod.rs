//! Segments to connections in capture order: unwrapped, without copies, with their handshake,
//! and what their bytes tell of TLS, of failures and of data that was not taken.

pub(crate) mod connection;
pub(crate) mod copies;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod failures;
pub(crate) mod gathered;
pub(crate) mod hello;
mod next;
pub(crate) mod peers;
mod promise;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod said;
pub(crate) mod side;
pub(crate) mod tls;
pub(crate) mod tls_behind;
pub(crate) mod untaken;
pub(crate) mod usual;
