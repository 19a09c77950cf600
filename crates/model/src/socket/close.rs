//! Ending a connection: FIN either way, resets, giving up.
//!
//! Follows `tcp_shutdown`, `tcp_send_fin`, `tcp_fin`, `tcp_close`, `tcp_rcv_state_process`,
//! `tcp_time_wait`. Left out: limits of orphans, `TCP_LINGER2`.

use super::output::Nagle;
use super::queue::Skb;
use super::{Socket, State};
use crate::segment::{Flags, Segment, after, before};

impl Socket {
    /// Ends the sending side (`shutdown(SHUT_WR)`).
    pub fn shutdown(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        if self.fast.passive && self.state == State::SynReceived && !self.rcv.abandoned {
            // It is done with the handshake (`tcp_shutdown`, v6.9).
            self.fast.shutdown_waits = true;
            return;
        }
        self.state = match self.state {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            _ => return,
        };
        self.queue_fin();
        let mss = self.current_mss();
        self.push_pending(mss, Nagle::OFF, out);
    }

    /// Closes both ways; what was not read resets the connection (RFC 2525 section 2.17).
    pub fn close(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        self.rcv.abandoned = true;
        if self.state == State::FinWait2 {
            self.learned.ended = true;
        }
        if self.state == State::SynSent {
            self.give_up(false);
        } else if self.has_unread() {
            self.reset(now_ns, out);
        } else {
            self.shutdown(now_ns, out);
        }
    }

    /// Whether data came that nobody will read; then the socket tells its peer (RFC 1122 section 4.2.2.13;
    /// `tcp_rcv_state_process`).
    pub(super) fn refuses_data(&mut self, segment: &Segment, out: &mut Vec<Segment>) -> bool {
        let end = segment.seq.wrapping_add(segment.len);
        let refused = self.rcv.abandoned
            && matches!(self.state, State::FinWait1 | State::FinWait2)
            && segment.len > 0
            && after(end, self.rcv.nxt);
        if refused {
            out.push(Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() });
            self.give_up(false);
        }
        refused
    }

    /// Ends the connection by a reset.
    pub fn reset(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        if matches!(self.state, State::Closed | State::TimeWait | State::SynSent) {
            return;
        }
        self.fast.passive = false;
        let seq = self.acceptable_seq();
        self.send_bare(seq, Flags::RST.with(Flags::ACK), out);
        self.give_up(false);
    }

    /// The network says that the peer cannot be reached: that ends a connection only before its handshake
    /// is done (`tcp_v4_err`; RFC 1122 section 4.2.3.9). Whether it did. `seq` is of the packet that
    /// it is about.
    pub fn on_unreachable(&mut self, now_ns: u64, seq: u32) -> bool {
        self.tick(now_ns);
        let first = if self.fast.passive { self.config.isn } else { self.snd.una };
        let ours = !before(seq, first) && !after(seq, self.snd.nxt);
        self.counters.strange_errors += u64::from(!ours);
        let ends = ours && self.is_opening();
        if ends {
            self.give_up(true);
        }
        ends
    }

    fn queue_fin(&mut self) {
        self.snd.write_seq = self.snd.write_seq.wrapping_add(1);
        self.snd.fin_queued = true;
        if let Some(tail) = self.q.unsent_tail() {
            tail.flags = tail.flags.with(Flags::FIN);
            tail.end_seq = tail.end_seq.wrapping_add(1);
            return;
        }
        let truesize = self.config.kernel.memory.empty();
        let end_seq = self.snd.write_seq;
        self.snd.wmem_queued += truesize;
        self.q.push(Skb {
            seq: end_seq.wrapping_sub(1),
            end_seq,
            flags: Flags::FIN.with(Flags::ACK),
            truesize,
            ..Skb::default()
        });
    }

    /// The peer ends its sending.
    pub(super) fn on_fin(&mut self, out: &mut Vec<Segment>) {
        self.rcv.fin = Some(self.rcv.nxt);
        self.rcv.nxt = self.rcv.nxt.wrapping_add(1);
        self.rcv.shutdown = true;
        self.ack.scheduled = true;
        self.events.readable = true;
        match self.state {
            State::Established | State::SynReceived => {
                self.state = State::CloseWait;
                self.ack.pingpong = self.config.sysctl.pingpong_thresh;
            }
            State::FinWait1 => {
                self.send_ack(out);
                self.state = State::Closing;
            }
            State::FinWait2 => {
                self.send_ack(out);
                self.enter_time_wait();
            }
            _ => {}
        }
        // Nothing can lie behind the end (`tcp_sack_reset`).
        let held: u32 = self.rcv.out_of_order.drain(..).map(|held| held.truesize).sum();
        self.rcv.rmem_alloc = self.rcv.rmem_alloc.saturating_sub(held);
        self.rcv.sacks.clear();
        self.rcv.dsack = None;
    }

    /// Our FIN may be acknowledged; whether nothing is left to do.
    pub(super) fn on_acked_fin(&mut self) -> bool {
        if !self.snd.fin_queued || self.snd.una != self.snd.write_seq {
            return false;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                // Nobody holds it any more: the kernel keeps a remnant of it only (`tcp_time_wait`).
                self.learned.ended |= self.rcv.abandoned;
            }
            State::Closing => {
                self.enter_time_wait();
                return true;
            }
            State::LastAck => {
                self.learned.ended = true;
                self.give_up(false);
                return true;
            }
            _ => {}
        }
        false
    }

    fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        self.learned.ended = true;
        self.timers = super::Timers::default();
        self.timers.time_wait = Some(self.now_ns + TIME_WAIT_NS);
        self.events.closed = true;
    }

    pub(super) fn on_segment_time_wait(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        if segment.flags.has(Flags::RST) {
            self.give_up(false);
        } else if segment.len > 0 || segment.flags.has(Flags::FIN) {
            self.send_ack(out);
        }
    }

    /// Nothing more happens here.
    pub(super) fn give_up(&mut self, failed: bool) {
        self.state = State::Closed;
        self.fast.passive = false;
        self.fast.deferred = false;
        self.timers = super::Timers::default();
        self.events.failed |= failed;
        self.events.closed = true;
    }
}

/// `TCP_TIMEWAIT_LEN` of include/net/tcp.h.
const TIME_WAIT_NS: u64 = 60_000_000_000;
