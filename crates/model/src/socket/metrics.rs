//! What a host remembers of a peer from one connection to the next.
//!
//! Follows `net/ipv4/tcp_metrics.c`: `tcp_init_metrics`, `tcp_update_metrics`, `tcpm_suck_dst`,
//! `tcpm_check_stamp`, `tcp_fastopen_cache_set`. The host holds the one entry of its peer; a socket
//! sees it and writes to it through [`Socket::share_metrics`]. Left out: the entry's bound of age
//! among others in a full table.

use super::{CaState, INFINITE_SSTHRESH, Socket};
use crate::profile::Route;
use crate::segment::Cookie;

/// An entry of `tcp_metrics`; 0 is a value that is not known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Metrics {
    /// Eight times the smoothed round trip, in microseconds.
    pub rtt: u32,
    /// Four times its mean deviation, in microseconds.
    pub rttvar: u32,
    /// Threshold of slow start, in packets.
    pub ssthresh: u32,
    /// Congestion window, in packets; used only if a route locks it.
    pub cwnd: u32,
    /// Displacement of packets that counts as reordering.
    pub reordering: u32,
    /// The peer's segment size, for data with a SYN.
    pub mss: u16,
    /// The peer's cookie for Fast Open.
    pub cookie: Option<Cookie>,
    /// Which option is tried for the next request: 1 is the shared one, 2 none but the own one.
    pub(super) try_experimental: u8,
    /// When something was written to it, on the host's clock.
    pub(super) stamp_ns: u64,
}

/// What a socket has to tell its host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Learned {
    /// It ended well (`tcp_update_metrics` is called once).
    pub(crate) ended: bool,
    told_end: bool,
    pub(crate) fast_open: Option<LearnedFastOpen>,
}

/// What a SYN-ACK told about Fast Open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LearnedFastOpen {
    pub(crate) mss: u16,
    pub(crate) cookie: Option<Cookie>,
    pub(crate) try_experimental: u8,
}

impl Metrics {
    /// An entry as it is made from a route (`tcpm_suck_dst`).
    pub(crate) fn of_route(route: &Route, now_ns: u64) -> Self {
        let us = |ns: Option<u64>, parts: u64| {
            ns.map_or(0, |ns| (ns / 1000 * parts).min(u64::from(u32::MAX)) as u32)
        };
        Self {
            rtt: us(route.rtt_ns, 8),
            rttvar: us(route.rttvar_ns, 4),
            ssthresh: route.ssthresh.unwrap_or(0),
            cwnd: route.cwnd.unwrap_or(0),
            reordering: route.reordering.unwrap_or(0),
            stamp_ns: now_ns,
            ..Self::default()
        }
    }
}

impl Socket {
    /// Whether there is something to tell the host, or to see there.
    pub const fn shares_metrics(&self) -> bool {
        self.is_opening()
            || self.learned.ended && !self.learned.told_end
            || self.learned.fast_open.is_some()
    }

    /// Tells its host what it learned of the peer, and sees what the host knows. A host calls it
    /// before and after whatever happens to the socket.
    pub fn share_metrics(&mut self, kept: &mut Option<Metrics>) {
        if self.learned.ended && !self.learned.told_end {
            self.learned.told_end = true;
            self.save_metrics(kept);
        }
        if let Some(learned) = self.learned.fast_open.take() {
            let entry = self.entry(kept);
            if learned.mss > 0 {
                entry.mss = learned.mss;
            }
            if learned.cookie.is_some() {
                entry.cookie = learned.cookie;
            } else if entry.cookie.is_none() {
                entry.try_experimental = entry.try_experimental.max(learned.try_experimental);
            }
        }
        if self.is_opening() {
            self.config.metrics = *kept;
        }
    }

