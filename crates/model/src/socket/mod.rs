//! One TCP endpoint of Linux, without any input or output of its own.
//!
//! Segments, calls of the application and instants go in; segments come out into a caller's
//! buffer. [`Socket::next_timer`] says when [`Socket::on_timer`] is due.
//!
//! ```text
//!   application            peer                       clock
//!     write, read, close     on_segment                 on_timer
//!        |      |               |                          |
//!      write  read      handshake, ack (una, SACK,      timers
//!        |      |        RACK, recovery, cc), data        |
//!        v      v               v                          v
//!      queue  window, drs  output: cwnd, window, Nagle, TSO, pacing, TSQ -> segments
//! ```
//!
//! Files are named for the kernel's parts; the head of each names the functions it follows.
//! Processing takes no time. `docs/model.md` says what is left out.

mod ack;
mod charge;
mod chrono;
mod close;
mod config;
mod delack;
mod drs;
mod fast_open;
mod handshake;
mod info;
mod keepalive;
mod known;
mod metrics;
mod mtu;
mod options;
mod output;
mod queue;
mod rack;
mod read;
mod receive;
mod recovery;
mod refused;
mod retransmit;
mod rtt;
mod sack;
mod set;
mod shift;
mod state;
#[cfg(test)]
mod tests;
mod textbook;
mod timers;
mod tlp;
mod tso;
mod undo;
mod window;
mod write;

pub use config::{Config, Link, Offered, Options};
pub use info::{Counters, Info, Traffic};
pub use keepalive::Keepalive;
pub use metrics::Metrics;
pub use output::Wait;
pub use state::{Purpose, State};

pub use crate::cc::CaState;
use crate::cc::{Bbr, Congestion, CwndState, Surroundings, Transport};
use crate::path::earliest;
use crate::segment::Segment;
use queue::Queue;
use state::{AckPolicy, Delivery, EcnState, Receive, Recovery, Rtt, Send, Timers};

/// A TCP endpoint.
#[derive(Clone, Debug)]
pub struct Socket {
    config: Config,
    state: State,
    /// The host's monotonic clock.
    now_ns: u64,
    /// That clock as it was last read, which stamps acknowledgments (`tcp_clock_cache`). Every segment, call and departure
    /// reads it here; in the kernel a departure does only where it lets something out.
    clock_cache_ns: u64,
    ticks: Ticks,
    q: Queue,
    snd: Send,
    cw: CwndState,
    rec: Recovery,
    rtt: Rtt,
    dlv: Delivery,
    rcv: Receive,
    ack: AckPolicy,
    ecn: EcnState,
    chrono: chrono::Chrono,
    timers: Timers,
    cc: Congestion,
    stamps: bool,
    sack: bool,
    wait: Wait,
    events: Events,
    /// SYNs or SYN-ACKs retransmitted.
    syn_retries: u32,
    syn_sent_ns: u64,
    first_syn_ns: u64,
    fast: fast_open::FastOpen,
    learned: metrics::Learned,
    mtu: mtu::Mtu,
    counters: Counters,
    traffic: Traffic,
}

/// What happened that an application may want to know.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent events")]
pub struct Events {
    /// The handshake is done.
    pub connected: bool,
    /// There is something to read, or the end of the stream.
    pub readable: bool,
    /// A writer that was blocked may go on.
    pub writable: bool,
    /// The connection was reset or given up.
    pub failed: bool,
    /// Nothing is left of the connection.
    pub closed: bool,
}

impl Socket {
    /// What it is and does at the moment.
    pub const fn state(&self) -> State {
        self.state
    }

    /// What it was made with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Why the sender stopped at the last attempt to send.
    pub const fn wait(&self) -> Wait {
        self.wait
    }

    /// What the sender's timer is about to do at `now_ns`, if it is due.
    pub(crate) fn timer_due(&self, now_ns: u64) -> Option<Purpose> {
        let due = now_ns + self.config.clock_ns;
        self.timers.transmit.filter(|(.., at)| *at <= due).map(|(purpose, ..)| purpose)
    }

