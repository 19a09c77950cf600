//! What held the sender at each instant.
//!
//! One [`walker::Walker`] a direction walks that sender's timeline: its sends, and the arrivals
//! of the peer's packets at its stack, wherever the tap stood. Between two events it lays down a
//! [`piece::Piece`]. The send that ends a wait lets [`wait::Wait`] be written down: all that was true in it. The
//! [`rule`]s judge that, some at once and some by the rounds around it ([`near::Near`]), in one order; the
//! [`ledger::Ledger`] books the result so that it adds up. Read limits-method sections 4 to 6 first.

pub(crate) mod account;
pub(crate) mod acks;
pub(crate) mod avoidance;
pub(crate) mod batch;
mod before;
pub(crate) mod book;
pub(crate) mod burst;
mod ended;
pub(crate) mod gaps;
pub(crate) mod growth;
mod holes;
mod hystart;
pub(crate) mod jumps;
pub(crate) mod listed;
pub(crate) mod near;
pub(crate) mod order;
pub(crate) mod pulse;
pub(crate) mod reader;
pub(crate) mod receiving;
pub(crate) mod releases;
pub(crate) mod repair;
pub(crate) mod repeats;
pub(crate) mod replay;
mod round;
pub(crate) mod rule;
pub(crate) mod samples;
pub(crate) mod sends;
pub(crate) mod settle;
pub(crate) mod silence;
pub(crate) mod stop;
pub(crate) mod streak;
pub(crate) mod stuck;
pub(crate) mod timers;
pub(crate) mod transfers;
pub(crate) mod trips;
pub(crate) mod turns;
pub(crate) mod unseen;
pub(crate) mod wait;
pub(crate) mod walker;
pub(crate) mod window;
pub(crate) mod writes;
