//! Which Linux it is, as data: what differs between versions, and what an administrator sets.
//!
//! A [`KernelProfile`] names each difference by what it does, so that any mixture can be tried.
//! 4.18, 5.4 and 5.15 stand for the kernels as first released (5.4 and 5.15 with what their later
//! releases mended of `HyStart`); 5.10, 6.1 and 6.12 for the long-term kernels of Debian (5.10.262,
//! 6.1.192, 6.12.117), which carry many changes of later ones. 6.18, a long-term kernel, too, is taken
//! to have what 6.12.117 has, for what goes to an older one goes to it as well. 7.3 is known for
//! other people's scripts; of it only what they ask for.

mod knobs;

use std::fmt;

pub use knobs::{KnobError, Locked, Route, Sysctl, fastopen};

/// A version of Linux.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version {
    /// The 6 of 6.12.
    pub major: u16,
    /// The 12 of 6.12.
    pub minor: u16,
}

impl Version {
    /// `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What is no version of a kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoVersion;

impl std::str::FromStr for Version {
    type Err = NoVersion;

    /// Reads `6.12`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let (major, minor) = text.split_once('.').ok_or(NoVersion)?;
        let number = |text: &str| text.parse().map_err(|_| NoVersion);
        Ok(Self::new(number(major)?, number(minor)?))
    }
}

/// What one version of Linux does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent change of the kernel")]
pub struct KernelProfile {
    /// Its version.
    pub version: Version,
    /// Ticks a second (`CONFIG_HZ`).
    pub hz: u32,
    /// When slow start may grow.
    pub growth: Growth,
    /// How `cwnd` follows what is delivered during a reduction.
    pub prr: Prr,
    /// How CUBIC looks for the end of slow start.
    pub hystart: Hystart,
    /// Super-segments grow on short round trips (`tcp_tso_rtt_log`, v5.18).
    pub tso_by_rtt: bool,
    /// When TSO waits for more room.
    pub defer: Defer,
    /// A queue with one segment is never throttled by TSQ, either (v6.1 and long-term kernels).
    pub tsq_passes_single: bool,
    /// How free buffer becomes window.
    pub space: Space,
    /// How large the first window is.
    pub first_window: FirstWindow,
    /// How the receive buffer is tuned.
    pub tuning: Tuning,
    /// Replies until a connection counts as interactive (`tcp_pingpong_thresh`).
    pub pingpong: u8,
    /// SYN retransmissions at one second each before the interval doubles (`tcp_syn_linear_timeouts`).
    pub linear_syns: u8,
    /// Acknowledgments with SACK are compressed only after three (v4.18 did at once).
    pub compress_after_three: bool,
    /// Held-back acknowledgments are sent before a third range is reported (v5.8).
    pub third_range_flushes: bool,
    /// They are sent when the delayed one's timer runs out, even if that one left early (v6.4 and long-term kernels).
    pub delack_flushes: bool,
    /// Their own timer reads the clock (v6.13).
    pub compressed_reads_clock: bool,
    /// The window grows by the payload's charge alone (`truesize_adjust`, v5.9 and long-term
    /// kernels).
    pub grows_by_payload: bool,
    /// What lies unread does not count as read (v6.16 and long-term kernels).
    pub tuning_counts_read: bool,
    /// A full segment with PSH is acknowledged when it is read (v6.6 and long-term kernels).
    pub push_counts_full: bool,
    /// A receiver's lower round trip sample counts at once (v6.1 and long-term kernels).
    pub rcv_rtt_takes_lower: bool,
    /// An echo of the same millisecond is no sample of the receiver's round trip (v6.12); before,
    /// it counted as one millisecond.
    pub rcv_rtt_skips_zero: bool,
    /// What comes before its time tells the size of segments, too (v6.12).
    pub measures_early_segments: bool,
    /// A window of zero is taken although the segment is not newer (v6.7).
    pub takes_zero_window: bool,
    /// The delay of an ACK stays below the least retransmission timeout (v6.8).
    pub delack_below_rto_min: bool,
    /// `ssthresh` of a connection is kept for the next (before v5.6).
    pub keeps_ssthresh: bool,
    /// During a handshake a reset must have the very number that is expected (long-term kernels since
    /// 6.1, v7.3).
    pub challenges_early_resets: bool,
    /// The segment size that is announced follows the device and the route, not what routers told of the
    /// path (`ip_dst_mtu_configured`, which 6.12.117 has; the scripts of 7.3 ask for it).
    pub announces_configured_mtu: bool,
    /// More duplicates than retransmissions are not of the sender's making (`tcp_dsack_seen`, v5.10).
    pub doubts_duplicates: bool,
    /// A segment that ends beyond the window is refused unless nothing lies unread (v6.17).
    pub checks_ends: bool,
    /// It is held against the largest window that was told (`rcv_mwnd_seq`, v7.3).
    pub remembers_largest_window: bool,
    /// An acknowledgment of what was not sent is asked about (v7.3).
    pub challenges_unsent: bool,
    /// The receive buffer grows on what comes before its time, once somebody reads (v6.17).
    pub grows_on_early: bool,
    /// What cannot be taken for want of memory closes the window at once (v6.6).
    pub closes_without_memory: bool,
    /// A route's values for new connections count from the first one on (to v6.6); since, a peer's
    /// are made from them only when something is to be kept.
    pub route_metrics_at_once: bool,
    /// Since v4.20 TCP paces by times of departure, before by a timer of `fq` or its own.
    pub departure_times: bool,
    /// A queue of more than twice its buffer and two large segments is not cut further but at its ends
    /// (`tcp_fragment`, v5.3 and long-term kernels).
    pub bounds_splits: bool,
    /// Probes and the wait for what is out of order are allowed two ticks besides, not 2 ms (before
    /// `TCP_TIMEOUT_MIN_US`, v6.6 and long-term kernels).
    pub allows_two_ticks: bool,
    /// An acknowledgment is too old by what was acknowledged in all, not only by the largest window
    /// (v6.7 and long-term kernels).
    pub bounds_old_acks: bool,
    /// A writer that waits may go on, and the send buffer grow, with each segment that is sent, not only
    /// when memory comes free (`tcp_event_new_data_sent`, v5.18 and long-term kernels).
    pub looks_for_room_when_sent: bool,
    /// How memory is charged.
    pub memory: Memory,
    /// How long its driver gathers what arrives before TCP gets it, merged where it can be (GRO), and TCP
    /// before readers do; `None`: each packet alone and at once.
    pub gather_ns: Option<u64>,
}

