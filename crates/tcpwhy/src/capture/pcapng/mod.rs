//! pcapng: sections of blocks, among them descriptions of interfaces and packets.
//!
//! ```text
//! block     type  length  body, padded to 4 bytes  length
//! section   header | interface 0 | interface 1 | packet ... | statistics of 0 | ...
//! ```
//!
//! Each section has its own byte order and counts its interfaces from 0; each interface has its
//! own link type and unit of time. Statistics may be repeated: the last of an interface counts.
//! Blocks of other kinds are left out without being held; what `tcpwhy record` attached to its packets
//! is handed on by name.
//!
//! Source: draft-ietf-opsawg-pcapng. We walk the blocks ourselves: the crate pcap-parser 0.17
//! allocates a list of options for each packet, reads 64-bit options in little-endian order
//! whatever the section's, and wants even a block it does not know whole in memory.
//!
//! Left out: checking that the closing length of an unknown block equals the opening one; names,
//! comments and secrets (nothing here asks for them).

mod interface;

use super::binary::{Endian, Step, Straddle};
use super::{BlockProblem, CaptureError, Frame, Item, LONGEST_RECORD, Quality, QualityKind, Sink};
use crate::frame::Direction;
use interface::{Interface, options};
use tcpwhy_words::units::Time;

/// The type of the block that opens a section, the same in either byte order.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Reads pcapng.
#[derive(Debug, Default)]
pub(super) struct PcapNgReader {
    blocks: Straddle,
    sections: Sections,
}

impl PcapNgReader {
    /// Takes the next bytes and hands on the frames they complete.
    pub(super) fn push<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), CaptureError> {
        let Self { blocks, sections } = self;
        blocks.feed(bytes, |bytes, offset| {
            sections.block(bytes, sink).map_err(|problem| match problem {
                Problem::Block(problem) => {
                    CaptureError::Block { packets: sections.packets, offset, problem }
                }
                Problem::Version { major, minor } => {
                    CaptureError::Version { format: "pcapng", major, minor, known: "1.0" }
                }
            })
        })
    }

    /// Takes note that the file ends here: hands on what is known of dropped packets.
    pub(super) fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), CaptureError> {
        if let Some(cut) = self.blocks.unfinished() {
            if cut.offset == 0 {
                return Err(CaptureError::CutHeader { format: "pcapng", missing: cut.missing });
            }
            let block = match self.sections.packets {
                0 => "a block before the first packet".to_owned(),
                packets => format!("a block after packet {packets}"),
            };
            sink.item(Item::Quality(Quality::cut_short(&block, cut)));
        }
        self.hand_on_remarks(sink);
        Ok(())
    }

    /// Hands on what the statistics so far tell, once.
    pub(super) fn hand_on_remarks<S: Sink + ?Sized>(&mut self, sink: &mut S) {
        self.sections.end_section();
        let Sections { interface_drops, kernel_drops, timeless, .. } = &mut self.sections;
        let remarks = [
            (
                QualityKind::InterfaceDrops,
                core::mem::take(interface_drops),
                "the interface dropped packets, as the capture's statistics say",
            ),
            (
                QualityKind::KernelDrops,
                core::mem::take(kernel_drops),
                "the kernel dropped packets before the capture could store them, as the capture's \
                 statistics say",
            ),
            (
                QualityKind::Other,
                core::mem::take(timeless),
                "packets without a time (simple packet blocks) got the time of the packet before",
            ),
        ];
        for (kind, count, note) in remarks {
            if count > 0 {
                sink.item(Item::Quality(Quality { kind, count, note: note.to_owned() }));
            }
        }
    }
}

/// What is known from the blocks so far.
#[derive(Debug, Default)]
struct Sections {
    /// Byte order of the section at hand.
    endian: Endian,
    /// It was written by dumpcap.
    by_dumpcap: bool,
    /// Its interfaces.
    interfaces: Vec<Interface>,
    /// Interfaces of the sections before.
    interfaces_before: u32,
    /// Records that Wireshark gives a number.
    packets: u64,
    /// Time of the packet before.
    time: Time,
    /// Packets that have no time of their own.
    timeless: u64,
    /// Packets dropped by interfaces of the sections before.
    interface_drops: u64,
    /// Packets dropped by the kernel in the sections before.
    kernel_drops: u64,
}

