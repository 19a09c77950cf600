//! A captured frame, as every format gives it and as its headers are read.

use tcpwhy_words::units::Time;

/// One captured link-layer frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Capture time.
    pub time: Time,
    /// Number in the file, from 1.
    pub frame: u64,
    /// `LINKTYPE_` value of the interface.
    pub link_type: u32,
    /// Interface number (pcapng, counted on through its sections; 0 in classic pcap).
    pub interface: u32,
    /// Direction from the packet's metadata (pcapng `epb_flags`), where given.
    pub direction: Option<Direction>,
    /// Length on the wire, in bytes.
    pub wire_len: u32,
    /// The bytes that were kept.
    pub data: &'a [u8],
}

/// Direction of a packet seen from the capturing host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Received by this host.
    Incoming,
    /// Sent by this host.
    Outgoing,
}
