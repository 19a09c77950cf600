//! What a socket remembers, in groups: sender, congestion window, recovery, round trips, receiver,
//! acknowledgments, timers. Field names are the kernel's (`struct tcp_sock`,
//! `struct inet_connection_sock`), so that its source can be read beside this.

use std::collections::VecDeque;

use crate::cc::CaState;
use crate::windowed::Windowed;

/// States of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum State {
    /// There is none, or no more.
    #[default]
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN was answered.
    SynReceived,
    /// Both ways are open.
    Established,
    /// This side has ended its sending, and the FIN is not acknowledged.
    FinWait1,
    /// It is.
    FinWait2,
    /// The peer has ended its sending.
    CloseWait,
    /// Both have, at once.
    Closing,
    /// The peer has, then this side; the FIN is not acknowledged.
    LastAck,
    /// All is acknowledged, and late packets are awaited.
    TimeWait,
}

impl State {
    /// What RFC 9293 section 3.3.2 calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }
}

/// Sequence numbers and buffers of the sender.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's flags, independent")]
pub(crate) struct Send {
    pub(crate) una: u32,
    pub(crate) nxt: u32,
    /// End of the last small segment that was sent (Minshall).
    pub(crate) sml: u32,
    pub(crate) write_seq: u32,
    pub(crate) pushed_seq: u32,
    /// A blocked call has written before.
    pub(crate) continues: bool,
    /// Where the first of the blocks of memory begins that are filled now.
    pub(crate) page_base: u32,
    pub(crate) wl1: u32,
    pub(crate) wnd: u32,
    pub(crate) max_window: u32,
    pub(crate) wscale: u8,
    pub(crate) mss_cache: u32,
    pub(crate) mss_clamp: u32,
    pub(crate) gso_segs: u32,
    pub(crate) wmem_queued: u32,
    /// Bytes that the host's queues let pass at once if they are handed down now.
    pub(crate) passes: u64,
    /// What has not left the host (`sk_wmem_alloc`).
    pub(crate) wmem_alloc: u32,
    pub(crate) sndbuf: u32,
    /// A writer waits for room (`SOCK_NOSPACE`).
    pub(crate) nospace: bool,
    pub(crate) throttled: bool,
    pub(crate) nodelay: bool,
    pub(crate) cork: bool,
    pub(crate) fin_queued: bool,
    pub(crate) data_segs_out: u32,
    pub(crate) segs_retrans: u32,
    pub(crate) bytes_acked: u64,
    pub(crate) lsndtime: u64,
    pub(crate) pacing_rate: u64,
    pub(crate) max_pacing_rate: u64,
    /// Packets are held back for pacing.
    pub(crate) paced: bool,
    /// Departure of the last packet (`tcp_wstamp_ns`).
    pub(crate) wstamp_ns: u64,
}

impl Send {
    /// Bytes sent and not acknowledged (`FlightSize` of RFC 5681).
    pub(crate) const fn flight(&self) -> u32 {
        self.nxt.wrapping_sub(self.una)
    }
}

/// Counts of packets, loss detection, recovery and its undoing.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's flags, independent")]
pub(crate) struct Recovery {
    pub(crate) state: CaState,
    pub(crate) packets_out: u32,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    pub(crate) delivered: u32,
    pub(crate) delivered_ce: u32,
    pub(crate) lost: u32,
    pub(crate) high_seq: u32,
    /// End of the highest range that was selectively acknowledged.
    pub(crate) fack: u32,
    pub(crate) undo_marker: Option<u32>,
    pub(crate) undo_retrans: i32,
    /// Timestamp of the first retransmission of an episode, in ticks of timestamps.
    pub(crate) retrans_stamp: Option<u32>,
    pub(crate) retransmits: u32,
    pub(crate) backoff: u32,
    pub(crate) probes_out: u32,
    /// Tick of the last acknowledgment (`rcv_tstamp`).
    pub(crate) heard: u64,
    /// Tick of the first of those probes (`icsk_probes_tstamp`).
    pub(crate) probes_since: Option<u64>,
    pub(crate) frto: bool,
    pub(crate) reneging: bool,
    pub(crate) tlp_high_seq: Option<u32>,
    pub(crate) tlp_retrans: bool,
    pub(crate) reordering: u32,
    pub(crate) reord_seen: bool,
    pub(crate) retransmit_hint: Option<u32>,
    pub(crate) rack: Rack,
    pub(crate) sack_cache: [(u32, u32); 4],
}

/// What RACK knows (RFC 8985).
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    pub(crate) sent_us: u64,
    pub(crate) end_seq: u32,
    pub(crate) rtt_us: u32,
    pub(crate) advanced: bool,
    pub(crate) reo_wnd_steps: u32,
    pub(crate) reo_wnd_persist: u32,
    pub(crate) dsack_seen: bool,
    pub(crate) last_delivered: u32,
}

