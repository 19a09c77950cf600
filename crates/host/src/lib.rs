//! Is this host set up for fast TCP, and what do its counters say is going wrong.
//!
//! A [`snapshot::Snapshot`] goes in, [`Finding`]s come out: pure functions, one file a check, each with its
//! rule, words, sources and tests. A check asks [`Seen`] for what it needs, and `?` ends it where that was
//! not seen: then it is listed under [`Judgement::unseen`] and nothing is claimed.

mod change;
mod checks;
pub mod doc;
mod finding;
mod flow;
pub mod paste;
pub mod queues;
pub mod saved;
pub mod script;
mod seen;
mod shown;
pub mod snapshot;
pub mod target;
pub mod view;
mod whose;

pub use change::Commands;
pub use checks::{Judgement, judge};
pub use finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
pub use flow::Flow;
pub use seen::{Asked, Growth, Missing, Seen};
pub use shown::shown;
