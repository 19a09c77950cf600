//! A connection as programs read it.

use core::net::SocketAddr;

use serde::Serialize;

use super::{Account, Connection, Held};
use crate::host::snapshot::{Memory, Socket, State as Tcp};
use crate::report::{State, TimeIn};

/// One connection at one look: a line of `tcpwhy live --json`, an entry of `connections` in `tcpwhy check --json`. Times are
/// nanoseconds, rates bits per second, sizes bytes; what was not seen is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Line<'a> {
    /// When, on the clock of the looks: nanoseconds since 1970 in what the command prints. Absent where the text has no date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_ns: Option<u64>,
    /// This host's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// The kernel's name of the socket as long as it lives.
    #[serde(skip_serializing_if = "is_none")]
    pub cookie: u64,
    /// The program that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<&'a str>,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// TCP's own state.
    pub tcp_state: Tcp,
    /// What holds its sender, as in the report of a capture; absent where it has nothing to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What holds it, how sure, and what shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<&'a Held>,
    /// Since when that is so, as far as was looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// Where the time between its looks went.
    pub time_in: &'a TimeIn,
    /// What its kernel counted in that time; of one look, since it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// What its own receiving side says, in words, where its program lags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
    /// Acknowledged since the look before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bps: Option<u64>,
    /// Received since the look before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_bps: Option<u64>,
    /// Segments retransmitted since it was first seen.
    pub retransmitted: u64,
    /// Received and not read.
    pub receive_queue_bytes: u32,
    /// Written and not acknowledged.
    pub send_queue_bytes: u32,
    /// Congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<&'a str>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// What `TCP_INFO` and `SK_MEMINFO` have of it, as far as it was seen.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figures {
    /// Smoothed round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// The least there was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_segments: Option<u32>,
    /// Slow start ends there; absent while it is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh_segments: Option<u32>,
    /// In flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unacked_segments: Option<u32>,
    /// Payload of a full segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// What the peer admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_window_bytes: Option<u32>,
    /// Written and not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent_bytes: Option<u64>,
    /// `sk_sndbuf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u32>,
    /// `sk_rcvbuf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u32>,
    /// Acknowledged since it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<u64>,
    /// Received since it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
}

impl Figures {
    fn of(socket: &Socket) -> Self {
        let info = socket.info.as_deref().copied().unwrap_or_default();
        let buffer =
            |of: fn(&Memory) -> u32| socket.memory.as_ref().map(of).filter(|size| *size > 0);
        Self {
            rtt_ns: info.rtt_ns,
            min_rtt_ns: info.min_rtt_ns,
            cwnd_segments: info.snd_cwnd,
            ssthresh_segments: info.snd_ssthresh,
            unacked_segments: info.unacked,
            mss_bytes: info.snd_mss,
            peer_window_bytes: info.snd_wnd,
            unsent_bytes: info.notsent_bytes,
            send_buffer_bytes: buffer(|memory| memory.sndbuf),
            receive_buffer_bytes: buffer(|memory| memory.rcvbuf),
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_none(cookie: &u64) -> bool {
    *cookie == 0
}

impl Connection {
    /// As programs read it; `process` is the name of its program, and looks that have no date tell no times.
    pub fn line<'a>(&'a self, process: Option<&'a str>, is_dated: bool) -> Line<'a> {
        let socket = &self.socket;
        let dated = |ns: u64| is_dated.then_some(ns);
        Line {
            t_ns: dated(self.last_ns),
            local: socket.local,
            remote: socket.remote,
            cookie: socket.cookie,
            process,
            pid: socket.owner.map(|owner| owner.pid),
            tcp_state: socket.state,
            state: self.held.as_ref().map(|held| held.state),
            held: self.held.as_ref(),
            since_ns: dated(self.since_ns).filter(|_| self.held.is_some()),
            time_in: &self.times,
            account: self.account,
            reader: self.reader.filter(|_| self.lags()).map(|reader| reader.words("its program")),
            sent_bps: self.sent_bps,
            received_bps: self.received_bps,
            retransmitted: self.retransmitted,
            receive_queue_bytes: socket.receive_queue,
            send_queue_bytes: socket.send_queue,
            congestion: socket.congestion.as_deref(),
            figures: Figures::of(socket),
        }
    }
}
