//! `tcpwhy live --metrics` with the real Prometheus: scraped, asked, and an alert fires.

#[path = "../common/mod.rs"]
mod common;
mod packaging;
mod prometheus;
mod scraped;
mod server;
