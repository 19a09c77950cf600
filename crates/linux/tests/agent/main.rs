//! The agent beside real TCP, in network namespaces of its own.

mod apps;
mod records;
mod space;
