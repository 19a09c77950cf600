//! What the findings about windows share.

use super::case::{Case, window_at};
use crate::report::State;
use tcpwhy_words::said;
use tcpwhy_words::units::{BitRate, Bytes, Duration};

/// The largest window that stopped a round in `state`.
pub(super) fn largest_window(case: &Case<'_>, state: State) -> Option<u64> {
    let stopped = case.direction.rounds.iter().filter(|round| round.limited_by == state);
    stopped.filter_map(window_at).max()
}

/// The rate that a window allows, as words to follow others.
pub(super) fn at_most(case: &Case<'_>, window: u64) -> String {
    let rate = case.rtt().and_then(|rtt| Some((rtt, BitRate::of(Bytes(window), Duration(rtt))?)));
    rate.map_or_else(String::new, |(rtt, rate)| {
        format!("; over a round trip of {} that is at most {rate}", said::time(rtt))
    })
}
