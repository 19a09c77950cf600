//! A router tells that packets are longer than its link takes (RFC 1191, RFC 8201).
//!
//! Follows `tcp_v4_mtu_reduced` and `tcp_simple_retransmit`.

use super::{CaState, Socket, State};
use crate::segment::Segment;

impl Socket {
    /// Packets of more than `mtu` bytes do not get through.
    pub fn on_mtu(&mut self, now_ns: u64, mtu: u32, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        let known = self.config.route.mtu.unwrap_or(self.config.link.mtu);
        if mtu >= known || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        self.config.route.mtu = Some(mtu.max(LEAST_PMTU));
        let before = self.snd.mss_cache;
        self.sync_mss();
        if self.snd.mss_cache < before {
            self.retransmit_too_long(out);
        }
    }

    /// What is too long is lost, and nothing else is to be concluded from that.
    fn retransmit_too_long(&mut self, out: &mut Vec<Segment>) {
        let (mss, lost) = (self.current_mss(), self.rec.lost_out);
        for place in 0..self.q.sent() {
            let skb = *self.q.at(place);
            if skb.len.min(if skb.mss > 0 { skb.mss } else { skb.len }) > mss {
                self.mark_lost(place);
            }
        }
        if self.rec.lost_out == lost {
            return;
        }
        if self.rec.state != CaState::Loss {
            self.rec.high_seq = self.snd.nxt;
            self.cw.ssthresh = self.current_ssthresh();
            self.cw.prior_ssthresh = 0;
            self.rec.undo_marker = None;
            self.set_ca_state(CaState::Loss);
        }
        self.retransmit_queue(out);
    }
}

/// `net.ipv4.route.min_pmtu`.
const LEAST_PMTU: u32 = 552;
