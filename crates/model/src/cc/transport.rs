//! What controllers see and set of their connection.

use tcpwhy::cc::Increase;

/// States of congestion control (`enum tcp_ca_state`), in their order.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CaState {
    /// Nothing is suspected.
    #[default]
    Open,
    /// Something came out of order.
    Disorder,
    /// The window is being reduced for congestion that was told.
    Cwr,
    /// The window is being reduced for losses.
    Recovery,
    /// A retransmission timer has expired.
    Loss,
}

/// The congestion window and what gates its growth.
#[derive(Clone, Debug, Default)]
pub(crate) struct CwndState {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) increase: Increase,
    pub(crate) clamp: u32,
    pub(crate) is_limited: bool,
    pub(crate) max_packets_out: u32,
    pub(crate) usage_seq: u32,
    pub(crate) used: u32,
    pub(crate) stamp: u64,
    pub(crate) prior_cwnd: u32,
    pub(crate) prior_ssthresh: u32,
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
}

/// What it sees and sets of its connection.
#[derive(Debug)]
pub(crate) struct Transport<'a> {
    pub(crate) cw: &'a mut CwndState,
    pub(crate) pacing_rate: &'a mut u64,
    pub(crate) app_limited: &'a mut u32,
    pub(crate) max_pacing_rate: u64,
    pub(crate) now_ns: u64,
    /// Earliest departure of the next packet.
    pub(crate) wstamp_ns: u64,
    pub(crate) jiffies: u64,
    pub(crate) hz: u32,
    pub(crate) delivered: u32,
    pub(crate) delivered_ns: u64,
    pub(crate) lost: u32,
    pub(crate) in_flight: u32,
    pub(crate) mss: u32,
    pub(crate) srtt_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) state: CaState,
    pub(crate) headers: u32,
}

/// `BW_SCALE`, `BW_UNIT`: rates are packets a microsecond, scaled.
pub(super) const BW_SHIFT: u32 = 24;
pub(super) const BW_UNIT: u64 = 1 << BW_SHIFT;
