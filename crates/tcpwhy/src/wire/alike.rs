//! Frames that differ from the one before them in what must differ, and in nothing else.
//!
//! A sender that streams sends the same headers again and again: only the identification, the sequence
//! number, PSH and the checksums are others. Nine comparisons tell such a frame, and then nothing
//! needs to be read twice.

use super::layer::{be16, be32};
use super::usual::{IP, OPTIONS, STAMPS, TCP, Usual};
use super::{Direction, Flags};
use crate::frame::Frame;
use tcpwhy_words::units::{Seq, Time};

/// Bytes that are compared.
const HEAD: usize = OPTIONS + STAMPS;
/// Words that are compared: the last one overlaps with the one before it.
const WORDS: usize = HEAD.div_ceil(8);

/// Where the last eight flags of TCP stand.
const FLAGS: usize = TCP + 13;

/// What a frame has in common with those like it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mould {
    words: [u64; WORDS],
    mask: [u64; WORDS],
    link_type: u32,
    interface: u32,
    direction: Option<Direction>,
    captured: usize,
}

/// What a frame says that is like the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    pub(crate) time: Time,
    pub(crate) frame: u64,
    pub(crate) seq: Seq,
    pub(crate) id: u16,
    pub(crate) is_pushed: bool,
}

impl<'a> Usual<'a> {
    /// What it has in common with frames like it, which need not be read; none where its checksum is
    /// to be looked at.
    pub(crate) fn mould(&self, frame: &Frame<'a>) -> Option<Mould> {
        let is_data = self.head.payload_len > 0 && self.head.link.checksum.is_none();
        is_data.then(|| Mould::of(frame, self.head.timestamps.is_some()))?
    }
}

impl Mould {
    /// That of a usual frame, with timestamps or without; `None` if too little of it was captured.
    pub(crate) fn of(frame: &Frame<'_>, has_timestamps: bool) -> Option<Self> {
        let head = frame.data.first_chunk()?;
        Some(Self {
            words: words(head),
            mask: words(if has_timestamps { &WITH_STAMPS } else { &WITHOUT }),
            link_type: frame.link_type,
            interface: frame.interface,
            direction: frame.direction,
            captured: frame.data.len(),
        })
    }

    /// Whether `frame` was met as all that fit were.
    #[inline]
    pub(crate) fn is_met_alike(&self, frame: &Frame<'_>) -> bool {
        frame.link_type == self.link_type
            && frame.interface == self.interface
            && frame.direction == self.direction
    }

    /// What `frame` says if it fits, which was met alike.
    #[expect(clippy::inline_always, reason = "the frame is then never written to memory")]
    #[inline(always)]
    pub(crate) fn take(&self, frame: &Frame<'_>) -> Option<Alike> {
        if frame.data.len() != self.captured {
            return None;
        }
        let head: &[u8; HEAD] = frame.data.first_chunk()?;
        let mut differs = 0;
        for at in 0..WORDS {
            differs |= (word(head, at) ^ self.words[at]) & self.mask[at];
        }
        (differs == 0).then(|| Alike {
            time: frame.time,
            frame: frame.frame,
            seq: Seq(be32(head, TCP + 4)),
            id: be16(head, IP + 4),
            is_pushed: Flags(u16::from(head[FLAGS])).has(Flags::PSH),
        })
    }

    /// How all that fit were met.
    pub(crate) fn direction(&self) -> Option<Direction> {
        self.direction
    }
}

/// The words of `head`; the last begins before the end of the one in front of it.
#[inline]
fn words(head: &[u8; HEAD]) -> [u64; WORDS] {
    core::array::from_fn(|at| word(head, at))
}

/// The word at `at`.
#[expect(clippy::inline_always, reason = "it is called for each packet, with a constant")]
#[inline(always)]
fn word(head: &[u8; HEAD], at: usize) -> u64 {
    let (whole, _) = head.as_chunks::<8>();
    let last = head.last_chunk().copied().unwrap_or_default();
    u64::from_ne_bytes(whole.get(at).copied().unwrap_or(last))
}

const WITH_STAMPS: [u8; HEAD] = mask(HEAD);
const WITHOUT: [u8; HEAD] = mask(OPTIONS);

