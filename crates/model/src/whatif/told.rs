//! An account as JSON has it, for the command and the page.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::fit::Account;

/// One direction's account.
#[derive(Debug, Serialize)]
pub struct Told {
    time_ns: i64,
    time_in_ns: BTreeMap<&'static str, i64>,
    rounds: u64,
    bytes: u64,
    resent_segments: u64,
    first_flight_bytes: u64,
    max_in_flight_bytes: u64,
}

impl From<&Account> for Told {
    fn from(account: &Account) -> Self {
        let time_in = account.time_in.iter().map(|(state, span)| (state.name(), span.0));
        Self {
            time_ns: account.ns,
            time_in_ns: time_in.collect(),
            rounds: account.rounds,
            bytes: account.bytes,
            resent_segments: account.resent,
            first_flight_bytes: account.first_flight,
            max_in_flight_bytes: account.most_in_flight,
        }
    }
}
