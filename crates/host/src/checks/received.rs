//! How full the window of a receiver is: shared by the checks that ask why a download is slow.

use super::flows::{bytes_in, rate};
use crate::flow::Flow;
use crate::seen::Seen;
use crate::snapshot::Info;

/// From this share of its window in a round trip on, a flow fills it. Ours, not measured.
const FULL_PERCENT: u64 = 70;

/// What waits for the program at least so long, and for two round trips, waits for it and not for room in the
/// buffer. Ours; on 6.18 a reader of 0.9 Gbit/s with a buffer of 16 KiB, full at both looks, left 0.1 ms.
const LONG_NS: u64 = 10_000_000;

/// How long what has come waits until the program has read it, at the pace at which it read between the looks;
/// the longest time where it read nothing. `None` where that cannot be told.
pub(super) fn wait_ns(seen: &Seen<'_>, flow: &Flow<'_>) -> Option<u64> {
    let came = flow.grew(|info| info.bytes_received)?;
    let (before, now) = (flow.before?.receive_queue, flow.now.receive_queue);
    let read = came.saturating_add(before.into()).saturating_sub(now.into());
    let wait = u128::from(now) * u128::from(seen.apart_ns()?);
    let wait = wait.checked_div(read.into()).unwrap_or(if now == 0 { 0 } else { u128::MAX });
    Some(u64::try_from(wait).unwrap_or(u64::MAX))
}

/// The program takes what comes; with one look, as far as less than half of the buffer waits for it.
pub(super) fn is_read(seen: &Seen<'_>, flow: &Flow<'_>) -> bool {
    let rtt = flow.info().and_then(|info| info.rcv_rtt_ns).unwrap_or(0);
    wait_ns(seen, flow).map_or_else(
        || flow.now.memory.is_none_or(|memory| memory.rmem < memory.rcvbuf / 2),
        |wait| wait < LONG_NS.max(rtt.saturating_mul(2)),
    )
}

/// A round trip brings as much as the window admits; `None` where that cannot be told. With one look
/// `rcv_space` takes its place: the most that was ever read in a round trip.
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
