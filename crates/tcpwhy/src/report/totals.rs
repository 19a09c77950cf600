//! What all connections add up to, whether the report holds their accounts or not.

use serde::{Deserialize, Serialize};

use super::{Connection, FailedPeer, TimeIn};

/// Sums over connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// How many connections.
    pub connections: u64,
    /// How many of them carried no data.
    pub silent: u64,
    /// How many did not do what they were made for: never opened, or a request that got no answer.
    #[serde(default)]
    pub failed: u64,
    /// The same by server and kind, in the order of addresses (capped).
    #[serde(default)]
    pub failures: Vec<FailedPeer>,
    /// Their transfers.
    pub transfers: u64,
    /// Payload bytes of both directions, each counted once.
    pub bytes: u64,
    /// Retransmitted segments, SYNs among them.
    pub retransmitted: u64,
    /// What held their transfers, in sum.
    pub time_in: TimeIn,
    /// What was waited for from the first SYN to the last ACK of data, in sum: the same with the opening and the
    /// waits for answers, but without the silence between answers and requests.
    #[serde(default)]
    pub waited: TimeIn,
}

impl Totals {
    /// The sums over `connections`.
    pub fn of(connections: &[Connection]) -> Self {
        let mut totals = Self::default();
        for connection in connections {
            totals.add(connection);
            totals.add_failure(connection);
        }
        totals
    }

    /// Adds one more.
    pub fn add(&mut self, connection: &Connection) {
        self.connections += 1;
        self.silent += u64::from(!connection.carried_data());
        self.transfers = self.transfers.saturating_add(connection.transfers.len() as u64);
        self.bytes = self.bytes.saturating_add(connection.bytes());
        self.retransmitted = self.retransmitted.saturating_add(connection.retransmitted());
        connection.add_time_in_transfers(&mut self.time_in);
        connection.add_time_waited(&mut self.waited);
    }

    /// Counts it among those that failed, if it did: that may be known only when all is read.
    pub fn add_failure(&mut self, connection: &Connection) {
        if let Some(failed) = FailedPeer::of(connection) {
            self.failed += 1;
            FailedPeer::count(&mut self.failures, failed);
        }
    }

    /// Takes back that one was counted: more is known of it now.
    pub(crate) fn take_back_failure(&mut self, counted: &FailedPeer) {
        FailedPeer::take_back(&mut self.failures, counted);
        self.failed = self.failed.saturating_sub(1);
    }

    /// What was the longest and the most among those that were counted with `moved` is asked again of the rest, if
    /// all of it is among `connections`.
    pub(crate) fn measure_failures_again(
        &mut self,
        moved: &[FailedPeer],
        connections: &[Connection],
    ) {
        if !moved.is_empty() {
            FailedPeer::measure_again(&mut self.failures, moved, connections);
        }
    }

    /// Adds what other connections add up to.
    pub fn join(&mut self, other: &Self) {
        self.connections += other.connections;
        self.silent += other.silent;
        self.failed += other.failed;
        other.failures.iter().for_each(|each| FailedPeer::count(&mut self.failures, each.clone()));
        self.transfers = self.transfers.saturating_add(other.transfers);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.retransmitted = self.retransmitted.saturating_add(other.retransmitted);
        self.time_in.add_all(other.time_in.iter());
        self.waited.add_all(other.waited.iter());
    }
}
