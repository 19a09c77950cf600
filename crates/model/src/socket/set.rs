//! Options that change while a socket lives.
//!
//! Follows `sk_setsockopt` and `do_tcp_setsockopt`. Two more stand beside the writing that they
//! release: [`Socket::set_nodelay`], [`Socket::set_cork`].

use super::Socket;
use super::handshake::{LEAST_RCVBUF, LEAST_SNDBUF};

impl Socket {
    /// `SO_SNDBUF`: the send buffer is doubled and no longer follows the congestion window.
    pub fn set_sndbuf(&mut self, bytes: u32) {
        let bytes = bytes.min(self.config.sysctl.wmem_max);
        self.config.options.sndbuf = Some(bytes);
        self.snd.sndbuf = bytes.saturating_mul(2).max(LEAST_SNDBUF);
        self.check_space();
    }

    /// `SO_RCVBUF`: the receive buffer is doubled and no longer follows the reader.
    pub fn set_rcvbuf(&mut self, bytes: u32) {
        let bytes = bytes.min(self.config.sysctl.rmem_max);
        self.config.options.rcvbuf = Some(bytes);
        self.rcv.rcvbuf = bytes.saturating_mul(2).max(LEAST_RCVBUF);
    }

    /// `TCP_USER_TIMEOUT`; 0 is none.
    pub fn set_user_timeout(&mut self, ms: u32) {
        self.config.options.user_timeout_ms = Some(ms).filter(|ms| *ms > 0);
    }

    /// Whether it waits to be accepted, so that nobody can read from it.
    pub const fn set_waiting(&mut self, waits: bool) {
        self.rcv.waits = waits;
    }

    /// The link's queue takes nothing from now on, or takes again.
    pub const fn set_refused(&mut self, refuses: bool) {
        self.config.link.refuses = refuses;
    }

    /// `TCP_SYNCNT`.
    pub const fn set_syn_retries(&mut self, times: u32) {
        self.config.options.syn_retries = Some(times);
    }

    /// `TCP_NOTSENT_LOWAT`; 0 leaves it to the host (`tcp_notsent_lowat` of include/net/tcp.h).
    pub fn set_notsent_lowat(&mut self, bytes: u32) {
        self.config.options.notsent_lowat = Some(bytes).filter(|bytes| *bytes > 0);
        self.check_space();
    }
}
