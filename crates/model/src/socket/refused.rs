//! The host's own queue refuses what TCP hands down.
//!
//! Follows `__tcp_transmit_skb` (`tcp_enter_cwr`), `tcp_write_xmit` and `tcp_retransmit_skb` where
//! `net_xmit_eval` tells of a drop: the segment counts as not sent, and is tried again with the
//! next acknowledgment or timer.

use super::Socket;
use crate::segment::{Segment, before};

impl Socket {
    /// `segment`, and what was handed down behind it at this instant, was not taken.
    pub fn on_refused(&mut self, now_ns: u64, segment: &Segment) {
        self.tick(now_ns);
        self.enter_cwr();
        if segment.len == 0 || !before(self.snd.una, segment.end_seq()) {
            return;
        }
        let place = self.q.find(segment.seq);
        if place < self.q.sent() && self.q.at(place).marks.ever_resent {
            self.take_back_copy(place);
            return;
        }
        while self.q.sent() > place {
            let Some(skb) = self.q.take_back() else { break };
            self.rec.packets_out = self.rec.packets_out.saturating_sub(skb.pcount);
            self.snd.data_segs_out = self.snd.data_segs_out.saturating_sub(skb.pcount);
            self.snd.wmem_alloc = self.snd.wmem_alloc.saturating_sub(skb.truesize);
            self.snd.nxt = skb.seq;
        }
        if self.rec.packets_out == 0 {
            // Nothing was sent, and so the timer for that goes on.
            self.timers.transmit = self.timers.before_flight;
            self.check_probe_timer();
        }
    }

    /// A copy was not sent; its original stays lost.
    fn take_back_copy(&mut self, place: usize) {
        let skb = *self.q.at(place);
        self.snd.wmem_alloc = self.snd.wmem_alloc.saturating_sub(skb.truesize);
        if skb.marks.resent {
            self.q.at_mut(place).marks.resent = false;
            self.rec.retrans_out = self.rec.retrans_out.saturating_sub(skb.pcount);
        }
    }
}
