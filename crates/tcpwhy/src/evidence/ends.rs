//! The ends of a connection's sockets.

use tcpwhy_words::printed::address::{Ends, canonical};

use crate::report::Connection;

/// Those of the socket that side `side` of `connection` has: 0 the client, 1 the server.
pub(super) fn ends_at(connection: &Connection, side: usize) -> Ends {
    let [client, server] = [canonical(connection.client), canonical(connection.server)];
    match side {
        0 => Ends { local: client, peer: server },
        _ => Ends { local: server, peer: client },
    }
}
