//! One run of an experiment, with every choice made: what a backend carries out.
//!
//! A plan names no namespaces, interfaces or commands. Two hosts, `client` and `server`, are
//! joined by a path; on it lies a tap at each host and one in the middle. Each backend builds
//! that from what it has: TUN devices and a process, netem in routers, or a model's queues.
//!
//! All times are nanoseconds, sizes bytes, rates bits per second, shares parts of a million, so
//! that plans are equal bit by bit wherever they are read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Parts of a million.
pub type Ppm = u32;

/// One run.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The variant's name; empty if there is only one.
    pub variant: String,
    /// Which repeat of the variant, from 0.
    pub repeat: u32,
    /// Seeds every random choice of the path.
    pub seed: u64,
    /// Addresses are IPv6.
    pub ipv6: bool,
    /// The end that connects.
    pub client: Host,
    /// The end that accepts.
    pub server: Host,
    /// What lies between them.
    pub path: Path,
    /// The conversations, in order of their start.
    pub flows: Vec<Flow>,
    /// What is recorded beside the captures at both ends.
    pub records: Records,
    /// Longest time the run may take on the experiment's own clock.
    pub limit_ns: u64,
    /// Time that the captures stay open after the last application ended.
    pub tail_ns: u64,
}

/// One end's machine.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Settings of its own network namespace, as `net.ipv4.tcp_sack` to `0`.
    pub sysctl: BTreeMap<String, String>,
    /// Words of its route to the peer, as `initcwnd` to `100`, `congctl` to `reno`, `rto_min` to
    /// `200ms`, `cwnd` to `lock 30` (ip-route(8)).
    pub route: BTreeMap<String, String>,
    /// Segmentation and receive offloads (TSO, GSO, GRO) of its interface.
    pub offload: bool,
    /// A queueing discipline at its own egress.
    pub egress: Option<Egress>,
    /// The network device below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// Delay between its stack and its tap, each way: its capture is taken behind a distance.
    pub stack_to_tap_ns: u64,
    /// It has a second interface: all that it sends leaves by that one, and what comes from the peer arrives by the
    /// first, which has the address.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub second_nic: bool,
    /// What changes at it while it runs, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<HostChange>,
}

/// A change of a host at an instant.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostChange {
    /// When, after the first application started.
    pub at_ns: u64,
    /// Settings as they are from then on ([`Host::sysctl`]).
    pub sysctl: BTreeMap<String, String>,
    /// Its kernel forgets what it remembers of all peers (`ip tcp_metrics flush`, ip-tcp_metrics(8)).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub flush_metrics: bool,
}

/// A queueing discipline on a host's way out.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Egress {
    /// Token bucket, before the host's tap: the capture sees packets behind it.
    TokenBucket(TokenBucket),
    /// `fq`: paces what TCP asks it to pace.
    Fq,
    /// `fq_codel`.
    FqCodel,
    /// First in, first out, in one queue: `pfifo`, `bfifo`, and `pfifo_fast` where all traffic has
    /// one priority.
    Fifo(Queue),
}

/// A network device: a ring of descriptors that it sends from at its rate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Bits per second on layer 2; 0 is as fast as it goes.
    pub rate: u64,
    /// Descriptors; a packet takes one.
    pub ring: u32,
    /// Byte queue limits keep it short.
    pub bql: bool,
    /// Their `limit_min`.
    pub limit_min: u32,
    /// Their `limit_max`; `None` is as large as the kernel lets it be.
    pub limit_max: Option<u32>,
}

/// A token bucket (tc-tbf(8)).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TokenBucket {
    /// Refill, in bits per second on layer 2.
    pub rate: u64,
    /// Credit, in bytes.
    pub burst: u64,
    /// Queue for what finds no credit, in bytes; 0 polices: what finds no credit is dropped.
    pub queue: u64,
}

/// Both ways between the hosts.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// From server to client.
    pub down: Way,
    /// From client to server.
    pub up: Way,
    /// What changes while it runs, in order of time.
    pub changes: Vec<Change>,
}

/// One way, in the order a packet meets its parts: a link with its queue, losses, a distance.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Rate of the link on layer 2, in bits per second; 0 is as fast as it goes.
    pub rate: u64,
    /// Where packets wait for the link.
    pub queue: Queue,
    /// A token bucket in place of the plain link.
    pub bucket: Option<TokenBucket>,
    /// What the link adds to each packet.
    #[serde(default, skip_serializing_if = "Overhead::is_none")]
    pub overhead: Overhead,
    /// Largest IP packet that the link takes; `None` takes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// What is longer vanishes, and its sender is not told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub black_hole: bool,
    /// Other traffic that shares the link, and goes no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross: Option<Cross>,
    /// What is lost behind the link.
    pub loss: Loss,
    /// Constant delay behind it.
    pub delay_ns: u64,
    /// Uniform spread around it, to either side; packets may overtake.
    pub jitter_ns: u64,
    /// Share of packets that is delayed more, so that later ones overtake them.
    pub reorder: Ppm,
    /// By how much those are delayed more.
    pub reorder_ns: u64,
    /// Share of packets delivered twice.
    pub duplicate: Ppm,
    /// Share of packets with a flipped bit in the TCP payload.
    pub corrupt: Ppm,
}

/// What a link adds to each packet of layer 2, as `tc` counts it (tc-stab(8)).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Bytes.
    pub bytes: u32,
    /// Then it is cut into cells of 53 bytes that carry 48, the last one filled up (ITU-T I.361).
    pub atm: bool,
}

