//! Timers: the wheel's grain, retransmission with its backoff, window probes, and what expires.
//!
//! Follows `tcp_write_timer_handler`, `tcp_retransmit_timer`, `tcp_probe_timer`,
//! `tcp_send_probe0`, `tcp_rearm_rto`, `retransmits_timed_out`, and kernel/time/timer.c, whose
//! wheel gives a timer one step of its level after the tick that was asked for.

use super::handshake::LEAST_TIMEOUT;
use super::rtt::RTO_MIN_US;
use super::state::Purpose;
use super::{CaState, Socket, State};
use crate::segment::{Flags, Segment};

impl Socket {
    /// Whatever is due by `now_ns` happens.
    pub fn on_timer(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        let cached_ns = self.clock_cache_ns;
        self.tick(now_ns);
        if self.timers.time_wait.is_some_and(|at| at <= self.now_ns) {
            self.give_up(false);
            return;
        }
        if self.timers.compressed.is_some_and(|at| at <= self.now_ns) {
            self.timers.compressed = None;
            if !self.config.kernel.compressed_reads_clock {
                // It is stamped as of the last segment, read or write (`tcp_compressed_ack_kick`).
                self.clock_cache_ns = cached_ns;
            }
            self.on_compressed_timer(out);
            self.clock_cache_ns = self.now_ns;
        }
        if self.timers.pacing.is_some_and(|at| at <= self.now_ns) {
            self.timers.pacing = None;
            self.on_pacing_timer(out);
        }
        if self.timers.delack.is_some_and(|at| at <= self.now_ns) {
            self.timers.delack = None;
            self.on_delack_timer(out);
        }
        if self.timers.keepalive.is_some_and(|at| at <= self.now_ns) {
            self.timers.keepalive = None;
            self.on_keepalive_timer(out);
        }
        if let Some((purpose, _, at)) = self.timers.transmit
            && at <= self.now_ns
        {
            self.timers.transmit = None;
            self.on_transmit_timer(purpose, out);
        }
    }

    /// Sets the one timer of the sender, `delay` ticks from now.
    pub(super) fn set_timer(&mut self, purpose: Purpose, delay: u64) {
        let ticks = self.jiffies() + delay.min(self.rto_max());
        let at = self.wheel(ticks);
        self.timers.transmit = Some((purpose, ticks, at));
    }

    pub(super) fn clear_timer(&mut self) {
        self.timers.transmit = None;
    }

    /// When the wheel gives a timer for tick `ticks`: never early, one step of its level late.
    pub(super) const fn wheel(&self, ticks: u64) -> u64 {
        let delay = ticks.saturating_sub(self.jiffies());
        let mut shift = 0;
        let mut reach = WHEEL_STEPS;
        while delay >= reach {
            shift += 3;
            reach <<= 3;
        }
        (((ticks >> shift) + 1) << shift) * self.tick_ns()
    }

    /// Starts the retransmission timer anew, or stops it if nothing is out.
    pub(super) fn rearm_rto(&mut self) {
        if self.fast.passive {
            // The timer is the SYN-ACK's.
            return;
        }
        if self.rec.packets_out == 0 {
            self.clear_timer();
            return;
        }
        let mut delay = self.rtt.rto;
        if matches!(self.pending(), Some(Purpose::Reorder | Purpose::LossProbe)) {
            delay = self.jiffies_from_us(self.rto_left_us().max(1).cast_unsigned());
        }
        self.set_timer(Purpose::Retransmit, delay);
    }

    /// Time left until the head times out; not positive if that was in the past
    /// (`tcp_rto_delta_us`).
    pub(super) fn rto_left_us(&self) -> i64 {
        let Some(head) = self.q.head() else { return self.us_from_jiffies(self.rtt.rto) as i64 };
        let expires = head.sent_us() + self.us_from_jiffies(self.rtt.rto);
        expires as i64 - self.now_us() as i64
    }

    fn on_transmit_timer(&mut self, purpose: Purpose, out: &mut Vec<Segment>) {
        match self.state {
            State::Closed | State::TimeWait => return,
            _ if self.fast.passive => return self.on_early_timer(out),
            State::SynSent | State::SynReceived => return self.on_handshake_timer(out),
            _ => {}
        }
        match purpose {
            Purpose::Reorder => self.on_reorder_timer(out),
            Purpose::LossProbe => self.send_loss_probe(out),
            Purpose::Retransmit => self.on_retransmit_timer(out),
            Purpose::WindowProbe => self.on_probe_timer(out),
        }
    }

