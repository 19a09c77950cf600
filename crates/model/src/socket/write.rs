//! The application writes: bytes become segments of the send queue, as far as the buffer takes
//! them, and are pushed out in the kernel's rhythm.
//!
//! Follows `tcp_sendmsg_locked`, `tcp_push`, `tcp_should_autocork`, `sk_stream_write_space`,
//! `tcp_sndbuf_expand`. Left out: page fragments (a segment never runs out of them), memory
//! pressure, urgent data, zero copy.

use super::chrono::Phase;
use super::output::{Nagle, Push};
use super::queue::Skb;
use super::{CaState, Socket};
use crate::cc::INIT_CWND;
use crate::segment::{Flags, PAGE_BLOCK, Segment, after};

impl Socket {
    /// Writes up to `bytes`; how many were taken. If it is not all, the writer is blocked until
    /// [`super::Events::writable`] says otherwise, and goes on with [`Self::resume_write`].
    pub fn write(&mut self, now_ns: u64, bytes: u64, out: &mut Vec<Segment>) -> u64 {
        self.write_flagged(now_ns, bytes, false, false, out)
    }

    /// Goes on with a call that was blocked, as a blocking writer does.
    pub fn resume_write(&mut self, now_ns: u64, bytes: u64, out: &mut Vec<Segment>) -> u64 {
        let continues = self.snd.continues;
        self.write_some(now_ns, bytes, continues, false, false, out)
    }

    /// The same, with `MSG_MORE` and `MSG_EOR`.
    pub fn write_flagged(
        &mut self,
        now_ns: u64,
        bytes: u64,
        more: bool,
        eor: bool,
        out: &mut Vec<Segment>,
    ) -> u64 {
        self.write_some(now_ns, bytes, false, more, eor, out)
    }

    /// `continues`: the call has taken bytes before it was blocked.
    fn write_some(
        &mut self,
        now_ns: u64,
        bytes: u64,
        continues: bool,
        more: bool,
        eor: bool,
        out: &mut Vec<Segment>,
    ) -> u64 {
        self.tick(now_ns);
        if self.fast.deferred {
            let taken = self.open_writing(bytes, out);
            self.fast.writer_waits = taken < bytes;
            return taken;
        }
        if self.snd.una == self.snd.write_seq {
            // All that was in the block is gone: it is filled from its beginning again
            // (`skb_page_frag_refill`).
            self.snd.page_base = self.snd.write_seq;
        }
        if !self.may_send() {
            return 0;
        }
        self.check_app_limited();
        self.follow_route();
        let mss = self.current_mss();
        let goal = self.size_goal(mss);
        let mut copied = 0;
        while copied < bytes {
            let room = self.room_in_tail(goal);
            let room = if room == 0 {
                if !self.memory_free(false) {
                    self.snd.continues = continues || copied > 0;
                    self.block_writer(mss, goal, out);
                    return copied;
                }
                self.begin_segment();
                goal
            } else {
                room
            };
            let taken = u64::from(room).min(bytes - copied) as u32;
            let full = self.fill_tail(taken, copied == 0 && !continues, goal);
            copied += u64::from(taken);
            if copied == bytes {
                if eor && let Some(tail) = self.q.unsent_tail() {
                    tail.eor = true;
                }
                break;
            }
            if full {
                self.push_full(mss, out);
            }
        }
        if copied > 0 {
            let nagle = if more { Nagle::CORK } else { self.nagle() };
            self.push_written(more, mss, nagle, goal, out);
        }
        copied
    }

    /// Sets or clears `TCP_NODELAY`; setting it sends what waited.
    pub fn set_nodelay(&mut self, now_ns: u64, on: bool, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        self.snd.nodelay = on;
        if on {
            self.push_pending(self.current_mss(), self.nagle().with_push(), out);
        }
    }

    /// Sets or clears `TCP_CORK`; clearing it sends what waited.
    pub fn set_cork(&mut self, now_ns: u64, on: bool, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        self.snd.cork = on;
        if !on {
            self.push_pending(self.current_mss(), self.nagle().with_push(), out);
        }
    }

    /// Where a byte lies in its block of memory.
    pub(super) const fn page_offset(&self, seq: u32) -> u16 {
        (seq.wrapping_sub(self.snd.page_base) % PAGE_BLOCK) as u16
    }

    pub(super) const fn nagle(&self) -> Nagle {
        Nagle { off: self.snd.nodelay, cork: self.snd.cork, push: false }
    }

