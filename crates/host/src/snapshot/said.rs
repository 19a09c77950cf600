//! What the kernel said in its log.

use serde::{Deserialize, Serialize};

/// Something that a check looks for, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The queue of SYNs of a listener was full; said once for each `listen()`.
    SynQueueFull,
    /// A packet was dropped for want of room among tracked connections.
    ConntrackFull,
    /// `tcp_mem` was used up.
    TcpOutOfMemory,
    /// There were more orphans than `tcp_max_orphans`.
    TooManyOrphans,
    /// A send queue stood still.
    QueueTimeout,
    /// A neighbour found no room.
    NeighboursFull,
}

/// Lines of the kernel's log about one event. It holds some back, so that there were at least so many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What of.
    pub event: Event,
    /// Whose: a port, an interface, a table of neighbours, another network namespace.
    pub of: Option<String>,
    /// How many lines.
    pub lines: u64,
    /// The last of them.
    pub last: String,
}
