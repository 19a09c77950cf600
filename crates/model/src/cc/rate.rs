//! A sample of the delivery rate, taken with an acknowledgment (`struct rate_sample`,
//! `net/ipv4/tcp_rate.c`).

/// What one acknowledgment says of the rate of delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    /// Packets delivered when the newest of those acknowledged was sent.
    pub(crate) prior_delivered: u32,
    /// When that was; 0 if there is no sample.
    pub(crate) prior_ns: u64,
    pub(crate) last_end_seq: u32,
    /// Packets delivered over the interval, if it can be believed.
    pub(crate) delivered: Option<u32>,
    pub(crate) interval_us: u32,
    /// Round trip of the last packet.
    pub(crate) rtt_us: Option<u32>,
    pub(crate) losses: u32,
    pub(crate) acked_sacked: u32,
    pub(crate) prior_in_flight: u32,
    pub(crate) is_app_limited: bool,
    pub(crate) is_retrans: bool,
    pub(crate) is_ack_delayed: bool,
}
