//! A textbook's sender within this one: its window, and nothing that the book leaves out.
//!
//! The queue, the timers and the counting of duplicates stay Linux's. Where a book counts all that
//! is not acknowledged as under way, Linux counts what has left the network out; the window that
//! TCP is held to is smaller by that.

use super::known::Ack;
use super::{CaState, Config, Socket};
use crate::cc::{Bbr, Congestion};

impl Socket {
    /// A controller of its own will begins.
    pub(super) fn begin_own_control(&mut self) {
        if let Congestion::Textbook(book) = &mut self.cc {
            book.begin(self.snd.mss_cache, self.cw.cwnd, self.cw.ssthresh);
        } else {
            self.snd.paced = true;
            self.with_model(Bbr::begin);
        }
    }

    /// The book's window follows an acknowledgment.
    pub(super) fn follow_book(&mut self, ack: &Ack) {
        let (flight, in_flight) = (self.rec.packets_out, self.in_flight());
        let Congestion::Textbook(book) = &mut self.cc else { return };
        if ack.una_advanced && ack.data_acked {
            book.on_new_ack(self.snd.una.wrapping_sub(ack.prior_una));
        } else if !ack.not_dup() && self.rec.sacked_out > DUPLICATES {
            book.on_duplicate();
        }
        let left =
            if self.rec.state == CaState::Loss { 0 } else { flight.saturating_sub(in_flight) };
        self.cw.cwnd = book.cwnd().saturating_sub(left);
        // The hole is retransmitted whatever the window says (RFC 5681 section 3.2, step 3).
        if self.rec.lost_out > self.rec.retrans_out {
            self.cw.cwnd = self.cw.cwnd.max(in_flight + 1);
        }
    }
}

impl Config {
    /// Leaves out what textbooks do not have: selective acknowledgments, timestamps, probes,
    /// undoing, super-segments; every segment is acknowledged at once, as fast retransmit asks.
    pub fn teach(&mut self) {
        let sysctl = &mut self.sysctl;
        (sysctl.sack, sysctl.dsack, sysctl.timestamps) = (false, false, false);
        (sysctl.early_retrans, sysctl.frto, sysctl.recovery) = (0, 0, 0);
        sysctl.no_ssthresh_metrics_save = false;
        self.route.quickack = true;
        self.link.gso_max_segs = 1;
    }
}

/// Duplicates that tell of a loss; the third is not counted twice.
const DUPLICATES: u32 = 3;
