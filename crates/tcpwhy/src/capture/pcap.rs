//! Classic pcap: a 24-byte header, then records of a small header and the captured bytes.
//!
//! ```text
//! file    magic  version  0 0  snap length  link type
//! record  seconds  fraction  captured length  length on the wire  [interface  kind]  bytes...
//! ```
//!
//! Every capture of any size passes through [`Header::record`], so it looks at 16 bytes and hands
//! on a view of the rest. The own walk is quicker than the crates we know (see the design's table
//! of libraries) and keeps place and cause of damage for the error sentence.
//!
//! Source: draft-ietf-opsawg-pcap (the format), libpcap 1.10 `sf-pcap.c` (old versions, and the
//! variant of Kuznetsov's patched libpcap, magic 0xa1b2cd34, that some Linux systems wrote).
//! Where a record should begin there may be another file's header instead: files joined with `cat`
//! are read on as one.
//!
//! Left out: the variants by AIX, Nokia, Navtel and an old distribution, which share magic numbers
//! with others and can only be guessed.

use super::binary::{Endian, Step, Straddle};
use super::{CaptureError, Frame, Item, Quality, QualityKind, Sink};
use crate::ahead::fetch;
use crate::frame::Direction;
use tcpwhy_words::units::Time;

/// Reads classic pcap.
#[derive(Debug, Default)]
pub(super) struct PcapReader {
    records: Straddle,
    header: Option<Header>,
    packets: u64,
    /// File headers behind the first.
    joined: u64,
}

impl PcapReader {
    /// Takes the next bytes and hands on the frames they complete.
    pub(super) fn push<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), CaptureError> {
        let Self { records, header, packets, joined } = self;
        records.feed(bytes, |bytes, offset| {
            if let Some(known) = header {
                let taken = match known.magic.endian {
                    Endian::Little => known.usual_records::<false, S>(bytes, packets, sink),
                    Endian::Big => known.usual_records::<true, S>(bytes, packets, sink),
                };
                if taken > 0 {
                    return Ok(Step::Took(taken));
                }
                if !is_file_header(bytes) {
                    return known.record(bytes, offset, packets, sink);
                }
                *joined += u64::from(bytes.len() >= FILE_HEADER);
            }
            if bytes.len() < FILE_HEADER {
                return Ok(Step::Needs(FILE_HEADER));
            }
            *header = Some(Header::read(bytes)?);
            Ok(Step::Took(FILE_HEADER))
        })
    }

    /// Takes note that the file ends here.
    pub(super) fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), CaptureError> {
        if self.joined > 0 {
            let note = "captures joined to this file behind its first one are read on as one: \
                        they must be in the order of their time";
            let (kind, count) = (QualityKind::Other, self.joined);
            sink.item(Item::Quality(Quality { kind, count, note: note.to_owned() }));
        }
        let Some(cut) = self.records.unfinished() else { return Ok(()) };
        if self.header.is_none() {
            return Err(CaptureError::CutHeader { format: "pcap", missing: cut.missing });
        }
        let packet = format!("packet {}", self.packets + 1);
        sink.item(Item::Quality(Quality::cut_short(&packet, cut)));
        Ok(())
    }
}

/// Whether a file begins where a record should: a magic number, version 2.4, and zeros where a
/// record has its two lengths. No record is like that, for a packet has at least a byte.
#[inline]
fn is_file_header(bytes: &[u8]) -> bool {
    let Some(head) = bytes.first_chunk::<RECORD_HEADER>() else { return false };
    let (_, lengths) = head.split_at(8);
    lengths == [0; 8]
        && head.first_chunk().and_then(|magic| Magic::of(*magic)).is_some_and(|magic| {
            magic.endian.u16_at(head, 4) == Some(2) && magic.endian.u16_at(head, 6) == Some(4)
        })
}

/// What the first four bytes tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Magic {
    endian: Endian,
    /// Nanoseconds in one unit of a time's fraction.
    fraction_ns: i64,
    /// Bytes before a record's data.
    record_header: usize,
}

