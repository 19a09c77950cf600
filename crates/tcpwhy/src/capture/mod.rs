//! From bytes of a file, pipe or paste to captured items, in the order they stand there.
//!
//! [`Reader::push`] takes chunks of any size and tells the formats apart by content. Frames
//! are handed on as views of the chunk wherever they do not straddle two of them. Damage ends
//! a reader with a [`CaptureError`] that carries its place; what was handed on before stays.
//! A capture that just ends too early is complete up to there: [`QualityKind::CutShort`].
//!
//! ```text
//! chunks -> sniff -> pcap | pcapng | listing -> Item -> Sink
//! ```

mod binary;
mod error;
pub mod listing;
mod pcap;
mod pcapng;
mod sniff;
#[cfg(test)]
mod tape;

pub use error::{BlockProblem, CaptureError};
pub use sniff::bare_utf16;

pub use crate::frame::Frame;
use crate::wire::{IcmpError, Segment};

/// What a capture holds, in file order.
#[derive(Debug)]
pub enum Item<'a> {
    /// A captured link-layer frame.
    Frame(Frame<'a>),
    /// A TCP segment that a packet listing describes.
    Segment(Segment<'a>),
    /// An ICMP error that a packet listing describes.
    Icmp(IcmpError),
    /// A line of a listing that is a packet, but not TCP; or a record of a capture that Wireshark
    /// numbers like a packet (a log entry, a system call).
    OtherPacket,
    /// A line of a listing that is a TCP packet and shows none of its numbers.
    WithoutNumbers,
    /// Packets are missing here although the capture saw them (a listing's `......`).
    Gap,
    /// Something to tell about the capture's quality.
    Quality(Quality),
    /// A part of what `tcpwhy record` attached to the packets. Parts of one name follow each other.
    Attachment {
        /// What it is.
        name: &'a str,
        /// The bytes.
        content: &'a [u8],
    },
}

/// Who takes what a capture holds. Frames have a way of their own, for there are millions of them.
pub trait Sink {
    /// Takes frames that stand one behind the other, all of them. They have one link type, and were met on
    /// one interface in one direction, if it is known.
    fn frames<'a>(&mut self, frames: &mut (impl Iterator<Item = Frame<'a>> + Clone));

    /// Takes an item, which may be a frame.
    fn item(&mut self, item: Item<'_>);
}

impl<F: FnMut(Item<'_>) + ?Sized> Sink for F {
    fn frames<'a>(&mut self, frames: &mut (impl Iterator<Item = Frame<'a>> + Clone)) {
        frames.for_each(|frame| self(Item::Frame(frame)));
    }

    fn item(&mut self, item: Item<'_>) {
        self(item);
    }
}

/// A remark about the capture itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quality {
    /// What kind of remark.
    pub kind: QualityKind,
    /// How many (packets), where that makes sense.
    pub count: u64,
    /// In words.
    pub note: String,
}

impl Quality {
    /// The capture ends inside `record` ("packet 2", say).
    fn cut_short(record: &str, cut: binary::Unfinished) -> Self {
        let binary::Unfinished { offset, missing } = cut;
        let bytes = if missing == 1 { "byte" } else { "bytes" };
        let note = format!(
            "the capture ends inside {record}, which begins at byte {offset}, at least \
             {missing} {bytes} short: it was probably still being written, or copied incompletely; \
             everything before was read"
        );
        Self { kind: QualityKind::CutShort, count: 1, note }
    }
}

/// Kinds of remarks about a capture (the report's `quality[].kind`).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum QualityKind {
    /// The kernel dropped packets before the capture could store them.
    KernelDrops,
    /// The interface dropped packets.
    InterfaceDrops,
    /// A listing leaves packets out that were captured.
    ListingGap,
    /// The file ends in the middle of a record, or is damaged from some place on.
    CutShort,
    /// A line of a listing that could not be read.
    UnreadableLine,
    /// Timestamps go back by more than 1 ms.
    TimeGoesBack,
    /// All segments have one time.
    TimeStandsStill,
    /// Packets were captured twice.
    Duplicates,
    /// Bytes were acknowledged that the capture never saw.
    MissedByCapture,
    /// Connections that never got past the handshake and were counted, then forgotten.
    HalfOpenForgotten,
    /// Connections of a few packets without a dialogue that were counted, then forgotten.
    SlightForgotten,
    /// Anything else worth telling.
    Other,
}

