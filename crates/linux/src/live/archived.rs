//! A socket as an archive keeps it: `inet_diag_msg` and its attributes, byte for byte.

use tcpwhy::host::snapshot::Socket;

use crate::collect::sockets::connection;
use crate::netlink::put;
use crate::record::tcp_info::HEAD;

/// The connection that these bytes are about; `attributes` are numbered by their place (`INET_DIAG_*`).
///
/// `None` for what is none: `TIME_WAIT`, a listener, too few bytes.
pub fn archived(head: &[u8], attributes: &[Option<Vec<u8>>]) -> Option<Socket> {
    let mut message = head.get(..HEAD)?.to_vec();
    for (kind, value) in (0..u16::MAX).zip(attributes) {
        if let Some(value) = value.as_deref().filter(|value| value.len() < LONGEST) {
            put(&mut message, kind, value);
        }
    }
    connection(&message).filter(|socket| socket.remote.port() != 0)
}

/// Ours: the longest one of the kernel's has some 250 bytes.
const LONGEST: usize = 4096;
