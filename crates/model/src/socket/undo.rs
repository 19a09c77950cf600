//! Taking a reduction back: what was retransmitted had not been lost.
//!
//! Follows `tcp_may_undo`, `tcp_packet_delayed`, `tcp_try_undo_*`, `tcp_undo_cwnd_reduction`.

use super::known::Ack;
use super::rack::RECOVERIES_TO_PERSIST;
use super::{CaState, Socket};
use crate::segment::before;

impl Socket {
    pub(super) fn begin_undo(&mut self) {
        self.rec.undo_marker = Some(self.snd.una);
        let mut out = self.rec.retrans_out as i32;
        if self.rec.tlp_high_seq.is_some() && self.rec.tlp_retrans {
            out += 1;
        }
        // Nothing retransmitted yet is not the same as all of it being a duplicate.
        self.rec.undo_retrans = if out == 0 { -1 } else { out };
    }

    /// The echo of a timestamp is older than `stamp`.
    pub(super) const fn echo_is_before(&self, echo: Option<u32>, stamp: u32) -> bool {
        match echo {
            Some(echo) if self.stamps && echo != 0 => before(echo, stamp),
            _ => false,
        }
    }

    /// The original arrived: its timestamp came back, not the copy's.
    fn was_delayed(&self, echo: Option<u32>) -> bool {
        match self.rec.retrans_stamp {
            Some(stamp) => self.echo_is_before(echo, stamp),
            None => self.sack || before(self.snd.una, self.rec.high_seq),
        }
    }

    fn may_undo(&self, echo: Option<u32>) -> bool {
        self.rec.undo_marker.is_some() && (self.rec.undo_retrans == 0 || self.was_delayed(echo))
    }

    /// Whether the old state is kept until more is acknowledged (`NewReno`).
    pub(super) fn try_undo_recovery_with(&mut self, echo: Option<u32>) -> bool {
        if self.may_undo(echo) {
            self.undo_reduction(false);
        } else if self.rec.rack.reo_wnd_persist > 0 {
            self.rec.rack.reo_wnd_persist -= 1;
        }
        if self.prevents_reopening() {
            return true;
        }
        self.set_ca_state(CaState::Open);
        self.rec.reneging = false;
        false
    }

    pub(super) fn try_undo_dsack(&mut self) -> bool {
        if self.rec.undo_marker.is_none() || self.rec.undo_retrans != 0 {
            return false;
        }
        let rack = &mut self.rec.rack;
        rack.reo_wnd_persist = (rack.reo_wnd_persist + 1).min(RECOVERIES_TO_PERSIST);
        self.undo_reduction(false);
        true
    }

    /// A partial acknowledgment in recovery; whether nothing more is to be marked or retransmitted.
    pub(super) fn try_undo_partial(&mut self, ack: &Ack) -> bool {
        if self.rec.undo_marker.is_none() || !self.was_delayed(ack.echo) {
            return false;
        }
        self.note_reordering(ack.prior_una);
        if self.rec.retrans_out > 0 {
            return true;
        }
        if !self.any_resent() {
            self.rec.retrans_stamp = None;
        }
        self.undo_reduction(true);
        self.try_keep_open();
        false
    }

    pub(super) fn try_undo_loss(&mut self, echo: Option<u32>, frto: bool) -> bool {
        if !frto && !self.may_undo(echo) {
            return false;
        }
        self.undo_reduction(true);
        self.rec.retransmits = 0;
        if self.prevents_reopening() {
            return true;
        }
        if frto || self.sack {
            self.set_ca_state(CaState::Open);
            self.rec.reneging = false;
        }
        true
    }

    /// Without SACK the state is held until something above it is acknowledged (RFC 6582).
    fn prevents_reopening(&mut self) -> bool {
        if self.snd.una != self.rec.high_seq || self.sack {
            return false;
        }
        if !self.any_resent() {
            self.rec.retrans_stamp = None;
        }
        true
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            for place in 0..self.q.sent() {
                self.q.at_mut(place).marks.lost = false;
            }
            self.rec.lost_out = 0;
            self.rec.retransmit_hint = None;
        }
        if self.cw.prior_ssthresh > 0 {
            self.cw.cwnd = self.cc.undo_cwnd(&self.cw);
            if self.cw.prior_ssthresh > self.cw.ssthresh {
                self.cw.ssthresh = self.cw.prior_ssthresh;
                self.ecn.queue_cwr = false;
            }
        }
        self.cw.stamp = self.jiffies();
        self.rec.undo_marker = None;
        self.rec.rack.advanced = true;
    }
}
