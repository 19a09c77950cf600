//! What a sending kernel waited for at each instant, by its own records, and how far the verdicts
//! of `tcpwhy explain` agree with it.
//!
//! ```text
//! kernel.jsonl, applications.jsonl, plan.json --records--> what each sender knew, and when
//!     --observed (an observed kernel) or probed (stock tracepoints)--> Truth
//! Truth + report of explain (JSON) --compare--> Agreement: time, cwnd, RTT, loss
//! the link's own log + what the report says of the link --link--> Held: when it was busy, its rate, losses
//! ```
//!
//! This crate shares no code with what it judges: it reads records of the kernel and JSON, never
//! packets, and has its own list of states. A sender knows less than the network does: a full path looks
//! like a full congestion window to it; [`classes`] says which words may stand for which, and the log of
//! the link's own queue when it was full.

pub mod classes;
pub mod compare;
mod error;
mod line;
pub mod link;
mod observed;
mod probed;
mod records;
mod spans;
mod states;
pub mod stock;
mod truth;
pub mod words;

pub use error::TruthError;
pub use states::State;
pub use truth::{
    Connection, Direction, FORMAT, Fullness, Interval, Source, Truth, Window, of_folder,
    of_stock_records,
};