impl Magic {
    /// Knows the six magic numbers of pcap.
    pub(super) fn of(bytes: [u8; 4]) -> Option<Self> {
        let found = |endian, number| {
            let (fraction_ns, record_header) = match number {
                0xa1b2_c3d4 => (1_000, RECORD_HEADER),
                0xa1b2_3c4d => (1, RECORD_HEADER),
                0xa1b2_cd34 => (1_000, PATCHED_RECORD_HEADER),
                _ => return None,
            };
            Some(Self { endian, fraction_ns, record_header })
        };
        found(Endian::Little, u32::from_le_bytes(bytes))
            .or_else(|| found(Endian::Big, u32::from_be_bytes(bytes)))
    }
}

/// The file's header, as far as records need it.
#[derive(Debug)]
struct Header {
    magic: Magic,
    link_type: u32,
    /// The longest captured length that is believed.
    limit: u32,
    lengths: Lengths,
}

/// Which of a record's two lengths comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lengths {
    /// The captured one.
    CapturedFirst,
    /// The one on the wire (before version 2.3).
    WireFirst,
    /// Either; the captured one is the smaller (version 2.3).
    Either,
}

impl Header {
    /// Reads the header from at least [`FILE_HEADER`] bytes.
    fn read(bytes: &[u8]) -> Result<Self, CaptureError> {
        let cut = || CaptureError::CutHeader {
            format: "pcap",
            missing: FILE_HEADER.saturating_sub(bytes.len()) as u64,
        };
        let magic = bytes.first_chunk().and_then(|bytes| Magic::of(*bytes)).ok_or_else(cut)?;
        let u16_at = |at| magic.endian.u16_at(bytes, at).ok_or_else(cut);
        let u32_at = |at| magic.endian.u32_at(bytes, at).ok_or_else(cut);
        let (major, minor) = (u16_at(4)?, u16_at(6)?);
        if major != 2 {
            return Err(CaptureError::Version { format: "pcap", major, minor, known: "2.4" });
        }
        Ok(Self {
            magic,
            // The upper half tells of a frame check sequence at the end of each frame.
            link_type: u32_at(20)? & 0xffff,
            limit: u32_at(16)?.clamp(LONGEST_USUAL_RECORD, super::LONGEST_RECORD),
            lengths: match minor {
                0..=2 => Lengths::WireFirst,
                3 => Lengths::Either,
                _ => Lengths::CapturedFirst,
            },
        })
    }

    /// Hands on the whole records that `bytes` begin with, up to one that is no usual packet; how
    /// many bytes they take. The same comes out of [`Self::record`], one at a time. Which bytes come first
    /// in a number is settled before, for that is asked of each.
    #[inline]
    fn usual_records<const BIG: bool, S: Sink + ?Sized>(
        &self,
        bytes: &[u8],
        packets: &mut u64,
        sink: &mut S,
    ) -> usize {
        if self.magic.record_header != RECORD_HEADER || self.lengths != Lengths::CapturedFirst {
            return 0;
        }
        let Self { magic: Magic { fraction_ns, .. }, link_type, limit, .. } = *self;
        let mut records =
            UsualRecords::<BIG> { fraction_ns, link_type, limit, rest: bytes, packets: *packets };
        sink.frames(&mut records);
        *packets = records.packets;
        bytes.len() - records.rest.len()
    }

