//! Sockets, and whose they are.

use core::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};

/// State of a connection (Linux `include/net/tcp_states.h`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Open.
    #[default]
    Established,
    /// SYN sent.
    SynSent,
    /// SYN received: half-open.
    SynRecv,
    /// FIN sent, not acknowledged.
    #[serde(rename = "FIN_WAIT1")]
    FinWait1,
    /// FIN acknowledged, the peer's not there yet.
    #[serde(rename = "FIN_WAIT2")]
    FinWait2,
    /// Closed, without a socket.
    Close,
    /// The peer closed, the application has not.
    CloseWait,
    /// Both closed, our FIN not acknowledged.
    LastAck,
    /// Both closed at once.
    Closing,
}

/// A TCP socket that neither listens nor is in `TIME_WAIT` (`inet_diag_msg` and its attributes).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Socket {
    /// State.
    pub state: State,
    /// This host's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// Bytes received and not read (`idiag_rqueue`).
    pub receive_queue: u32,
    /// Bytes written and not acknowledged (`idiag_wqueue`).
    pub send_queue: u32,
    /// Number of its inode; 0 where no descriptor holds it: an orphan, or one not yet accepted.
    #[serde(default)]
    pub inode: u64,
    /// User.
    #[serde(default)]
    pub uid: u32,
    /// Neither was seen (`ss` without `-e`): [`Self::is_orphan`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub inode_unseen: bool,
    /// What the kernel calls it by as long as it lives (`idiag_cookie`); 0 where that was not seen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cookie: u64,
    /// The control group that it was made in (`INET_DIAG_CGROUP_ID`, since Linux 5.9): its inode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u64>,
    /// The process that holds it; `None` where that was not seen or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The timer that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
    /// `SKMEMINFO`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// `TCP_INFO`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Box<Info>>,
    /// Directions that the application has shut (`INET_DIAG_SHUTDOWN`): 1 receiving, 2 sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<u8>,
    /// What only the socket itself tells, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// How it was between the looks, oldest first: in the last look, of some that were sending at the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<Glimpse>,
}

impl Socket {
    /// One with nothing known but its state and its ends.
    pub const fn new(state: State, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            state,
            local,
            remote,
            receive_queue: 0,
            send_queue: 0,
            inode: 0,
            uid: 0,
            inode_unseen: false,
            cookie: 0,
            cgroup: None,
            owner: None,
            timer: None,
            memory: None,
            congestion: None,
            info: None,
            shutdown: None,
            locks: None,
            between: Vec::new(),
        }
    }

    /// No descriptor holds it; `None` where that was not seen.
    pub const fn is_orphan(&self) -> Option<bool> {
        if self.inode_unseen { None } else { Some(self.inode == 0) }
    }

    /// What of it tells whether its send buffer holds it; `None` where that was not seen.
    pub fn glimpse(&self) -> Option<Glimpse> {
        let (info, memory) = (self.info.as_ref()?, self.memory?);
        Some(Glimpse {
            sndbuf: memory.sndbuf,
            wqueued: memory.wqueued,
            snd_mss: info.snd_mss?,
            unacked: info.unacked?,
            notsent_bytes: info.notsent_bytes?,
            snd_cwnd: info.snd_cwnd?,
            snd_wnd: info.snd_wnd?,
        })
    }
}

/// A sender at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glimpse {
    /// [`Memory::sndbuf`].
    pub sndbuf: u32,
    /// [`Memory::wqueued`].
    pub wqueued: u32,
    /// [`Info::snd_mss`].
    pub snd_mss: u32,
    /// [`Info::unacked`].
    pub unacked: u32,
    /// [`Info::notsent_bytes`].
    pub notsent_bytes: u64,
    /// [`Info::snd_cwnd`].
    pub snd_cwnd: u32,
    /// [`Info::snd_wnd`].
    pub snd_wnd: u32,
}

/// The process that holds a socket. Its name is in [`super::Look::processes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// Number of the process.
    pub pid: u32,
    /// The descriptor; `None` where a tool told the process only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fd: Option<u32>,
}

/// The timer that runs for a socket (`idiag_timer`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// 1 retransmission, 2 keepalive or another, 3 `TIME_WAIT`, 4 zero window probe (`sock_diag(7)`).
    pub kind: u8,
    /// How often it has fired.
    pub retransmits: u8,
    /// Milliseconds until it fires.
    pub expires_ms: u32,
}

/// Memory of a socket in bytes (`SK_MEMINFO_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Received and not read, with overhead.
    pub rmem: u32,
    /// `sk_rcvbuf`.
    pub rcvbuf: u32,
    /// Handed to the layers below, with overhead.
    pub wmem: u32,
    /// `sk_sndbuf`.
    pub sndbuf: u32,
    /// Reserved and not used.
    pub forward: u32,
    /// Written and not acknowledged, with overhead.
    pub wqueued: u32,
    /// Of options.
    pub optmem: u32,
    /// Waiting while the application holds the socket.
    pub backlog: u32,
    /// Packets that it dropped.
    pub drops: u32,
}

