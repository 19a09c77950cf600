//! Congestion control: how the window follows what is acknowledged and lost.
//!
//! What replays share with captures is the core's ([`tcpwhy::cc`]); here it runs on the kernel's
//! own clocks. A closed choice, so an enum.

mod bbr;
mod cubic;
mod hystart;
mod policer;
mod rate;
mod textbook;
mod transport;

pub(crate) use bbr::Bbr;
pub(crate) use rate::RateSample;
pub use transport::CaState;
pub(crate) use transport::{CwndState, Transport};

use tcpwhy::cc::reno::Reno;

use crate::profile::Hystart;
use cubic::Cubic;
use textbook::{Kind, Textbook};

/// A controller and its state.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    /// Half after a loss, one segment a round trip (`net/ipv4/tcp_cong.c`).
    Reno,
    /// `net/ipv4/tcp_cubic.c`.
    Cubic(Cubic),
    /// `net/ipv4/tcp_bbr.c`, version 1.
    Bbr(Box<Bbr>),
    /// No kernel's: for teaching.
    Textbook(Textbook),
}

/// What a controller sees of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    pub(crate) now_us: u64,
    pub(crate) jiffies: u64,
    pub(crate) hz: u32,
    pub(crate) una: u32,
    pub(crate) nxt: u32,
    /// Bytes a second.
    pub(crate) pacing_rate: u64,
    pub(crate) is_paced: bool,
    pub(crate) gso_max: u32,
    pub(crate) hystart: Hystart,
}

/// Controllers for teaching, which no kernel has.
pub const TEXTBOOKS: [&str; 5] =
    ["textbook", "textbook-tahoe", "textbook-reno", "textbook-reno-inflated", "stop-and-wait"];

impl Congestion {
    /// The controller of that name; `None` if there is none here.
    pub(crate) fn named(name: &str, seed: u64) -> Option<Self> {
        match name {
            "bbr" => Some(Self::Bbr(Box::new(Bbr::new(seed)))),
            "reno" => Some(Self::Reno),
            "cubic" => Some(Self::Cubic(Cubic::default())),
            _ => Kind::named(name).map(|kind| Self::Textbook(Textbook::new(kind))),
        }
    }

    /// Whether that name is one for teaching.
    pub(crate) fn is_textbook(name: &str) -> bool {
        Kind::named(name).is_some()
    }

    /// Segments of the first window.
    pub(crate) const fn initial_window(&self, smss: u32) -> u32 {
        match self {
            Self::Textbook(_) => Textbook::initial_window(smss),
            Self::Reno | Self::Cubic(_) | Self::Bbr(_) => INIT_CWND,
        }
    }

    /// The window that it aims at, where it is not what TCP is held to.
    pub(crate) fn shown_cwnd(&self) -> Option<u32> {
        match self {
            Self::Textbook(book) => Some(book.cwnd()),
            Self::Reno | Self::Cubic(_) | Self::Bbr(_) => None,
        }
    }

    /// The connection is established.
    pub(crate) fn begin(&mut self, at: &Surroundings) {
        if let Self::Cubic(cubic) = self {
            cubic.begin(at);
        }
    }

    /// It sets window and rate itself (`cong_control`).
    pub(crate) const fn controls_itself(&self) -> bool {
        match self {
            Self::Reno | Self::Cubic(_) => false,
            Self::Bbr(_) | Self::Textbook(_) => true,
        }
    }

    /// How many windows the send buffer holds (`sndbuf_expand`).
    pub(crate) const fn sndbuf_factor(&self) -> u32 {
        match self {
            Self::Reno | Self::Cubic(_) | Self::Textbook(_) => 2,
            Self::Bbr(_) => 3,
        }
    }

    /// A piece holds what the pacing rate carries in 2^-n of a second (`sk_pacing_shift`).
    pub(crate) const fn pacing_shift(&self) -> u32 {
        match self {
            Self::Reno | Self::Cubic(_) | Self::Bbr(_) | Self::Textbook(_) => 10,
        }
    }