/// When slow start may grow (`tcp_is_cwnd_limited`, `tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Growth {
    /// In slow start only by twice the most packets of the last window; the sample is a maximum.
    Doubled,
    /// That, or if the window was full in the current sample (v6.1 and long-term kernels).
    FullOrDoubled,
}

/// Generations of proportional rate reduction (`tcp_cwnd_reduction`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prr {
    /// Slow start part where a retransmission was acknowledged and none lost (to v5.13).
    AfterRetransmit,
    /// Where `snd_una` advanced and nothing was newly lost (to v6.0).
    AfterProgress,
    /// The conservative part sends what was delivered, too (RFC 9937).
    Rfc9937,
}

/// How CUBIC looks for the end of slow start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent change of the kernel")]
pub struct Hystart {
    /// In microseconds, with the ACKs' delay in mind (v5.6); before, in milliseconds against half
    /// of the least delay.
    pub microseconds: bool,
    /// Only the first eight samples of a round count (to v5.15).
    pub eight_samples: bool,
    /// Rounds are followed below 16 packets, too (v6.14, and in 2025 the long-term ones from 6.1 on).
    pub early_rounds: bool,
    /// A round begins where the window grows, after its first acknowledgment was looked at
    /// (`bictcp_cong_avoid`, to v5.15.5, v5.10.82, v5.4.162): that one may end a train of the round before.
    pub late_rounds: bool,
}

/// When TSO waits for more room (`tcp_tso_should_defer`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Defer {
    /// If the oldest packet was sent half a round trip ago.
    HalfRoundTrip,
    /// If its acknowledgment is due within a millisecond (v6.18 and long-term kernels).
    Imminent,
}

/// How free buffer becomes window (`tcp_win_from_space`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Space {
    /// By `tcp_adv_win_scale`.
    AdvWinScale,
    /// By the share of payload in what was received (v6.6).
    Ratio,
}

/// How large the first window is (`tcp_select_initial_window`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstWindow {
    /// Twenty segments (to v4.19).
    TwentySegments,
    /// At most 65,535 bytes.
    Field,
    /// What the buffer gives; only the field of the SYN is cut (v6.12).
    Buffer,
}