/// Why a block cannot be read.
enum Problem {
    Block(BlockProblem),
    Version { major: u16, minor: u16 },
}

impl From<BlockProblem> for Problem {
    fn from(problem: BlockProblem) -> Self {
        Self::Block(problem)
    }
}

impl Sections {
    /// Reads the block that `bytes` begin with.
    #[inline]
    fn block<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<Step, Problem> {
        let Some((head, _)) = bytes.split_first_chunk::<SHORTEST_BLOCK>() else {
            return Ok(Step::Needs(SHORTEST_BLOCK));
        };
        let opens_section = head.starts_with(&SECTION_HEADER);
        let endian = if opens_section { byte_order(head)? } else { self.endian };
        let field = |at| endian.u32_at(bytes, at).unwrap_or_default();
        let (kind, claimed) = (field(0), field(4));
        let kind = if opens_section { Kind::Section } else { Kind::of(kind) };
        let least = kind.least_length();
        if claimed < least || !claimed.is_multiple_of(4) {
            return Err(BlockProblem::Length { claimed, least }.into());
        }
        let length = claimed as usize;
        if kind == Kind::Attached && length >= ATTACHMENT_HEAD {
            let Some(head) = bytes.get(..ATTACHMENT_HEAD) else {
                return Ok(Step::Needs(ATTACHMENT_HEAD));
            };
            // Types for local use may be anybody's.
            if head[8..16] != ATTACHMENT_MAGIC {
                return Ok(Step::Took(length));
            }
        } else if matches!(kind, Kind::Unknown | Kind::Numbered | Kind::Attached) {
            if kind == Kind::Numbered {
                self.packets += 1;
                sink.item(Item::OtherPacket);
            }
            return Ok(Step::Took(length));
        }
        if claimed > LONGEST_RECORD {
            return Err(BlockProblem::TooLong { claimed, limit: LONGEST_RECORD }.into());
        }
        let Some(block) = bytes.get(..length) else { return Ok(Step::Needs(length)) };
        let last = endian.u32_at(block, length - 4).unwrap_or_default();
        if last != claimed {
            return Err(BlockProblem::Lengths { first: claimed, last }.into());
        }
        let body = &block[8..length - 4];
        match kind {
            Kind::Section => self.open_section(endian, body)?,
            Kind::Interface => self.describe_interface(body)?,
            Kind::Statistics => self.take_statistics(body)?,
            Kind::Enhanced => self.enhanced_packet(body, sink)?,
            Kind::Simple => self.simple_packet(body, sink)?,
            Kind::Obsolete => self.obsolete_packet(body, sink)?,
            Kind::Attached => {
                if let Some((name, content)) = attachment(endian, body) {
                    sink.item(Item::Attachment { name, content });
                }
            }
            Kind::Unknown | Kind::Numbered => {}
        }
        Ok(Step::Took(length))
    }

    fn open_section(&mut self, endian: Endian, body: &[u8]) -> Result<(), Problem> {
        const SHB_USERAPPL: u16 = 4;
        let major = endian.u16_at(body, 4).unwrap_or_default();
        let minor = endian.u16_at(body, 6).unwrap_or_default();
        if major != 1 {
            return Err(Problem::Version { major, minor });
        }
        self.end_section();
        self.endian = endian;
        self.by_dumpcap = options(endian, body.get(16..).unwrap_or_default())
            .any(|(code, writer)| code == SHB_USERAPPL && writer.starts_with(b"Dumpcap"));
        Ok(())
    }

    /// Adds up what the section's interfaces dropped and forgets them.
    ///
    /// dumpcap (and so Wireshark and tshark) tells as `isb_ifdrop` what the kernel's buffer and
    /// its own queue lost, not what the interface did. Ours, seen with dumpcap 4.0.17 on a busy
    /// loopback: `isb_ifdrop` 1517, while it said `pcap:1404/dumpcap:113/flushed:0/ps_ifdrop:0`.
    fn end_section(&mut self) {
        self.interfaces_before =
            self.interfaces_before.saturating_add(self.interfaces.len() as u32);
        for interface in self.interfaces.drain(..) {
            let (mut by_interface, mut by_kernel) = interface.dropped();
            if self.by_dumpcap {
                // The same losses, should a version tell both.
                by_kernel = by_kernel.max(core::mem::take(&mut by_interface));
            }
            self.interface_drops = self.interface_drops.saturating_add(by_interface);
            self.kernel_drops = self.kernel_drops.saturating_add(by_kernel);
        }
    }

