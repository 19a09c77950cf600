//! What hosts keep from one connection to the next.

use super::{Side, World};

impl World {
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