impl QualityKind {
    /// The name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KernelDrops => "kernel_drops",
            Self::InterfaceDrops => "interface_drops",
            Self::ListingGap => "listing_gap",
            Self::CutShort => "cut_short",
            Self::UnreadableLine => "unreadable_line",
            Self::TimeGoesBack => "time_goes_back",
            Self::TimeStandsStill => "time_stands_still",
            Self::Duplicates => "duplicates",
            Self::MissedByCapture => "missed_by_capture",
            Self::HalfOpenForgotten => "half_open_forgotten",
            Self::SlightForgotten => "slight_forgotten",
            Self::Other => "other",
        }
    }
}

/// Tells capture formats apart and reads them, from chunks of any size.
#[derive(Debug, Default)]
pub struct Reader {
    state: State,
    failed: Option<CaptureError>,
}

/// What the reader knows of the format.
#[derive(Debug)]
enum State {
    /// The first bytes, too few yet to tell.
    Sniffing(Vec<u8>),
    Pcap(pcap::PcapReader),
    PcapNg(pcapng::PcapNgReader),
    Listing(Box<listing::ListingReader>),
}

impl Default for State {
    fn default() -> Self {
        Self::Sniffing(Vec::new())
    }
}

impl Reader {
    /// A reader at the start of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and hands on each item they complete.
    ///
    /// # Errors
    /// Why nothing can be read from here on. Later calls repeat it.
    pub fn push<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), CaptureError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let read = self.state.push(bytes, sink);
        self.keep_failure(read)
    }

    /// Takes note that the capture ends here: hands on what was still held back.
    ///
    /// # Errors
    /// The capture holds nothing, or not even its header; or the error of an earlier call.
    pub fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), CaptureError> {
        if let Some(error) = &self.failed {
            if let State::PcapNg(reader) = &mut self.state {
                reader.hand_on_remarks(sink);
            }
            return Err(error.clone());
        }
        let read = self.state.finish(sink);
        self.keep_failure(read)
    }

    /// What a packet listing tells beside its packets; `None` for other formats.
    pub fn listing(&self) -> Option<&listing::ListingReader> {
        match &self.state {
            State::Listing(reader) => Some(reader),
            _ => None,
        }
    }

    fn keep_failure(&mut self, read: Result<(), CaptureError>) -> Result<(), CaptureError> {
        self.failed = read.clone().err();
        read
    }
}

