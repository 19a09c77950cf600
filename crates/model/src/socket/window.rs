//! The window that is offered: from free buffer to the field of a segment.
//!
//! Follows `__tcp_select_window`, `tcp_select_window`, `tcp_select_initial_window`,
//! `tcp_win_from_space`, `tcp_grow_window`, `tcp_init_buffer_space`. Left out: memory pressure.

use super::Socket;
use crate::cc::INIT_CWND;
use crate::profile::{FirstWindow, Space};
use crate::segment::later;

impl Socket {
    /// Window that this much buffer makes.
    pub(super) fn window_from(&self, space: i64) -> i64 {
        match self.config.kernel.space {
            Space::Ratio => (space * i64::from(self.rcv.scaling_ratio)) >> 8,
            Space::AdvWinScale => match self.config.sysctl.adv_win_scale {
                scale @ ..=0 => space >> scale.unsigned_abs(),
                scale => space - (space >> scale),
            },
        }
    }

    /// Window that the free buffer makes (`tcp_space`).
    fn free_space(&self) -> i64 {
        self.window_from(i64::from(self.rcv.rcvbuf) - i64::from(self.rcv.rmem_alloc))
    }

    /// Window that the whole buffer makes (`tcp_full_space`).
    pub(super) fn full_space(&self) -> i64 {
        self.window_from(i64::from(self.rcv.rcvbuf))
    }

    /// What is left of the window that was told last (`tcp_receive_window`).
    pub(super) const fn receive_window(&self) -> u32 {
        let left = self.rcv.wup.wrapping_add(self.rcv.wnd).wrapping_sub(self.rcv.nxt);
        if left.cast_signed() < 0 { 0 } else { left }
    }

    /// Where segments must end (`tcp_max_receive_window`).
    pub(super) fn acceptable_end(&self) -> u32 {
        let told = self.rcv.nxt.wrapping_add(self.receive_window());
        if self.config.kernel.remembers_largest_window {
            later(told, self.rcv.farthest)
        } else {
            told
        }
    }

    /// The window that could be offered now.
    pub(super) fn window_now(&mut self) -> u32 {
        if let Some(offered) = &self.config.offered {
            return u32::try_from(offered.window(self.rcv.bytes)).unwrap_or(u32::MAX);
        }
        let scale = self.rcv.wscale;
        let free = self.free_space();
        let allowed = self.full_space();
        let full = allowed.min(i64::from(self.rcv.window_clamp));
        let mss = i64::from(self.ack.rcv_mss).min(full);
        if mss <= 0 {
            return 0;
        }
        let shrinks = self.config.sysctl.shrink_window && scale > 0;
        let grain = 1i64 << scale;
        let mut free = if shrinks { free & -grain } else { free };
        if free < full >> 1 {
            self.ack.quick = 0;
            free &= -grain;
            if free < allowed >> 4 || free < mss || (shrinks && free < grain) {
                return 0;
            }
        }
        let limit = i64::from(self.rcv.ssthresh);
        if shrinks {
            return if free > limit { round_up(limit, grain) } else { free } as u32;
        }
        free = free.min(limit);
        if scale > 0 {
            return round_up(free, grain) as u32;
        }
        let window = i64::from(self.rcv.wnd);
        if window <= free - mss || window > free {
            (free / mss * mss) as u32
        } else if mss == full && free > window + (full >> 1) {
            free as u32
        } else {
            window as u32
        }
    }

    /// Settles the window that a segment tells; its field.
    pub(super) fn select_window(&mut self) -> u16 {
        if self.ack.no_memory {
            self.rcv.wnd = 0;
            self.rcv.wup = self.rcv.nxt;
            return 0;
        }
        let told = self.receive_window();
        let mut window = self.window_now();
        let scale = self.rcv.wscale;
        if window < told && !(self.config.sysctl.shrink_window && scale > 0) {
            // A window is never taken back.
            window = round_up(i64::from(told), 1 << scale) as u32;
        }
        self.rcv.wnd = window;
        self.rcv.wup = self.rcv.nxt;
        self.rcv.farthest = later(self.rcv.farthest, self.rcv.nxt.wrapping_add(window));
        (window.min(FIELD << scale) >> scale) as u16
    }