impl Overhead {
    /// Bytes that a packet takes on the line.
    pub const fn on_line(self, bytes: u32) -> u32 {
        let bytes = bytes.saturating_add(self.bytes);
        if self.atm { bytes.div_ceil(48).saturating_mul(53) } else { bytes }
    }

    /// It adds nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Packets of one size at a constant rate.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cross {
    /// Bits per second on layer 2.
    pub rate: u64,
    /// Bytes of a packet on layer 2.
    pub bytes: u32,
}

/// A queue before a link; all but the last are drop-tail.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// So long that nothing is dropped.
    #[default]
    Endless,
    /// At most this many bytes wait.
    Bytes(u64),
    /// At most this many packets wait.
    Packets(u64),
    /// `fq_codel` with its defaults: by flow, and what waits too long is dropped or marked.
    FqCodel,
}

/// Which packets are lost.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet with the same chance.
    Random(Ppm),
    /// In bursts (Gilbert): chance to fall into the bad state, to leave it, and to be lost in it.
    Gilbert {
        /// From good to bad, per packet.
        enter: Ppm,
        /// From bad to good, per packet.
        leave: Ppm,
        /// Loss in the bad state.
        bad: Ppm,
    },
    /// Just these packets with data, counted from 1 over the whole run as they reach this place,
    /// with retransmissions.
    Exact(Vec<u64>),
}

/// A change of the path at an instant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, after the first application started.
    pub at_ns: u64,
    /// The way as it is from then on, if it changes; its queue keeps what waits in it.
    pub down: Option<Way>,
    /// The same for the other way.
    pub up: Option<Way>,
}

/// One pair of applications and the connections between them.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// When the client starts, after the first one.
    pub start_ns: u64,
    /// Port that the server listens on.
    pub port: u16,
    /// Connections, one after the other.
    pub connections: u32,
    /// Pause between them.
    pub gap_ns: u64,
    /// None waits for the end of the one before it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub together: bool,
    /// A connection that fails ends nothing but itself, and the server stays until the clients are done.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub may_fail: bool,
    /// SYNs of hosts that never answer, which come before them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub flood: u32,
    /// When the server takes its connections.
    #[serde(default, skip_serializing_if = "Accept::is_at_once")]
    pub accept: Accept,
    /// What the client does with each.
    pub client: Vec<Step>,
    /// What the server does with each.
    pub server: Vec<Step>,
    /// The client's socket.
    pub client_socket: Socket,
    /// The server's sockets; set on the listener too.
    pub server_socket: Socket,
}

impl Flow {
    /// The server does not end by itself.
    pub fn server_stays(&self) -> bool {
        self.may_fail || self.accept == Accept::Never || keeps_open(&self.server)
    }

    /// The client does not end by itself.
    pub fn client_stays(&self) -> bool {
        keeps_open(&self.client)
    }
}

/// Whether a connection stays open when its steps are over.
pub fn keeps_open(steps: &[Step]) -> bool {
    steps.last() == Some(&Step::KeepOpen)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

/// When a server takes its connections off the queue of `listen`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// As they come.
    #[default]
    AtOnce,
    /// From this long after it began to listen, in nanoseconds.
    After(u64),
    /// Not at all.
    Never,
}

impl Accept {
    fn is_at_once(&self) -> bool {
        *self == Self::AtOnce
    }
}

/// Options of a socket; what is absent stays as the kernel has it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// `SO_SNDBUF`, as given to setsockopt (the kernel doubles it).
    pub sndbuf: Option<u32>,
    /// `SO_RCVBUF`, likewise.
    pub rcvbuf: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK` while the steps run.
    pub cork: bool,
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `TCP_NOTSENT_LOWAT`.
    pub notsent_lowat: Option<u32>,
    /// `SO_MAX_PACING_RATE`, in bytes per second.
    pub max_pacing: Option<u64>,
    /// `TCP_WINDOW_CLAMP`.
    pub window_clamp: Option<u32>,
    /// `TCP_FASTOPEN` on the listener, data with the SYN at the client.
    pub fast_open: bool,
    /// Backlog of `listen`.
    pub backlog: Option<u32>,
}

/// One step of an application.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Writes `bytes`, `chunk` at a time, `pause_ns` after each.
    Write {
        /// In all.
        bytes: u64,
        /// At a time.
        chunk: u64,
        /// After each.
        pause_ns: u64,
    },
    /// Reads just `bytes`, at most `chunk` at a time, `pause_ns` after each read.
    Read {
        /// In all.
        bytes: u64,
        /// At most at a time.
        chunk: u64,
        /// After each.
        pause_ns: u64,
    },
    /// Reads to the end of the stream.
    ReadToEnd {
        /// At most at a time.
        chunk: u64,
        /// After each.
        pause_ns: u64,
    },
    /// Writes a head of this many bytes that ends in an empty line.
    WriteHead(u64),
    /// Reads up to and with an empty line.
    ReadHead,
    /// Does nothing: the application's own work.
    Sleep(u64),
    /// Waits until all that was written is acknowledged.
    Drain,
    /// Ends its own sending (`shutdown`).
    EndWriting,
    /// Ends the connection by a reset.
    Reset,
    /// Never closes the connection: it stays open until the run ends. It is the last step.
    KeepOpen,
    /// Repeats steps.
    Repeat {
        /// How often.
        times: u32,
        /// What.
        steps: Vec<Step>,
    },
}

/// What is recorded.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// Bytes kept of each packet.
    pub snap_length: u32,
    /// A capture in the middle of the path, behind the link of the way down.
    pub middle: bool,
    /// `TCP_INFO` of every socket, so often; 0 is never.
    pub tcp_info_every_ns: u64,
    /// When all sockets of both hosts are looked at, after the first application started; in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets_at_ns: Vec<u64>,
}