    fn on_retransmit_timer(&mut self, out: &mut Vec<Segment>) {
        if self.rec.packets_out == 0 {
            return;
        }
        if self.snd.wnd > 0 {
            if self.has_tried(self.config.sysctl.retries1) {
                self.suspect_black_hole();
            }
            if self.has_timed_out() {
                self.give_up(true);
                return;
            }
            self.enter_loss();
            self.rec.retransmits += 1;
            if !self.retransmit(0, 1, out) && self.config.link.refuses {
                self.set_timer(Purpose::Retransmit, self.refused_pause());
                return;
            }
            self.rec.backoff += 1;
        } else {
            // The peer took its window back: the head is sent as a probe.
            self.enter_loss();
            self.retransmit(0, 1, out);
        }
        self.rtt.rto = (self.rtt.rto << 1).min(self.rto_max());
        self.set_timer(Purpose::Retransmit, self.rto_up_to_user_timeout());
    }

    /// The timeout, but no longer than what is left of the user's (`tcp_clamp_rto_to_user_timeout`).
    fn rto_up_to_user_timeout(&self) -> u64 {
        let (Some(limit_ms), Some(first)) =
            (self.config.options.user_timeout_ms, self.rec.retrans_stamp)
        else {
            return self.rtt.rto;
        };
        let waited_ms = self.stamp_at(self.now_ns).wrapping_sub(first);
        let left_ms = u64::from(limit_ms.saturating_sub(waited_ms));
        self.rtt.rto.min(self.jiffies_from_ms(left_ms).max(1))
    }

    /// As long as `tcp_retries2` doublings of the least timeout, or the user's, have passed.
    fn has_timed_out(&self) -> bool {
        match (self.config.options.user_timeout_ms, self.waited_ms()) {
            (Some(limit_ms), waited) => waited.is_some_and(|waited_ms| waited_ms >= limit_ms),
            (None, _) => self.has_tried(self.config.sysctl.retries2),
        }
    }

    /// Time since the first of the retransmissions that nobody answered.
    fn waited_ms(&self) -> Option<u32> {
        let first = self.rec.retrans_stamp.filter(|_| self.rec.retransmits > 0)?;
        Some(self.stamp_at(self.now_ns).wrapping_sub(first))
    }

    /// As long as this many doublings of the least timeout have passed (`retransmits_timed_out`,
    /// `tcp_model_timeout`).
    fn has_tried(&self, retries: u32) -> bool {
        let Some(waited_ms) = self.waited_ms() else { return false };
        let least_ms = u64::from(self.rto_min_us() / 1000);
        let retries = u64::from(retries);
        let longest_ms = u64::from(self.config.sysctl.rto_max_ms);
        let doublings = u64::from((longest_ms / least_ms).ilog2());
        let limit_ms = if retries <= doublings {
            ((2 << retries) - 1) * least_ms
        } else {
            ((2 << doublings) - 1) * least_ms + (retries - doublings) * longest_ms
        };
        u64::from(waited_ms) >= limit_ms
    }

    /// Nothing is out and the window is closed: the peer is asked from time to time.
    pub(super) fn check_probe_timer(&mut self) {
        if self.rec.packets_out == 0 && self.timers.transmit.is_none() {
            let delay = self.rtt.rto.max(self.jiffies_from_us(u64::from(RTO_MIN_US)));
            self.set_timer(Purpose::WindowProbe, delay);
        }
    }

    /// `tcp_probe0_when`: doubled with each probe.
    fn probe_delay(&self) -> u64 {
        let base = self.rtt.rto.max(self.jiffies_from_us(u64::from(RTO_MIN_US)));
        (base << self.rec.backoff.min(24)).min(self.rto_max())
    }