    fn describe_interface(&mut self, body: &[u8]) -> Result<(), BlockProblem> {
        if self.interfaces.len() >= MOST_INTERFACES as usize {
            return Err(BlockProblem::Interfaces { limit: MOST_INTERFACES });
        }
        self.interfaces.push(Interface::read(self.endian, body));
        Ok(())
    }

    fn take_statistics(&mut self, body: &[u8]) -> Result<(), BlockProblem> {
        let endian = self.endian;
        let number = endian.u32_at(body, 0).unwrap_or_default();
        self.interface(number)?.take_statistics(endian, body);
        Ok(())
    }

    fn enhanced_packet<S: Sink + ?Sized>(
        &mut self,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), BlockProblem> {
        const DROPCOUNT: u16 = 4;
        let endian = self.endian;
        let field = |at| endian.u32_at(body, at).unwrap_or_default();
        let (number, captured, wire_len) = (field(0), field(12), field(16));
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        let (data, behind) = packet_data(body, 20, captured)?;
        let interface = self.interface(number)?;
        let mut direction = None;
        for (code, value) in options(endian, behind) {
            match code {
                FLAGS => direction = endian.u32_at(value, 0).and_then(flagged_direction),
                DROPCOUNT => interface.lost_before(endian.u64_at(value, 0).unwrap_or_default()),
                _ => {}
            }
        }
        let time = interface.time(ticks);
        self.hand_on(number, time, direction, wire_len, data, sink)
    }

    /// The obsolete Packet Block: two 16-bit numbers where the enhanced one has the interface.
    fn obsolete_packet<S: Sink + ?Sized>(
        &mut self,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), BlockProblem> {
        const DROPS_UNKNOWN: u16 = 0xffff;
        let endian = self.endian;
        let number = u32::from(endian.u16_at(body, 0).unwrap_or_default());
        let drops = endian.u16_at(body, 2).unwrap_or_default();
        let field = |at| endian.u32_at(body, at).unwrap_or_default();
        let (captured, wire_len) = (field(12), field(16));
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        let (data, behind) = packet_data(body, 20, captured)?;
        let interface = self.interface(number)?;
        if drops != DROPS_UNKNOWN {
            interface.lost_before(u64::from(drops));
        }
        let direction = options(endian, behind)
            .find(|(code, _)| *code == FLAGS)
            .and_then(|(_, value)| endian.u32_at(value, 0))
            .and_then(flagged_direction);
        let time = interface.time(ticks);
        self.hand_on(number, time, direction, wire_len, data, sink)
    }

    /// A packet of interface 0 with neither time nor options; cut at the interface's snap length.
    fn simple_packet<S: Sink + ?Sized>(
        &mut self,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), BlockProblem> {
        let wire_len = self.endian.u32_at(body, 0).unwrap_or_default();
        let captured = wire_len.min(self.interface(0)?.snap_length());
        let (data, _) = packet_data(body, 4, captured)?;
        self.timeless += 1;
        self.hand_on(0, self.time, None, wire_len, data, sink)
    }

    fn hand_on<S: Sink + ?Sized>(
        &mut self,
        number: u32,
        time: Time,
        direction: Option<Direction>,
        wire_len: u32,
        data: &[u8],
        sink: &mut S,
    ) -> Result<(), BlockProblem> {
        self.time = time;
        self.packets += 1;
        let frame = Frame {
            time,
            frame: self.packets,
            link_type: self.interface(number)?.link_type(),
            interface: self.interfaces_before.saturating_add(number),
            direction,
            // A frame was no shorter than what was kept of it.
            wire_len: wire_len.max(data.len() as u32),
            data,
        };
        sink.frames(&mut core::iter::once(frame));
        Ok(())
    }

    fn interface(&mut self, number: u32) -> Result<&mut Interface, BlockProblem> {
        let known = self.interfaces.len() as u32;
        self.interfaces
            .get_mut(number as usize)
            .ok_or(BlockProblem::NoInterface { interface: number, known })
    }
}

