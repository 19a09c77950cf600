//! Packets of an interface as they pass it, with nanosecond stamps, in a pcapng file.
//!
//! A packet socket with a ring shared with the kernel (`TPACKET_V3`): a system call for each block
//! of packets, not for each packet. The kernel's filter chooses and cuts before it copies. Stamps
//! are the kernel's own, taken at the interface (`CLOCK_REALTIME`). Packets that leave before they
//! are cut or after they were joined by offloads are recorded as they were seen, with that length.
//!
//! At the end nothing is lost: first a filter that passes nothing is put in place, then all blocks
//! are read until the kernel has handed over the one it was filling. (Capture programs that just
//! stop lose what lies in that block: the tail of a transfer, when time is simulated.)

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use socket2::{Domain, Socket, Type};

use super::filter::{self, Lengths, Wanted};
use super::link::{self, Link, Seen};
use super::memory::PacketRing;
use super::pcapng::{self, Direction, Interface, Packet, Statistics, Writer};
use crate::sys::{self, Clock, NS_PER_S, Stop};

/// What to capture, and how much of it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bytes kept of each packet; of a recording counted from its IP header on.
    pub snap_length: u32,
    /// Which packets.
    pub only: Only,
    /// End when the file has reached this size.
    pub max_bytes: Option<u64>,
}

/// Which packets a capture takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Only {
    /// All.
    #[default]
    All,
    /// TCP from or to one of these ports.
    Ports(Vec<u16>),
    /// What a recording wants. Of `any`, each interface then has a description of its own, and the
    /// first one, which no packet is of, has the statistics of all.
    Recording(Wanted),
}

impl Only {
    fn fits(&self) -> bool {
        match self {
            Self::All => true,
            Self::Ports(ports) => ports.len() <= filter::MOST_PORTS,
            Self::Recording(wanted) => wanted.fits(),
        }
    }
}

/// How a capture ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// Packets written.
    pub packets: u64,
    /// Packets the kernel dropped for lack of room.
    pub dropped: u64,
    /// It ended because the file was full.
    pub full: bool,
}

/// Why a capture is not what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The interface is not there.
    #[error("there is no interface {name} in this network namespace: {source}")]
    NoInterface {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Packet sockets are not for everybody.
    #[error(
        "no packet socket: {0}; it needs CAP_NET_RAW: sudo, a namespace of one's own, or once `sudo chgrp \
         GROUP PROGRAM`, `sudo chmod 750 PROGRAM`, `sudo setcap cap_net_raw+ep PROGRAM`: then all of \
         that group (without chgrp and chmod every local user) can capture all traffic of this host"
    )]
    Refused(io::Error),
    /// Preparing the socket failed.
    #[error("cannot {what}: {source}")]
    Call {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// More than a filter can name.
    #[error("one filter holds {most} ports, fewer with addresses", most = filter::MOST_PORTS)]
    TooMuchWanted,
    /// The file cannot be written.
    #[error("cannot write the file after {packets} packets: {source}")]
    Write {
        /// Packets written before.
        packets: u64,
        /// Why not.
        source: io::Error,
    },
    /// The interface went away.
    #[error("interface {name} went away; the {packets} packets until then are saved")]
    Gone {
        /// Its name.
        name: String,
        /// Packets written before.
        packets: u64,
    },
}

