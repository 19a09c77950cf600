//! What one endpoint is: a kernel, its settings, a route, options of the socket, a link.

use crate::profile::{KernelProfile, Route, Sysctl};

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
}

/// Options of a socket, as given to setsockopt; what is absent stays as the kernel has it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
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
    /// `TCP_USER_TIMEOUT`: how long data may go unacknowledged while it is sent again.
    pub user_timeout_ms: Option<u32>,
}

/// The link that a socket's packets leave by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
        }
    }
}
