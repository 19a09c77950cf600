//! Which port a client connects from, and when it may be had again.

/// The local port of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Port {
    /// Some port that is free.
    #[default]
    Any,
    /// The one that `bind` gave.
    Bound,
    /// The only one of `IP_LOCAL_PORT_RANGE`.
    Only(u16),
}

impl Port {
    /// The least port of the range is its lower half, the last one the upper.
    pub(super) const fn of_range(range: u32) -> Port {
        let (first, last) = (range as u16, (range >> 16) as u16);
        if first == last && first > 0 { Port::Only(first) } else { Port::Any }
    }
}

/// When a port may be had again (`tcp_tw_reuse`, `tcp_tw_reuse_delay`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reuse {
    pub(super) allowed: bool,
    pub(super) after_ms: u64,
}

impl Default for Reuse {
    fn default() -> Reuse {
        // By default it is for the loopback only (`tcp_sk_init`, v4.19).
        Reuse { allowed: false, after_ms: 1000 }
    }
}
