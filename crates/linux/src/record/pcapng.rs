//! Writes pcapng: one section, interfaces, packets with nanosecond stamps, final statistics, and
//! whatever else belongs to a recording.
//!
//! The blocks are those of draft-ietf-opsawg-pcapng (sections 4.1 to 4.6), in little-endian
//! order. A crate would save little here, and none that was looked at writes Interface Statistics
//! Blocks together with nanosecond stamps and directions.
//!
//! What is no packet goes into blocks of a type for local use ([`ATTACHMENT`]): other programs leave
//! them out without a word, while tshark 4.0.17 gives a Custom Block a frame number of its own, and
//! frame numbers would then differ from those of the packets. `docs/record.md` has the form.

use std::io::{self, Write};

/// What a file says about its interface.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// Its name.
    pub(crate) name: String,
    /// Layer-2 headers of its packets (a LINKTYPE of the tcpdump group's registry).
    pub(crate) link_type: u16,
    /// Most bytes kept of a packet.
    pub(crate) snap_length: u32,
}

/// Which way a packet went, seen from the host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    /// Not told.
    Unknown = 0,
    /// Received.
    Inbound = 1,
    /// Sent.
    Outbound = 2,
}

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// Number of its interface in the file.
    pub(crate) interface: u32,
    /// Nanoseconds since 1970.
    pub(crate) time: u64,
    /// The bytes kept, in up to two pieces that follow each other.
    pub(crate) bytes: [&'a [u8]; 2],
    /// Its length on the wire.
    pub(crate) length: u32,
    /// Which way it went, where its bytes do not tell.
    pub(crate) direction: Direction,
}

/// What is known at the end of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    /// When it began and ended, in nanoseconds since 1970.
    pub(crate) from: u64,
    /// See `from`.
    pub(crate) to: u64,
    /// Packets that passed the filter.
    pub(crate) received: u64,
    /// Those among them that were dropped for lack of room.
    pub(crate) dropped: u64,
    /// Packets in the file.
    pub(crate) written: u64,
}

/// A pcapng file under way; what was added is handed on when it is dropped at the latest.
#[derive(Debug)]
pub(crate) struct Writer<W: Write> {
    out: W,
    /// Whole blocks that `out` has not got yet.
    waiting: Vec<u8>,
    /// Bytes that it has got.
    handed_on: u64,
    interfaces: u32,
}

