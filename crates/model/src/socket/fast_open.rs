//! Fast Open (RFC 7413): data with the SYN, and before the handshake is done.
//!
//! ```text
//!   client                          server
//!   SYN, request           ->                     no data yet: a cookie is asked for
//!                          <-  SYN-ACK, cookie    kept for the next connection
//!   SYN, cookie, data      ->                     the application reads, and may answer
//!                          <-  SYN-ACK of all     or of the SYN alone: the data goes again
//! ```
//!
//! Follows `tcp_send_syn_data`, `tcp_rcv_fastopen_synack`, `tcp_fastopen_defer_connect`,
//! `tcp_fastopen_cookie_check`, `tcp_try_fastopen`, `tcp_fastopen_create_child`,
//! `tcp_fastopen_add_skb`, `tcp_check_req`, `tcp_rcv_synrecv_state_fastopen`,
//! `tcp_fastopen_synack_timer`. Left out: the bound of connections whose handshake is not done, a
//! second key, and the hours without Fast Open after a middlebox dropped it
//! (`tcp_fastopen_blackhole_timeout_sec`).

use super::metrics::LearnedFastOpen;
use super::options::TCP_HEADER;
use super::queue::Skb;
use super::state::{Purpose, Received};
use super::{CaState, Config, Socket, State};
use crate::profile::{KnobError, fastopen};
use crate::segment::{Cookie, Flags, Segment, after, before};

/// What a socket knows of it.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's flags, independent")]
pub(crate) struct FastOpen {
    /// The SYN waits for the first write (`defer_connect`).
    pub(crate) deferred: bool,
    /// The option that the SYN had (`syn_fastopen`, `syn_fastopen_exp`).
    asked: Option<Cookie>,
    /// The SYN had data (`syn_data`).
    with_data: bool,
    /// All of it was acknowledged or taken with the SYN (`syn_data_acked`).
    pub(crate) data_acked: bool,
    /// A server's handshake is not done, and data flows already (`fastopen_rsk`).
    pub(crate) passive: bool,
    /// A writer waits for the handshake: its data will carry the acknowledgment.
    pub(crate) writer_waits: bool,
    /// The end of what is written waits for the handshake.
    pub(crate) shutdown_waits: bool,
}

/// Whether a SYN may bring data.
enum Permit {
    With(Cookie),
    WithoutCookie,
    /// A cookie has to be asked for first.
    Ask {
        experimental: bool,
    },
}

impl Socket {
    /// Opens a connection by a write (`MSG_FASTOPEN`): as much of it as fits goes with the SYN if the
    /// peer's cookie is known. How much of it was taken.
    ///
    /// # Errors
    /// The configuration names a congestion control that the model does not have.
    pub fn connect_writing(
        config: Config,
        now_ns: u64,
        bytes: u64,
        out: &mut Vec<Segment>,
    ) -> Result<(Self, u64), KnobError> {
        let mut socket = Self::opening(config, now_ns)?;
        let taken = socket.open_writing(bytes, out);
        Ok((socket, taken))
    }

    /// `connect` was called, and the SYN waits for the first write.
    pub const fn is_deferred(&self) -> bool {
        self.fast.deferred
    }

    /// A server's socket whose handshake is not done, but which is open for data.
    pub const fn is_open_early(&self) -> bool {
        self.fast.passive
    }

    /// The rest of a write waits for the handshake.
    pub const fn set_writer_waits(&mut self, waits: bool) {
        self.fast.writer_waits = waits;
    }

    /// Whether the SYN waits, because a write can go with it.
    pub(super) fn defers(&self) -> bool {
        self.config.options.fast_open_connect && !matches!(self.permit(), Permit::Ask { .. })
    }

    fn permit(&self) -> Permit {
        let kept = self.config.metrics.unwrap_or_default();
        let options = &self.config.options;
        if options.fast_open_no_cookie
            || self.config.route.fastopen_no_cookie
            || self.config.sysctl.fastopen & fastopen::CLIENT_NO_COOKIE != 0
        {
            return Permit::WithoutCookie;
        }
        match kept.cookie {
            Some(cookie) => Permit::With(cookie),
            None => Permit::Ask { experimental: kept.try_experimental == 1 },
        }
    }

