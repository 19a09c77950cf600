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

/// Whether a sender fits its segments to a window of this many bytes by half of it, so that two are under way. Of a smaller
/// one it makes a segment of the whole window, and keeps a part of one back until its timer runs out (Linux
/// `tcp_bound_to_half_wnd`, `TCP_MSS_DEFAULT`; RFC 9293 section 3.8.6.2.1).
pub(crate) fn takes_segments(window: u64) -> bool {
    window > 536
}

/// The rate that a window allows, as words to follow others.
pub(super) fn at_most(case: &Case<'_>, window: u64) -> String {
    let rate = case.rtt().and_then(|rtt| Some((rtt, BitRate::of(Bytes(window), Duration(rtt))?)));
    rate.map_or_else(String::new, |(rtt, rate)| {
        format!("; over a round trip of {} that is at most {rate}", said::time(rtt))
    })
}
