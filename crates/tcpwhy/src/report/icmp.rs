//! What devices on the way said of a connection's packets.

use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{FrameRange, Text};

/// ICMP errors of one kind that one device sent about the packets of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IcmpErrors {
    /// What is said: `too_big`, `host_unreachable`, `prohibited`, `time_exceeded` and so on.
    pub kind: Text,
    /// Who says it.
    pub from: IpAddr,
    /// To whom it goes: who sent the packets, as far as the device knows.
    pub to: IpAddr,
    /// Who sent the packets that are quoted.
    pub source: IpAddr,
    /// Their source port; `None` where a listing does not say it.
    pub source_port: Option<u16>,
    /// Whom they were for; `None` where a listing does not say it.
    pub destination: Option<IpAddr>,
    /// Their destination port; `None` where a listing does not say it.
    pub destination_port: Option<u16>,
    /// Whose packets they are, `client` or `server`; `None` if they belong to no connection of the report.
    pub about: Option<Text>,
    /// What the next hop takes of a packet that was too large, in bytes of IP; `None` where it is not said.
    pub mtu: Option<u32>,
    /// How often it was said.
    pub count: u64,
    /// Capture time of the first: RFC 3339, without date for listings.
    pub start: String,
    /// The first; `None` without a connection.
    pub first_ns: Option<i64>,
    /// The last; `None` without a connection.
    pub last_ns: Option<i64>,
    /// Frames of the first and the last.
    pub frames: FrameRange,
    /// The packets that the first few quote.
    pub quoted: Vec<QuotedPacket>,
}

/// The packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct QuotedPacket {
    /// Frame of the error.
    pub frame: u64,
    /// When the error passed; `None` without a connection.
    pub at_ns: Option<i64>,
    /// Sequence number of the packet, as on the wire.
    pub seq: Option<u32>,
    /// Its length, from the IP header on.
    pub bytes: Option<u32>,
}