    /// Hands on the record that `bytes` begin with.
    #[inline(never)]
    fn record<S: Sink + ?Sized>(
        &self,
        bytes: &[u8],
        offset: u64,
        packets: &mut u64,
        sink: &mut S,
    ) -> Result<Step, CaptureError> {
        let Magic { endian, fraction_ns, record_header } = self.magic;
        let Some((head, behind)) = bytes.split_at_checked(record_header) else {
            return Ok(Step::Needs(record_header));
        };
        let Some(usual) = head.first_chunk::<RECORD_HEADER>() else {
            return Ok(Step::Needs(record_header));
        };
        let [seconds, fraction, mut captured, mut wire_len] = endian.u32s(usual);
        if self.lengths == Lengths::WireFirst
            || self.lengths == Lengths::Either && captured > wire_len
        {
            (captured, wire_len) = (wire_len, captured);
        }
        if captured > self.limit {
            return Err(self.too_long(*packets + 1, offset, captured));
        }
        if captured == 0 && head.iter().all(|byte| *byte == 0) {
            return Err(CaptureError::Zeros { packet: *packets + 1, offset });
        }
        let Some(data) = behind.get(..captured as usize) else {
            return Ok(Step::Needs(record_header + captured as usize));
        };
        *packets += 1;
        sink.item(Item::Frame(Frame {
            // Cannot overflow: 2^32 s are 4.3e18 ns. A fraction of a second and more just adds up.
            time: Time(i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * fraction_ns),
            frame: *packets,
            link_type: self.link_type,
            interface: 0,
            direction: direction(head),
            // A frame was no shorter than what was kept of it.
            wire_len: wire_len.max(captured),
            data,
        }));
        Ok(Step::Took(record_header + captured as usize))
    }

    #[cold]
    fn too_long(&self, packet: u64, offset: u64, claimed: u32) -> CaptureError {
        CaptureError::RecordTooLong { packet, offset, claimed, limit: self.limit }
    }
}

/// The whole records that some bytes begin with, up to one that is no usual packet.
#[derive(Clone)]
struct UsualRecords<'a, const BIG: bool> {
    fraction_ns: i64,
    link_type: u32,
    limit: u32,
    rest: &'a [u8],
    packets: u64,
}

impl<'a, const BIG: bool> Iterator for UsualRecords<'a, BIG> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let endian = if BIG { Endian::Big } else { Endian::Little };
        fetch(self.rest, AHEAD);
        fetch(self.rest, AHEAD + 64);
        let (head, behind) = self.rest.split_first_chunk::<RECORD_HEADER>()?;
        let [seconds, fraction, captured, wire_len] = endian.u32s(head);
        if captured == 0 || captured > self.limit {
            return None;
        }
        let (data, later) = behind.split_at_checked(captured as usize)?;
        self.rest = later;
        self.packets += 1;
        Some(Frame {
            time: Time(i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.fraction_ns),
            frame: self.packets,
            link_type: self.link_type,
            interface: 0,
            direction: None,
            wire_len: wire_len.max(captured),
            data,
        })
    }
}

/// Direction of a packet, which only the patched record header tells: Linux's `sll_pkttype`,
/// `include/uapi/linux/if_packet.h`.
#[inline]
fn direction(head: &[u8]) -> Option<Direction> {
    const PACKET_MULTICAST: u8 = 2;
    const PACKET_OUTGOING: u8 = 4;
    match *head.get(22)? {
        PACKET_OUTGOING => Some(Direction::Outgoing),
        0..=PACKET_MULTICAST => Some(Direction::Incoming),
        _ => None,
    }
}

/// This many bytes are fetched before they are looked at. Ours: of 1 to 4 KiB 2 were the quickest in a small program that
/// walks records of 114 bytes in a mapped file; not varied here. What the processor fetches by itself ends with each page.
const AHEAD: usize = 2048;

/// Length of the file's header.
const FILE_HEADER: usize = 24;

/// Length of a record's header.
const RECORD_HEADER: usize = 16;

/// Length of a record's header in the patched variant: interface, protocol and packet type too.
const PATCHED_RECORD_HEADER: usize = 24;

/// A record may be this long whatever the snap length says, which is often wrong or 0:
/// `MAXIMUM_SNAPLEN` of libpcap 1.10 and `WTAP_MAX_PACKET_SIZE_STANDARD` of Wireshark 4.
const LONGEST_USUAL_RECORD: u32 = 262_144;

#[cfg(test)]
mod tests;