impl<W: Write> Writer<W> {
    /// Writes the head of a file.
    pub(crate) fn begin(out: W, interface: &Interface, program: &str) -> io::Result<Self> {
        let waiting = Vec::with_capacity(PIECE + BLOCK_ROOM);
        let mut writer = Self { out, waiting, handed_on: 0, interfaces: 0 };
        writer.block(SECTION_HEADER, |body| {
            body.extend(0x1A2B_3C4D_u32.to_le_bytes());
            body.extend(1_u16.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            body.extend((-1_i64).to_le_bytes());
            option(body, OPT_USERAPPL, program.as_bytes());
            end_of_options(body);
        })?;
        writer.interface(interface)?;
        Ok(writer)
    }

    /// Adds an interface; its number.
    pub(crate) fn interface(&mut self, interface: &Interface) -> io::Result<u32> {
        self.block(INTERFACE_DESCRIPTION, |body| {
            body.extend(interface.link_type.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            body.extend(interface.snap_length.to_le_bytes());
            option(body, IF_NAME, interface.name.as_bytes());
            option(body, IF_TSRESOL, &[NANOSECONDS]);
            end_of_options(body);
        })?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Adds a packet.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let captured = packet.bytes.iter().map(|piece| piece.len()).sum::<usize>() as u32;
        self.block(ENHANCED_PACKET, |body| {
            body.extend(packet.interface.to_le_bytes());
            body.extend(((packet.time >> 32) as u32).to_le_bytes());
            body.extend((packet.time as u32).to_le_bytes());
            body.extend(captured.to_le_bytes());
            body.extend(packet.length.to_le_bytes());
            for piece in packet.bytes {
                body.extend(piece);
            }
            pad(body);
            if packet.direction != Direction::Unknown {
                option(body, EPB_FLAGS, &(packet.direction as u32).to_le_bytes());
                end_of_options(body);
            }
        })
    }

    /// Adds what is known at the end, and hands everything on.
    pub(crate) fn end(mut self, statistics: &Statistics) -> io::Result<()> {
        self.block(INTERFACE_STATISTICS, |body| {
            let time = |at: u64| {
                let mut halves = ((at >> 32) as u32).to_le_bytes().to_vec();
                halves.extend((at as u32).to_le_bytes());
                halves
            };
            body.extend(0_u32.to_le_bytes());
            body.extend(time(statistics.to));
            option(body, ISB_STARTTIME, &time(statistics.from));
            option(body, ISB_ENDTIME, &time(statistics.to));
            option(body, ISB_IFRECV, &statistics.received.to_le_bytes());
            option(body, ISB_OSDROP, &statistics.dropped.to_le_bytes());
            option(body, ISB_USRDELIV, &statistics.written.to_le_bytes());
            end_of_options(body);
        })?;
        self.flush()
    }

    /// Hands everything on that was added.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.handed_on += self.waiting.len() as u64;
        let done = self.out.write_all(&self.waiting);
        // Where it failed a part may be written: once more would be that part twice.
        self.waiting.clear();
        done.and_then(|()| self.out.flush())
    }

    /// Size of the file up to now.
    pub(crate) const fn written(&self) -> u64 {
        self.handed_on + self.waiting.len() as u64
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        add_block(&mut self.waiting, kind, body);
        if self.waiting.len() >= PIECE { self.flush() } else { Ok(()) }
    }
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        // Who wants to know calls `end` or `flush`.
        let _ = self.flush();
    }
}

/// Adds `content` under a name, in as many blocks as it takes.
pub(crate) fn attach(out: &mut impl Write, name: &str, content: &[u8]) -> io::Result<()> {
    let mut block = Vec::new();
    // What is empty has a block, too.
    let pieces = content.chunks(ATTACHED_PIECE).chain(content.is_empty().then_some(&[][..]));
    for piece in pieces {
        block.clear();
        add_block(&mut block, ATTACHMENT, |body| {
            body.extend(ATTACHMENT_MAGIC);
            body.extend((name.len() as u16).to_le_bytes());
            body.extend([0; 2]);
            body.extend((piece.len() as u32).to_le_bytes());
            body.extend(name.as_bytes());
            pad(body);
            body.extend(piece);
        });
        out.write_all(&block)?;
    }
    Ok(())
}