    /// State of congestion control.
    pub(crate) const fn ca_state(&self) -> CaState {
        self.rec.state
    }

    /// Packets sent and not acknowledged.
    pub(crate) const fn packets_out(&self) -> u32 {
        self.rec.packets_out
    }

    /// What happened since the last call.
    pub const fn take_events(&mut self) -> Events {
        std::mem::replace(
            &mut self.events,
            Events {
                connected: false,
                readable: false,
                writable: false,
                failed: false,
                closed: false,
            },
        )
    }

    /// Bytes that can be read without waiting.
    pub const fn readable(&self) -> u32 {
        let fin_taken = self.rcv.shutdown as u32;
        self.rcv.nxt.wrapping_sub(self.rcv.copied_seq).saturating_sub(fin_taken)
    }

    /// The peer has ended its sending, and everything before was read.
    pub const fn at_end(&self) -> bool {
        let ended = self.rcv.shutdown || matches!(self.state, State::Closed);
        ended && self.readable() == 0
    }

    /// Bytes written and not acknowledged (`SIOCOUTQ`).
    pub const fn unacked(&self) -> u32 {
        let fin = self.snd.fin_queued as u32;
        let all = self.snd.write_seq.wrapping_sub(self.snd.una);
        all.saturating_sub(fin)
    }

    /// When [`Self::on_timer`] is due next.
    pub fn next_timer(&self) -> Option<u64> {
        let Timers { transmit, before_flight: _, delack, compressed, pacing, time_wait, keepalive } =
            self.timers;
        let sender = earliest(transmit.map(|(_, _, at)| at), pacing);
        let receiver = earliest(delack, compressed);
        let at = earliest(earliest(sender, receiver), earliest(time_wait, keepalive));
        at.map(|at| at.saturating_sub(self.config.clock_ns))
    }

    /// A segment arrives.
    pub fn on_segment(&mut self, now_ns: u64, segment: &Segment, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        let pieces = segment.piece_count();
        self.traffic.segs_in += pieces;
        self.traffic.data_segs_in += if segment.len > 0 { pieces } else { 0 };
        if self.fast.passive && !self.passes_early(segment, out) {
            return;
        }
        match self.state {
            State::Closed => {}
            State::SynSent => self.on_segment_syn_sent(segment, out),
            State::SynReceived if !self.fast.passive => {
                self.on_segment_syn_received(segment, out);
            }
            State::TimeWait => self.on_segment_time_wait(segment, out),
            _ => self.on_segment_established(segment, out),
        }
    }

