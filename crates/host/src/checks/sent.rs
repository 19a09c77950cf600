//! What held a sender: shared by the checks that ask why an upload is slow.

use super::counters;
use crate::flow::Flow;
use crate::seen::Seen;
use crate::snapshot::{Glimpse, Info};

/// Below this time with something in flight shares of it mean little. Ours, not measured.
const LEAST_BUSY_NS: u64 = 1_000_000_000;
/// From this share of its busy time on a sender counts as held. Ours, not measured.
const HELD_PERCENT: u64 = 20;
/// Seen less often a buffer may be full by chance. Ours: of 12 times one that is full half of the time shows itself full
/// nine times in one case of 14.
const LEAST_SEEN: u64 = 12;
/// From this share of the times on. Ours: on 6.18, over round trips of 2 and 20 ms, buffers that held a sender were
/// full in 90 to 100 % of 40 looks (in half of them with BBR; there the kernel books the time), those of programs
/// that paused in none to 55 %.
const FULL_PERCENT: u64 = 75;

/// Whether the send buffer held it, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The kernel booked the time: this much of this much busy time.
    Booked(u64, u64),
    /// The buffer was full of data in flight this often, of this many times that it was seen, while windows had room.
    /// The kernel may book nothing then: it begins when a packet leaves while the program waits
    /// (`tcp_cwnd_validate`), and what a large write fills has left before it waits (`tcp_push_one`).
    Full(u64, u64),
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
    let (mut full, mut seen, mut refused) = (0, 0, false);
    for glimpse in flow.glimpses() {
        seen += 1;
        full += u64::from(is_pinned(glimpse));
        // No write is taken then (`__sk_stream_memory_free`): less than that may be all that the program has.
        refused |= is_pinned(glimpse) && glimpse.wqueued >= glimpse.sndbuf;
    }
    let is_held = seen >= LEAST_SEEN && refused && counters::is_share(full, seen, FULL_PERCENT);
    (moved && is_held).then_some(Held::Full(full, seen))
}

/// All that is written is in flight, the program gets no more room, and both windows have some.
fn is_pinned(at: Glimpse) -> bool {
    let mss = u64::from(at.snd_mss);
    // `sk_stream_is_writeable`, Linux v6.12 `include/net/sock.h`: room again below two thirds.
    let is_full = u64::from(at.wqueued) * 3 > u64::from(at.sndbuf) * 2;
    let is_sent = at.notsent_bytes < mss && at.unacked > 0;
    let has_room =
        at.unacked < at.snd_cwnd && (u64::from(at.unacked) + 1) * mss <= u64::from(at.snd_wnd);
    is_full && is_sent && has_room
}

/// What was acknowledged: between the looks, or ever.
pub(super) fn amount(flow: &Flow<'_>) -> u64 {
    flow.grew(|info| info.bytes_acked).or_else(|| flow.info()?.bytes_acked).unwrap_or_default()
}
