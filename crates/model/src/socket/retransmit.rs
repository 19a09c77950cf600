//! Sending again what is believed lost.
//!
//! Follows `tcp_xmit_retransmit_queue`, `__tcp_retransmit_skb`, `tcp_retransmit_skb`,
//! `tcp_retrans_try_collapse`.

use super::Socket;
use super::state::Purpose;
use crate::segment::{Segment, before};

impl Socket {
    /// Sends lost segments again, in sequence, as far as the window allows.
    pub(super) fn retransmit_queue(&mut self, out: &mut Vec<Segment>) {
        if self.rec.packets_out == 0 {
            return;
        }
        let most = self.tso_segments(self.current_mss());
        let mut place = self.rec.retransmit_hint.map_or(0, |seq| self.q.find(seq));
        let mut hole_seen = false;
        let mut rearm = false;
        while place < self.q.sent() {
            if self.must_pace() {
                break;
            }
            let skb = *self.q.at(place);
            if !hole_seen {
                self.rec.retransmit_hint = Some(skb.seq);
            }
            let room = self.cw.cwnd.saturating_sub(self.in_flight());
            if room == 0 || self.rec.retrans_out >= self.rec.lost_out {
                break;
            }
            if !skb.marks.lost {
                hole_seen |= !skb.marks.resent && !skb.marks.sacked;
                place += 1;
                continue;
            }
            if skb.marks.sacked || skb.marks.resent {
                place += 1;
                continue;
            }
            if self.is_throttled(skb.truesize, 1) || !self.retransmit(place, room.min(most), out) {
                break;
            }
            if self.in_reduction() {
                self.cw.prr_out += self.q.at(place).pcount;
            }
            rearm |= place == 0 && self.pending() != Some(Purpose::Reorder);
            place += 1;
        }
        if rearm {
            self.set_timer(Purpose::Retransmit, self.rtt.rto);
        }
    }

    /// Sends the segment at `place` again and counts it; whether it was sent.
    pub(super) fn retransmit(
        &mut self,
        place: usize,
        packets: u32,
        out: &mut Vec<Segment>,
    ) -> bool {
        let sent = self.resend(place, packets, out);
        let skb = self.q.at_mut(place);
        if sent {
            skb.marks.resent = true;
            self.rec.retrans_out += skb.pcount;
        }
        let (pcount, sent_ns) = (skb.pcount, skb.sent_ns);
        if self.rec.retrans_stamp.is_none() {
            self.rec.retrans_stamp = Some(self.stamp_at(sent_ns));
        }
        self.rec.undo_retrans = self.rec.undo_retrans.max(0) + pcount as i32;
        sent
    }

    /// Sends up to `packets` of the segment at `place` again.
    pub(super) fn resend(&mut self, place: usize, packets: u32, out: &mut Vec<Segment>) -> bool {
        self.forget_probe();
        if before(self.q.at(place).seq, self.snd.una) {
            self.trim_head();
        }
        let skb = *self.q.at(place);
        let mss = self.current_mss();
        let end = self.window_end();
        let mut room = end.wrapping_sub(skb.seq);
        if !before(skb.seq, end) {
            // Beyond the window only the head goes, as a probe.
            if skb.seq != self.snd.una {
                return false;
            }
            room = mss;
        }
        let mut len = mss * packets;
        if len > room {
            len = if room < mss { room } else { room / mss * mss };
        }
        if skb.len > len {
            if !self.may_split(place) {
                return false;
            }
            self.split(place, len, mss);
        } else {
            let skb_now = self.q.at_mut(place);
            skb_now.cut_for(mss);
            let more = skb_now.pcount.cast_signed() - skb.pcount.cast_signed();
            if more != 0 {
                self.adjust_counts(skb, more);
            }
            self.collapse_into(place, room.min(mss));
        }
        let pcount = self.q.at(place).pcount;
        self.snd.segs_retrans += pcount;
        self.traffic.bytes_retrans += u64::from(self.q.at(place).len);
        let sent = self.transmit(place, out);
        self.q.at_mut(place).marks.ever_resent = true;
        sent
    }

    /// Small segments behind this one are sent along with it, as far as they fit one packet.
    fn collapse_into(&mut self, place: usize, room: u32) {
        let skb = *self.q.at(place);
        if skb.len >= room || skb.pcount > 1 || skb.flags.has(crate::segment::Flags::SYN) {
            return;
        }
        while place + 1 < self.q.sent() {
            let (this, next) = (*self.q.at(place), *self.q.at(place + 1));
            let fits = this.len + next.len <= room && next.ends_by(self.window_end());
            if next.pcount > 1 || next.marks.sacked || this.eor || !fits {
                return;
            }
            self.adjust_counts(next, -(next.pcount.cast_signed()));
            self.q.remove_sent(place + 1);
            self.snd.wmem_queued =
                self.snd.wmem_queued.saturating_sub(next.truesize - next.len.min(next.truesize));
            let this = self.q.at_mut(place);
            this.end_seq = next.end_seq;
            this.len += next.len;
            this.truesize += next.len;
            this.flags = this.flags.with(next.flags);
            this.marks.ever_resent |= next.marks.ever_resent;
            this.eor = next.eor;
            if self.rec.retransmit_hint == Some(next.seq) {
                self.rec.retransmit_hint = Some(skb.seq);
            }
        }
    }
}