    /// Its handshake is under way.
    const fn is_opening(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// Data may be sent: the handshake is done, or the connection was open with the SYN.
    const fn may_send(&self) -> bool {
        match self.state {
            State::Established | State::CloseWait => true,
            State::SynReceived => self.fast.passive,
            _ => false,
        }
    }

    /// A segment that it handed down has left the host: its memory is free again.
    pub fn on_departed(&mut self, now_ns: u64, truesize: u32, out: &mut Vec<Segment>) {
        self.tick(now_ns);
        self.snd.wmem_alloc = self.snd.wmem_alloc.saturating_sub(truesize);
        if self.snd.throttled && self.state != State::Closed {
            self.on_unthrottled(out);
        }
    }

    /// How many bytes the host's queues would let pass at once now ([`Link::holds`]).
    pub const fn set_passes(&mut self, bytes: u64) {
        self.snd.passes = bytes;
    }

    fn tick(&mut self, now_ns: u64) {
        debug_assert!(now_ns + self.config.clock_ns >= self.now_ns, "time runs backwards");
        self.now_ns = now_ns + self.config.clock_ns;
        self.clock_cache_ns = self.now_ns;
        self.ticks.reach(self.now_ns);
    }

    /// The host's clock in microseconds (`tcp_mstamp`).
    const fn now_us(&self) -> u64 {
        self.now_ns / 1000
    }

    /// The host's ticks (`tcp_jiffies32`).
    const fn jiffies(&self) -> u64 {
        self.ticks.count
    }

    const fn tick_ns(&self) -> u64 {
        self.ticks.length_ns
    }

    const fn jiffies_from_us(&self, us: u64) -> u64 {
        (us * 1000).div_ceil(self.tick_ns())
    }

    const fn jiffies_from_ms(&self, ms: u64) -> u64 {
        self.jiffies_from_us(ms * 1000)
    }

    const fn us_from_jiffies(&self, jiffies: u64) -> u64 {
        jiffies * self.tick_ns() / 1000
    }

    /// Packets believed to be under way (`tcp_packets_in_flight`).
    const fn in_flight(&self) -> u32 {
        let left = self.rec.sacked_out + self.rec.lost_out;
        (self.rec.packets_out + self.rec.retrans_out).saturating_sub(left)
    }

    /// End of the peer's window.
    const fn window_end(&self) -> u32 {
        self.snd.una.wrapping_add(self.snd.wnd)
    }

    pub(crate) const fn in_slow_start(&self) -> bool {
        self.cw.cwnd < self.cw.ssthresh
    }

    /// Reductions are under way (`tcp_in_cwnd_reduction`).
    const fn in_reduction(&self) -> bool {
        matches!(self.rec.state, CaState::Cwr | CaState::Recovery)
    }

    /// What a congestion control sees.
    fn surroundings(&self) -> Surroundings {
        Surroundings {
            now_us: self.now_us(),
            jiffies: self.jiffies(),
            hz: self.config.kernel.hz,
            una: self.snd.una,
            nxt: self.snd.nxt,
            pacing_rate: self.snd.pacing_rate,
            is_paced: self.is_pacing(),
            gso_max: self.config.link.gso_max,
            hystart: self.config.kernel.hystart,
        }
    }

    /// Lets a controller act that sets window and pace itself, if it is one.
    fn with_model(&mut self, act: impl FnOnce(&mut Bbr, &mut Transport<'_>)) {
        let (jiffies, in_flight, min_rtt_us) =
            (self.jiffies(), self.in_flight(), self.min_rtt_us());
        let Congestion::Bbr(bbr) = &mut self.cc else { return };
        let mut transport = Transport {
            cw: &mut self.cw,
            pacing_rate: &mut self.snd.pacing_rate,
            app_limited: &mut self.dlv.app_limited,
            max_pacing_rate: self.snd.max_pacing_rate,
            now_ns: self.now_ns,
            wstamp_ns: self.snd.wstamp_ns,
            jiffies,
            hz: self.config.kernel.hz,
            delivered: self.rec.delivered,
            delivered_ns: self.dlv.delivered_ns,
            lost: self.rec.lost,
            in_flight,
            mss: self.snd.mss_cache,
            srtt_us: self.rtt.srtt_us,
            min_rtt_us,
            state: self.rec.state,
            headers: self.config.kernel.memory.headers,
        };
        act(bbr, &mut transport);
    }

    fn pending(&self) -> Option<Purpose> {
        self.timers.transmit.map(|(purpose, ..)| purpose)
    }
}

/// The ticks of a host's clock. Asked for many times at each instant, and each takes a division.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    length_ns: u64,
    count: u64,
    /// When the next one is.
    next_ns: u64,
}

impl Ticks {
    fn new(hz: u32, now_ns: u64) -> Self {
        let mut ticks = Self { length_ns: 1_000_000_000 / u64::from(hz), count: 0, next_ns: 0 };
        ticks.reach(now_ns);
        ticks
    }

    const fn reach(&mut self, now_ns: u64) {
        if now_ns >= self.next_ns {
            self.count = now_ns / self.length_ns;
            self.next_ns = (self.count + 1) * self.length_ns;
        }
    }
}

/// "No threshold" (`TCP_INFINITE_SSTHRESH` of include/net/tcp.h).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
