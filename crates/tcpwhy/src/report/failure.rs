//! What did not work: a connection that was never opened, a request that got no answer.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Connection, Text};

/// A connection that did not do what it was made for.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What did not work.
    pub kind: FailureKind,
    /// The finding that tells more of it, if there is one.
    pub code: Option<Text>,
    /// How long it was tried or waited for: from the first SYN to the last packet, or from the end of the
    /// request on; 0 where that is not known.
    pub waited_ns: i64,
    /// SYNs sent; 0 where it is not about them.
    pub tries: u32,
    /// The capture ended first: perhaps it worked later.
    pub open: bool,
}

/// What did not work.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No SYN was answered.
    NoAnswer,
    /// A reset came back.
    Refused,
    /// The last request got no answer.
    RequestUnanswered,
    /// A finding tells.
    #[default]
    Found,
}

/// Connections to one server that failed in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedPeer {
    /// The server.
    pub server: SocketAddr,
    /// What did not work.
    pub kind: FailureKind,
    /// The finding that tells more of it, if there is one.
    pub code: Option<Text>,
    /// How many connections.
    pub connections: u64,
    /// The longest that was tried or waited for.
    pub longest_ns: i64,
    /// Most SYNs of one of them; 0 where it is not about them.
    pub tries: u32,
}

impl FailedPeer {
    /// Servers told one by one. Ours: a scan of a network fills no memory.
    const MOST: usize = 1024;

    fn key(&self) -> (SocketAddr, FailureKind, Option<&str>) {
        (self.server, self.kind, self.code.as_deref())
    }

    /// Counts `more` in `peers`, which are in the order of their keys. Of too many those with the least keys stay, with
    /// all of their connections: which those are depends on no order of counting.
    pub(super) fn count(peers: &mut Vec<Self>, more: Self) {
        match peers.binary_search_by(|each| each.key().cmp(&more.key())) {
            Ok(at) => {
                let known = &mut peers[at];
                known.connections = known.connections.saturating_add(more.connections);
                known.longest_ns = known.longest_ns.max(more.longest_ns);
                known.tries = known.tries.max(more.tries);
            }
            Err(at) => {
                peers.insert(at, more);
                peers.truncate(Self::MOST);
            }
        }
    }

    /// Takes one back that was counted.
    pub(super) fn take_back(peers: &mut Vec<Self>, one: &Self) {
        let Ok(at) = peers.binary_search_by(|each| each.key().cmp(&one.key())) else { return };
        peers[at].connections = peers[at].connections.saturating_sub(1);
        if peers[at].connections == 0 {
            peers.remove(at);
        }
    }

    /// Asks `connections` again for the longest and the most of those counted with `moved`, where all are there.
    pub(super) fn measure_again(peers: &mut [Self], moved: &[Self], connections: &[Connection]) {
        let all: Vec<Self> = connections.iter().filter_map(Self::of).collect();
        let mut rest: BTreeMap<_, Vec<Self>> =
            moved.iter().map(|each| (each.key(), Vec::new())).collect();
        for one in &all {
            if let Some(rest) = rest.get_mut(&one.key()) {
                Self::count(rest, one.clone());
            }
        }
        for measured in rest.into_values().flatten() {
            if let Ok(at) = peers.binary_search_by(|each| each.key().cmp(&measured.key()))
                && peers[at].connections == measured.connections
            {
                peers[at] = measured;
            }
        }
    }

    /// The failure of one connection, if it failed.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let failure = connection.failure.as_ref()?;
        Some(Self {
            server: connection.server,
            kind: failure.kind,
            code: failure.code.clone(),
            connections: 1,
            longest_ns: failure.waited_ns,
            tries: failure.tries,
        })
    }
}