/// A block behind those before it: type, length, body, length again.
fn add_block(blocks: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = blocks.len();
    blocks.extend(kind.to_le_bytes());
    blocks.extend([0; 4]);
    body(blocks);
    pad(blocks);
    let length = (blocks.len() + 4 - start) as u32;
    blocks[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    blocks.extend(length.to_le_bytes());
}

/// Largest size of the statistics block, for whoever keeps room for it.
pub(crate) const STATISTICS_LENGTH: u64 = 12 + 12 + 5 * 12 + 4;

/// Size of a packet's block.
pub(crate) const fn packet_length(captured: u32, direction: Direction) -> u64 {
    // Flags and end of options.
    let options = if matches!(direction, Direction::Unknown) { 0 } else { 12 };
    // Head and foot of the block, its fixed fields, padded bytes.
    12 + 20 + (captured as u64).div_ceil(4) * 4 + options
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// Every part of a block begins at a multiple of four bytes; blocks have such a length.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;

/// A named content: `0x80`, as all types for local use begin (section 11.1 of the draft), and `TCP`.
const ATTACHMENT: u32 = 0x8054_4350;
/// What the body of ours begins with, for others may use the same type: a name and a version.
const ATTACHMENT_MAGIC: &[u8; 8] = b"tcpwhy\x00\x01";
/// Ours: little for a reader to hold, and few blocks.
const ATTACHED_PIECE: usize = 1 << 20;

const OPT_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_STARTTIME: u16 = 2;
const ISB_ENDTIME: u16 = 3;
const ISB_IFRECV: u16 = 4;
const ISB_OSDROP: u16 = 7;
const ISB_USRDELIV: u16 = 8;

/// `if_tsresol`: stamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Ours: blocks are handed on once there are this many bytes of them.
const PIECE: usize = 256 << 10;
/// Ours: holds a block of a 64 KiB packet without growing.
const BLOCK_ROOM: usize = 70_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file gets from `add`, and how long the writer says it is.
    fn file(add: impl FnOnce(&mut Writer<&mut Vec<u8>>)) -> (Vec<u8>, u64) {
        let (mut file, name) = (Vec::new(), "eth0".to_owned());
        let interface = Interface { name, link_type: 1, snap_length: 100 };
        let mut writer = Writer::begin(&mut file, &interface, "test").expect("memory");
        add(&mut writer);
        let written = writer.written();
        drop(writer);
        (file, written)
    }

    fn packet(bytes: &[u8], direction: Direction) -> Packet<'_> {
        let length = bytes.len() as u32;
        Packet { interface: 0, time: 1, bytes: [bytes, &[]], length, direction }
    }

    #[test]
    fn a_packet_takes_as_much_as_was_reckoned() {
        let head = file(|_| {}).1;
        for direction in [Direction::Unknown, Direction::Inbound, Direction::Outbound] {
            for length in [0, 1, 4, 100, 1501] {
                let bytes = vec![0; length];
                let (file, written) = file(|writer| {
                    writer.packet(&packet(&bytes, direction)).expect("memory");
                });
                assert_eq!(written - head, packet_length(length as u32, direction));
                assert_eq!(written, file.len() as u64);
            }
        }
    }

    /// Each block has its length at both ends, in one piece or in many.
    #[test]
    fn a_file_that_was_dropped_is_whole() {
        let bytes = vec![0; 60_000];
        let (file, written) = file(|writer| {
            for _ in 0..20 {
                writer.packet(&packet(&bytes, Direction::Inbound)).expect("memory");
            }
        });
        assert!(written > 4 * PIECE as u64 && written == file.len() as u64);
        let mut rest = &file[..];
        let mut kinds = Vec::new();
        while let Some((head, _)) = rest.split_first_chunk::<8>() {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[at + byte]));
            kinds.push(word(0));
            let (block, behind) = rest.split_at(word(4) as usize);
            assert_eq!(block.last_chunk(), Some(&word(4).to_le_bytes()));
            rest = behind;
        }
        assert_eq!(kinds[..2], [SECTION_HEADER, INTERFACE_DESCRIPTION]);
        assert_eq!(kinds[2..], [ENHANCED_PACKET; 20]);
    }

    /// Room for this many bytes, and none behind them.
    struct Disk(Vec<u8>, usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.1 - self.0.len());
            self.0.extend(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_took_in_part_is_not_written_again() {
        let (whole, _) = file(|writer| {
            writer.packet(&packet(&[7; 100], Direction::Inbound)).expect("memory");
        });
        let mut disk = Disk(Vec::new(), whole.len() - 10);
        let (name, link_type) = ("eth0".to_owned(), 1);
        let interface = Interface { name, link_type, snap_length: 100 };
        let mut writer = Writer::begin(&mut disk, &interface, "test").expect("waits");
        writer.packet(&packet(&[7; 100], Direction::Inbound)).expect("waits");
        assert!(writer.flush().is_err());
        // Somebody made room.
        writer.out.1 += 1000;
        drop(writer);
        assert_eq!(disk.0, whole[..whole.len() - 10]);
    }
}
