//! Segments between the thread that reads them and those that follow their connections.
//!
//! Where most segments have to be looked for, following takes longer than all else, for it waits for
//! memory. Batches let other threads do that meanwhile: one holds what was read of a lane's connections, in its order.

use super::Tracker;
use crate::capture::Frame;
use crate::flow::usual::WentOn;
use crate::wire::{
    Checksum, Direction, Ends, Flags, Head, IcmpError, IpInfo, LinkInfo, Segment, Usual,
};
use tcpwhy_words::units::{Seq, Time};

/// Who takes the segments of a capture, in its order.
pub(crate) trait Follow {
    /// Takes the segments in the first of `frames`, numbered behind so many `before`, that just go on in
    /// frames like the one before them; none where each is looked at.
    #[inline]
    fn gather<'a>(
        &mut self,
        _frames: &mut (impl Iterator<Item = Frame<'a>> + Clone),
        _before: u64,
    ) -> Option<WentOn> {
        None
    }

    /// Takes the segment in the usual `frame`.
    fn push_usual(&mut self, usual: &Usual<'_>, frame: &Frame<'_>);

    /// Takes any other.
    fn push(&mut self, segment: &Segment<'_>);

    /// Packets are missing here that the capture saw.
    fn gap(&mut self);

    /// A device said of a segment that is quoted that it is too large for the next hop.
    fn too_big(&mut self, error: &IcmpError);
}

/// Segments that were read, and are still to be followed.
#[derive(Debug, Default)]
pub struct Batch {
    entries: Vec<Entry>,
    /// The number of the first frame.
    first: u64,
    /// Those that are no usual ones.
    segments: Vec<Segment<'static>>,
    /// What was captured of all payloads.
    payloads: Vec<u8>,
    /// What devices said of segments.
    errors: Vec<IcmpError>,
}

/// What comes next.
#[derive(Debug)]
enum Entry {
    Usual(Brief),
    /// A segment, and how much of its payload was captured.
    Segment(usize),
    Gap,
    /// A device said that a segment is too large.
    TooBig,
}

// What passes from one core to another is paid for by cache line.
const _: () = assert!(size_of::<Entry>() <= 64);

/// What a usual frame says, its payload apart, in few bytes.
#[derive(Debug)]
struct Brief {
    time: Time,
    ends: Ends,
    seq: Seq,
    ack: Seq,
    timestamps: (u32, u32),
    /// Behind the first of the batch.
    frame: u32,
    interface: u32,
    /// Lengths in a packet of IPv4.
    payload_len: u16,
    captured: u16,
    flags: Flags,
    window: u16,
    id: u16,
    ttl: u8,
    ecn: u8,
    has_timestamps: bool,
    direction: Option<Direction>,
    checksum: Option<Checksum>,
}

impl Brief {
    #[inline]
    fn of(usual: &Usual<'_>, first: u64) -> Self {
        let Usual { head, ends, payload } = usual;
        Self {
            time: head.time,
            ends: *ends,
            seq: head.seq,
            ack: head.ack,
            timestamps: head.timestamps.unwrap_or_default(),
            frame: (head.frame - first) as u32,
            interface: head.link.interface,
            payload_len: head.payload_len as u16,
            captured: payload.len() as u16,
            flags: head.flags,
            window: head.window,
            // IPv4 tells all of these.
            id: head.ip.id.unwrap_or_default(),
            ttl: head.ip.ttl.unwrap_or_default(),
            ecn: head.ip.ecn.unwrap_or_default(),
            has_timestamps: head.timestamps.is_some(),
            direction: head.link.direction,
            checksum: head.link.checksum,
        }
    }

    #[inline]
    fn usual<'a>(&self, payload: &'a [u8], first: u64) -> Usual<'a> {
        let Self { direction, interface, checksum, .. } = *self;
        let head = Head {
            time: self.time,
            frame: first + u64::from(self.frame),
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            payload_len: u32::from(self.payload_len),
            timestamps: self.has_timestamps.then_some(self.timestamps),
            ip: IpInfo { id: Some(self.id), ttl: Some(self.ttl), ecn: Some(self.ecn) },
            link: LinkInfo { direction, interface, checksum, seq_unshown: false },
        };
        Usual { head, ends: self.ends, payload }
    }
}

impl Batch {
    /// Segments in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.segments.clear();
        self.payloads.clear();
        self.errors.clear();
    }

    /// Keeps what was captured of a payload: of most, nothing.
    #[inline]
    fn keep(&mut self, payload: &[u8]) -> usize {
        if !payload.is_empty() {
            self.payloads.extend_from_slice(payload);
        }
        payload.len()
    }

    #[inline]
    pub(super) fn push_usual(&mut self, usual: &Usual<'_>) {
        if self.entries.is_empty() {
            self.first = usual.head.frame;
        }
        self.keep(usual.payload);
        self.entries.push(Entry::Usual(Brief::of(usual, self.first)));
    }

    pub(super) fn push(&mut self, segment: &Segment<'_>) {
        if self.entries.is_empty() {
            self.first = segment.frame;
        }
        let kept = self.keep(segment.payload);
        self.segments.push(Segment { payload: &[], ..segment.clone() });
        self.entries.push(Entry::Segment(kept));
    }

    pub(super) fn gap(&mut self) {
        // Only listings have gaps, and no usual frames.
        self.entries.push(Entry::Gap);
    }

    pub(super) fn too_big(&mut self, error: &IcmpError) {
        if self.entries.is_empty() {
            self.first = error.frame;
        }
        self.errors.push(*error);
        self.entries.push(Entry::TooBig);
    }
}

impl Tracker {
    /// Takes the segments of `batch`, which come next in capture order, and leaves it empty.
    pub(super) fn follow(&mut self, batch: &mut Batch) {
        let Batch { entries, first, segments, payloads, errors } = &*batch;
        let (mut segments, mut payloads) = (segments.iter(), payloads.as_slice());
        let mut errors = errors.iter();
        let mut payload = |kept: usize| {
            let (payload, rest) = payloads.split_at(kept);
            payloads = rest;
            payload
        };
        for entry in entries {
            match *entry {
                Entry::Usual(ref brief) => {
                    let payload = payload(usize::from(brief.captured));
                    self.take_usual(&brief.usual(payload, *first), None);
                }
                Entry::Segment(kept) => {
                    let payload = payload(kept);
                    match segments.next() {
                        Some(segment) if kept == 0 => self.push(segment),
                        Some(segment) => self.push(&Segment { payload, ..segment.clone() }),
                        None => {}
                    }
                }
                Entry::Gap => self.gap(),
                Entry::TooBig => errors.by_ref().take(1).for_each(|error| self.too_big(error)),
            }
        }
        batch.clear();
    }
}