    /// The application has let the connection run dry: samples of the rate are low for that
    /// (`tcp_rate_check_app_limited`).
    fn check_app_limited(&mut self) {
        let waits = self.snd.write_seq.wrapping_sub(self.snd.nxt) >= self.snd.mss_cache;
        if !waits
            && self.snd.wmem_alloc == 0
            && self.in_flight() < self.cw.cwnd
            && self.rec.lost_out <= self.rec.retrans_out
        {
            let end = self.rec.delivered.wrapping_add(self.in_flight());
            self.dlv.app_limited = end.max(1);
        }
    }

    /// Bytes that the last unsent segment still takes.
    fn room_in_tail(&mut self, goal: u32) -> u32 {
        match self.q.unsent_tail() {
            Some(tail) if !tail.eor && !tail.flags.has(Flags::FIN) => goal.saturating_sub(tail.len),
            _ => 0,
        }
    }

    /// Appends an empty segment (`tcp_skb_entail`).
    fn begin_segment(&mut self) {
        let truesize = self.config.kernel.memory.empty();
        let seq = self.snd.write_seq;
        self.q.push(Skb { seq, end_seq: seq, flags: Flags::ACK, truesize, ..Skb::default() });
        self.begin_phase(Phase::Busy);
        self.snd.wmem_queued += truesize;
        self.restart_after_idle();
    }

    /// Puts bytes into the last segment; whether it is full.
    fn fill_tail(&mut self, bytes: u32, first: bool, goal: u32) -> bool {
        self.snd.write_seq = self.snd.write_seq.wrapping_add(bytes);
        self.snd.wmem_queued += bytes;
        let Some(tail) = self.q.unsent_tail() else { return false };
        if first {
            tail.flags = tail.flags.without(Flags::PSH);
        }
        tail.len += bytes;
        tail.truesize += bytes;
        tail.end_seq = tail.end_seq.wrapping_add(bytes);
        tail.pcount = 0;
        tail.len >= goal
    }

    /// A segment is full and the writer has more.
    fn push_full(&mut self, mss: u32, out: &mut Vec<Segment>) {
        if self.forced_push() {
            self.mark_push();
            self.push_pending(mss, Nagle::PUSH, out);
        } else if self.q.len() == self.q.sent() + 1 {
            self.write_xmit(mss, Nagle::PUSH, Push::One, out);
        }
    }

    /// Half of the largest window was written since the last push (`forced_push`).
    const fn forced_push(&self) -> bool {
        let limit = self.snd.pushed_seq.wrapping_add(self.snd.max_window >> 1);
        after(self.snd.write_seq, limit)
    }

    fn mark_push(&mut self) {
        self.snd.pushed_seq = self.snd.write_seq;
        if let Some(tail) = self.q.unsent_tail() {
            tail.flags = tail.flags.with(Flags::PSH);
        }
    }

    fn block_writer(&mut self, mss: u32, goal: u32, out: &mut Vec<Segment>) {
        self.snd.nospace = true;
        if self.snd.continues {
            self.push_written(false, mss, Nagle::PUSH, goal, out);
        }
        // What was just pushed may have made room at once; the mark stays
        // (`sk_stream_wait_memory`).
        self.events.writable |= self.memory_free(false);
    }

    fn push_written(
        &mut self,
        more: bool,
        mss: u32,
        nagle: Nagle,
        goal: u32,
        out: &mut Vec<Segment>,
    ) {
        if self.q.unsent_tail().is_none() {
            return;
        }
        if !more || self.forced_push() {
            self.mark_push();
        }
        if self.should_autocork(goal) {
            self.snd.throttled = true;
            return;
        }
        self.push_pending(mss, nagle, out);
    }

    /// A small segment waits while its predecessors are still in the host.
    fn should_autocork(&mut self, goal: u32) -> bool {
        // The socket itself counts as one (`sk_alloc`).
        let waiting = self.snd.wmem_alloc + 1;
        self.config.sysctl.autocorking
            && self.q.sent() > 0
            && self.q.unsent_tail().is_some_and(|tail| tail.len < goal && waiting > tail.truesize)
    }

    /// `sk_stream_memory_free`; `wake` asks for twice as much room below `notsent_lowat`.
    fn memory_free(&self, wake: bool) -> bool {
        let unsent = u64::from(self.snd.write_seq.wrapping_sub(self.snd.nxt));
        let lowat = self.config.options.notsent_lowat.unwrap_or(self.config.sysctl.notsent_lowat);
        self.snd.wmem_queued < self.snd.sndbuf && (unsent << u32::from(wake)) < u64::from(lowat)
    }