    /// Sends the SYN, with what it may bring.
    pub(super) fn open_writing(&mut self, bytes: u64, out: &mut Vec<Segment>) -> u64 {
        self.fast.deferred = false;
        let (cookie, bytes) = match self.permit() {
            Permit::With(cookie) => (Some(cookie), bytes),
            Permit::WithoutCookie => (None, bytes),
            Permit::Ask { experimental } => (Some(Cookie::request(experimental)), 0),
        };
        self.fast.asked = cookie;
        let kept = self.config.metrics.map_or(0, |kept| u32::from(kept.mss));
        let told = if kept > 0 { kept } else { self.rcv.advmss };
        self.snd.mss_clamp = told.min(self.config.options.max_segment.unwrap_or(u32::MAX));
        self.sync_mss();
        let room = self.mss_by_mtu().min(self.snd.mss_clamp).saturating_sub(MOST_OPTIONS);
        let len = u64::from(room).min(bytes) as u32;
        if len > 0 {
            self.fast.with_data = true;
            self.queue_syn_data(len);
        }
        self.send_syn(cookie, len, out);
        let delay = self.rtt.rto;
        self.set_timer(Purpose::Retransmit, delay);
        u64::from(len)
    }

    /// Segment size that the path takes, before options.
    fn mss_by_mtu(&self) -> u32 {
        self.path_mtu().saturating_sub(self.config.link.ip_header() + TCP_HEADER)
    }

    /// The data lies in the queue beside the SYN, as sent.
    fn queue_syn_data(&mut self, len: u32) {
        let truesize = self.config.kernel.memory.empty() + len;
        let seq = self.snd.write_seq;
        let rate = self.sent_state(self.now_ns);
        self.q.push(Skb {
            seq,
            end_seq: seq.wrapping_add(len),
            len,
            flags: Flags::ACK.with(Flags::PSH),
            pcount: 1,
            sent_ns: self.now_ns,
            truesize,
            rate,
            ..Skb::default()
        });
        self.q.mark_sent();
        self.snd.wmem_queued += truesize;
        self.snd.write_seq = seq.wrapping_add(len);
        self.snd.pushed_seq = self.snd.write_seq;
        self.snd.nxt = self.snd.write_seq;
        self.snd.data_segs_out += 1;
        self.rec.packets_out = 1;
        self.begin_phase(super::chrono::Phase::Busy);
    }

    /// Takes from the queue what the SYN-ACK acknowledges of the data.
    pub(super) fn clean_syn_data(&mut self) {
        while self.q.head().is_some_and(|head| head.ends_by(self.snd.una)) {
            let Some(skb) = self.q.pop_head() else { break };
            self.snd.wmem_queued = self.snd.wmem_queued.saturating_sub(skb.truesize);
            self.rec.packets_out = 0;
            self.end_phase(super::chrono::Phase::Busy);
        }
    }

    /// The SYN-ACK has come: what it tells is kept, what it left out of the data goes again. Whether
    /// something did; then no acknowledgment is needed.
    pub(super) fn on_fast_open_answer(
        &mut self,
        segment: &Segment,
        out: &mut Vec<Segment>,
    ) -> bool {
        if self.fast.asked.is_none() && !self.fast.with_data {
            return false;
        }
        let told = segment.options.cookie.filter(|_| self.fast.asked.is_some());
        let cookie = told.filter(|cookie| cookie.is_valid());
        let refused = told.is_none() && !self.fast.with_data && self.syn_retries == 0;
        let try_experimental = match self.fast.asked {
            Some(asked) if refused && asked.experimental => 2,
            Some(_) if refused => 1,
            _ => 0,
        };
        let mss = segment.options.mss.unwrap_or(0);
        self.learned.fast_open = Some(LearnedFastOpen { mss, cookie, try_experimental });
        if self.q.sent() > 0 {
            self.mark_lost(0);
            self.enter_uncongested_loss();
            self.retransmit_queue(out);
            return true;
        }
        self.fast.data_acked = self.fast.with_data;
        self.take_syn_data(segment, out);
        false
    }

    /// Data that came with a SYN or a SYN-ACK.
    fn take_syn_data(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        if segment.len > 0 {
            self.rcv.nxt = self.rcv.nxt.wrapping_add(segment.len);
            let run = Received {
                end_seq: self.rcv.nxt,
                truesize: self.charge(segment),
                pieces: segment.piece_count(),
            };
            self.append(run, self.payload_charge(segment));
            self.rcv.bytes += u64::from(segment.len);
            self.fast.data_acked = true;
            self.events.readable = true;
        }
        if segment.flags.has(Flags::FIN) {
            self.fast.data_acked = true;
            self.on_fin(out);
        }
    }

