//! One connection: who, when, seen from where, and how it began and ended.

use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{
    Beside, Direction, Ending, Exchange, Failure, Finding, FrameRange, IcmpErrors, LowHigh, Names,
    Text, TimeIn, Transfer,
};

/// One TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Number in this report, from 0, in the order of first packets.
    pub id: u64,
    /// Wireshark's `tcp.stream` of the same file; `None` where that is not defined (listings,
    /// several files, tunnels Wireshark would number otherwise).
    pub stream: Option<u64>,
    /// Which network it was seen in, VLAN tags and tunnel keys folded into one number, 0 for none. Not in the JSON: only
    /// what routers say of equal addresses in several networks needs it.
    #[serde(skip)]
    pub network: u32,
    /// Who opened the connection (or seems to have: see `handshake_seen`).
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// The client as a packet listing prints it (`host:service`), where it prints names: then the
    /// address in `client` is a stand-in that nobody has (240.0.0.0/4 or `3fff::/20`).
    pub client_name: Option<Box<str>>,
    /// The same for the server.
    pub server_name: Option<Box<str>>,
    /// What people call it by; `None` where nothing tells.
    #[serde(default)]
    pub names: Option<Box<Names>>,
    /// Capture time of the first packet (or the part's start): RFC 3339 with nine decimals, without
    /// date for listings.
    pub start: String,
    /// First to last captured packet: the lifetime all intervals add up to. The length of the part,
    /// if one was asked for.
    pub duration_ns: i64,
    /// Which part of the connection was asked for; `None`: all of it.
    pub part: Option<Part>,
    /// Packets captured of it, duplicates not counted.
    pub packets: u64,
    /// Number of its first and last packet in the input.
    pub frames: FrameRange,
    /// Whose host the capture was taken on.
    pub vantage: Vantage,
    /// Why we think so.
    pub vantage_evidence: String,
    /// Round trip between the tap and the client.
    pub tap_to_client_rtt_ns: Option<i64>,
    /// Round trip between the tap and the server.
    pub tap_to_server_rtt_ns: Option<i64>,
    /// Constant delay between the captured host's stack and the tap; `None` if not on a host or unknown.
    pub egress_delay_ns: Option<LowHigh>,
    /// Last SYN to the ACK of the SYN-ACK.
    pub handshake_rtt_ns: Option<i64>,
    /// Effective payload per segment: both MSS options less the options every segment carries.
    pub mss: Option<u32>,
    /// Whether windows are scaled.
    pub window_scaling: WindowScaling,
    /// Who left scaling out, as far as these packets show; `None` where it is used, or not known.
    pub window_scaling_refused_by: Option<ScalingRefusedBy>,
    /// Who refused scaling and how we know, when it was offered and refused.
    pub window_scaling_note: Option<String>,
    /// What the SYN and the SYN-ACK said; `None` where the capture lacks them.
    pub syns: [Option<Syn>; 2],
    /// Operating system family of client and server, guessed from the packets.
    pub sender_stack: [SenderStack; 2],
    /// How it ended.
    pub end: End,
    /// The first reset (RST), and what it ended; `None` without one.
    pub reset: Option<Reset>,
    /// What did not work, if it did not do what it was made for.
    #[serde(default)]
    pub failure: Option<Box<Failure>>,
    /// What it waited for to its end in vain.
    #[serde(default)]
    pub ending: Option<Box<Ending>>,
    /// ICMP errors about its packets.
    pub icmp: Vec<IcmpErrors>,
    /// Client to server, then server to client; `None` where no data flowed.
    pub directions: [Option<Box<Direction>>; 2],
    /// Runs of application data of one direction.
    pub transfers: Vec<Transfer>,
    /// Requests and their responses.
    pub exchanges: Vec<Exchange>,
    /// TLS handshake flights, from the clear headers of records.
    pub tls: Option<Tls>,
    /// What the ends said in clear that failed, in the order in which it was said first.
    pub clear_errors: Vec<ClearError>,
    /// What passed before the server took the connection; `None` where it did so as one should.
    pub untaken: Option<Untaken>,
    /// The answer in a few sentences: what took the time, or what did not work.
    #[serde(default)]
    pub answer: String,
    /// What was found (filled by the `find` room).
    pub findings: Vec<Finding>,
    /// What was laid beside the capture says of it.
    pub beside: Vec<Beside>,
    /// Packets that were captured twice and left out. Of few the path may have doubled some.
    pub duplicates: u64,
    /// Some lists were cut short to bound memory.
    pub truncated: bool,
}

impl Connection {
    /// The directions that carried data, with their places.
    pub fn present(&self) -> impl Iterator<Item = (usize, &Direction)> {
        let all = self.directions.iter().enumerate();
        all.filter_map(|(at, direction)| direction.as_deref().map(|direction| (at, direction)))
    }

