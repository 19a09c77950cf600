//! From bytes of a file, pipe or paste to captured items, in the order they stand there.
//!
//! [`Reader::push`] takes chunks of any size and tells the formats apart by content. Frames
//! are handed on as views of the chunk wherever they do not straddle two of them. Damage ends
//! a reader with a [`CaptureError`] that carries its place; what was handed on before stays.

pub mod listing;

use crate::units::Time;
use crate::wire::{Direction, Segment};

/// What a capture holds, in file order.
#[derive(Debug)]
pub enum Item<'a> {
    /// A captured link-layer frame.
    Frame(Frame<'a>),
    /// A TCP segment that a packet listing describes.
    Segment(Segment<'a>),
    /// A line of a listing that is a packet, but not TCP.
    OtherPacket,
    /// Packets are missing here although the capture saw them (a listing's `......`).
    Gap,
    /// Something to tell about the capture's quality.
    Quality(Quality),
}

/// One captured link-layer frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Capture time.
    pub time: Time,
    /// Number in the file, from 1.
    pub frame: u64,
    /// `LINKTYPE_` value of the interface.
    pub link_type: u32,
    /// Interface number (pcapng; 0 in classic pcap).
    pub interface: u32,
    /// Direction from the packet's metadata (pcapng `epb_flags`), where given.
    pub direction: Option<Direction>,
    /// Length on the wire.
    pub wire_len: u32,
    /// The bytes that were kept.
    pub data: &'a [u8],
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
    /// Packets were captured twice.
    Duplicates,
    /// Bytes were acknowledged that the capture never saw.
    MissedByCapture,
    /// Frames longer than the path's segments: offload (TSO, GSO, GRO).
    Offload,
    /// TCP options cut by the snap length.
    OptionsCut,
    /// Connections that never got past the handshake and were counted, then forgotten.
    HalfOpenForgotten,
    /// The analysis dropped something to stay within its memory bounds.
    Truncated,
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
            Self::Duplicates => "duplicates",
            Self::MissedByCapture => "missed_by_capture",
            Self::Offload => "offload",
            Self::OptionsCut => "options_cut",
            Self::HalfOpenForgotten => "half_open_forgotten",
            Self::Truncated => "truncated",
            Self::Other => "other",
        }
    }
}

/// Tells capture formats apart and reads them, from chunks of any size.
#[derive(Debug, Default)]
pub struct Reader {}

impl Reader {
    /// A reader at the start of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and hands on each item they complete.
    pub fn push<F: FnMut(Item<'_>) + ?Sized>(
        &mut self,
        _bytes: &[u8],
        _each: &mut F,
    ) -> Result<(), CaptureError> {
        Ok(())
    }

    /// Takes note that the capture ends here: hands on what was still held back.
    pub fn finish<F: FnMut(Item<'_>) + ?Sized>(
        &mut self,
        _each: &mut F,
    ) -> Result<(), CaptureError> {
        Ok(())
    }
}

/// Why reading a capture stopped.
#[derive(Clone, Debug, thiserror::Error, Eq, PartialEq)]
pub enum CaptureError {
    /// Nothing at all to read.
    #[error("the capture is empty")]
    Empty,
    /// Text, but no line of it is a packet that `tcpdump` printed.
    #[error(
        "this is text, but none of its {lines} lines reads as a packet that tcpdump prints (the \
         first is \"{first}\"); try the capture file itself (tcpdump -w), or paste the packet lines \
         whole, without -q"
    )]
    NotAListing {
        /// How many lines there are.
        lines: u64,
        /// The start of the first line with text in it, escaped.
        first: String,
    },
}
