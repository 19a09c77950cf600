//! What is known of the acknowledgment in hand, and what it lets be retransmitted.

use crate::cc::RateSample;

/// What is known of the acknowledgment in hand (the kernel's `FLAG_*` and `tcp_sacktag_state`).
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's flags, independent of each other")]
pub(super) struct Ack {
    pub(super) number: u32,
    pub(super) echo: Option<u32>,
    pub(super) prior_una: u32,
    pub(super) prior_fack: u32,
    pub(super) una_advanced: bool,
    pub(super) data: bool,
    pub(super) win_update: bool,
    pub(super) data_acked: bool,
    pub(super) syn_acked: bool,
    pub(super) retrans_acked: bool,
    pub(super) data_sacked: bool,
    pub(super) orig_sack_acked: bool,
    pub(super) ece: bool,
    pub(super) dsacking: bool,
    pub(super) dsack_tlp: bool,
    pub(super) set_timer: bool,
    pub(super) lost_retrans: bool,
    pub(super) reneging: bool,
    pub(super) maybe_delayed: bool,
    pub(super) first_sacked_us: Option<u64>,
    pub(super) last_sacked_us: u64,
    pub(super) sack_delivered: u32,
    /// Lowest sequence number that arrived late without having been retransmitted.
    pub(super) reordered: Option<u32>,
    pub(super) rate: RateSample,
}

impl Ack {
    pub(super) const fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    /// It brings something else than a duplicate would (`FLAG_NOT_DUP`).
    pub(super) const fn not_dup(&self) -> bool {
        self.data || self.win_update || self.acked()
    }

    /// Something is amiss (`FLAG_CA_ALERT`).
    pub(super) const fn alert(&self) -> bool {
        self.data_sacked || self.ece || self.dsacking
    }
}

/// What an acknowledgment lets be retransmitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Resend {
    Nothing,
    /// What is marked lost.
    Lost,
    /// New data first: the timeout may have been spurious (F-RTO).
    New,
}
