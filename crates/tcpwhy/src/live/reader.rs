//! The receiving side of a socket: whether its program reads what came.
//!
//! `Recv-Q` is what lies in order and unread; `skmem`'s `r` is the memory of all that came, also of what waits for a hole to be
//! filled (Linux `tcp_data_queue_ofo`). The window is shut when that memory fills the buffer, whoever is at fault.

use tcpwhy_words::said::bytes;

use crate::host::snapshot::Socket;

/// Of a receive buffer, in quarters, from which on it is full. Ours: `tcp_rcv_ssthresh` stays below the buffer by its overhead,
/// so that a window is shut before the last quarter is filled.
const FULL_QUARTERS: u64 = 3;

/// What the receiver's socket says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reader {
    /// Its buffer is full of what its program has not read.
    Lags {
        /// Bytes that lie there.
        unread: u64,
        /// The buffer.
        buffer: u64,
    },
    /// Its buffer is full, and nothing can be read: what came lies behind a hole.
    Hole {
        /// Memory that is taken.
        taken: u64,
        /// The buffer.
        buffer: u64,
    },
    /// Its program has read all that came.
    Reads {
        /// The buffer, where it was seen.
        buffer: Option<u64>,
    },
}

impl Reader {
    /// What a socket that has received data says; `None` of others.
    pub fn of(socket: &Socket) -> Option<Self> {
        socket.info.as_deref()?.bytes_received.filter(|received| *received > 0)?;
        let unread = u64::from(socket.receive_queue);
        let Some(memory) = socket.memory else {
            return (unread == 0).then_some(Self::Reads { buffer: None });
        };
        let (taken, buffer) = (u64::from(memory.rmem), u64::from(memory.rcvbuf));
        let is_full = taken * 4 >= buffer * FULL_QUARTERS;
        match (is_full, unread) {
            (true, 0) => Some(Self::Hole { taken, buffer }),
            (true, _) => Some(Self::Lags { unread, buffer }),
            (false, 0) => Some(Self::Reads { buffer: Some(buffer) }),
            (false, _) => None,
        }
    }

    /// Whether its window is shut, or soon.
    pub const fn is_full(self) -> bool {
        matches!(self, Self::Lags { .. } | Self::Hole { .. })
    }

    /// In words, of the socket of this program.
    pub fn words(self, program: &str) -> String {
        match self {
            Self::Lags { unread, buffer } => format!(
                "{program} reads too slowly: {} lie unread, the buffer of {} is full",
                bytes(unread),
                bytes(buffer)
            ),
            Self::Hole { taken, buffer } => format!(
                "{program} cannot read: a segment is missing, and what came behind it fills {} of a buffer of {}",
                bytes(taken),
                bytes(buffer)
            ),
            Self::Reads { buffer } => {
                let buffer =
                    buffer.map_or_else(String::new, |b| format!(", of a buffer of {}", bytes(b)));
                format!("{program} has read all that came{buffer}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::socket;
    use super::*;

    fn says(receive_queue: u32, rmem: u32) -> Option<Reader> {
        let mut socket =
            socket("received", |_, memory| (memory.rmem, memory.rcvbuf) = (rmem, 100_000));
        socket.receive_queue = receive_queue;
        Reader::of(&socket)
    }

    #[test]
    fn a_full_buffer_is_the_programs_if_something_can_be_read() {
        assert_eq!(says(60_000, 75_000), Some(Reader::Lags { unread: 60_000, buffer: 100_000 }));
        assert_eq!(says(0, 75_000), Some(Reader::Hole { taken: 75_000, buffer: 100_000 }));
        assert_eq!(says(60_000, 74_999), None, "there is room for more");
        assert_eq!(says(0, 2_000), Some(Reader::Reads { buffer: Some(100_000) }));
    }
}
