//! What held the sender at each instant.
//!
//! One [`walker::Walker`] a direction walks that sender's timeline: its sends, and the arrivals
//! of the peer's packets at its stack, wherever the tap stood. Between two events it lays down a
//! [`piece::Piece`]; what releases the next send decides the pieces of the wait before it, rounds
//! decide what looks alike wait by wait, and the [`ledger::Ledger`] books the result so that it
//! adds up. Read limits-method sections 4 to 6 first.

pub(crate) mod acks;
pub(crate) mod afar;
pub(crate) mod avoidance;
pub(crate) mod batch;
mod before;
pub(crate) mod book;
pub(crate) mod burst;
pub(crate) mod decision;
mod edge;
pub(crate) mod evidence;
pub(crate) mod gaps;
pub(crate) mod growth;
mod holes;
mod hystart;
pub(crate) mod jumps;
pub(crate) mod ledger;
pub(crate) mod listed;
mod nagle;
pub(crate) mod order;
pub(crate) mod piece;
pub(crate) mod pulse;
pub(crate) mod queue;
pub(crate) mod receiving;
pub(crate) mod releases;
pub(crate) mod repair;
pub(crate) mod repeats;
pub(crate) mod replay;
mod round;
pub(crate) mod rounds;
pub(crate) mod samples;
pub(crate) mod sends;
pub(crate) mod settle;
pub(crate) mod spacing;
pub(crate) mod stop;
pub(crate) mod streak;
pub(crate) mod stuck;
pub(crate) mod timers;
pub(crate) mod transfers;
pub(crate) mod trips;
pub(crate) mod turns;
pub(crate) mod unseen;
pub(crate) mod waits;
pub(crate) mod walker;
pub(crate) mod window;
pub(crate) mod writes;
