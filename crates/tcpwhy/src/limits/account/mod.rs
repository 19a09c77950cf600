//! The account: where the time went.
//!
//! Time is laid down in pieces ([`piece`]) that wait for a verdict ([`waits`]), are held back while it is not known
//! whether the link was busy meanwhile ([`due`]), and are booked so that they add up ([`ledger`]).

pub(crate) mod due;
pub(crate) mod ledger;
pub(crate) mod piece;
pub(crate) mod waits;
