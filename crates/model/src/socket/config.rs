//! What one endpoint is: a kernel, its settings, a route, options of the socket, a link.

use super::{Keepalive, Metrics};
use crate::profile::{KernelProfile, Route, Sysctl};
use crate::segment::Cookie;
use serde::{Deserialize, Serialize};

/// Everything that is settled before a socket exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// What its kernel does.
    pub kernel: KernelProfile,
    /// Settings of its namespace.
    pub sysctl: Sysctl,
    /// Its route to the peer.
    pub route: Route,
    /// Options of the socket.
    pub options: Options,
    /// Its link.
    pub link: Link,
    /// What the host's monotonic clock shows at time zero: the phase of ticks and timestamps.
    pub clock_ns: u64,
    /// Initial sequence number.
    pub isn: u32,
    /// Offset of its timestamps (`tsoffset`).
    pub stamp_offset: u32,
    /// The windows that it offered in a capture, in place of its own rules.
    pub offered: Option<Offered>,
    /// The cookie for Fast Open that it gives to that peer.
    pub cookie: Cookie,
    /// What its host remembers of the peer.
    pub metrics: Option<Metrics>,
    /// Largest packet that the path takes, if its host was told.
    pub path_mtu: Option<u32>,
}

/// Windows that were seen: how far the peer might send when this many bytes had been acknowledged.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Offered(Vec<(u64, u64)>);

impl Offered {
    /// Takes points of acknowledged bytes and right edges, both counted from the stream's first byte;
    /// the lists of a capture may repeat, and what goes back is left out.
    pub fn new(points: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for (acked, edge) in points {
            match kept.last_mut() {
                Some(last) if acked < last.0 || edge < last.1 => {}
                Some(last) if acked == last.0 => last.1 = edge,
                _ => kept.push((acked, edge)),
            }
        }
        Self(kept)
    }

    /// The window when `acked` bytes are: between two points on the line that joins them, behind
    /// the last as large as there.
    pub fn window(&self, acked: u64) -> u64 {
        let next = self.0.partition_point(|point| point.0 <= acked);
        let edge = match (next.checked_sub(1).map(|before| self.0[before]), self.0.get(next)) {
            (Some(before), Some(after)) => {
                let (run, rise) = (after.0 - before.0, after.1 - before.1);
                before.1
                    + (u128::from(acked - before.0) * u128::from(rise) / u128::from(run)) as u64
            }
            (Some(before), None) => acked + before.1.saturating_sub(before.0),
            (None, after) => after.map_or(0, |after| after.1),
        };
        edge.saturating_sub(acked)
    }

    /// The most that had been acknowledged.
    pub fn last_acked(&self) -> u64 {
        self.0.last().map_or(0, |point| point.0)
    }

    /// How far these windows are from those seen, in millionths: the mean of its points up to this
    /// many acknowledged bytes. No point counts for more than the whole of it.
    pub fn apart(&self, seen: &Self, upto: u64) -> u64 {
        let points = seen.0.iter().filter(|point| point.0 <= upto);
        let (apart, count) = points.fold((0, 0), |(apart, count), (acked, edge)| {
            let window = edge.saturating_sub(*acked).max(1);
            let off = self.window(*acked).abs_diff(window).min(window);
            (apart + u128::from(off) * 1_000_000 / u128::from(window), count + 1)
        });
        u64::try_from(apart / count.max(1)).unwrap_or(u64::MAX)
    }
}

/// Options of a socket, as given to setsockopt; what is absent stays as the kernel has it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option")]
pub struct Options {
    /// `SO_SNDBUF`.
    pub sndbuf: Option<u32>,
    /// `SO_RCVBUF`.
    pub rcvbuf: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK`.
    pub cork: bool,
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `TCP_NOTSENT_LOWAT`.
    pub notsent_lowat: Option<u32>,
    /// `SO_MAX_PACING_RATE`, in bytes per second.
    pub max_pacing: Option<u64>,
    /// `TCP_WINDOW_CLAMP`.
    pub window_clamp: Option<u32>,
    /// `TCP_MAXSEG`.
    pub max_segment: Option<u32>,
    /// `TCP_USER_TIMEOUT`: how long data may go unacknowledged while it is retransmitted.
    pub user_timeout_ms: Option<u32>,
    /// `SO_KEEPALIVE` and its times.
    pub keepalive: Keepalive,
    /// `TCP_SYNCNT`: how often a SYN is retransmitted.
    pub syn_retries: Option<u32>,
    /// `TCP_FASTOPEN` of a listener: a SYN may bring data.
    pub fast_open: bool,
    /// `TCP_FASTOPEN_CONNECT`: the SYN waits for the first write if a cookie is known.
    pub fast_open_connect: bool,
    /// `TCP_FASTOPEN_NO_COOKIE`.
    pub fast_open_no_cookie: bool,
}

/// The link that a socket's packets leave by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a link")]
pub struct Link {
    /// Largest IP packet.
    pub mtu: u32,
    /// Addresses are IPv6.
    pub ipv6: bool,
    /// Largest super-segment (`gso_max_size`).
    pub gso_max: u32,
    /// Most pieces of one (`gso_max_segs`).
    pub gso_max_segs: u32,
    /// Its queueing discipline paces (`fq`), so that TCP has no timer of its own.
    pub paces: bool,
    /// A queue of the host keeps segments; [`super::Socket::on_departed`] tells when they leave.
    /// Otherwise they are gone at once.
    pub holds: bool,
    /// Its queue takes nothing: what is sent is thrown away at once, and TCP learns of it.
    pub refuses: bool,
}

impl Default for Link {
    fn default() -> Self {
        // `GSO_LEGACY_MAX_SIZE`, `GSO_MAX_SEGS` of include/linux/netdevice.h.
        Self {
            mtu: 1500,
            ipv6: false,
            gso_max: 65_536,
            gso_max_segs: 65_535,
            paces: false,
            holds: false,
            refuses: false,
        }
    }
}

impl Link {
    /// Bytes of the IP header.
    pub const fn ip_header(&self) -> u32 {
        if self.ipv6 { 40 } else { 20 }
    }
}

impl Config {
    /// Its controller's name: the socket's, the route's, or the namespace's.
    pub fn controller(&self) -> &str {
        let own = self.options.congestion.as_ref().or(self.route.congctl.as_ref());
        own.unwrap_or(&self.sysctl.congestion)
    }

    /// A kernel with its defaults on an Ethernet link.
    pub fn of(kernel: KernelProfile) -> Self {
        Self {
            sysctl: Sysctl::of(&kernel),
            kernel,
            route: Route::default(),
            options: Options::default(),
            link: Link::default(),
            clock_ns: 0,
            isn: 0,
            stamp_offset: 0,
            offered: None,
            cookie: Cookie { name: 0, length: Cookie::LENGTH, experimental: false },
            metrics: None,
            path_mtu: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_the_windows_seen_the_edge_moves_evenly_and_behind_them_the_window_stays() {
        let offered = Offered::new([(0, 100), (50, 120), (50, 140), (40, 500), (150, 340)]);
        let windows = [0, 25, 50, 100, 150, 1000].map(|acked| offered.window(acked));
        assert_eq!(windows, [100, 95, 90, 140, 190, 190]);
        assert_eq!(Offered::default().window(7), 0);
    }
}
