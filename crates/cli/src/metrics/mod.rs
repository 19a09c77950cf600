//! What connections wait for, as numbers for a monitoring system (`tcpwhy live --metrics`).
//!
//! ```text
//! rules (TOML) -+
//! Seen ---------+-> group: whose -> tally: sums -> Totals -> text: OpenMetrics -> serve: HTTP
//! one look
//! ```
//!
//! Everything but [`Server`] is pure. A scrape renders what the looks so far add up to and looks at nothing itself. How many series
//! there are is bounded by the rules, whatever connects: `docs/metrics.md` has the arithmetic.

mod groups;
mod host;
mod rules;
mod serve;
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod totals;

pub use rules::{Rules, RulesError};
pub use serve::{ServeError, Server};
pub use text::Form;
pub use totals::{Metrics, Seen, Totals};