    /// Memory came free: a blocked writer may be woken, and the buffer may grow
    /// (`tcp_check_space`).
    pub(super) fn check_space(&mut self) {
        if !self.snd.nospace {
            return;
        }
        if self.config.options.sndbuf.is_none() && self.in_flight() < self.cw.cwnd {
            self.expand_sndbuf();
            self.cw.stamp = self.jiffies();
        }
        let free = self.snd.sndbuf.saturating_sub(self.snd.wmem_queued);
        if free >= self.snd.wmem_queued >> 1 && self.memory_free(true) {
            self.snd.nospace = false;
            self.events.writable = true;
            self.end_phase(Phase::BufferLimited);
        }
    }

    /// The same when a segment was sent (`tcp_event_new_data_sent`).
    pub(super) fn check_space_when_sent(&mut self) {
        if self.config.kernel.looks_for_room_when_sent {
            self.check_space();
        }
    }

    /// The send buffer follows the congestion window (`tcp_sndbuf_expand`).
    pub(super) fn expand_sndbuf(&mut self) {
        let memory = self.config.kernel.memory;
        let packet = self.snd.mss_clamp.max(self.snd.mss_cache) + memory.headers + memory.shared;
        let packet = packet.next_power_of_two() + memory.skb;
        let packets = INIT_CWND.max(self.cw.cwnd).max(self.rec.reordering + 1);
        let wanted = u64::from(self.cc.sndbuf_factor()) * u64::from(packets) * u64::from(packet);
        let wanted = wanted.min(u64::from(self.config.sysctl.wmem[2])) as u32;
        self.snd.sndbuf = self.snd.sndbuf.max(wanted);
    }

    /// How large segments are made (`tcp_xmit_size_goal`).
    pub(super) fn size_goal(&mut self, mss: u32) -> u32 {
        let most = self.bound_to_half_window(self.gso_max());
        let goal = self.snd.gso_segs * mss;
        if most < goal || most >= goal + mss {
            self.snd.gso_segs = (most / mss).min(self.config.link.gso_max_segs);
        }
        (self.snd.gso_segs * mss).max(mss)
    }

    /// `sk_gso_max_size`: headers have to fit, too.
    pub(super) const fn gso_max(&self) -> u32 {
        self.config.link.gso_max - 1 - self.config.kernel.memory.headers
    }

    /// Ours is reduced after an idle time (`tcp_slow_start_after_idle_check`).
    pub(super) fn restart_after_idle(&mut self) {
        if !self.config.sysctl.slow_start_after_idle
            || self.rec.packets_out > 0
            || self.cc.controls_itself()
        {
            return;
        }
        let idle = self.jiffies().saturating_sub(self.snd.lsndtime);
        if idle > self.rtt.rto {
            self.restart_cwnd(idle);
        }
    }

    /// Halves the window once for each timeout of the idle time (`tcp_cwnd_restart`).
    fn restart_cwnd(&mut self, idle: u64) {
        let restart = self.initial_cwnd().min(self.cw.cwnd);
        self.cw.ssthresh = self.current_ssthresh();
        let mut left = idle;
        let mut cwnd = self.cw.cwnd;
        while left > self.rtt.rto && cwnd > restart {
            left -= self.rtt.rto;
            cwnd >>= 1;
        }
        self.cw.cwnd = cwnd.max(restart);
        self.cw.stamp = self.jiffies();
        self.cw.used = 0;
    }

    /// The threshold with what has been proven since (`tcp_current_ssthresh`).
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.in_reduction() {
            return self.cw.ssthresh;
        }
        self.cw.ssthresh.max((self.cw.cwnd >> 1) + (self.cw.cwnd >> 2))
    }

    /// `tcp_init_cwnd`.
    pub(super) fn initial_cwnd(&self) -> u32 {
        let usual = self.cc.initial_window(self.snd.mss_cache);
        self.config.route.initcwnd.unwrap_or(usual).min(self.cw.clamp)
    }

    /// The window was not filled for long: half of what is unused is given up
    /// (`tcp_cwnd_application_limited`).
    pub(super) fn shrink_unused_cwnd(&mut self) {
        if self.rec.state == CaState::Open && !self.snd.nospace {
            let used = self.cw.used.max(self.initial_cwnd());
            if used < self.cw.cwnd {
                self.cw.ssthresh = self.current_ssthresh();
                self.cw.cwnd = u32::midpoint(self.cw.cwnd, used);
            }
            self.cw.used = 0;
        }
        self.cw.stamp = self.jiffies();
    }
}
