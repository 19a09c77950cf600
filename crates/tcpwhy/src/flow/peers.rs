//! Counts in the sense of Wireshark's analysis flags, in capture order.
//!
//! Question: what would `tcp.analysis.*` say of these packets? Users compare our counts with
//! Wireshark's, so these follow its definitions (4.0, `tcp_analyze_sequence_number`) and not the
//! sender's timeline that the limits are decided on. The retransmission family is not counted
//! here: there we have more evidence than Wireshark and decide it in `measure::flight`.

use super::event::{ACK, Event, FIN, RST, SYN};
use crate::offsets::Offset;

/// Counts for the data direction of one side (its data, the other side's ACKs).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) zero_window: u64,
    pub(crate) zero_window_probe: u64,
    pub(crate) window_full: u64,
    pub(crate) window_update: u64,
    pub(crate) keep_alive: u64,
    pub(crate) duplicate_ack: u64,
    pub(crate) ecn_echo: u64,
}

/// What one side last sent, as Wireshark remembers it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    seen: bool,
    /// The offset after it.
    pub(super) next_seq: Offset,
    /// What it acknowledged.
    pub(super) ack: Offset,
    /// Its window, as it is in the header, and in bytes; 0 where the shift is not known.
    pub(super) window: u16,
    pub(super) scaled_window: i64,
}

impl Last {
    /// Whether `event` ends where the window does that this side announced.
    fn is_filled_by(&self, event: &Event) -> bool {
        event.len > 0
            && self.seen
            && self.scaled_window > 0
            && event.end() == self.ack + self.scaled_window
    }
}

/// Both sides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peers {
    last: [Last; 2],
    /// Indexed by the side whose data direction is counted.
    pub(crate) counts: [Counts; 2],
}

impl Peers {
    /// Takes the next segment; `scaled_window` is `None` where the shift is not known. Says
    /// whether the segment is a keep-alive or a probe of a zero window.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event, scaled_window: Option<i64>) -> bool {
        let me = event.side();
        let (mine, theirs) = (&self.last[me], &self.last[1 - me]);
        let own = &mut self.counts[me];
        let plain = event.bits & (SYN | FIN | RST) == 0;
        let mut probe = false;
        if plain && mine.seen {
            if theirs.seen && theirs.window == 0 && event.len == 1 && event.seq == mine.next_seq {
                own.zero_window_probe += 1;
                probe = true;
            } else if event.len <= 1 && event.seq == mine.next_seq - 1 {
                // Linux probes a zero window with an empty segment of an old sequence number
                // (`tcp_xmit_probe_skb`), which Wireshark cannot tell from a keep-alive.
                if theirs.seen && theirs.window == 0 {
                    own.zero_window_probe += 1;
                } else {
                    own.keep_alive += 1;
                }
                probe = true;
            }
            own.window_full += u64::from(!probe && theirs.is_filled_by(event));
        }
        if plain && event.has(ACK) && !probe {
            self.count_ack(event, me);
        }
        self.remember(event, me, scaled_window);
        probe
    }

    /// What `me` last sent; `None` before its first segment.
    pub(super) fn last(&self, me: usize) -> Option<&Last> {
        Some(&self.last[me]).filter(|last| last.seen)
    }

    /// Segments of `me` that nothing was to be said of came after that one; this is the last.
    pub(super) fn move_on(
        &mut self,
        me: usize,
        next_seq: Offset,
        ack: Offset,
        (window, scaled_window): (u16, i64),
    ) {
        self.last[me] = Last { seen: true, next_seq, ack, window, scaled_window };
    }

    fn count_ack(&mut self, event: &Event, me: usize) {
        let mine = &self.last[me];
        let peer = &mut self.counts[1 - me];
        if event.window == 0 {
            peer.zero_window += 1;
        }
        if event.has(super::event::ECE) {
            peer.ecn_echo += 1;
        }
        let repeats =
            mine.seen && event.len == 0 && event.seq == mine.next_seq && event.ack == mine.ack;
        if repeats && event.window != mine.window && event.window != 0 {
            peer.window_update += 1;
        } else if repeats && event.window != 0 && self.last[1 - me].next_seq > event.ack {
            peer.duplicate_ack += 1;
        }
    }

    fn remember(&mut self, event: &Event, me: usize, scaled_window: Option<i64>) {
        let mine = &mut self.last[me];
        let end = event.end() + i64::from(event.has(FIN));
        mine.next_seq = if mine.seen { mine.next_seq.max(end) } else { end };
        if event.has(SYN) {
            mine.next_seq = Offset::FIRST;
        }
        if event.has(ACK) {
            mine.ack = event.ack;
            mine.window = event.window;
            mine.scaled_window = scaled_window.unwrap_or(0);
        }
        mine.seen = true;
    }
}
