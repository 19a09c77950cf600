//! All that touches a running Linux. It reads and carries out; the core judges.

pub mod collect;
pub mod lab;
pub mod leased;
pub mod live;
mod netlink;
pub mod record;
mod sys;