impl State {
    fn push<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), CaptureError> {
        match self {
            Self::Sniffing(first) if first.len() + bytes.len() < sniff::SNIFFED => {
                first.extend_from_slice(bytes);
                Ok(())
            }
            Self::Sniffing(first) => {
                let (missing, later) = bytes.split_at(sniff::SNIFFED - first.len());
                if first.is_empty() {
                    // The usual case: frames stay views of the chunk from the first byte on.
                    *self = Self::of(sniff::format(missing)?);
                    return self.push(bytes, sink);
                }
                first.extend_from_slice(missing);
                let first = core::mem::take(first);
                *self = Self::of(sniff::format(&first)?);
                self.push(&first, sink)?;
                self.push(later, sink)
            }
            Self::Pcap(reader) => reader.push(bytes, sink),
            Self::PcapNg(reader) => reader.push(bytes, sink),
            Self::Listing(reader) => reader.push(bytes, &mut |item: Item<'_>| sink.item(item)),
        }
    }

    fn finish<S: Sink + ?Sized>(&mut self, sink: &mut S) -> Result<(), CaptureError> {
        match self {
            Self::Sniffing(first) => {
                let first = core::mem::take(first);
                *self = Self::of(sniff::format(&first)?);
                self.push(&first, sink)?;
                self.finish(sink)
            }
            Self::Pcap(reader) => reader.finish(sink),
            Self::PcapNg(reader) => reader.finish(sink),
            Self::Listing(reader) => reader.finish(&mut |item: Item<'_>| sink.item(item)),
        }
    }

    fn of(format: sniff::Format) -> Self {
        match format {
            sniff::Format::Pcap => Self::Pcap(pcap::PcapReader::default()),
            sniff::Format::PcapNg => Self::PcapNg(pcapng::PcapNgReader::default()),
            sniff::Format::Listing => Self::Listing(Box::new(listing::ListingReader::of_timed())),
        }
    }
}

/// The longest record or block that is held, in bytes.
///
/// Ours: 64 times what libpcap captures of a packet, and little enough to hold one a reader.
const LONGEST_RECORD: u32 = 16 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::tape::{Order, Tape, read, read_chunks};

    /// A capture of each binary format with all that a chunk border may fall into.
    fn captures() -> [Tape; 3] {
        let classic = |order| {
            Tape::new(order)
                .pcap(0xa1b2_c3d4, 64, 1)
                .record(7, 1, b"abcdef", 60)
                .record(7, 2, b"", 60)
                .record(7, 3, &[b'.'; 300], 300)
        };
        let blocks = Tape::new(Order::Little)
            .section()
            .block(1, |interface| interface.u16(1).u16(0).u32(0).option(9, &[9]))
            .block(0x7777, |unknown| unknown.raw(&[b'u'; 100]))
            .block(6, |packet| packet.u32(0).u32(0).u32(7).u32(3).u32(60).raw(b"abc"))
            .block(9, |journal| journal.raw(b"MESSAGE=hi"))
            .order(Order::Big)
            .section()
            .block(1, |interface| interface.u16(1).u16(0).u32(0))
            .block(3, |packet| packet.u32(5).raw(b"abcde"))
            .block(5, |drops| drops.u32(0).u64(0).u16(7).u16(8).u64(12));
        [classic(Order::Little), classic(Order::Big), blocks]
    }

    #[test]
    fn single_bytes_give_the_same_items_as_one_chunk() {
        for tape in captures() {
            let whole = read(&tape);
            assert!(whole.items.len() >= 3 && whole.end.is_ok(), "{whole:?}");
            assert_eq!(read_chunks(tape.bytes.chunks(1)), whole);
        }
    }

    #[test]
    fn wherever_a_capture_ends_the_items_before_stay() {
        for tape in captures() {
            let whole = read(&tape);
            for length in 64..tape.bytes.len() {
                let cut = read(&tape.clone().cut(tape.bytes.len() - length));
                assert_eq!(cut.end, Ok(()));
                let packets = |items: &[String]| -> Vec<String> {
                    items.iter().filter(|item| item.starts_with(['#', 'O'])).cloned().collect()
                };
                assert!(packets(&whole.items).starts_with(&packets(&cut.items)), "{length}");
            }
        }
    }

    #[test]
    fn nothing_at_all_is_an_error_of_its_own() {
        assert_eq!(read_chunks([]).end, Err("the capture is empty".to_owned()));
        assert_eq!(read_chunks([&b""[..], b""]).end, Err("the capture is empty".to_owned()));
    }

    /// Bytes that get past the header: any capture above with some bytes overwritten or cut off.
    fn damaged() -> impl Strategy<Value = Vec<u8>> {
        let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        (prop::sample::select(captures().to_vec()), damage, any::<prop::sample::Index>(), 0..4)
            .prop_map(|(tape, damage, end, cut)| {
                let mut bytes = tape.bytes;
                for (place, byte) in damage {
                    let place = place.index(bytes.len());
                    bytes[place] = byte;
                }
                if cut == 0 {
                    bytes.truncate(end.index(bytes.len()));
                }
                bytes
            })
    }

    /// Cuts `bytes` into chunks of the lengths given, over and over.
    fn chunks<'a>(bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = bytes;
        let mut lengths = lengths.iter().cycle();
        core::iter::from_fn(move || {
            let (chunk, later) = rest.split_at(rest.len().min(*lengths.next()?));
            rest = later;
            (!chunk.is_empty()).then_some(chunk)
        })
    }

    proptest! {
        #[test]
        fn chunks_of_any_size_give_the_same_items(
            bytes in damaged(),
            lengths in prop::collection::vec(1..100_usize, 1..8),
        ) {
            prop_assert_eq!(read_chunks(chunks(&bytes, &lengths)), read_chunks([&bytes[..]]));
        }

        #[test]
        fn any_bytes_are_borne(
            magic in prop::sample::select(vec![
                &b""[..],
                b"\xd4\xc3\xb2\xa1\x02\0\x04\0",
                b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0",
            ]),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = [magic, &bytes].concat();
            prop_assert_eq!(read_chunks(bytes.chunks(1)), read_chunks([&bytes[..]]));
        }
    }
}
