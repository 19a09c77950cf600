//! What hosts keep from one connection to the next.

use super::{Side, World};
use crate::socket::Metrics;

impl World {
    /// The host has an entry of its peer with what the route says, as if there had been a connection
    /// before.
    pub(super) fn remember_route(&mut self, side: Side) {
        let route = &self.configs[side.index()].route;
        if route.ssthresh.is_some() {
            self.kept[side.index()] = Some(Metrics::of_route(route, 0));
        }
    }

    /// A socket sees what its host remembers of the peer, and adds to it.
    pub(super) fn share_metrics(&mut self, connection: u32, side: Side) {
        let mut kept = self.kept[side.index()];
        if let Some(end) = self.end(connection, side)
            && end.socket.shares_metrics()
        {
            end.socket.share_metrics(&mut kept);
            self.kept[side.index()] = kept;
        }
    }
}