/// Captures until `stop`, a full file, or the interface's end; `ready` is called when no packet
/// can be missed any more.
///
/// # Errors
/// An interface that is not there or goes away, a refused socket, a file that cannot be written:
/// what was captured before is in the file.
pub fn run(
    interface: &str,
    output: &Path,
    options: &Options,
    stop: &Stop,
    ready: impl FnOnce(),
) -> Result<Taken, CaptureError> {
    if !options.only.fits() {
        return Err(CaptureError::TooMuchWanted);
    }
    let mut tap = Tap::open(interface, options)?;
    let write_error = |source| CaptureError::Write { packets: 0, source };
    let file = File::create(output).map_err(write_error)?;
    let is_recording = matches!(options.only, Only::Recording(_));
    // The filter of a recording has cut already, DNS less than others.
    let longest = options.snap_length.max(NAMES_LENGTH).saturating_add(HEADERS);
    let snap_length = if is_recording { longest } else { options.snap_length };
    let head = Interface { name: interface.to_owned(), link_type: tap.link.number(), snap_length };
    let program = concat!("tcpwhy ", env!("CARGO_PKG_VERSION"));
    let writer = Writer::begin(file, &head, program).map_err(write_error)?;
    let mut sink = Sink {
        writer,
        link: tap.link,
        loopback: tap.loopback,
        interfaces: (is_recording && tap.index == 0).then(BTreeMap::new),
        snap_length,
        max_bytes: options.max_bytes.unwrap_or(u64::MAX),
        packets: 0,
        echoes: 0,
        full: false,
    };

    tap.open_gate()?;
    let from = Clock::Real.now();
    ready();
    let gone = tap.pour(&mut sink, stop)?;
    let (seen, mut dropped) = (tap.seen, tap.dropped);
    let packets = sink.packets;
    if !sink.full {
        dropped = dropped.max(seen.saturating_sub(packets + sink.echoes));
    }
    let statistics = Statistics {
        from,
        to: Clock::Real.now(),
        received: seen.saturating_sub(sink.echoes),
        dropped,
        written: packets,
    };
    sink.writer.end(&statistics).map_err(|source| CaptureError::Write { packets, source })?;
    if gone {
        return Err(CaptureError::Gone { name: interface.to_owned(), packets });
    }
    Ok(Taken { packets, dropped, full: sink.full })
}

/// An interface's packets on their way to us.
struct Tap {
    socket: Socket,
    ring: PacketRing,
    link: Link,
    index: i32,
    /// Number of the loopback interface, where each packet passes twice.
    loopback: Option<i32>,
    name: String,
    program: Vec<sys::Instruction>,
    /// Packets that passed the filter, and those among them that were dropped, as far as was asked.
    seen: u64,
    dropped: u64,
}

impl Tap {
    /// Prepares everything; no packet comes yet.
    fn open(name: &str, options: &Options) -> Result<Self, CaptureError> {
        let call = |what| move |source| CaptureError::Call { what, source };
        let index = if name == "any" {
            0
        } else {
            sys::interface_index(name)
                .map_err(|source| CaptureError::NoInterface { name: name.to_owned(), source })?
        };
        let packet_socket = |kind| Socket::new(Domain::PACKET, kind, None);
        let mut socket = packet_socket(Type::RAW).map_err(CaptureError::Refused)?;
        let hardware =
            sys::bind_packets(socket.as_fd(), index, 0).map_err(call("look at the interface"))?;
        let link = if index == 0 { Link::Cooked } else { Link::of(hardware) };
        if link == Link::Cooked {
            socket = packet_socket(Type::DGRAM).map_err(CaptureError::Refused)?;
        }
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        set(&socket, libc::PACKET_VERSION, version).map_err(call("use a ring of version 3"))?;
        let ring = PacketRing::new(socket.as_fd(), BLOCKS, RETIRE_MS)
            .map_err(call("share a ring of 16 MiB with the kernel"))?;
        let program = match &options.only {
            Only::All => filter::everything(options.snap_length),
            Only::Ports(ports) => filter::tcp_ports(ports, options.snap_length),
            Only::Recording(wanted) => {
                let before = link.header_length();
                let lengths = Lengths {
                    others: before.saturating_add(options.snap_length),
                    names: before + NAMES_LENGTH,
                    errors: before.saturating_add(options.snap_length.max(ERRORS_LENGTH)),
                };
                filter::recording(wanted, lengths)
            }
        };
        let loopback = sys::interface_index("lo").ok();
        let name = name.to_owned();
        Ok(Self { socket, ring, link, index, loopback, name, program, seen: 0, dropped: 0 })
    }