    /// The host's entry, made from the route if there is none; what is an hour old counts no more.
    fn entry<'a>(&self, kept: &'a mut Option<Metrics>) -> &'a mut Metrics {
        let fresh = Metrics::of_route(&self.config.route, self.now_ns);
        let entry = kept.get_or_insert(fresh);
        if self.now_ns > entry.stamp_ns + LIFETIME_NS {
            *entry = Metrics {
                mss: entry.mss,
                cookie: entry.cookie,
                try_experimental: entry.try_experimental,
                ..fresh
            };
        }
        entry
    }

    /// What the connection found out is kept (`tcp_update_metrics`).
    fn save_metrics(&self, kept: &mut Option<Metrics>) {
        if self.config.sysctl.no_metrics_save {
            return;
        }
        let locked = self.config.route.locked;
        if self.rec.backoff > 0 || self.rtt.srtt_us == 0 {
            if let Some(entry) = kept.as_mut().filter(|_| !locked.rtt) {
                entry.rtt = 0;
            }
            return;
        }
        let entry = self.entry(kept);
        self.save_round_trip(entry);
        self.save_windows(entry);
        entry.stamp_ns = self.now_ns;
    }

    /// A longer round trip is kept as it is, a shorter one only by and by.
    fn save_round_trip(&self, entry: &mut Metrics) {
        let locked = self.config.route.locked;
        let (srtt, had) = (self.rtt.srtt_us, entry.rtt);
        if !locked.rtt {
            entry.rtt = if srtt >= had { srtt } else { had - ((had - srtt) >> 3) };
        }
        if !locked.rttvar {
            let deviation = (had.abs_diff(srtt) >> 1).max(self.rtt.mdev_us);
            let had = entry.rttvar;
            entry.rttvar =
                if deviation >= had { deviation } else { had - ((had - deviation) >> 2) };
        }
    }

    fn save_windows(&self, entry: &mut Metrics) {
        let route = &self.config.route;
        let keeps_ssthresh = !self.config.sysctl.no_ssthresh_metrics_save && !route.locked.ssthresh;
        let keeps_cwnd = route.cwnd.is_none();
        let (cwnd, ssthresh) = (self.cw.cwnd, self.cw.ssthresh);
        let mut keep = (entry.ssthresh, entry.cwnd);
        if ssthresh >= INFINITE_SSTHRESH {
            // Slow start never ended: only what is known already is raised.
            if entry.ssthresh > 0 {
                keep.0 = entry.ssthresh.max(cwnd >> 1);
            }
            keep.1 = entry.cwnd.max(cwnd);
        } else if !self.in_slow_start() && self.rec.state == CaState::Open {
            keep = ((cwnd >> 1).max(ssthresh), u32::midpoint(entry.cwnd, cwnd));
        } else {
            keep.1 = u32::midpoint(entry.cwnd, ssthresh);
            if entry.ssthresh > 0 {
                keep.0 = entry.ssthresh.max(ssthresh);
            }
            let reordering = self.rec.reordering;
            if !route.locked.reordering
                && entry.reordering < reordering
                && reordering != self.config.sysctl.reordering
            {
                entry.reordering = reordering;
            }
        }
        if keeps_ssthresh {
            entry.ssthresh = keep.0;
        }
        if keeps_cwnd {
            entry.cwnd = keep.1;
        }
    }

    /// A connection begins with what is known of the peer (`tcp_init_metrics`).
    pub(super) fn init_metrics(&mut self) {
        self.cw.ssthresh = INFINITE_SSTHRESH;
        let kernel = self.config.kernel;
        let mut kept = self.config.metrics;
        let entry = if kept.is_some() || kernel.route_metrics_at_once {
            *self.entry(&mut kept)
        } else {
            Metrics::default()
        };
        if self.config.route.cwnd.is_some() && entry.cwnd > 0 {
            self.cw.clamp = entry.cwnd;
        }
        if !self.config.sysctl.no_ssthresh_metrics_save && entry.ssthresh > 0 {
            self.cw.ssthresh = entry.ssthresh.min(self.cw.clamp);
        }
        if entry.reordering > 0 {
            self.rec.reordering = entry.reordering;
        }
        if entry.rtt > self.rtt.srtt_us {
            let hz = u64::from(kernel.hz);
            let ticks = u64::from(entry.rtt) / (8_000_000 / hz);
            let least = self.jiffies_from_us(u64::from(self.rto_min_us()));
            self.rtt.rto = ticks + (2 * ticks).max(least);
        } else if self.rtt.srtt_us == 0 {
            // No sample: RFC 6298 section 5.7's three seconds.
            self.rtt.rttvar_us = FALLBACK_US;
            self.rtt.mdev_us = FALLBACK_US;
            self.rtt.mdev_max_us = FALLBACK_US;
            self.rtt.rto = self.jiffies_from_us(u64::from(FALLBACK_US));
        }
    }
}

/// `TCP_METRICS_TIMEOUT` of `net/ipv4/tcp_metrics.c`.
const LIFETIME_NS: u64 = 3_600_000_000_000;

/// `TCP_TIMEOUT_FALLBACK` of include/net/tcp.h.
const FALLBACK_US: u32 = 3_000_000;
