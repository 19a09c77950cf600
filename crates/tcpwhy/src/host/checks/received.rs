//! How full the window of a receiver is: shared by the checks that ask why a download is slow.

use super::flows::{bytes_in, rate};
use crate::host::flow::Flow;
use crate::host::seen::Seen;
use crate::host::snapshot::{Info, Memory};

/// From this share of its window in a round trip on, a flow fills it. Ours, not measured.
const FULL_PERCENT: u64 = 70;

/// The program takes what comes: less than half of the buffer waits for it.
pub(super) fn is_read(flow: &Flow<'_>) -> bool {
    flow.always(|socket| socket.memory.is_none_or(|memory: Memory| memory.rmem < memory.rcvbuf / 2))
}

/// A round trip brings as much as the window admits; `None` where that cannot be told. With one look
/// `rcv_space` stands for it: the most that was ever read in a round trip.
pub(super) fn fills(seen: &Seen<'_>, flow: &Flow<'_>, info: &Info) -> Option<bool> {
    let came = match seen.apart_ns() {
        Some(apart) => {
            bytes_in(rate(flow.grew(|info| info.bytes_received)?, apart)?, info.rcv_rtt_ns?)
        }
        // It begins with ten segments: only a connection that received much has proved it.
        None if info.bytes_received? < window(info)?.saturating_mul(10) => return Some(false),
        None => u64::from(info.rcv_space?),
    };
    Some(came.saturating_mul(100) >= window(info)?.saturating_mul(FULL_PERCENT))
}

/// What it may announce: `rcv_ssthresh` bounds it, and more than that may still stand announced.
pub(super) fn window(info: &Info) -> Option<u64> {
    let window = info.rcv_ssthresh.max(info.rcv_wnd)?;
    (window > 0).then_some(u64::from(window))
}

/// Where the least round trip is not known this is left open, and the finding is less sure.
pub(super) fn is_queued(info: &Info) -> bool {
    info.rcv_rtt_ns.zip(info.min_rtt_ns).is_some_and(|(rtt, least)| rtt >= least.saturating_mul(2))
}

/// What came: between the looks, or ever.
pub(super) fn amount(flow: &Flow<'_>) -> u64 {
    flow.grew(|info| info.bytes_received)
        .or_else(|| flow.info()?.bytes_received)
        .unwrap_or_default()
}
