//! Opening a connection: SYN, SYN-ACK, their options and repeats, and what is settled with the
//! first acknowledgment.
//!
//! Follows `tcp_connect_init`, `tcp_rcv_synsent_state_process`, `tcp_conn_request`,
//! `tcp_openreq_init_rwin`, `tcp_create_openreq_child`, `tcp_rcv_state_process`,
//! `tcp_init_transfer`, `inet_csk_reqsk_queue_drop_and_put`'s timer. Left out: cookies instead of
//! state, simultaneous opening.

use super::delack::MAX_QUICKACKS;
use super::options::DEFAULT_MSS;
use super::state::{AckPolicy, Delivery, EcnState, Purpose, Receive, Recovery, Rtt, Send, Timers};
use super::{Config, Events, INFINITE_SSTHRESH, Socket, State, Wait};
use crate::cc::{Congestion, CwndState};
use crate::profile::KnobError;
use crate::segment::{Cookie, Flags, Options, Segment, Stamps, after, before};

impl Socket {
    /// Opens a connection: sends a SYN, if that is not left to the first write
    /// ([`Self::is_deferred`]).
    ///
    /// # Errors
    /// The configuration names a congestion control that the model does not have.
    pub fn connect(config: Config, now_ns: u64, out: &mut Vec<Segment>) -> Result<Self, KnobError> {
        let mut socket = Self::opening(config, now_ns)?;
        if socket.defers() {
            socket.fast.deferred = true;
            socket.events.connected = true;
        } else if socket.config.options.fast_open_connect {
            socket.open_writing(0, out);
        } else {
            socket.send_syn(None, 0, out);
            let delay = socket.rtt.rto;
            socket.set_timer(Purpose::Retransmit, delay);
        }
        Ok(socket)
    }

    /// A client's socket before its SYN (`tcp_connect_init`).
    pub(super) fn opening(config: Config, now_ns: u64) -> Result<Self, KnobError> {
        let mut socket = Self::new(config, now_ns)?;
        socket.state = State::SynSent;
        socket.stamps = socket.config.sysctl.timestamps;
        socket.sack = socket.config.sysctl.sack;
        socket.begin_search();
        socket.sync_mss();
        socket.init_rcv_mss();
        let scaling = socket.config.sysctl.window_scaling;
        let advmss = socket.rcv.advmss;
        let (window, scale) = socket.select_initial_window(advmss, scaling);
        socket.rcv.wnd = window;
        socket.rcv.ssthresh = window;
        socket.rcv.wscale = scale;
        socket.snd.write_seq = socket.snd.una.wrapping_add(1);
        socket.snd.pushed_seq = socket.snd.write_seq;
        socket.snd.nxt = socket.snd.write_seq;
        Ok(socket)
    }

    /// Answers a SYN that came to a listener with `config`.
    ///
    /// # Errors
    /// The configuration names a congestion control that the model does not have.
    pub fn accept(
        config: Config,
        now_ns: u64,
        syn: &Segment,
        out: &mut Vec<Segment>,
    ) -> Result<Self, KnobError> {
        let mut socket = Self::new(config, now_ns)?;
        socket.state = State::SynReceived;
        socket.traffic.segs_in = 1;
        socket.traffic.data_segs_in = u32::from(syn.len > 0);
        let options = &syn.options;
        let sysctl = &socket.config.sysctl;
        socket.stamps = sysctl.timestamps && options.stamps.is_some();
        socket.sack = sysctl.sack && options.sack_permitted;
        let scaling = sysctl.window_scaling && options.window_scale.is_some();
        let asks = syn.flags.has(Flags::ECE) && syn.flags.has(Flags::CWR);
        socket.ecn.ok = sysctl.ecn != 0 && asks;
        socket.rcv.ts_recent = options.stamps.map_or(0, |stamps| stamps.value);
        socket.take_peer_mss(options.mss);
        socket.rcv.nxt = syn.seq.wrapping_add(1);
        socket.rcv.wup = socket.rcv.nxt;
        socket.rcv.copied_seq = socket.rcv.nxt;
        socket.snd.wl1 = syn.seq;
        let mss = socket.rcv.advmss - socket.stamp_bytes();
        let (window, scale) = socket.select_initial_window(mss, scaling);
        socket.rcv.wnd = window;
        socket.rcv.farthest = socket.rcv.nxt.wrapping_add(window);
        socket.rcv.ssthresh = window;
        if scaling {
            socket.rcv.wscale = scale;
            socket.snd.wscale = options.window_scale.unwrap_or(0).min(14);
        } else {
            socket.rcv.window_clamp = socket.rcv.window_clamp.min(65_535);
        }
        let (opens, cookie) = socket.judge_syn(syn);
        let delay = socket.rtt.rto;
        if opens {
            socket.open_early(syn, out);
        }
        socket.send_syn_ack(cookie, out);
        socket.set_timer(Purpose::Retransmit, delay);
        Ok(socket)
    }