    /// Whether few enough of its packets came twice that the path may have doubled them. A further interface, or a
    /// mirror's other port, gives each packet of a direction twice. Ours: the tenth.
    pub fn has_few_copies(&self) -> bool {
        self.duplicates > 0 && self.duplicates.saturating_mul(10) < self.packets
    }

    /// Whether any direction did.
    pub fn carried_data(&self) -> bool {
        self.present().next().is_some()
    }

    /// Payload bytes of the connection, or of the part asked for, in both directions.
    pub fn bytes(&self) -> u64 {
        let bytes = |(at, direction): (usize, &Direction)| match self.part {
            Some(part) => part.bytes[at].unwrap_or(0),
            None => direction.bytes,
        };
        self.present().map(bytes).fold(0, u64::saturating_add)
    }

    /// Retransmitted segments of both directions.
    pub fn retransmitted(&self) -> u64 {
        let each = self.present().map(|(_, direction)| direction.retransmitted.total());
        let tries = self.failure.as_ref().map_or(0, |failure| failure.tries);
        // One that was never opened has no direction that would count them.
        each.fold(u64::from(tries.saturating_sub(1)), u64::saturating_add)
    }

    /// The direction that carried most; of equals the server's.
    pub fn main_direction(&self) -> Option<&Direction> {
        self.present().max_by_key(|(at, direction)| (direction.bytes, *at)).map(|main| main.1)
    }

    /// Adds to `sum` what held its transfers; its main direction's account where it lists none.
    pub fn add_time_in_transfers(&self, sum: &mut TimeIn) {
        if self.transfers.is_empty() {
            sum.add_all(self.main_direction().into_iter().flat_map(|main| main.time_in.iter()));
        } else {
            sum.add_all(self.transfers.iter().flat_map(|transfer| transfer.time_in.iter()));
        }
    }

    /// Adds to `sum` what its users waited for: its transfers, the opening, answers.
    pub fn add_time_waited(&self, sum: &mut TimeIn) {
        self.add_time_in_transfers(sum);
        // Its whole account has the opening already.
        if !self.transfers.is_empty() {
            self.waited().add_to(sum);
        }
    }

    /// The client as people know it: by the listing's name, else by address and port.
    pub fn client_shown(&self) -> String {
        shown(self.client_name.as_deref(), self.client)
    }

    /// The server by the listing's name, else by address and port.
    pub fn server_shown(&self) -> String {
        shown(self.server_name.as_deref(), self.server)
    }

    /// The server's name with its port, where the capture tells a name and prints none itself.
    pub fn server_called(&self) -> Option<String> {
        let name = self.names.as_ref()?.server.as_ref().filter(|_| self.server_name.is_none())?;
        Some(format!("{name}:{}", self.server.port()))
    }
}

fn shown(name: Option<&str>, address: SocketAddr) -> String {
    name.map_or_else(|| address.to_string(), str::to_owned)
}

/// A part of a connection, in nanoseconds since its first packet. All other times of the
/// connection count from `from_ns`, and the `time_in` of its directions adds up to the part; what
/// is no list of intervals, rounds, transfers or events is of the whole connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Start.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
    /// The whole lifetime.
    pub of_ns: i64,
    /// New payload of the rounds that began in the part, client to server and back; `None` where
    /// no rounds were kept.
    pub bytes: [Option<u64>; 2],
}

/// The host a capture was taken on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vantage {
    /// The client's host.
    Client,
    /// The server's host.
    Server,
    /// Neither: a device between them.
    Middle,
    /// Not proven.
    #[default]
    Unknown,
}

/// Whether the connection scales its windows (RFC 7323 §2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowScaling {
    /// Both sides offered it.
    Used,
    /// At least one side did not offer it: windows stay below 64 KiB.
    NotNegotiated,
    /// The capture lacks the handshake; the shift is an estimate.
    #[default]
    HandshakeNotSeen,
}

/// Who left window scaling out of its SYN or SYN-ACK.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalingRefusedBy {
    /// The client did not offer it.
    Client,
    /// The client did, and the SYN-ACK lacks it.
    Server,
    /// The same, where a device nearer than the server answers in its name.
    Device,
}

/// A side's SYN or SYN-ACK, as it was last sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Syn {
    /// How often it was sent.
    pub sent: u32,
    /// Its sequence number, as on the wire.
    pub seq: u32,
    /// Maximum segment size that it offered.
    pub mss: Option<u16>,
    /// Window scale shift that it offered.
    pub window_scale: Option<u8>,
    /// Its window, which is never scaled.
    pub window: u16,
    /// It offered selective acknowledgements.
    pub sack: bool,
    /// It carried timestamps.
    pub timestamps: bool,
    /// It asked for ECN, or agreed to it.
    pub ecn: bool,
    /// Length of its Fast Open cookie, 0 for one asked for; `None` without that option.
    pub fast_open: Option<u8>,
    /// Payload it carried.
    pub payload: u32,
    /// How much of the other's SYN's payload it acknowledged; `None` for a SYN.
    pub acked: Option<u32>,
    /// The longest run of fillers (NOP) among its options, as far as eight options tell.
    pub fillers: u8,
}

