//! What does the start of an input tell?
//!
//! When its first packet came, and marks of the packets that carry data or open and close
//! connections. A mark leaves out what differs between two captures of one packet: its time, its
//! length (offloads merge and split segments) and what routers change. The core's own reader finds
//! the packets, so every format works; a pipe is not looked at, for that would take from it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tcpwhy::capture::{Item, Reader};
use tcpwhy::units::Time;
use tcpwhy::wire::{self, Flags, Segment};

use super::input::Input;

/// What is known of an input before it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Glance {
    /// Time of its first packet.
    pub(super) first: Option<Time>,
    /// Marks of packets in order, each once, with the time it came first.
    pub(super) marks: Vec<(u64, Time)>,
}

impl Glance {
    /// Looks at the first [`SEARCHED`] bytes of `input`, unpacked.
    pub(super) fn at(input: &Input) -> Self {
        let mut glance = Self::default();
        if !input.can_be_reread() {
            return glance;
        }
        let Ok(source) = input.open(&Arc::new(AtomicU64::new(0))) else { return glance };
        let mut source = source.take(SEARCHED);
        let mut reader = Reader::new();
        let mut each = |item: Item<'_>| match item {
            Item::Frame(frame) => {
                glance.first.get_or_insert(frame.time);
                glance.marks.extend(wire::parse(&frame).ok().as_ref().and_then(mark));
            }
            Item::Segment(segment) => {
                glance.first.get_or_insert(segment.time);
                glance.marks.extend(mark(&segment));
            }
            Item::Icmp(_)
            | Item::OtherPacket
            | Item::WithoutNumbers
            | Item::Gap
            | Item::Quality(_)
            | Item::Attachment { .. } => {}
        };
        let mut buffer = vec![0; PIECE];
        let mut step = || match source.read(&mut buffer) {
            Ok(got) if got > 0 && reader.push(&buffer[..got], &mut each).is_ok() => {
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        };
        while step().is_continue() {}
        // A short listing may be held back until its end is known.
        let _ = reader.finish(&mut each);
        glance.marks.sort_unstable();
        glance.marks.dedup_by_key(|mark| mark.0);
        glance
    }
}

/// The mark of a segment and its time. None of an empty segment, nor of a keep-alive probe (RFC 9293
/// §3.8.4): a quiet connection repeats them for days.
fn mark(segment: &Segment<'_>) -> Option<(u64, Time)> {
    let opens_or_closes = segment.flags.0 & (Flags::SYN.0 | Flags::FIN.0);
    if segment.payload_len <= 1 && opens_or_closes == 0 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (segment.source, segment.destination, segment.seq.0, opens_or_closes).hash(&mut hasher);
    segment.options.timestamps.hash(&mut hasher);
    Some((hasher.finish(), segment.time))
}

/// Bytes of an input that are looked at. Ours: more than any header or preamble, and some hundred
/// packets of full length.
const SEARCHED: u64 = 1 << 20;

/// Bytes looked at in one step. Ours: holds the first packet of nearly every capture.
const PIECE: usize = 64 << 10;