    /// The window of the handshake and the scale (`tcp_select_initial_window`): window, scale.
    pub(super) fn select_initial_window(&mut self, mss: u32, scaling: bool) -> (u32, u8) {
        if self.rcv.window_clamp == 0 {
            self.rcv.window_clamp = FIELD << LARGEST_SCALE;
        }
        let clamp = self.rcv.window_clamp;
        let mut space = (self.full_space().max(0) as u32).min(clamp);
        if space > mss {
            space = space / mss * mss;
        }
        let mut window = match self.config.kernel.first_window {
            FirstWindow::Field => space.min(FIELD),
            FirstWindow::Buffer | FirstWindow::TwentySegments => space,
        };
        let initrwnd = self.config.route.initrwnd;
        if let Some(segments) = initrwnd {
            window = window.min(segments.saturating_mul(mss));
        }
        let mut scale = 0;
        if scaling {
            let sysctl = &self.config.sysctl;
            let most = space.max(sysctl.rmem[2]).max(sysctl.rmem_max).min(clamp).max(1);
            scale = (most.ilog2() as i32 - 15).clamp(0, LARGEST_SCALE) as u8;
        }
        if self.config.kernel.first_window == FirstWindow::TwentySegments
            && initrwnd.is_none()
            && mss > 1 << scale
        {
            window = window.min(FIRST_SEGMENTS * mss);
        }
        self.rcv.window_clamp = clamp.min(FIELD << scale);
        (window, scale)
    }

    /// A segment arrived whose overhead is small enough: the window may grow with it.
    pub(super) fn grow_window(&mut self, len: u32, truesize: u32) {
        let room =
            i64::from(self.rcv.window_clamp).min(self.free_space()) - i64::from(self.rcv.ssthresh);
        if room <= 0 {
            return;
        }
        let increase = if self.window_from(i64::from(truesize)) <= i64::from(len) {
            2 * self.rcv.advmss
        } else {
            self.growth_for_overhead(len, truesize)
        };
        if increase > 0 {
            let increase = i64::from(increase.max(2 * len)).min(room);
            self.rcv.ssthresh += increase as u32;
            self.ack.quick |= 1;
        }
    }

    /// The overhead is large; it is accepted while the window is small (`__tcp_grow_window`).
    fn growth_for_overhead(&self, len: u32, truesize: u32) -> u32 {
        let mut cost = self.window_from(i64::from(truesize)) >> 1;
        let mut window = self.window_from(i64::from(self.config.sysctl.rmem[2])) >> 1;
        while i64::from(self.rcv.ssthresh) <= window {
            if cost <= i64::from(len) {
                return 2 * self.ack.rcv_mss;
            }
            cost >>= 1;
            window >>= 1;
        }
        0
    }

    /// Buffers and their bookkeeping as the connection begins.
    pub(super) fn init_buffers(&mut self) {
        if self.config.offered.is_some() {
            // What the real buffer held is not known: it held what its windows let in.
            self.rcv.rcvbuf = u32::MAX >> 2;
        }
        if self.config.options.sndbuf.is_none() {
            self.expand_sndbuf();
        }
        if self.config.kernel.first_window == FirstWindow::TwentySegments
            && self.config.options.rcvbuf.is_none()
        {
            self.presize_rcvbuf();
        }
        self.rcv.space_time_us = self.now_us();
        self.rcv.space_seq = self.rcv.copied_seq;
        let most = self.full_space();
        let advmss = i64::from(self.rcv.advmss);
        let app_win = self.config.sysctl.app_win;
        let mut clamp = i64::from(self.rcv.window_clamp);
        if clamp >= most {
            clamp = most;
            if app_win > 0 && most > 4 * advmss {
                clamp = (most - (most >> app_win)).max(4 * advmss);
            }
        }
        if app_win > 0 && clamp > 2 * advmss && clamp + advmss > most {
            clamp = (2 * advmss).max(most - advmss);
        }
        self.rcv.window_clamp = clamp.max(0) as u32;
        self.rcv.ssthresh = self.rcv.ssthresh.min(self.rcv.window_clamp);
        self.cw.stamp = self.jiffies();
        self.rcv.space = self.rcv.ssthresh.min(self.rcv.wnd).min(INIT_CWND * self.rcv.advmss);
    }

    /// Before v4.20 the buffer is sized for the first window (`tcp_fixup_rcvbuf`).
    fn presize_rcvbuf(&mut self) {
        let memory = self.config.kernel.memory;
        let packet = self.rcv.advmss + memory.headers + memory.skb + memory.shared;
        let mut wanted = 2 * FIRST_SEGMENTS * packet;
        if self.config.sysctl.moderate_rcvbuf {
            wanted <<= 2;
        }
        if self.rcv.rcvbuf < wanted {
            self.rcv.rcvbuf = wanted.min(self.config.sysctl.rmem[2]);
        }
    }
}

const fn round_up(value: i64, grain: i64) -> i64 {
    (value + grain - 1) & -grain
}

/// Largest value of the window field.
const FIELD: u32 = 65_535;

/// `TCP_MAX_WSCALE` (RFC 7323 section 2.3).
const LARGEST_SCALE: i32 = 14;

/// `tcp_default_init_rwnd`: twice the initial window of segments (to v4.19).
const FIRST_SEGMENTS: u32 = 20;
