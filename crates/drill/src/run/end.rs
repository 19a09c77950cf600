//! One socket as its application sees it: what the kernel keeps around the endpoint.

use super::cookies::Key;
use super::port::Port;
use super::sent::Sent;
use super::zero_copy::ZeroCopy;
use tcpwhy_model::segment::Segment;
use tcpwhy_model::socket::{self, Config, Socket, State};

/// A socket.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a socket")]
pub(super) struct End {
    pub(super) role: Role,
    /// What `setsockopt` said before there was an endpoint.
    pub(super) options: socket::Options,
    pub(super) nonblocking: bool,
    /// `SO_ERROR`.
    pub(super) error: Option<&'static str>,
    /// It has been connected, or tried to be.
    pub(super) used: bool,
    /// Nobody reads or writes here any more.
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
    /// No descriptor is left.
    pub(super) closed: bool,
    /// `connect` was called and has not been told the end.
    pub(super) connecting: bool,
    /// A call has said that there is a connection (`SS_CONNECTED`).
    pub(super) connected: bool,
    /// `SO_LINGER` without time: closing resets.
    pub(super) resets: bool,
    /// `TCP_INQ`
    pub(super) tells_queue: bool,
    /// The peer's initial sequence number.
    pub(super) remote_isn: u32,
    /// When the stream grew last, or the connection was made (`lrcvtime`).
    pub(super) grown_ns: u64,
    /// The local port that it connects from.
    pub(super) port: Port,
    /// When it was over and began to wait for what is still under way (TIME-WAIT).
    pub(super) over_ns: u64,
    /// Something woke those who wait for it to be readable or writable.
    pub(super) woken: bool,
    /// It was reset or given up, and nobody was told yet.
    pub(super) failed: bool,
    /// A writer that was blocked may go on.
    pub(super) writable: bool,
    /// How many connections of this listener may be open before their handshake is done.
    pub(super) early_most: usize,
    /// The key of its own for Fast Open.
    pub(super) key: Option<Key>,
    pub(super) zero_copy: ZeroCopy,
    /// The listener that it came from.
    pub(super) listener: Option<usize>,
}

/// What a socket is.
#[derive(Clone, Debug, Default)]
#[expect(clippy::large_enum_variant, reason = "a script has a handful of sockets")]
pub(super) enum Role {
    /// Nothing yet.
    #[default]
    Fresh,
    /// It listens; the connections that wait to be accepted.
    Listener(Vec<usize>),
    /// It is an end of a connection.
    Connection(Socket),
}

impl End {
    pub(super) fn socket(&self) -> Option<&Socket> {
        if let Role::Connection(socket) = &self.role { Some(socket) } else { None }
    }

    pub(super) fn socket_mut(&mut self) -> Option<&mut Socket> {
        if let Role::Connection(socket) = &mut self.role { Some(socket) } else { None }
    }

    pub(super) fn state(&self) -> State {
        self.socket().map_or(State::Closed, Socket::state)
    }

    /// Whether somebody can have it: its handshake is done, or it was open with the SYN.
    pub(super) fn is_ready(&self) -> bool {
        self.state() != State::SynReceived || self.socket().is_some_and(Socket::is_open_early)
    }

    /// Does something with the endpoint; what it sends is put on the tap.
    pub(super) fn act<T>(
        &mut self,
        wire: &mut Wire,
        owner: Option<usize>,
        now_ns: u64,
        action: impl FnOnce(&mut Socket, &mut Vec<Segment>) -> T,
    ) -> Option<T> {
        let Role::Connection(socket) = &mut self.role else { return None };
        let mut out = Vec::new();
        let value = action(socket, &mut out);
        // What leaves the host frees memory, and that may let more out.
        while !out.is_empty() {
            for segment in std::mem::take(&mut out) {
                let departs_ns = wire.departure(now_ns, &segment);
                if departs_ns > now_ns {
                    wire.held.push((departs_ns, owner, segment));
                    continue;
                }
                wire.put(owner, now_ns, &segment);
                socket.on_departed(now_ns, segment.truesize, &mut out);
            }
        }
        self.note_events();
        Some(value)
    }

    fn note_events(&mut self) {
        let Role::Connection(socket) = &mut self.role else { return };
        let events = socket.take_events();
        self.woken |= self.zero_copy.on_acknowledged(socket.info().snd_una);
        self.writable |= events.writable;
        self.failed |= events.failed;
        self.woken |= events.connected
            || events.readable
            || events.writable
            || events.failed
            || events.closed;
    }

    /// The settings of the endpoint that this socket becomes.
    pub(super) fn config(&self, host: &Config) -> Config {
        Config { options: self.options.clone(), ..host.clone() }
    }
}

/// The device: what it lets out, and what its queue holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    pub(super) paces: bool,
    /// Its queue takes nothing.
    pub(super) refuses: bool,
    pub(super) offload: bool,
    pub(super) sent: std::collections::VecDeque<Sent>,
    held: Vec<(u64, Option<usize>, Segment)>,
}

impl Wire {
    /// When this segment may leave: `fq` holds it until it is due, behind those before it.
    fn departure(&self, now_ns: u64, segment: &Segment) -> u64 {
        let behind = self.held.last().map_or(0, |(departs_ns, ..)| *departs_ns);
        if self.paces { segment.departs_ns.max(behind).max(now_ns) } else { now_ns }
    }

    /// When the queue lets the next segment out.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.held.first().map(|(departs_ns, ..)| *departs_ns)
    }

    /// Takes a segment from the queue that is due, and whose it is.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(Option<usize>, Segment)> {
        if self.next_due()? > now_ns {
            return None;
        }
        let (_, owner, segment) = self.held.remove(0);
        Some((owner, segment))
    }

    /// Puts a segment on the tap: whole, or in pieces if the device cuts nothing.
    pub(super) fn put(&mut self, owner: Option<usize>, now_ns: u64, segment: &Segment) {
        if self.refuses {
            return;
        }
        if self.offload {
            self.sent.push_back(Sent::new(owner, now_ns, *segment));
        } else {
            self.sent.extend(segment.pieces().map(|piece| Sent::new(owner, now_ns, piece)));
        }
    }
}