    /// Least packets of a piece, if it has a will of its own (`min_tso_segs`).
    pub(crate) const fn min_tso_segs(&self, pacing_rate: u64) -> Option<u32> {
        match self {
            Self::Reno | Self::Cubic(_) | Self::Textbook(_) => None,
            Self::Bbr(_) => Some(bbr::min_tso_segs(pacing_rate)),
        }
    }

    /// Sending begins after nothing was under way (`CA_EVENT_TX_START`).
    pub(crate) const fn on_start(&mut self, now: u64, last_sent: u64) {
        if let Self::Cubic(cubic) = self {
            cubic.on_start(now, last_sent);
        }
    }

    /// The threshold after a loss while this many bytes are under way.
    pub(crate) fn ssthresh(&mut self, cw: &CwndState, flight: u32) -> u32 {
        match self {
            Self::Reno => Reno::ssthresh(u64::from(cw.cwnd)) as u32,
            Self::Cubic(cubic) => cubic.ssthresh(cw),
            Self::Bbr(bbr) => {
                bbr.save_cwnd(cw.cwnd);
                cw.ssthresh
            }
            Self::Textbook(book) => book.on_congestion(flight),
        }
    }

    /// The window as it was before a reduction that was not needed (`tcp_reno_undo_cwnd`).
    pub(crate) fn undo_cwnd(&mut self, cw: &CwndState) -> u32 {
        match self {
            Self::Reno | Self::Cubic(_) => cw.cwnd.max(cw.prior_cwnd),
            Self::Textbook(_) => cw.cwnd,
            Self::Bbr(bbr) => {
                bbr.undo();
                cw.cwnd
            }
        }
    }

    /// A retransmission timer expired.
    pub(crate) fn on_loss_state(&mut self, at: &Surroundings) {
        match self {
            Self::Reno => {}
            Self::Cubic(cubic) => cubic.on_loss_state(at),
            Self::Bbr(bbr) => bbr.on_loss_state(),
            Self::Textbook(book) => book.on_timeout(),
        }
    }

    /// Packets were acknowledged, with a round trip if one was measured (`pkts_acked`).
    pub(crate) fn on_packets_acked(
        &mut self,
        rtt_us: Option<u32>,
        cw: &mut CwndState,
        at: &Surroundings,
    ) {
        if let Self::Cubic(cubic) = self {
            cubic.on_packets_acked(rtt_us, cw, at);
        }
    }

    /// The window was full and `acked` packets arrived (`cong_avoid`).
    pub(crate) fn on_ack(&mut self, acked: u32, cw: &mut CwndState, at: &Surroundings) {
        let mut left = acked;
        if cw.cwnd < cw.ssthresh {
            if let Self::Cubic(cubic) = self {
                cubic.on_slow_start(at);
            }
            left = slow_start(acked, cw);
        }
        if left == 0 {
            return;
        }
        match self {
            Self::Reno => grow(left, cw.cwnd, cw),
            Self::Cubic(cubic) => {
                let per = cubic.update(left, cw.cwnd, at);
                grow(left, per, cw);
            }
            Self::Bbr(_) | Self::Textbook(_) => {}
        }
    }
}

/// `TCP_INIT_CWND` of include/net/tcp.h (RFC 6928).
pub(crate) const INIT_CWND: u32 = 10;

/// Grows by what was acknowledged, up to the threshold; what is left (`tcp_slow_start`).
fn slow_start(acked: u32, cw: &mut CwndState) -> u32 {
    let cwnd = cw.cwnd.saturating_add(acked).min(cw.ssthresh);
    let left = acked - (cwnd - cw.cwnd);
    cw.cwnd = cwnd.min(cw.clamp);
    left
}

/// Grows by one for every `per` acknowledged.
fn grow(acked: u32, per: u32, cw: &mut CwndState) {
    let cwnd = cw.increase.grow(u64::from(cw.cwnd), u64::from(per), u64::from(acked));
    cw.cwnd = (cwnd as u32).min(cw.clamp);
}
