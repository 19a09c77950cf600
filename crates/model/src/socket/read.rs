//! The application reads: buffers come free, the window may open, an acknowledgment may be due.
//!
//! Follows `tcp_recvmsg_locked`, `__tcp_cleanup_rbuf`.

use super::{Socket, State};
use crate::segment::{Segment, before};

impl Socket {
    /// Reads up to `bytes`; how many there were. Nothing read means waiting, or the end of the
    /// stream ([`Socket::at_end`]).
    pub fn read(&mut self, now_ns: u64, bytes: u64, out: &mut Vec<Segment>) -> u64 {
        self.tick(now_ns);
        let mut copied = 0;
        while copied < bytes {
            let Some(run) = self.rcv.queue.front().copied() else { break };
            let there = run.end_seq.wrapping_sub(self.rcv.copied_seq);
            let taken = u64::from(there).min(bytes - copied) as u32;
            self.rcv.copied_seq = self.rcv.copied_seq.wrapping_add(taken);
            copied += u64::from(taken);
            self.adjust_space();
            if taken == there {
                self.rcv.queue.pop_front();
                self.rcv.rmem_alloc = self.rcv.rmem_alloc.saturating_sub(run.truesize);
            }
        }
        self.cleanup(copied > 0, out);
        copied
    }

    /// Acknowledges if what was read lets it (`__tcp_cleanup_rbuf`).
    fn cleanup(&mut self, copied: bool, out: &mut Vec<Segment>) {
        if self.is_opening() || self.state == State::Closed {
            return;
        }
        let mut due = false;
        if self.ack.scheduled {
            let pending = self.rcv.nxt.wrapping_sub(self.rcv.wup);
            let drained = copied
                && self.rcv.rmem_alloc == 0
                && (self.ack.pushed_again || (self.ack.pushed && !self.in_pingpong_mode()));
            due = pending > self.ack.rcv_mss || drained;
        }
        if copied && !due && !self.rcv.shutdown {
            let told = self.receive_window();
            if 2 * u64::from(told) <= u64::from(self.rcv.window_clamp) {
                let window = self.window_now();
                due = window > 0 && u64::from(window) >= 2 * u64::from(told);
            }
        }
        if due {
            self.send_ack(out);
        }
    }

    /// What lies unread, in bytes of the stream.
    pub(super) const fn has_unread(&self) -> bool {
        before(self.rcv.copied_seq, self.rcv.nxt) && self.readable() > 0
    }
}