/// Kinds of blocks. Numbers: draft-ietf-opsawg-pcapng §11.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Section,
    Interface,
    Obsolete,
    Simple,
    Statistics,
    Enhanced,
    /// What `tcpwhy record` attached, or somebody else's block of the same type.
    Attached,
    /// No packet, but numbered like one.
    Numbered,
    Unknown,
}

impl Kind {
    fn of(number: u32) -> Self {
        // What tshark 4.0.17 gives a frame number although it is no packet: tried with a file of
        // each kind. Those of other numbers (secrets, names, events of Hone) get none.
        const SYSTEMD_JOURNAL: u32 = 9;
        const CUSTOM: u32 = 0xbad;
        const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;
        const SYSDIG: u32 = 0x204;
        const SYSDIG_2: u32 = 0x216;
        const SYSDIG_2_LARGE: u32 = 0x221;
        match number {
            1 => Self::Interface,
            2 => Self::Obsolete,
            3 => Self::Simple,
            5 => Self::Statistics,
            6 => Self::Enhanced,
            ATTACHMENT => Self::Attached,
            SYSTEMD_JOURNAL | CUSTOM | CUSTOM_NOT_COPIED | SYSDIG | SYSDIG_2 | SYSDIG_2_LARGE => {
                Self::Numbered
            }
            _ => Self::Unknown,
        }
    }

    /// Length of the fields that it always has.
    fn least_length(self) -> u32 {
        match self {
            Self::Section => 28,
            Self::Interface => 20,
            Self::Obsolete | Self::Enhanced => 32,
            Self::Simple => 16,
            Self::Statistics => 24,
            Self::Attached | Self::Numbered | Self::Unknown => SHORTEST_BLOCK as u32,
        }
    }
}

/// Name and content of a block that `tcpwhy record` wrote (`docs/record.md`): behind the magic the
/// lengths of both, then the name, padded, and the content. `None` if it contradicts itself.
fn attachment(endian: Endian, body: &[u8]) -> Option<(&str, &[u8])> {
    let name_length = usize::from(endian.u16_at(body, 8)?);
    let content_length = endian.u32_at(body, 12)? as usize;
    let name = core::str::from_utf8(body.get(16..16 + name_length)?).ok()?;
    let content = body.get(16 + name_length.next_multiple_of(4)..)?.get(..content_length)?;
    Some((name, content))
}

/// Byte order of the section that a block opens.
fn byte_order(head: &[u8; SHORTEST_BLOCK]) -> Result<Endian, BlockProblem> {
    const MAGIC: u32 = 0x1a2b_3c4d;
    let magic = |endian: Endian| endian.u32_at(head, 8).unwrap_or_default();
    [Endian::Little, Endian::Big]
        .into_iter()
        .find(|endian| magic(*endian) == MAGIC)
        .ok_or(BlockProblem::ByteOrder { found: magic(Endian::Big) })
}

/// Parts `captured` bytes from what is behind them and their padding.
#[inline]
fn packet_data(body: &[u8], at: usize, captured: u32) -> Result<(&[u8], &[u8]), BlockProblem> {
    let place = body.get(at..).unwrap_or_default();
    let (data, behind) = place
        .split_at_checked(captured as usize)
        .ok_or(BlockProblem::Data { claimed: captured, room: place.len() as u32 })?;
    let padding = data.len().next_multiple_of(4) - data.len();
    Ok((data, behind.get(padding..).unwrap_or_default()))
}

/// The option of packets that tells their direction.
const FLAGS: u16 = 2;

/// Direction in the two lowest bits of a packet's flags; 0 is unknown.
fn flagged_direction(flags: u32) -> Option<Direction> {
    match flags & 3 {
        1 => Some(Direction::Incoming),
        2 => Some(Direction::Outgoing),
        _ => None,
    }
}

/// Of the range for local use (draft-ietf-opsawg-pcapng §11.1); what is in it, `docs/record.md` says.
const ATTACHMENT: u32 = 0x8054_4350;
const ATTACHMENT_MAGIC: [u8; 8] = *b"tcpwhy\0\x01";
/// Type, length, magic, lengths of name and content.
const ATTACHMENT_HEAD: usize = 24;

/// Type and both lengths.
const SHORTEST_BLOCK: usize = 12;

/// Ours: far above any machine's, and little memory.
const MOST_INTERFACES: u32 = 65_536;

#[cfg(test)]
mod tests;
