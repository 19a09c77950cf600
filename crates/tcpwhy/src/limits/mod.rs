//! What held the sender at each instant.
//!
//! A [`walk::Walker`] a direction walks that sender's timeline: its sends, and the arrivals of the peer's packets at its
//! stack, wherever the tap stood. Its parts:
//!
//! ```text
//! sender/   what is known of the sender, as facts: events in, facts and proofs out
//! wait      all that was true from one send to the next; round and near/: the rounds around it
//! rule/     what a wait was for: pure functions, asked in one order
//! account/  where the time went: pieces, what waits for the link, the ledger that adds up
//! sense/    every threshold once, with its source
//! walk/     the only place that knows all of these
//! quick/    the short ways for packets that go on as the last did
//! ```
//!
//! Read limits-method sections 4 to 6 first.

pub(crate) mod account;
pub(crate) mod beat;
pub(crate) mod evidence;
pub(crate) mod near;
pub(crate) mod proof;
pub(crate) mod pulse;
pub(crate) mod quick;
pub(crate) mod round;
pub(crate) mod rule;
pub(crate) mod sender;
pub(crate) mod sense;
pub(crate) mod wait;
pub(crate) mod walk;