/// The bits that are the same in the first `length` bytes.
const fn mask(length: usize) -> [u8; HEAD] {
    // Identification and checksum of IPv4, sequence number and checksum of TCP.
    const OTHERS: [(usize, usize); 4] = [(IP + 4, 2), (IP + 10, 2), (TCP + 4, 4), (TCP + 16, 2)];
    let mut mask = [0; HEAD];
    let mut at = 0;
    while at < length {
        mask[at] = 0xff;
        at += 1;
    }
    let mut field = 0;
    while field < OTHERS.len() {
        let (from, bytes) = OTHERS[field];
        let mut byte = 0;
        while byte < bytes {
            mask[from + byte] = 0;
            byte += 1;
        }
        field += 1;
    }
    mask[FLAGS] = !(Flags::PSH.0 as u8);
    mask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Usual;

    /// A frame with timestamps, or without. Only a part of its payload was captured.
    fn frame_bytes(has_timestamps: bool) -> Vec<u8> {
        let mut data = vec![2; 12];
        data.extend([8, 0, 0x45, 0, 5, 220, 0, 7, 0x40, 0, 64, 6, 0, 0]);
        data.extend([192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 0, 80]);
        let words = if has_timestamps { 0x80 } else { 0x50 };
        data.extend([1, 2, 3, 4, 5, 6, 7, 8, words, 0x10, 1, 2, 0, 0, 0, 0]);
        data.extend([1, 1, 8, 10, 0, 0, 0, 17, 0, 0, 0, 34]);
        data.extend([7; 20]);
        data
    }

    fn frame(data: &[u8]) -> Frame<'_> {
        let (time, direction) = (Time(1), None);
        Frame { time, frame: 7, link_type: 1, interface: 3, direction, wire_len: 1514, data }
    }

    fn mould(data: &[u8]) -> Mould {
        let frame = frame(data);
        Usual::read(&frame).and_then(|usual| usual.mould(&frame)).expect("it is usual")
    }

    #[test]
    fn only_what_must_differ_may() {
        for has_timestamps in [true, false] {
            let data = frame_bytes(has_timestamps);
            let mould = mould(&data);
            for at in 0..data.len() {
                let mut other = data.clone();
                other[at] ^= 0xff;
                let may = [18..20, 24..26, 38..42, 50..52].iter().any(|field| field.contains(&at))
                    || at >= if has_timestamps { 66 } else { 54 };
                assert_eq!(mould.take(&frame(&other)).is_some(), may, "byte {at}");
            }
            let mut pushed = data.clone();
            pushed[47] |= 8;
            assert!(mould.take(&frame(&pushed)).is_some_and(|alike| alike.is_pushed));
            assert!(mould.take(&frame(&data[..data.len() - 1])).is_none(), "less was captured");
            assert!(mould.is_met_alike(&frame(&data)));
            assert!(!mould.is_met_alike(&Frame { interface: 4, ..frame(&data) }));
        }
    }

    #[test]
    fn what_says_more_than_its_headers_has_no_mould() {
        let data = frame_bytes(true);
        let usual = Usual::read(&frame(&data)).expect("it is usual");
        assert!(usual.mould(&frame(&data[..60])).is_none(), "cut short");
        let mut ack = data;
        (ack[16], ack[17]) = (0, 52);
        let usual = Usual::read(&frame(&ack)).expect("it is usual");
        assert!(usual.mould(&frame(&ack)).is_none(), "no data");
    }

    proptest! {
        #[test]
        fn a_frame_that_fits_says_what_reading_it_would(
            damage in prop::collection::vec((0..100_usize, any::<u8>()), 0..4),
            has_timestamps in any::<bool>(),
        ) {
            let data = frame_bytes(has_timestamps);
            let mut other = data.clone();
            for (at, byte) in damage {
                if let Some(place) = other.get_mut(at) {
                    *place = byte;
                }
            }
            if let Some(alike) = mould(&data).take(&frame(&other)) {
                let read = |data| Usual::read(&frame(data)).expect("it is usual");
                let (first, mut then) = (read(&data), read(&other));
                prop_assert_eq!(then.head.seq, alike.seq);
                prop_assert_eq!(then.head.ip.id, Some(alike.id));
                prop_assert_eq!(then.head.flags.has(Flags::PSH), alike.is_pushed);
                (then.head.seq, then.head.ip) = (first.head.seq, first.head.ip);
                then.head.flags = first.head.flags;
                prop_assert_eq!(format!("{:?}", then.head), format!("{:?}", first.head));
            }
        }
    }
}