/// Round trips and the timeout made of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rtt {
    /// Eight times the smoothed round trip.
    pub(crate) srtt_us: u32,
    /// Four times the mean deviation.
    pub(crate) mdev_us: u32,
    pub(crate) mdev_max_us: u32,
    pub(crate) rttvar_us: u32,
    /// Where the current round trip ends (`rtt_seq`).
    pub(crate) round_seq: u32,
    /// In ticks.
    pub(crate) rto: u64,
    /// Least over `tcp_min_rtt_wlen`, in ticks.
    pub(crate) min: Windowed<u32>,
    pub(crate) last_us: u32,
}

/// State of delivery, for rate samples (`tcp_rate.c`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) first_sent_ns: u64,
    pub(crate) delivered_ns: u64,
    /// Where the phase that the application limits ends; 0 if it does not.
    pub(crate) app_limited: u32,
}

/// The receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receive {
    pub(crate) nxt: u32,
    pub(crate) copied_seq: u32,
    pub(crate) wup: u32,
    pub(crate) wnd: u32,
    pub(crate) window_clamp: u32,
    pub(crate) ssthresh: u32,
    pub(crate) wscale: u8,
    pub(crate) rcvbuf: u32,
    pub(crate) rmem_alloc: u32,
    /// Share of payload, in 256ths (`scaling_ratio`).
    pub(crate) scaling_ratio: u32,
    pub(crate) queue: VecDeque<Received>,
    pub(crate) out_of_order: Vec<Held>,
    pub(crate) fin: Option<u32>,
    pub(crate) shutdown: bool,
    /// The socket was closed: nobody will read.
    pub(crate) abandoned: bool,
    pub(crate) rtt_us: u32,
    pub(crate) rtt_seq: u32,
    pub(crate) rtt_time_us: u64,
    pub(crate) last_echo: u32,
    pub(crate) space: u32,
    pub(crate) space_seq: u32,
    pub(crate) space_time_us: u64,
    pub(crate) ts_recent: u32,
    pub(crate) advmss: u32,
    /// Newest first, as they are reported.
    pub(crate) sacks: Vec<(u32, u32)>,
    pub(crate) dsack: Option<(u32, u32)>,
    pub(crate) bytes: u64,
    /// End of the largest window that was told (`rcv_mwnd_seq`).
    pub(crate) farthest: u32,
    /// It waits to be accepted: nobody can read.
    pub(crate) waits: bool,
    /// Tick of the last answer to a segment outside of the window.
    pub(crate) last_refusal: Option<u64>,
}

/// A run of bytes in the receive queue, charged as one buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) end_seq: u32,
    pub(crate) truesize: u32,
    pub(crate) pieces: u32,
}

/// Bytes that came before those in front of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) seq: u32,
    pub(crate) end_seq: u32,
    pub(crate) truesize: u32,
    pub(crate) pieces: u32,
}

/// When to acknowledge (`icsk_ack`).
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's pending bits, independent")]
pub(crate) struct AckPolicy {
    pub(crate) scheduled: bool,
    pub(crate) timer: bool,
    pub(crate) pushed: bool,
    pub(crate) pushed_again: bool,
    pub(crate) now: bool,
    /// Memory ran out: the window is closed with the next acknowledgment.
    pub(crate) no_memory: bool,
    pub(crate) quick: u32,
    pub(crate) pingpong: u8,
    /// Estimate of the time between segments, in ticks.
    pub(crate) ato: u64,
    pub(crate) timeout: u64,
    pub(crate) lrcvtime: u64,
    pub(crate) rcv_mss: u32,
    pub(crate) last_seg_size: u32,
    pub(crate) compressed: u32,
    pub(crate) compressed_nxt: u32,
    pub(crate) dup_count: u32,
}

/// What the one timer of a sender is used for (`icsk_pending`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// The oldest segment is retransmitted.
    Retransmit,
    /// The last one is, to bring the acknowledgments out (TLP).
    LossProbe,
    /// What is late counts as lost (RACK).
    Reorder,
    /// The peer is asked whether its window is still closed.
    WindowProbe,
}

/// Timers, as instants of the host's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers {
    /// Purpose, tick that was asked for, and instant at which the wheel gives it.
    pub(crate) transmit: Option<(Purpose, u64, u64)>,
    /// The same before the first segment that is under way was sent.
    pub(crate) before_flight: Option<(Purpose, u64, u64)>,
    pub(crate) delack: Option<u64>,
    pub(crate) compressed: Option<u64>,
    pub(crate) pacing: Option<u64>,
    pub(crate) time_wait: Option<u64>,
    pub(crate) keepalive: Option<u64>,
}

/// ECN (RFC 3168).
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's ecn_flags, independent")]
pub(crate) struct EcnState {
    pub(crate) ok: bool,
    pub(crate) queue_cwr: bool,
    pub(crate) demand_cwr: bool,
    pub(crate) seen: bool,
}