    /// From now on packets come.
    fn open_gate(&self) -> Result<(), CaptureError> {
        let call = |what| move |source| CaptureError::Call { what, source };
        let fd = self.socket.as_fd();
        sys::attach_filter(fd, &self.program).map_err(call("set the packet filter"))?;
        sys::bind_packets(fd, self.index, libc::ETH_P_ALL as u16)
            .map_err(call("bind to the interface"))
            .map(drop)
    }

    /// Moves packets to `sink` until the end; whether the interface's end was what ended it.
    fn pour(&mut self, sink: &mut Sink, stop: &Stop) -> Result<bool, CaptureError> {
        let call = |what| move |source| CaptureError::Call { what, source };
        let mut gone = false;
        loop {
            self.empty(sink)?;
            if sink.full || gone {
                break;
            }
            let [packets, stopped] = sys::readable([self.socket.as_fd(), stop.as_fd()], None)
                .map_err(call("wait for packets"))?;
            if stopped {
                break;
            }
            // An interface that is down may come back; one that was removed does not.
            if packets && self.socket.take_error().map_err(call("read the socket"))?.is_some() {
                gone = self.index != 0 && sys::interface_index(&self.name).ok() != Some(self.index);
            }
        }
        sys::attach_filter(self.socket.as_fd(), &filter::nothing())
            .map_err(call("close the packet filter"))?;
        self.pour_the_rest(sink)?;
        Ok(gone)
    }

    /// Moves what passed the filter until it was closed, which the kernel hands over by a timer of its own.
    fn pour_the_rest(&mut self, sink: &mut Sink) -> Result<(), CaptureError> {
        let begin = Clock::Monotonic.now();
        loop {
            self.empty(sink)?;
            let waited = Clock::Monotonic.now() - begin;
            if waited >= LAST_BLOCK_NS {
                self.ask_statistics()?;
                let is_missing = self.seen > self.dropped + sink.packets + sink.echoes;
                if sink.full || !is_missing || waited >= LATEST_BLOCK_NS {
                    return Ok(());
                }
            }
            sys::readable([self.socket.as_fd()], Some(LAST_BLOCK_NS / 8)).map_err(|source| {
                CaptureError::Call { what: "wait for the last packets", source }
            })?;
        }
    }

    /// Moves all blocks that are full.
    fn empty(&mut self, sink: &mut Sink) -> Result<(), CaptureError> {
        let mut moved = Ok(());
        while let Some(result) = self.ring.take(|block| sink.block(block)) {
            moved = moved.and(result);
        }
        let packets = sink.packets;
        moved
            .and_then(|()| sink.writer.flush())
            .map_err(|source| CaptureError::Write { packets, source })
    }

    /// Asks how many packets passed the filter, and were dropped, since this was asked last.
    fn ask_statistics(&mut self) -> Result<(), CaptureError> {
        let mut counts = [0; 12];
        sys::option(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)
            .map_err(|source| CaptureError::Call { what: "read the drop count", source })?;
        let count = |at: usize| {
            counts[at..at + 4].try_into().map_or(0, |word| u64::from(u32::from_ne_bytes(word)))
        };
        self.seen += count(0);
        self.dropped += count(4);
        Ok(())
    }
}

fn set(socket: &Socket, name: i32, value: i32) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::SOL_PACKET, name, &value.to_ne_bytes())
}

/// Where the packets go.
struct Sink {
    writer: Writer<File>,
    link: Link,
    loopback: Option<i32>,
    /// The number in the file of each interface that has packets there, where interfaces are kept apart.
    interfaces: Option<BTreeMap<i32, u32>>,
    snap_length: u32,
    max_bytes: u64,
    packets: u64,
    /// Packets left out because they are seen once more on their way in.
    echoes: u64,
    full: bool,
}

impl Sink {
    /// Writes the packets of a block.
    fn block(&mut self, block: &[u8]) -> io::Result<()> {
        for seen in link::packets(block) {
            if self.full {
                break;
            }
            if self.loopback == Some(seen.interface()) && seen.direction() == Direction::Outbound {
                self.echoes += 1;
                continue;
            }
            self.packet(&seen)?;
        }
        Ok(())
    }

