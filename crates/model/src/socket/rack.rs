//! RACK (RFC 8985): a segment is lost if one that was sent later has arrived, and some time passed.
//!
//! Follows `net/ipv4/tcp_recovery.c`.

use super::queue::Skb;
use super::state::Purpose;
use super::{CaState, Socket};
use crate::segment::{after, before};

impl Socket {
    /// A segment arrived: it may be the one sent last of all that arrived.
    pub(super) fn advance_rack(&mut self, skb: &Skb) {
        let rtt_us = self.now_us().saturating_sub(skb.sent_us()) as u32;
        if rtt_us < self.min_rtt_us() && (skb.marks.resent || skb.marks.ever_resent) {
            // Too early for the copy: it was the original that arrived.
            return;
        }
        let rack = &mut self.rec.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        let (sent, end) = (skb.sent_us(), skb.end_seq);
        if sent > rack.sent_us || (sent == rack.sent_us && after(end, rack.end_seq)) {
            rack.sent_us = sent;
            rack.end_seq = end;
        }
    }

    /// Marks what RACK believes lost; whether a timer waits for the rest.
    pub(super) fn rack_mark_lost(&mut self) -> bool {
        if !self.rec.rack.advanced {
            return false;
        }
        self.rec.rack.advanced = false;
        let Some(wait_us) = self.detect_loss() else { return false };
        let delay = self.jiffies_with_allowance(wait_us);
        self.set_timer(Purpose::Reorder, delay.min(self.rtt.rto));
        true
    }

    /// Marks as lost what was sent long enough before what has arrived; the longest wait for what
    /// was not.
    pub(super) fn detect_loss(&mut self) -> Option<u32> {
        let window_us = self.reordering_window_us();
        let mut longest = 0;
        let mut next = self.q.oldest();
        while let Some(key) = next {
            next = self.q.next_in_time(key);
            let skb = *self.q.by_key(key);
            if skb.marks.lost && !skb.marks.resent {
                continue;
            }
            if !skb.sent_before(self.rec.rack.sent_us, self.rec.rack.end_seq) {
                break;
            }
            let left = self.rack_time_left(&skb, window_us);
            if left <= 0 {
                let place = self.q.place_of(&skb);
                self.mark_lost(place);
                self.q.forget_time(place);
            } else {
                longest = longest.max(left as u32);
            }
        }
        (longest > 0).then_some(longest)
    }

    /// Time until a segment counts as lost (`tcp_rack_skb_timeout`).
    pub(super) fn rack_time_left(&self, skb: &Skb, window_us: u32) -> i64 {
        let limit = i64::from(self.rec.rack.rtt_us) + i64::from(window_us);
        limit - (self.now_us() as i64 - skb.sent_us() as i64)
    }

    fn reordering_window_us(&self) -> u32 {
        let rec = &self.rec;
        if !rec.reord_seen {
            let threshold_counts = self.config.sysctl.recovery & NO_DUPTHRESH == 0;
            if rec.state >= CaState::Recovery
                || (rec.sacked_out >= rec.reordering && threshold_counts)
            {
                return 0;
            }
        }
        let steps = (self.min_rtt_us() >> 2).saturating_mul(rec.rack.reo_wnd_steps);
        steps.min(self.rtt.srtt_us >> 3)
    }

    /// A round with D-SACKs makes the reordering window larger for a while.
    pub(super) fn update_reordering_window(&mut self, prior_delivered: u32) {
        if self.config.sysctl.recovery & STATIC_REO_WND != 0 || prior_delivered == 0 {
            return;
        }
        let delivered = self.rec.delivered;
        let rack = &mut self.rec.rack;
        if before(prior_delivered, rack.last_delivered) {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.reo_wnd_steps = (rack.reo_wnd_steps + 1).min(0xff);
            rack.dsack_seen = false;
            rack.last_delivered = delivered;
            rack.reo_wnd_persist = RECOVERIES_TO_PERSIST;
        } else if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_steps = 1;
        }
    }

    /// Losses are found by time, not by counting (`tcp_is_rack`).
    pub(super) const fn is_rack(&self) -> bool {
        self.config.sysctl.recovery & LOSS_DETECTION != 0
    }
}

/// Bits of `tcp_recovery` (include/net/tcp.h).
const LOSS_DETECTION: u8 = 1;
const STATIC_REO_WND: u8 = 2;
const NO_DUPTHRESH: u8 = 4;

/// `TCP_RACK_RECOVERY_THRESH`.
pub(super) const RECOVERIES_TO_PERSIST: u32 = 16;