/// A guess at one side's TCP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderStack {
    /// `linux`, `windows`, `apple`, `bsd` or `unknown`.
    pub name: Text,
    /// What speaks for it.
    pub evidence: Text,
    /// Length of one tick of its timestamp clock, where it could be fitted.
    pub timestamp_tick_ns: Option<i64>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With FIN.
    Fin,
    /// With RST.
    Rst,
    /// The capture ended first.
    #[default]
    Open,
}

/// A reset, and how the connection stood when it passed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Reset {
    /// `client` or `server`: who sent it, or in whose name it was sent.
    pub by: Text,
    /// When.
    pub at_ns: i64,
    /// Its frame.
    pub frame: u64,
    /// Whether client and server had sent a FIN before.
    pub after_fin: [bool; 2],
    /// Bytes of client and server that were not acknowledged by then, the reset's own ACK counted.
    pub unacked_bytes: [u64; 2],
    /// Where the client answered the SYN-ACK with it: the number of the SYN that the SYN-ACK acknowledged.
    pub refused_syn: Option<u32>,
}

/// What passed after the client had ended the handshake and before the server's first segment that was no SYN-ACK,
/// where data came again or a SYN-ACK did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Untaken {
    /// When the client's ACK of the SYN-ACK passed.
    pub from_ns: i64,
    /// When its first data passed.
    pub data_ns: Option<i64>,
    /// When the server's first segment passed that was no SYN-ACK; `None` if none did.
    pub to_ns: Option<i64>,
    /// Segments of the client's data that passed again.
    pub repeats: u64,
    /// SYN-ACKs that passed.
    pub syn_acks: u64,
    /// When the last of them did.
    pub last_syn_ack_ns: Option<i64>,
}

/// What became of the data that a server did not take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotTaken {
    /// They arrived on its host.
    Arrived,
    /// They may have been lost on the way.
    PerhapsLost,
}

/// A TCP that has the connection acknowledges data by then: Linux v6.1 `include/net/tcp.h`, `TCP_DELACK_MAX`.
const DELAYED_ACK_NS: i64 = 200_000_000;

impl Untaken {
    /// Whether this shows that the server did not take the connection, of a connection that was captured there until
    /// `end_ns`. Without data a listener may wait for them (`TCP_DEFER_ACCEPT`).
    pub fn shows(
        &self,
        vantage: Vantage,
        handshake_rtt_ns: Option<i64>,
        end_ns: i64,
    ) -> Option<NotTaken> {
        let data_ns = self.data_ns?;
        let syn_ack_behind = self.last_syn_ack_ns.filter(|at| *at > data_ns);
        if vantage == Vantage::Server {
            let waited = self.to_ns.unwrap_or(end_ns) - data_ns;
            let is_long = waited >= DELAYED_ACK_NS && self.repeats > 0;
            return (is_long || syn_ack_behind.is_some()).then_some(NotTaken::Arrived);
        }
        // What left the server before the data could come there tells nothing.
        let rtt = handshake_rtt_ns?;
        syn_ack_behind.filter(|at| at - data_ns > rtt).map(|_| NotTaken::PerhapsLost)
    }
}

/// Something that one end said in clear and that failed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ClearError {
    /// `tls_alert` or `http_status`.
    pub kind: Text,
    /// `client` or `server`: who said it.
    pub by: Text,
    /// When it was first said.
    pub at_ns: i64,
    /// In which frame.
    pub frame: u64,
    /// The alert's description, or the status.
    pub code: u16,
    /// Its name: `protocol_version`, `Service Unavailable`; empty for a status without one.
    pub name: Text,
    /// `fatal` or `warning` of an alert, `client_error` or `server_error` of a status.
    pub level: Text,
    /// How often it was said.
    pub times: u64,
}

/// TLS as its clear record headers show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// First handshake record.
    pub start_ns: i64,
    /// First application data record, or `None`.
    pub end_ns: Option<i64>,
    /// Changes of direction before application data: a round trip is two.
    pub flights: Vec<TlsFlight>,
}

/// One flight of a TLS handshake.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsFlight {
    /// `client` or `server`.
    pub from: String,
    /// First record.
    pub start_ns: i64,
    /// Payload bytes.
    pub bytes: u64,
    /// Record types in order.
    pub records: Vec<String>,
}
