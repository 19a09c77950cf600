//! How would a captured connection be shown to those who keep the kernel?
//!
//! As a script: the peer's packets come in as they came, the application's calls are made when
//! their effect was seen, and what the host under test sent is what must go out. A capture holds
//! no calls. They are inferred, and the script says so: a host that listened accepts, who connected
//! connects; data was written when the first of it left, all of it up to where the account of the
//! direction says that the application, its window or its buffer held the sender back; what came in
//! order was read at once.
//!
//! Times are the host's: where the round trip between the tap and the host is known, half of it is
//! added to what comes in and taken from what goes out. Windows of the host are left out, since they
//! tell of its memory.

mod calls;
mod packet;
mod setup;

use std::fmt::Write as _;

use tcpwhy::report::Connection;
use tcpwhy::wire;

use calls::Calls;

pub use packet::{Ecn, Flags, Tcp, TcpOption};

/// The host that a script is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Who connected.
    Client,
    /// Who accepted.
    Server,
}

/// A packet of the connection as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// When, on any clock.
    pub at_ns: i64,
    /// Who sent it.
    pub from: Host,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: wire::Flags,
    /// The window's field.
    pub window: u16,
    /// Bytes of payload.
    pub len: u32,
    /// Options.
    pub options: wire::Options,
    /// The congestion bits of the IP header, if they are known.
    pub ecn: Option<u8>,
}

impl Captured {
    /// Of a segment that was read.
    pub fn of(segment: &wire::Segment<'_>, from: Host) -> Captured {
        Captured {
            at_ns: segment.time.0,
            from,
            seq: segment.seq.0,
            ack: segment.ack.0,
            flags: segment.flags,
            window: segment.window,
            len: segment.payload_len,
            options: segment.options,
            ecn: segment.ip.ecn,
        }
    }

    fn is_syn(&self) -> bool {
        self.flags.has(wire::Flags::SYN)
    }
}

/// Why there is no script of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoScript {
    /// Its SYN or SYN-ACK was not captured.
    NoHandshake,
    /// Data came with the SYN.
    FastOpen,
    /// A packet's options were cut off.
    OptionsCut,
}

impl std::fmt::Display for NoScript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoScript::NoHandshake => {
                "the capture lacks its SYN or SYN-ACK, so its options are not known"
            }
            NoScript::FastOpen => "data came with its SYN, and no cookie would fit another kernel",
            NoScript::OptionsCut => {
                "the options of its packets were cut off; capture with `-s 128` or more"
            }
        })
    }
}

impl std::error::Error for NoScript {}

/// Packets that a script has at most. Ours: longer ones are read by nobody.
const MOST_PACKETS: usize = 20_000;

/// The script of a connection, about this host; `packets` are all of it, in the order of capture.
///
/// # Errors
/// The packets do not tell enough.
pub fn script(
    connection: &Connection,
    packets: &[Captured],
    host: Host,
) -> Result<String, NoScript> {
    let numbers = Numbers::of(packets, host)?;
    if packets.iter().any(|packet| packet.options.incomplete) {
        return Err(NoScript::OptionsCut);
    }
    let taken = &packets[..packets.len().min(MOST_PACKETS)];
    let events = events(connection, taken, host);
    let mut calls = Calls::of(connection, &events, &numbers, host);
    let mut text = setup::head(connection, packets, host, &calls);
    let first_ns = events.first().map_or(0, |event| event.0);
    for (at_ns, packet) in &events {
        let time = seconds(at_ns - first_ns);
        if packet.from == host {
            if calls.before_sent(packet, &time, &mut text).is_break() {
                break;
            }
            let _ =
                writeln!(text, "{time} > {}{}", ecn(packet, connection), numbers.written(packet));
        } else {
            let _ =
                writeln!(text, "{time} < {}{}", ecn(packet, connection), numbers.written(packet));
            calls.after_received(packet, &time, &mut text);
        }
    }
    if taken.len() < packets.len() {
        let _ = writeln!(text, "// {} more packets were left out.", packets.len() - taken.len());
    }
    Ok(text)
}