/// Generations of the receive buffer's tuning (`tcp_rcv_space_adjust`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tuning {
    /// Twice what was read in a round trip, and more if it grows, in whole segments' memory.
    Doubled,
    /// The same, in bytes of window (v6.6).
    DoubledBytes,
    /// Twice, without anticipation (v6.16).
    Plain,
    /// Twice, and anticipation from the last window (v6.18).
    Anticipating,
}

/// Sizes that are charged to buffers, of a 64-bit kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Memory {
    /// Room for headers before the payload (`MAX_TCP_HEADER`).
    pub headers: u32,
    /// `struct sk_buff`, aligned.
    pub skb: u32,
    /// `struct skb_shared_info`, aligned.
    pub shared: u32,
    /// Heads come from a cache of their own size, not from powers of two (v6.3).
    pub small_heads: bool,
    /// Charge of a received full-sized packet, beside its payload.
    pub receive: ReceiveCharge,
}

/// What a received packet is charged with (`skb->truesize`), which depends on the driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReceiveCharge {
    /// The sender's own memory crosses (veth): headers and payload as they were allocated.
    Virtual,
    /// A driver that receives each packet into a piece of a page of its own.
    Pages {
        /// What a buffer takes besides; packets that are merged share one, as many as its pieces are.
        buffer: u32,
        /// The piece, however little of it is filled.
        packet: u32,
    },
    /// A TUN device copies what a program wrote (`tun_alloc_skb`); its heads cannot be joined.
    Copied,
}

/// When a host asks whether a silent peer is still there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeepaliveTimes {
    /// `tcp_keepalive_time`, in seconds.
    pub time: u32,
    /// `tcp_keepalive_intvl`, in seconds.
    pub intvl: u32,
    /// `tcp_keepalive_probes`.
    pub probes: u32,
}

impl Default for KeepaliveTimes {
    fn default() -> Self {
        // `TCP_KEEPALIVE_TIME`, `TCP_KEEPALIVE_INTVL`, `TCP_KEEPALIVE_PROBES` of include/net/tcp.h.
        Self { time: 7200, intvl: 75, probes: 9 }
    }
}

impl KernelProfile {
    /// The versions that are known by name.
    pub const KNOWN: [Version; 8] = [
        Version::new(4, 18),
        Version::new(5, 4),
        Version::new(5, 10),
        Version::new(5, 15),
        Version::new(6, 1),
        Version::new(6, 6),
        Version::new(6, 12),
        Version::new(6, 18),
    ];

    /// Those that were held against real kernels in simulated time (docs/model.md); the others
    /// never were.
    pub const HELD_AGAINST_KERNELS: [Version; 3] =
        [Version::new(5, 10), Version::new(6, 1), Version::new(6, 12)];

    /// The profile of a version from the oldest known to the newest; none of another.
    pub fn known(version: Version) -> Option<Self> {
        let (oldest, newest) = (Self::KNOWN[0], Self::KNOWN[Self::KNOWN.len() - 1]);
        (oldest..=newest).contains(&version).then(|| Self::of(version))
    }

