//! What held a sender: shared by the checks that ask why an upload is slow.

use super::counters;
use crate::host::flow::Flow;
use crate::host::seen::Seen;
use crate::host::snapshot::{Info, Socket};

/// Below this time with something in flight shares of it mean little. Ours, not measured.
const LEAST_BUSY_NS: u64 = 1_000_000_000;
/// From this share of its busy time on a sender counts as held. Ours, not measured.
const HELD_PERCENT: u64 = 20;

/// Whether the send buffer held it, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The kernel booked the time: so much of so much busy time.
    Booked(u64, u64),
    /// The buffer was full of data in flight at every look, while windows had room. The kernel books only
    /// where the queue was empty and the program was told to wait, so that it may book nothing then.
    Full,
}

impl Held {
    pub(super) const fn is_booked(self) -> bool {
        matches!(self, Self::Booked(..))
    }
}

/// Time that `of` counts, and busy time: between the looks, with one look ever; where the share is enough.
pub(super) fn held(
    flow: &Flow<'_>,
    seen: &Seen<'_>,
    of: impl Fn(&Info) -> Option<u64> + Copy,
) -> Option<(u64, u64)> {
    let spent = |part: &dyn Fn(&Info) -> Option<u64>| match seen.before {
        Some(_) => flow.grew(part),
        None => part(flow.info()?),
    };
    let (held, busy) = (spent(&of)?, spent(&|info| info.busy_ns)?);
    let is_held = busy >= LEAST_BUSY_NS && counters::is_share(held, busy, HELD_PERCENT);
    is_held.then_some((held, busy))
}

/// Whether its send buffer held it.
pub(super) fn by_buffer(flow: &Flow<'_>, seen: &Seen<'_>) -> Option<Held> {
    if let Some((held, busy)) = held(flow, seen, |info| info.sndbuf_limited_ns) {
        return Some(Held::Booked(held, busy));
    }
    let moved = flow.grew(|info| info.bytes_acked).is_some_and(|moved| moved > 0);
    (moved && flow.always(is_pinned)).then_some(Held::Full)
}

/// All that is written is in flight, the program gets no more room, and both windows have some.
fn is_pinned(socket: &Socket) -> bool {
    let pinned = || {
        let (info, memory) = (socket.info.as_ref()?, socket.memory?);
        let (mss, in_flight) = (u64::from(info.snd_mss?), u64::from(info.unacked?));
        // `sk_stream_is_writeable`, Linux v6.12 `include/net/sock.h`: room again below two thirds.
        let is_full = u64::from(memory.wqueued) * 3 > u64::from(memory.sndbuf) * 2;
        let is_sent = info.notsent_bytes? < mss && in_flight > 0;
        let has_room = in_flight < u64::from(info.snd_cwnd?)
            && (in_flight + 1) * mss <= u64::from(info.snd_wnd?);
        Some(is_full && is_sent && has_room)
    };
    pinned().unwrap_or(false)
}

/// What was acknowledged: between the looks, or ever.
pub(super) fn amount(flow: &Flow<'_>) -> u64 {
    flow.grew(|info| info.bytes_acked).or_else(|| flow.info()?.bytes_acked).unwrap_or_default()
}
