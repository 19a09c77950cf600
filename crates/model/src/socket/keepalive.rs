//! Is the peer still there? It is asked when nothing was heard of it for long (`SO_KEEPALIVE`, RFC 9293
//! section 3.8.4).
//!
//! Follows `tcp_keepalive_timer`, `tcp_set_keepalive`, `tcp_sock_set_keepidle_locked`,
//! `keepalive_time_elapsed`. Left out: that the same timer ends a FIN-WAIT-2 that nobody owns.

use super::{Socket, State};
use crate::segment::{Flags, Segment};

/// What a socket asks for; `None` leaves it to the host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Keepalive {
    /// `SO_KEEPALIVE`.
    pub on: bool,
    /// `TCP_KEEPIDLE`: seconds of silence before the first probe.
    pub idle_s: Option<u32>,
    /// `TCP_KEEPINTVL`: seconds between probes.
    pub interval_s: Option<u32>,
    /// `TCP_KEEPCNT`: probes that nobody answers before the connection is given up.
    pub probes: Option<u32>,
}

impl Socket {
    /// `SO_KEEPALIVE` and its times.
    pub fn set_keepalive(&mut self, now_ns: u64, asked: Keepalive) {
        self.tick(now_ns);
        let before = std::mem::replace(&mut self.config.options.keepalive, asked);
        if matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        if !asked.on {
            self.timers.keepalive = None;
        } else if !before.on {
            self.start_keepalive();
        } else if before.idle_s != asked.idle_s {
            self.arm_keepalive(self.idle_ticks().saturating_sub(self.silent_ticks()));
        }
    }

    /// The peer was heard just now.
    pub(super) fn start_keepalive(&mut self) {
        self.rec.heard = self.jiffies();
        if self.config.options.keepalive.on {
            self.arm_keepalive(self.idle_ticks());
        }
    }

    pub(super) fn on_keepalive_timer(&mut self, out: &mut Vec<Segment>) {
        if matches!(self.state, State::Closed | State::SynSent | State::TimeWait) {
            return;
        }
        let (idle, silent) = (self.idle_ticks(), self.silent_ticks());
        if self.rec.packets_out > 0 || self.q.has_unsent() {
            // What is sent tells whether the peer is there.
            return self.arm_keepalive(idle);
        }
        if silent < idle {
            return self.arm_keepalive(idle - silent);
        }
        if self.is_peer_gone(silent) {
            self.send_bare(self.acceptable_seq(), Flags::RST.with(Flags::ACK), out);
            self.give_up(true);
            return;
        }
        self.send_bare(self.snd.una.wrapping_sub(1), Flags::ACK, out);
        if self.config.link.refuses {
            return self.arm_keepalive(self.refused_pause());
        }
        self.rec.probes_out += 1;
        let asked = self.config.options.keepalive.interval_s;
        self.arm_keepalive(self.ticks_of(asked.unwrap_or(self.config.sysctl.keepalive.intvl)));
    }

    /// The user's timeout counts instead of the number of probes.
    fn is_peer_gone(&self, silent: u64) -> bool {
        let options = &self.config.options;
        if let Some(limit) = options.user_timeout_ms {
            return silent >= self.jiffies_from_ms(limit.into()) && self.rec.probes_out > 0;
        }
        let most = options.keepalive.probes.unwrap_or(self.config.sysctl.keepalive.probes);
        self.rec.probes_out >= most
    }

    fn idle_ticks(&self) -> u64 {
        let asked = self.config.options.keepalive.idle_s;
        self.ticks_of(asked.unwrap_or(self.config.sysctl.keepalive.time))
    }

    /// Since data or an acknowledgment came.
    fn silent_ticks(&self) -> u64 {
        self.jiffies().saturating_sub(self.ack.lrcvtime.max(self.rec.heard))
    }

    fn ticks_of(&self, seconds: u32) -> u64 {
        u64::from(seconds) * u64::from(self.config.kernel.hz)
    }

    fn arm_keepalive(&mut self, delay: u64) {
        self.timers.keepalive = Some(self.wheel(self.jiffies() + delay));
    }
}
