//! What an epoll instance watches.

use std::collections::BTreeMap;

/// An epoll instance: what it watches, by descriptor.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoll {
    pub(super) interests: BTreeMap<i64, Interest>,
}

/// A socket that is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interest {
    pub(super) end: usize,
    pub(super) events: i64,
    /// It is on the list of those to look at.
    pub(super) ready: bool,
}