    fn packet(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let mut inserted = [0; 20];
        let (before, after, more) = match (self.link, seen.vlan) {
            (Link::Cooked, _) => {
                inserted = seen.cooked_header();
                (&inserted[..], seen.bytes, inserted.len())
            }
            (Link::Ethernet, Some((protocol, tag))) if seen.bytes.len() >= ADDRESSES => {
                // The tag goes back to where it was: behind both addresses.
                inserted[..ADDRESSES].copy_from_slice(&seen.bytes[..ADDRESSES]);
                inserted[12..14].copy_from_slice(&protocol.to_be_bytes());
                inserted[14..16].copy_from_slice(&tag.to_be_bytes());
                (&inserted[..16], &seen.bytes[ADDRESSES..], VLAN_TAG)
            }
            _ => (&[][..], seen.bytes, 0),
        };
        let kept = (self.snap_length as usize).saturating_sub(before.len()).min(after.len());
        // The header of ours tells it (7 % of a recording would go into telling it twice).
        let direction =
            if self.link == Link::Cooked { Direction::Unknown } else { seen.direction() };
        let packet = Packet {
            interface: self.interface(seen)?,
            time: seen.time,
            bytes: [before, &after[..kept]],
            length: seen.length + more as u32,
            direction,
        };
        let needed = pcapng::packet_length((before.len() + kept) as u32, direction);
        if self.writer.written() + needed + pcapng::STATISTICS_LENGTH > self.max_bytes {
            self.full = true;
            return Ok(());
        }
        self.packets += 1;
        self.writer.packet(&packet)
    }

    /// The number in the file of the interface that a packet passed.
    fn interface(&mut self, seen: &Seen<'_>) -> io::Result<u32> {
        let Some(known) = &mut self.interfaces else { return Ok(0) };
        let index = seen.interface();
        if let Some(&number) = known.get(&index) {
            return Ok(number);
        }
        // One that has gone since then has no name any more.
        let name = sys::interface_name(index).unwrap_or_else(|_| format!("interface {index}"));
        let (link_type, snap_length) = (self.link.number(), self.snap_length);
        let number = self.writer.interface(&Interface { name, link_type, snap_length })?;
        known.insert(index, number);
        Ok(number)
    }
}

/// Bytes kept of DNS, from its IP header on. Ours: all of a message that fits an Ethernet frame; the
/// name alone may take 255 bytes (RFC 1035 section 2.3.4), and the addresses stand behind it.
const NAMES_LENGTH: u32 = 1500;
/// At least this much of an ICMP error: two of the longest headers of IPv4, and the eight bytes behind each that tell
/// which connection is meant (RFC 792); of IPv6 it takes 96 (RFC 4443 section 3). Its quotation goes on with a
/// payload; of that no more is kept than of others.
const ERRORS_LENGTH: u32 = 60 + 8 + 60 + 8;
/// The longest header that is put before an IP packet here: `LINKTYPE_LINUX_SLL2` (tcpdump group).
const HEADERS: u32 = 20;
/// Both addresses of an Ethernet header.
const ADDRESSES: usize = 12;
/// IEEE 802.1Q: what a tag adds.
const VLAN_TAG: usize = 4;

/// Ours: 64 blocks of 256 KiB hold 130 ms at 1 Gbit/s with whole packets.
const BLOCKS: usize = 64;
/// Ours: a wake-up each 20 ms costs nothing, and the end of a capture takes three of them.
const RETIRE_MS: u32 = 20;
/// A block is handed over by the first or second run of the kernel's timer after its last packet
/// (Linux `prb_retire_rx_blk_timer_expired`); one more for lateness.
const LAST_BLOCK_NS: u64 = 3 * RETIRE_MS as u64 * NS_PER_S / 1000;
/// Ours: as long as packets are still missing then, as on a machine that stood still.
const LATEST_BLOCK_NS: u64 = NS_PER_S;