    fn new(config: Config, now_ns: u64) -> Result<Self, KnobError> {
        let name = config.controller();
        let cc = Congestion::named(name, u64::from(config.isn)).ok_or_else(|| KnobError {
            name: "congestion control".to_owned(),
            why: format!("the model has no `{name}`; it has reno, cubic and bbr, and for teaching textbook-tahoe, textbook-reno, textbook-reno-inflated and stop-and-wait"),
        })?;
        let mut socket = Self {
            state: State::Closed,
            now_ns: now_ns + config.clock_ns,
            clock_cache_ns: now_ns + config.clock_ns,
            ticks: super::Ticks::new(config.kernel.hz, now_ns + config.clock_ns),
            q: super::Queue::default(),
            snd: Send::default(),
            cw: CwndState::default(),
            rec: Recovery::default(),
            rtt: Rtt::default(),
            dlv: Delivery::default(),
            rcv: Receive::default(),
            ack: AckPolicy::default(),
            ecn: EcnState::default(),
            chrono: super::chrono::Chrono::default(),
            timers: Timers::default(),
            cc,
            stamps: false,
            sack: false,
            wait: Wait::Nothing,
            events: Events::default(),
            syn_retries: 0,
            syn_sent_ns: 0,
            first_syn_ns: now_ns + config.clock_ns,
            fast: super::fast_open::FastOpen::default(),
            learned: super::metrics::Learned::default(),
            mtu: super::mtu::Mtu::default(),
            counters: super::Counters::default(),
            traffic: super::Traffic::default(),
            config,
        };
        socket.init();
        Ok(socket)
    }

    /// Values before anything is known of the peer (`tcp_init_sock`).
    fn init(&mut self) {
        let Config { options, sysctl, route, isn, .. } = &self.config;
        self.snd.una = *isn;
        self.snd.nxt = *isn;
        self.snd.sml = *isn;
        self.snd.write_seq = *isn;
        self.snd.nodelay = options.nodelay;
        self.snd.cork = options.cork;
        self.snd.max_pacing_rate = options.max_pacing.unwrap_or(u64::MAX);
        self.snd.paced = options.max_pacing.is_some();
        // None yet (`sock_init_data`).
        self.snd.pacing_rate = u64::MAX;
        // The kernel doubles what is asked for, within its bounds (`sock_setsockopt`).
        self.snd.sndbuf = options.sndbuf.map_or(sysctl.wmem[1], |asked| {
            asked.min(sysctl.wmem_max).saturating_mul(2).max(LEAST_SNDBUF)
        });
        self.rcv.rcvbuf = options.rcvbuf.map_or(sysctl.rmem[1], |asked| {
            asked.min(sysctl.rmem_max).saturating_mul(2).max(LEAST_RCVBUF)
        });
        self.rcv.window_clamp = options.window_clamp.or(route.window).unwrap_or(0);
        self.snd.mss_clamp = options.max_segment.unwrap_or(UNKNOWN_MSS);
        self.cw.cwnd = crate::cc::INIT_CWND;
        self.cw.ssthresh = INFINITE_SSTHRESH;
        self.cw.clamp = u32::MAX;
        self.rec.reordering = sysctl.reordering;
        self.rcv.advmss = self.announced_mss();
        self.rec.rack.reo_wnd_steps = 1;
        self.dlv.app_limited = u32::MAX;
        self.rcv.scaling_ratio = DEFAULT_RATIO;
        self.limit_clamp_to_locked_buffer();
        self.rtt.rto = self.jiffies_from_ms(1000);
        self.rtt.mdev_us = 1_000_000;
        self.reset_min_rtt();
    }

