//! What a kernel said of one socket at one instant, whichever tool asked it.

use tcpwhy_words::printed::address::Ends;
use tcpwhy_words::printed::stamp::Stamp;

/// A socket at an instant. What the tool did not say is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its line in the file, from 1.
    pub line: usize,
    /// When it was taken, if the file tells.
    pub at: Option<Stamp>,
    /// Whose it is.
    pub ends: Ends,
    /// Name of its congestion control, as the kernel has it.
    pub controller: Option<Box<str>>,
    /// Congestion window in segments.
    pub cwnd: Option<u64>,
    /// Slow start threshold in segments; `Some(None)` is none yet.
    pub ssthresh: Option<Option<u64>>,
    /// Least round trip of the last five minutes (`tcp_min_rtt_wlen`).
    pub min_rtt_ns: Option<i64>,
    /// Time with data to send or in flight.
    pub busy_ns: Option<i64>,
    /// Of it, stopped by the receiver's window.
    pub rwnd_limited_ns: Option<i64>,
    /// Of it, stopped by the socket's own send buffer.
    pub sndbuf_limited_ns: Option<i64>,
    /// Window that the peer offers.
    pub snd_wnd: Option<u64>,
    /// Limit of kernel memory for sending.
    pub sndbuf: Option<u64>,
    /// The same for receiving.
    pub rcvbuf: Option<u64>,
    /// Bytes that the program has not read yet.
    pub unread: Option<u64>,
    /// Bytes that the program has written and that were not sent yet.
    pub unsent: Option<u64>,
    /// Payload sent, with repeats.
    pub bytes_sent: Option<u64>,
    /// Retransmitted payload.
    pub bytes_retrans: Option<u64>,
    /// Bytes acknowledged by the peer; whoever opened the connection counts its SYN.
    pub bytes_acked: Option<u64>,
    /// Retransmitted segments.
    pub retrans: Option<u64>,
    /// Shift of the windows that this end announces.
    pub own_scale: Option<u8>,
    /// Shift of those that the peer announces.
    pub peer_scale: Option<u8>,
    /// Sequence numbers of what is to be sent next and acknowledged next.
    pub sequence: Option<Sequence>,
}

/// Absolute sequence numbers of a sender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sequence {
    /// Next to be sent.
    pub nxt: u32,
    /// Oldest not acknowledged.
    pub una: u32,
}

impl Sample {
    /// A sample that says nothing yet.
    pub(super) const fn new(line: usize, at: Option<Stamp>, ends: Ends) -> Self {
        Self {
            line,
            at,
            ends,
            controller: None,
            cwnd: None,
            ssthresh: None,
            min_rtt_ns: None,
            busy_ns: None,
            rwnd_limited_ns: None,
            sndbuf_limited_ns: None,
            snd_wnd: None,
            sndbuf: None,
            rcvbuf: None,
            unread: None,
            unsent: None,
            bytes_sent: None,
            bytes_retrans: None,
            bytes_acked: None,
            retrans: None,
            own_scale: None,
            peer_scale: None,
            sequence: None,
        }
    }

    /// Whether the kernel's account of TCP is in it, not the queues alone.
    pub(super) const fn says_something(&self) -> bool {
        self.cwnd.is_some() || self.bytes_acked.is_some() || self.busy_ns.is_some()
    }

    /// Sets the threshold; Linux keeps 2^31-1 (`TCP_INFINITE_SSTHRESH`, `include/net/tcp.h`) where
    /// there is none.
    pub(super) const fn set_ssthresh(&mut self, segments: u64) {
        const INFINITE: u64 = 0x7fff_ffff;
        self.ssthresh = Some(if segments >= INFINITE { None } else { Some(segments) });
    }
}