    fn on_probe_timer(&mut self, out: &mut Vec<Segment>) {
        if self.rec.packets_out > 0 || !self.q.has_unsent() {
            self.rec.probes_out = 0;
            self.rec.probes_since = None;
            return;
        }
        self.rec.probes_since.get_or_insert(self.jiffies());
        let over = self.left_of_user_timeout() == Some(0);
        if over || self.rec.probes_out >= self.config.sysctl.retries2 {
            self.give_up(true);
            return;
        }
        self.write_wakeup(out);
        if self.rec.packets_out > 0 || !self.q.has_unsent() {
            self.rec.probes_out = 0;
            self.rec.probes_since = None;
            self.rec.backoff = 0;
            return;
        }
        self.rec.probes_out += 1;
        let delay = if self.config.link.refuses {
            self.refused_pause()
        } else {
            self.rec.backoff += u32::from(self.rec.backoff < self.config.sysctl.retries2);
            self.probe_delay()
        };
        let left = self.left_of_user_timeout().map(|left| left.max(LEAST_TIMEOUT));
        self.set_timer(Purpose::WindowProbe, delay.min(left.unwrap_or(u64::MAX)));
    }

    /// Ticks that the user gives probes that nobody answers (`tcp_clamp_probe0_to_user_timeout`).
    fn left_of_user_timeout(&self) -> Option<u64> {
        let limit = self.jiffies_from_ms(self.config.options.user_timeout_ms?.into());
        Some(limit.saturating_sub(self.jiffies() - self.rec.probes_since?))
    }

    /// How long it waits where the host itself is congested: nothing is doubled
    /// (`TCP_RESOURCE_PROBE_INTERVAL` of include/net/tcp.h, HZ/2).
    pub(super) fn refused_pause(&self) -> u64 {
        u64::from(self.config.kernel.hz / 2)
    }

    /// Sends what fits the window, or a segment of an old number that must be answered
    /// (`tcp_write_wakeup`, `tcp_xmit_probe_skb`).
    fn write_wakeup(&mut self, out: &mut Vec<Segment>) {
        let room = self.window_end();
        if let Some(&skb) = self.q.send_head()
            && crate::segment::before(skb.seq, room)
        {
            let mss = self.current_mss();
            let fits = room.wrapping_sub(skb.seq);
            let place = self.q.sent();
            self.snd.pushed_seq = crate::segment::later(self.snd.pushed_seq, skb.end_seq);
            if fits < skb.end_seq.wrapping_sub(skb.seq) || skb.len > mss {
                let piece = fits.min(mss);
                self.q.at_mut(place).flags = skb.flags.with(Flags::PSH);
                self.split(place, piece, mss);
            } else {
                self.q.at_mut(place).cut_for(mss);
            }
            let flags = self.q.at(place).flags.with(Flags::PSH);
            self.q.at_mut(place).flags = flags;
            // Neither the congestion window nor Nagle is asked.
            if self.transmit(place, out) {
                self.on_new_data_sent(mss);
            }
            return;
        }
        self.send_bare(self.snd.una.wrapping_sub(1), Flags::ACK, out);
    }

    /// A window-opening ACK ends the probes, another sets them again (`tcp_ack_probe`).
    pub(super) fn on_ack_probe(&mut self) {
        let Some(&head) = self.q.send_head() else { return };
        if crate::segment::after(head.end_seq, self.window_end()) {
            let delay = self.probe_delay();
            self.set_timer(Purpose::WindowProbe, delay);
        } else {
            self.rec.backoff = 0;
            self.rec.probes_since = None;
            if self.pending() == Some(Purpose::WindowProbe) {
                self.clear_timer();
            }
        }
    }

    fn on_pacing_timer(&mut self, out: &mut Vec<Segment>) {
        self.on_unthrottled(out);
        self.check_space();
    }

    fn on_reorder_timer(&mut self, out: &mut Vec<Segment>) {
        let before = self.in_flight();
        let lost = self.rec.lost;
        self.detect_loss();
        if before != self.in_flight() {
            if self.rec.state != CaState::Recovery {
                self.enter_recovery(false);
                if !self.cc.controls_itself() {
                    self.reduce_cwnd(1, self.rec.lost - lost, false, false);
                }
            }
            self.retransmit_queue(out);
        }
        if self.pending() != Some(Purpose::Retransmit) {
            self.rearm_rto();
        }
    }
}

/// Steps of one level of the timer wheel (`LVL_SIZE`; each level is eight times coarser).
const WHEEL_STEPS: u64 = 64;