    fn limit_clamp_to_locked_buffer(&mut self) {
        let full = self.full_space().max(0) as u32;
        let clamp = self.rcv.window_clamp;
        if self.config.options.rcvbuf.is_some() && (clamp == 0 || clamp > full) {
            self.rcv.window_clamp = full;
        }
    }

    /// Sends a SYN, with a cookie or a request for one, and with data.
    pub(super) fn send_syn(&mut self, cookie: Option<Cookie>, len: u32, out: &mut Vec<Segment>) {
        let sysctl = &self.config.sysctl;
        let mut flags = Flags::SYN;
        if sysctl.ecn == 1 && self.syn_retries == 0 {
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        let options = Options {
            mss: Some(self.rcv.advmss as u16),
            window_scale: sysctl.window_scaling.then_some(self.rcv.wscale),
            sack_permitted: self.sack,
            stamps: self.stamps.then(|| Stamps { value: self.stamp_at(self.now_ns), echo: 0 }),
            cookie,
            ..Options::default()
        };
        self.syn_sent_ns = self.now_ns;
        self.traffic.segs_out += 1;
        self.traffic.bytes_sent += u64::from(len);
        out.push(Segment {
            seq: self.config.isn,
            flags,
            window: self.rcv.wnd.min(65_535) as u16,
            len,
            options,
            ..Segment::default()
        });
    }

    /// Answers a SYN, with a cookie for the next one.
    pub(super) fn send_syn_ack(&mut self, cookie: Option<Cookie>, out: &mut Vec<Segment>) {
        let mut flags = Flags::SYN.with(Flags::ACK);
        if self.ecn.ok {
            flags = flags.with(Flags::ECE);
        }
        let scaled = self.rcv.wscale > 0 || self.snd.wscale > 0;
        let options = Options {
            mss: Some(self.rcv.advmss as u16),
            window_scale: scaled.then_some(self.rcv.wscale),
            sack_permitted: self.sack,
            stamps: self
                .stamps
                .then(|| Stamps { value: self.stamp_at(self.now_ns), echo: self.rcv.ts_recent }),
            cookie,
            ..Options::default()
        };
        self.syn_sent_ns = self.now_ns;
        out.push(Segment {
            seq: self.config.isn,
            ack: self.rcv.nxt,
            flags,
            window: self.rcv.wnd.min(65_535) as u16,
            options,
            ..Segment::default()
        });
    }

    /// No answer: the SYN or SYN-ACK is retransmitted, or the attempt is given up.
    pub(super) fn on_handshake_timer(&mut self, out: &mut Vec<Segment>) {
        let sysctl = &self.config.sysctl;
        let active = self.state == State::SynSent;
        let (most, linear) = if active {
            (sysctl.syn_retries, sysctl.syn_linear_timeouts)
        } else {
            (sysctl.synack_retries, 0)
        };
        let most = self.config.options.syn_retries.unwrap_or(most);
        // Linear tries come on top of the doubled ones (`tcp_write_timeout`, v6.5).
        if self.syn_retries >= most + if active { linear } else { 0 } {
            self.give_up(true);
            return;
        }
        self.syn_retries += 1;
        let first = self.stamp_at(self.first_syn_ns);
        self.rec.retrans_stamp.get_or_insert(first);
        if active {
            self.send_syn(None, 0, out);
        } else {
            self.send_syn_ack(None, out);
        }
        if self.syn_retries > linear {
            self.rtt.rto = (self.rtt.rto << 1).min(self.rto_max());
        }
        let delay = self.rtt.rto;
        self.set_timer(Purpose::Retransmit, delay);
    }

    pub(super) fn on_segment_syn_sent(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        let acks = segment.flags.has(Flags::ACK);
        if acks && !self.answers_our_syn(segment) {
            self.refuse_answer(segment, out);
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acks {
                self.give_up(true);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) || !acks {
            return;
        }
        self.take_answer(segment);
        self.begin_transfer();
        self.state = State::Established;
        self.ack.lrcvtime = self.jiffies();
        self.events.connected = true;
        self.events.writable |= self.fast.writer_waits;
        if self.on_fast_open_answer(segment, out) {
            self.send_more(out);
        } else if self.fast.writer_waits {
            // What the writer has left will carry the acknowledgment.
            self.ack.scheduled = true;
            self.enter_quickack_mode(MAX_QUICKACKS);
            self.delay_ack_long();
        } else {
            self.send_ack(out);
        }
    }

    /// Whether a segment acknowledges our SYN and echoes one of our timestamps.
    fn answers_our_syn(&self, segment: &Segment) -> bool {
        let acked = after(segment.ack, self.snd.una) && !after(segment.ack, self.snd.nxt);
        let (first, now) = (self.stamp_at(self.first_syn_ns), self.stamp_at(self.now_ns));
        let echo = segment.options.stamps.map_or(0, |stamps| stamps.echo);
        acked && (echo == 0 || !before(echo, first) && !after(echo, now))
    }

    /// The peer may be left in a connection that is over (RFC 9293 section 3.10.7.3).
    fn refuse_answer(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let acked = after(segment.ack, self.snd.una) && !after(segment.ack, self.snd.nxt);
        if self.syn_retries == 0 && !acked {
            self.set_timer(Purpose::Retransmit, LEAST_TIMEOUT);
        }
        out.push(Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() });
    }

    /// What a SYN-ACK settles.
    fn take_answer(&mut self, segment: &Segment) {
        let options = &segment.options;
        self.clear_timer();
        self.snd.wl1 = segment.seq;
        self.snd.bytes_acked += u64::from(segment.ack.wrapping_sub(self.snd.una));
        self.snd.una = segment.ack;
        self.snd.sml = segment.ack;
        self.clean_syn_data();
        self.rcv.nxt = segment.seq.wrapping_add(1);
        self.rcv.wup = self.rcv.nxt;
        self.rcv.farthest = self.rcv.nxt.wrapping_add(self.rcv.wnd);
        self.rcv.copied_seq = self.rcv.nxt;
        self.stamps &= options.stamps.is_some();
        self.sack &= options.sack_permitted;
        self.rcv.ts_recent = options.stamps.map_or(0, |stamps| stamps.value);
        self.ecn.ok = self.config.sysctl.ecn == 1
            && segment.flags.has(Flags::ECE)
            && !segment.flags.has(Flags::CWR);
        if let Some(scale) = options.window_scale.filter(|_| self.config.sysctl.window_scaling) {
            self.snd.wscale = scale.min(14);
        } else {
            self.rcv.wscale = 0;
            self.rcv.window_clamp = self.rcv.window_clamp.min(65_535);
        }
        self.snd.wnd = u32::from(segment.window);
        self.snd.max_window = self.snd.wnd;
        self.take_peer_mss(options.mss);
        self.rec.delivered += 1;
        let echo = options.stamps.map(|stamps| stamps.echo);
        self.measure_handshake(echo);
        self.update_pacing_rate();
        self.rcv.advmss -= self.stamp_bytes();
        self.sync_mss();
        self.init_rcv_mss();
    }

    pub(super) fn on_segment_syn_received(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        if segment.flags.has(Flags::RST) {
            self.on_early_reset(segment, out);
            return;
        }
        if segment.flags.has(Flags::SYN) {
            if !segment.flags.has(Flags::ACK) {
                self.send_syn_ack(None, out);
            }
            return;
        }
        let expected = self.config.isn.wrapping_add(1);
        if !segment.flags.has(Flags::ACK) || segment.ack != expected {
            return;
        }
        self.clear_timer();
        self.begin_sequence();
        self.snd.wnd = u32::from(segment.window) << self.snd.wscale;
        self.snd.max_window = self.snd.wnd;
        self.snd.wl1 = segment.seq;
        self.rec.delivered += 1;
        self.ack.lrcvtime = self.jiffies();
        let echo = segment.options.stamps.map(|stamps| stamps.echo);
        self.measure_handshake(echo);
        self.rcv.advmss -= self.stamp_bytes();
        self.sync_mss();
        self.begin_transfer();
        self.state = State::Established;
        self.update_pacing_rate();
        self.init_rcv_mss();
        self.events.connected = true;
        if segment.len > 0 || segment.flags.has(Flags::FIN) {
            self.on_segment_established(segment, out);
        } else if let Some(stamps) = segment.options.stamps
            && !after(segment.seq, self.rcv.wup)
        {
            self.rcv.ts_recent = stamps.value;
        }
    }

    /// A reset before the handshake is done: one outside of the window is not heard, one within it but of
    /// another number than the next may be asked about (RFC 9293 section 3.10.7.4; `tcp_check_req`).
    pub(super) fn on_early_reset(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        let edge = self.rcv.nxt.wrapping_add(self.rcv.wnd);
        if before(segment.seq, self.rcv.nxt) || after(segment.seq, edge) {
            return;
        }
        if segment.seq == self.rcv.nxt || !self.config.kernel.challenges_early_resets {
            self.give_up(true);
        } else if !self.refused_lately() {
            self.send_bare(self.config.isn.wrapping_add(1), Flags::ACK, out);
        }
    }

    /// Numbers of a server's stream, behind its SYN.
    pub(super) const fn begin_sequence(&mut self) {
        let first = self.config.isn.wrapping_add(1);
        self.snd.una = first;
        self.snd.nxt = first;
        self.snd.sml = first;
        self.snd.write_seq = first;
        self.snd.pushed_seq = first;
    }

    /// The handshake's round trip seeds the estimator; a repeated SYN leaves the echo, or nothing.
    pub(super) fn measure_handshake(&mut self, echo: Option<u32>) {
        let by_clock = (self.syn_retries == 0)
            .then(|| (self.now_ns / 1000).saturating_sub(self.syn_sent_ns / 1000));
        let by_echo = || {
            let echo = echo.filter(|_| self.stamps)?;
            let delta = self.stamp_at(self.now_ns).wrapping_sub(echo);
            Some(u64::from(delta.max(1)) * 1000)
        };
        let sample = by_clock.or_else(by_echo);
        self.update_rtt(sample, sample, false);
    }

    fn take_peer_mss(&mut self, mss: Option<u16>) {
        let told = mss.map_or(DEFAULT_MSS, u32::from).max(1);
        let own = self.config.options.max_segment.unwrap_or(u32::MAX);
        self.snd.mss_clamp = told.min(own);
    }

    /// First guess of the peer's segment size (`tcp_initialize_rcv_mss`).
    pub(super) fn init_rcv_mss(&mut self) {
        let hint = self.rcv.advmss.min(self.snd.mss_cache).min(self.rcv.wnd / 2);
        self.ack.rcv_mss = hint.clamp(LEAST_RCV_MSS, DEFAULT_MSS);
    }

    /// The connection is established: window, buffers, controller.
    pub(super) fn begin_transfer(&mut self) {
        self.begin_search();
        self.start_keepalive();
        self.init_metrics();
        let repeated = self.syn_retries > 1 && self.rec.undo_marker.is_none();
        self.cw.cwnd = if repeated { 1 } else { self.initial_cwnd() };
        self.rec.retrans_stamp = None;
        self.cw.usage_seq = self.snd.una;
        self.rec.high_seq = self.snd.una;
        self.rec.fack = self.snd.una;
        self.snd.lsndtime = self.jiffies();
        let at = self.surroundings();
        self.cc.begin(&at);
        if self.cc.controls_itself() {
            self.begin_own_control();
        }
        self.init_buffers();
    }
}

/// `SOCK_MIN_SNDBUF`: twice a packet of 2048 bytes with its `sk_buff` (include/net/sock.h).
pub(super) const LEAST_SNDBUF: u32 = 2 * (2048 + 256);

/// `SOCK_MIN_RCVBUF`.
pub(super) const LEAST_RCVBUF: u32 = 2048 + 256;

/// `TCP_DEFAULT_SCALING_RATIO`: half is payload.
const DEFAULT_RATIO: u32 = 128;

/// `TCP_MIN_MSS` of include/net/tcp.h.
const LEAST_RCV_MSS: u32 = 88;

/// `TCP_TIMEOUT_MIN` of include/net/tcp.h, in ticks.
pub(super) const LEAST_TIMEOUT: u64 = 2;

/// Before the peer has told (`rx_opt.mss_clamp`, "Infinity").
const UNKNOWN_MSS: u32 = 65_535;
