//! Where the sender last stopped: what the verdict on the wait after it is made of.

use super::evidence::Evidence;

/// The last send, as far as the wait after it cares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stop {
    pub(crate) evidence: Evidence,
    /// The round it belongs to.
    pub(crate) round: u64,
    /// The largest window announced by then: of all, and of the last rounds.
    pub(crate) window_largest: i64,
    pub(crate) window_recent: i64,
}
