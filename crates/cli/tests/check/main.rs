//! `tcpwhy check` as users run it, in network namespaces of the tests' own where something is wrong on purpose:
//! each fault is found on the real kernel, `fix.sh` cures it and `rollback.sh` brings back what was.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod closing;
mod connecting;
mod drops;
mod path;
mod queues;
mod receiving;
mod routing;
mod sending;
mod settings;
mod space;