/// The packets at the times at which the host sent or got them, in that order.
fn events(connection: &Connection, packets: &[Captured], host: Host) -> Vec<(i64, Captured)> {
    let round_trip = match host {
        Host::Client => connection.tap_to_client_rtt_ns,
        Host::Server => connection.tap_to_server_rtt_ns,
    };
    let half = round_trip.unwrap_or(0) / 2;
    let shifted = |packet: &Captured| {
        let shift = if packet.from == host { -half } else { half };
        (packet.at_ns + shift, *packet)
    };
    let mut events: Vec<(i64, Captured)> = packets.iter().map(shifted).collect();
    events.sort_by_key(|(at_ns, _)| *at_ns);
    events
}

/// Microseconds are what packetdrill reads.
fn seconds(ns: i64) -> String {
    let us = ns.max(0) / 1000;
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// The congestion bits, where the connection uses them.
fn ecn(packet: &Captured, connection: &Connection) -> String {
    let agreed = connection.syns.iter().all(|syn| syn.as_ref().is_some_and(|syn| syn.ecn));
    let bits = match packet.ecn {
        _ if !agreed => return String::new(),
        Some(0) => Ecn::Not,
        Some(1) => Ecn::Ect1,
        Some(2) => Ecn::Ect0,
        Some(3) => Ecn::Ce,
        _ => return String::new(),
    };
    format!("[{bits}] ")
}

/// Where both ends began to count.
struct Numbers {
    host: Host,
    /// Of the host under test.
    own: u32,
    peer: u32,
}

impl Numbers {
    fn of(packets: &[Captured], host: Host) -> Result<Numbers, NoScript> {
        let syn_of =
            |from: Host| packets.iter().find(|packet| packet.from == from && packet.is_syn());
        let (Some(client), Some(server)) = (syn_of(Host::Client), syn_of(Host::Server)) else {
            return Err(NoScript::NoHandshake);
        };
        if client.len > 0 || server.len > 0 {
            return Err(NoScript::FastOpen);
        }
        let (own, peer) =
            if host == Host::Client { (client.seq, server.seq) } else { (server.seq, client.seq) };
        Ok(Numbers { host, own, peer })
    }

    /// Relative to who sent it.
    fn seq(&self, packet: &Captured) -> u32 {
        packet.seq.wrapping_sub(if packet.from == self.host { self.own } else { self.peer })
    }

    /// Relative to whom it acknowledges.
    fn ack(&self, packet: &Captured) -> u32 {
        packet.ack.wrapping_sub(if packet.from == self.host { self.peer } else { self.own })
    }

    /// The packet as a script writes it.
    fn written(&self, packet: &Captured) -> Tcp {
        let has = |flag| packet.flags.has(flag);
        let flags = Flags {
            fin: has(wire::Flags::FIN),
            syn: packet.is_syn(),
            rst: has(wire::Flags::RST),
            psh: has(wire::Flags::PSH),
            ack: has(wire::Flags::ACK),
            urg: false,
            ece: has(wire::Flags::ECE),
            cwr: has(wire::Flags::CWR),
            ae: has(wire::Flags::AE),
            as_count: false,
        };
        Tcp {
            flags,
            seq: self.seq(packet),
            length: packet.len.min(u16::MAX.into()),
            ack: if flags.ack { self.ack(packet) } else { 0 },
            window: (packet.from != self.host || packet.is_syn()).then_some(packet.window),
            urgent: 0,
            options: Some(self.options(packet)),
        }
    }

    /// The options in the order in which they were sent, as far as it was kept.
    fn options(&self, packet: &Captured) -> Vec<TcpOption> {
        let options = &packet.options;
        let acked = if packet.from == self.host { self.peer } else { self.own };
        let blocks = options.sack_blocks().iter();
        let blocks =
            blocks.map(|(low, high)| (low.0.wrapping_sub(acked), high.0.wrapping_sub(acked)));
        let one = |kind: u8| match kind {
            1 => Some(TcpOption::Nop),
            2 => options.mss.map(TcpOption::Mss),
            3 => options.window_scale.map(TcpOption::WindowScale),
            4 => Some(TcpOption::SackPermitted),
            5 => Some(TcpOption::Sack(blocks.clone().collect())),
            8 => options.timestamps.map(|(value, echo)| TcpOption::Timestamps(value, echo)),
            _ => None,
        };
        options.order.iter().filter_map(|kind| one(*kind)).collect()
    }
}