    /// What a listener makes of a SYN: whether the connection is open at once, and the cookie that
    /// the answer gives.
    pub(super) fn judge_syn(&self, syn: &Segment) -> (bool, Option<Cookie>) {
        let sysctl = &self.config.sysctl;
        let listens =
            self.config.options.fast_open || sysctl.fastopen & fastopen::SERVER_WITHOUT_OPTION != 0;
        // One of a length that none has is none.
        let told = syn.options.cookie.filter(|cookie| cookie.length == 0 || cookie.is_valid());
        let brings = syn.len > 0 || syn.flags.has(Flags::FIN);
        if sysctl.fastopen & fastopen::SERVER == 0 || !listens || !(brings || told.is_some()) {
            return (false, None);
        }
        if self.config.options.fast_open_no_cookie
            || self.config.route.fastopen_no_cookie
            || sysctl.fastopen & fastopen::SERVER_COOKIE_NOT_REQUIRED != 0
        {
            return (true, None);
        }
        let Some(told) = told else { return (false, None) };
        let own = Cookie { experimental: told.experimental, ..self.config.cookie };
        if told == own { (true, None) } else { (false, Some(own)) }
    }

    /// The connection is open with the SYN: its data can be read, and it may be written to.
    pub(super) fn open_early(&mut self, syn: &Segment, out: &mut Vec<Segment>) {
        self.fast.passive = true;
        self.begin_sequence();
        // Windows of a handshake are not scaled (RFC 7323 section 2.2).
        self.snd.wnd = u32::from(syn.window);
        self.snd.max_window = self.snd.wnd;
        self.sync_mss();
        self.init_rcv_mss();
        self.begin_transfer();
        self.take_syn_data(syn, out);
        self.rcv.wup = self.rcv.nxt;
        self.events.connected = true;
    }

    /// A segment for a server whose handshake is not done; whether it is to be taken further.
    pub(super) fn passes_early(&mut self, segment: &Segment, out: &mut Vec<Segment>) -> bool {
        let flags = segment.flags;
        let control = Flags::SYN.with(Flags::RST).with(Flags::ACK);
        let is_again = segment.seq == self.snd.wl1 && flags.has(Flags::SYN);
        if is_again && !flags.has(control.without(Flags::SYN)) {
            if !self.refuses_too_often(segment) {
                self.send_syn_ack(None, out);
            }
            return false;
        }
        if flags.has(Flags::RST) {
            self.on_early_reset(segment, out);
            return false;
        }
        let edge = self.rcv.nxt.wrapping_add(self.rcv.wnd);
        if before(segment.end_seq(), self.rcv.nxt) || after(segment.seq, edge) {
            if !self.refuses_too_often(segment) {
                self.send_ack(out);
            }
            return false;
        }
        if flags.has(Flags::SYN) && !is_again {
            out.push(Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() });
            return false;
        }
        if flags.has(Flags::ACK)
            && (before(segment.ack, self.snd.una) || after(segment.ack, self.snd.nxt))
        {
            out.push(Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() });
            return false;
        }
        flags.has(Flags::ACK)
    }

    /// The handshake is done at last.
    pub(super) fn end_early(&mut self, segment: &Segment, out: &mut Vec<Segment>) {
        self.fast.passive = false;
        self.rec.delivered += 1;
        if self.rtt.srtt_us == 0 {
            self.measure_handshake(None);
        }
        self.rcv.advmss -= self.stamp_bytes();
        if self.rec.state == CaState::Loss && self.rec.packets_out == 0 {
            self.try_undo_recovery_with(segment.options.stamps.map(|stamps| stamps.echo));
        }
        self.rec.retransmits = 0;
        if !self.any_resent() {
            self.rec.retrans_stamp = None;
        }
        self.rearm_rto();
        if self.state == State::SynReceived {
            self.state = State::Established;
            self.snd.wnd = u32::from(segment.window) << self.snd.wscale;
            self.snd.wl1 = segment.seq;
            self.update_pacing_rate();
            self.snd.lsndtime = self.jiffies();
            self.init_rcv_mss();
            if std::mem::take(&mut self.fast.shutdown_waits) {
                self.shutdown(self.now_ns - self.config.clock_ns, out);
            }
        }
    }

    /// Nobody answered the SYN-ACK of an open connection (`tcp_fastopen_synack_timer`).
    pub(super) fn on_early_timer(&mut self, out: &mut Vec<Segment>) {
        let sysctl = &self.config.sysctl;
        let most = self.config.options.syn_retries.unwrap_or(sysctl.synack_retries + 1);
        if self.syn_retries >= most {
            self.give_up(true);
            return;
        }
        if self.rec.retransmits == 1 {
            self.enter_loss();
        }
        self.syn_retries += 1;
        self.rec.retransmits += 1;
        let now = self.stamp_at(self.now_ns);
        self.rec.retrans_stamp.get_or_insert(now);
        self.send_syn_ack(None, out);
        let delay = self.jiffies_from_ms(1000) << self.syn_retries.min(24);
        self.set_timer(Purpose::Retransmit, delay);
    }
}

/// `MAX_TCP_OPTION_SPACE` of include/net/tcp.h (RFC 9293 section 3.1): room that is left for options.
const MOST_OPTIONS: u32 = 40;