    /// The profile of a version: what the newest known one not after it does.
    #[expect(clippy::too_many_lines, reason = "one flat table, a line a change")]
    pub fn of(version: Version) -> Self {
        let at = |major, minor| version >= Version::new(major, minor);
        let long_term = version == Version::new(5, 10);
        Self {
            version,
            hz: 250,
            growth: if at(6, 1) || long_term { Growth::FullOrDoubled } else { Growth::Doubled },
            prr: match () {
                () if at(6, 1) => Prr::Rfc9937,
                () if at(5, 14) => Prr::AfterProgress,
                () => Prr::AfterRetransmit,
            },
            hystart: Hystart {
                microseconds: at(5, 6),
                eight_samples: !at(5, 8) && version != Version::new(5, 4),
                early_rounds: at(6, 6) || version == Version::new(6, 1),
                late_rounds: !at(5, 15) && !long_term && version != Version::new(5, 4),
            },
            tso_by_rtt: at(5, 18),
            defer: if at(6, 18) || long_term || version == Version::new(6, 1) || at(6, 12) {
                Defer::Imminent
            } else {
                Defer::HalfRoundTrip
            },
            tsq_passes_single: at(6, 1) || long_term,
            space: if at(6, 6) { Space::Ratio } else { Space::AdvWinScale },
            first_window: match () {
                () if at(6, 12) => FirstWindow::Buffer,
                () if at(4, 20) => FirstWindow::Field,
                () => FirstWindow::TwentySegments,
            },
            tuning: match () {
                () if at(6, 18) => Tuning::Anticipating,
                () if at(6, 16) => Tuning::Plain,
                () if at(6, 6) => Tuning::DoubledBytes,
                () => Tuning::Doubled,
            },
            pingpong: if at(5, 1) && !at(6, 0) && !long_term { 3 } else { 1 },
            linear_syns: if at(6, 5) { 4 } else { 0 },
            compress_after_three: at(4, 19),
            third_range_flushes: at(5, 8),
            delack_flushes: at(6, 4) || version == Version::new(6, 1) || long_term,
            compressed_reads_clock: at(6, 13),
            grows_by_payload: at(5, 9),
            tuning_counts_read: at(6, 12),
            push_counts_full: at(6, 6) || version == Version::new(6, 1) || long_term,
            rcv_rtt_takes_lower: at(6, 1) || long_term,
            rcv_rtt_skips_zero: at(6, 12),
            measures_early_segments: at(6, 12),
            takes_zero_window: at(6, 7),
            delack_below_rto_min: at(6, 8),
            keeps_ssthresh: !at(5, 6),
            challenges_early_resets: at(6, 18)
                || version == Version::new(6, 1)
                || version == Version::new(6, 12),
            announces_configured_mtu: at(6, 18) || version == Version::new(6, 12),
            doubts_duplicates: at(5, 10),
            checks_ends: at(6, 17),
            remembers_largest_window: at(7, 3),
            challenges_unsent: at(7, 3),
            grows_on_early: at(6, 17),
            closes_without_memory: at(6, 6),
            route_metrics_at_once: !at(6, 7) && !long_term && version != Version::new(6, 1),
            departure_times: at(4, 20),
            bounds_splits: at(5, 3),
            allows_two_ticks: !at(5, 4),
            bounds_old_acks: at(5, 4),
            looks_for_room_when_sent: at(5, 4),
            memory: Memory {
                small_heads: at(6, 3),
                // It was rounded up to lines of the cache in v5.7.
                headers: if at(5, 7) { Memory::DISTRIBUTION.headers } else { 304 },
                ..Memory::DISTRIBUTION
            },
            gather_ns: None,
        }
    }
}

impl Memory {
    /// As distributions build it: wireless and tunnels make room for headers
    /// (`LL_MAX_HEADER` = 128, `MAX_HEADER` = 176).
    pub const DISTRIBUTION: Self = Self {
        headers: 320,
        skb: 256,
        shared: 320,
        small_heads: false,
        receive: ReceiveCharge::Virtual,
    };

    /// As `make uml` builds it, without wireless and tunnels (`MAX_HEADER` = 32).
    pub const PLAIN: Self = Self { headers: 192, ..Self::DISTRIBUTION };

    /// Charge of a packet of this many bytes that was written to a TUN device: of its head, and of the pages behind
    /// (`tun_get_user`, `tun_alloc_skb`, `alloc_skb_with_frags`).
    pub fn copied(self, packet: u32) -> (u32, u32) {
        /// `NET_SKB_PAD`.
        const PAD: u32 = 64;
        const PAGE: u32 = 4096;
        /// `PAGE_ALLOC_COSTLY_ORDER`.
        const ORDER: u32 = 3;
        let linear = if PAD + packet < PAGE { packet } else { PAGE - PAD - self.shared };
        let (mut left, mut pages) = (packet - linear, 0);
        while left > 0 {
            let order =
                (0..=ORDER).rev().find(|order| left.next_multiple_of(PAGE) >= PAGE << order);
            let chunk = PAGE << order.unwrap_or(0);
            pages += chunk;
            left = left.saturating_sub(chunk);
        }
        ((PAD + linear + self.shared).next_power_of_two() + self.skb, pages)
    }

    /// Charge of a segment to send before any payload (`tcp_stream_alloc_skb`).
    pub const fn empty(self) -> u32 {
        let head = self.headers + self.shared;
        let charged = match (self.small_heads, head.is_power_of_two()) {
            // The cache's objects differ from those of kmalloc by their size (`SKB_SMALL_HEAD_CACHE_SIZE`).
            (true, true) => head + CACHE_LINE,
            (true, false) => head,
            (false, _) => head.next_power_of_two(),
        };
        charged + self.skb
    }
}

/// `L1_CACHE_BYTES` of x86-64.
const CACHE_LINE: u32 = 64;
