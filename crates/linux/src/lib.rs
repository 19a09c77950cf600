//! All that touches a running Linux. It reads and carries out; the core judges.

pub mod lab;
pub mod record;