/// What the checks need of `TCP_INFO`; names are the kernel's without `tcpi_`, times are nanoseconds.
/// `None` where the kernel's structure ends before, or the pasted text does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// `TCPI_OPT_*` bits: 1 timestamps, 2 SACK, 4 window scale, 8 ECN negotiated, 16 ECN seen, 32 Fast Open data.
    pub options: Option<u8>,
    /// Our shift.
    pub rcv_wscale: Option<u8>,
    /// The peer's shift.
    pub snd_wscale: Option<u8>,
    /// Timeouts in a row that waited twice as long each.
    pub backoff: Option<u8>,
    /// Retransmission timeout.
    pub rto_ns: Option<u64>,
    /// Payload of a full segment that we send.
    pub snd_mss: Option<u32>,
    /// The same that we receive, estimated.
    pub rcv_mss: Option<u32>,
    /// What we announced.
    pub advmss: Option<u32>,
    /// Path MTU.
    pub pmtu: Option<u32>,
    /// Segments in flight.
    pub unacked: Option<u32>,
    /// Of these, taken for lost.
    pub lost: Option<u32>,
    /// Since data was sent.
    pub last_data_sent_ns: Option<u64>,
    /// Since data was received.
    pub last_data_recv_ns: Option<u64>,
    /// Since an acknowledgment was received.
    pub last_ack_recv_ns: Option<u64>,
    /// Smoothed round trip.
    pub rtt_ns: Option<u64>,
    /// The least there was.
    pub min_rtt_ns: Option<u64>,
    /// The receiver's estimate of it.
    pub rcv_rtt_ns: Option<u64>,
    /// Congestion window in segments.
    pub snd_cwnd: Option<u32>,
    /// `None` also while it is infinite.
    pub snd_ssthresh: Option<u32>,
    /// Limit of the window that we announce.
    pub rcv_ssthresh: Option<u32>,
    /// What the application read in a round trip.
    pub rcv_space: Option<u32>,
    /// Distance of reordering, in segments.
    pub reordering: Option<u32>,
    /// Segments retransmitted.
    pub total_retrans: Option<u32>,
    /// Segments that the peer reported to have twice (D-SACK).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsack_dups: Option<u32>,
    /// Segments that came out of order, since the connection began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcv_ooopack: Option<u32>,
    /// Bytes per second.
    pub pacing_rate: Option<u64>,
    /// Bytes per second; `None` also where it is unlimited.
    pub max_pacing_rate: Option<u64>,
    /// Bytes per second.
    pub delivery_rate: Option<u64>,
    /// That rate was the application's.
    pub delivery_rate_app_limited: Option<bool>,
    /// Bytes.
    pub bytes_acked: Option<u64>,
    /// Bytes.
    pub bytes_received: Option<u64>,
    /// Bytes, with those retransmitted.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Bytes written and not yet sent.
    pub notsent_bytes: Option<u64>,
    /// Time with something in flight.
    pub busy_ns: Option<u64>,
    /// Of it, stopped by the receiver's window.
    pub rwnd_limited_ns: Option<u64>,
    /// Of it, stopped by the send buffer.
    pub sndbuf_limited_ns: Option<u64>,
    /// The peer's window in bytes.
    pub snd_wnd: Option<u32>,
    /// Our window in bytes.
    pub rcv_wnd: Option<u32>,
    /// What BBR tells of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bbr: Option<Bbr>,
}

/// What BBR tells of itself (`tcp_bbr_info`, Linux `include/uapi/linux/inet_diag.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bbr {
    /// What it takes for the path's rate, in bytes per second.
    pub bw: u64,
    /// What it takes for the path's round trip.
    pub min_rtt_ns: u64,
    /// At how much of that rate it paces, in per cent.
    pub pacing_percent: u32,
    /// How much of that rate times that round trip it lets into flight, in per cent.
    pub cwnd_percent: u32,
}

/// What a socket tells only its owner (`getsockopt` on a copy of the descriptor).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Locks {
    /// `SO_BUF_LOCK`, bit 0: the application set `SO_SNDBUF`.
    pub sndbuf: Option<bool>,
    /// Bit 1: it set `SO_RCVBUF`.
    pub rcvbuf: Option<bool>,
    /// `TCP_NODELAY`.
    pub nodelay: Option<bool>,
    /// `TCP_CORK`.
    pub cork: Option<bool>,
    /// `TCP_NOTSENT_LOWAT`, bytes.
    pub notsent_lowat: Option<u32>,
    /// `SO_KEEPALIVE`.
    pub keepalive: Option<bool>,
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// Where it listens.
    pub local: SocketAddr,
    /// Connections that wait to be accepted (`idiag_rqueue`).
    pub accept_queue: u32,
    /// The most that may (`idiag_wqueue`): the smaller of the backlog of `listen` and `somaxconn`.
    pub accept_max: u32,
    /// Connections and SYNs that it dropped since it listens (`SK_MEMINFO_DROPS`).
    #[serde(default)]
    pub drops: Option<u32>,
    /// Number of its inode.
    #[serde(default)]
    pub inode: u64,
    /// The inode was not seen (`ss` without `-e`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub inode_unseen: bool,
    /// A process that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// How many connections in `TIME_WAIT` occupy ports towards one peer's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupied {
    /// This host's address.
    pub local: IpAddr,
    /// This host's port where the kernel did not choose it: a listener has it, or it is none of
    /// `ip_local_port_range`; `None` where the ports of this host differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_port: Option<u16>,
    /// The peer; port 0 where this host is the one that was connected to.
    pub remote: SocketAddr,
    /// How many.
    pub count: u32,
}

impl Occupied {
    /// By what a connection from `local` to `remote` is counted: whether it was accepted by a listener, and the ports
    /// from which the kernel chooses where that was seen.
    pub fn by(
        local: SocketAddr,
        remote: SocketAddr,
        is_accepted: bool,
        range: Option<[u16; 2]>,
    ) -> (IpAddr, Option<u16>, SocketAddr) {
        let is_asked_for = range.is_some_and(|[low, high]| !(low..=high).contains(&local.port()));
        let port = (is_accepted || is_asked_for).then_some(local.port());
        let to = if is_accepted { SocketAddr::new(remote.ip(), 0) } else { remote };
        (local.ip(), port, to)
    }
}
