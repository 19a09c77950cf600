//! Reads captures: hands the segments on to whoever follows them, and keeps the rest for the report.

use std::collections::BTreeMap;

use super::aside::Aside;
use super::clock::Clock;
use crate::capture::listing::Names;
use crate::capture::{CaptureError, Frame, Item, QualityKind, Reader, Sink};
use crate::find;
use crate::names;
use crate::report::{Capture, Connection, Damage, FORMAT, IcmpErrors, Quality, Report};
use crate::tracker::{Batches, Follow, Forgotten, Sums, Tracker, WentOn};
use crate::wire::{self, Flags, IcmpError, IcmpKind, Skip, Usual};
use tcpwhy_words::units::{Duration, Time};

/// Reads captures.
#[derive(Debug, Default)]
pub struct Intake {
    reader: Reader,
    pub(super) captures: Vec<Capture>,
    pub(super) aside: Aside,
    pub(super) frames_before: u64,
    pub(super) packets: u64,
    /// Packet listings among the captures, and those of them that do not tell the date.
    pub(super) listings: u64,
    undated: u64,
    /// What the listings among them print instead of addresses.
    names: Names,
    clock: Clock,
    /// When the segments of the capture that ended last began and ended.
    pub(super) times: Option<(Time, Time)>,
    /// The last time met, over all captures.
    latest: Option<Time>,
    /// Bytes of the longest frame read so far of the capture begun last.
    longest: usize,
}

impl Intake {
    /// An intake that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets read so far, over all captures.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Starts the capture named `source`.
    pub fn begin(&mut self, source: &str) {
        self.reader = Reader::new();
        self.longest = 0;
        self.captures.push(Capture { source: source.to_owned(), ..Capture::default() });
    }

    /// Takes the next bytes of the capture begun last, whose segments `tracker` follows.
    ///
    /// # Errors
    /// Damage in the capture. What was read before it stays, and the report names the damage, too.
    pub fn push(&mut self, bytes: &[u8], tracker: &mut Tracker) -> Result<(), CaptureError> {
        let pushed = self.read(Some(bytes), tracker);
        tracker.catch_up();
        pushed
    }

    /// The same where others follow its segments later, for which they are put into `batches`.
    ///
    /// # Errors
    /// As of [`Intake::push`].
    pub fn push_ahead(&mut self, bytes: &[u8], batches: &mut Batches) -> Result<(), CaptureError> {
        self.read(Some(bytes), batches)
    }

    /// Ends the capture begun last.
    ///
    /// # Errors
    /// The capture ends in the middle of a record, or held nothing that could be read.
    ///
    /// # Panics
    /// Without an [`Intake::begin`] before it.
    pub fn end(&mut self, tracker: &mut Tracker) -> Result<(), CaptureError> {
        let result = self.close(tracker);
        tracker.catch_up();
        result
    }

    /// Ends the capture begun last.
    pub(super) fn close(&mut self, to: &mut impl Follow) -> Result<(), CaptureError> {
        let result = self.read(None, to);
        if let Some(listing) = self.reader.listing() {
            self.listings += 1;
            self.undated += u64::from(!listing.clock().has_date());
            self.names.merge(listing.names());
        }
        let capture = self.captures.last_mut().expect("a capture was begun");
        self.frames_before += capture.packets;
        let clock = core::mem::take(&mut self.clock);
        capture.quality.extend(clock.told(capture.tcp_segments));
        self.aside.hand_over(capture);
        // The times of listings may lack their days.
        self.times = clock.times().filter(|_| self.reader.listing().is_none());
        self.note_overlap();
        result
    }

    /// Says of the last capture that it begins before those before it end.
    pub(super) fn note_overlap(&mut self) {
        let Some((first, last)) = self.times else { return };
        if let Some(latest) = self.latest
            && latest.since(first) > OVERLAP
        {
            let note = format!(
                "it begins {} before an earlier one ends: these are no parts of one capture, and what both hold counts \
                 twice",
                latest.since(first)
            );
            self.remark(QualityKind::TimeGoesBack, 1, &note);
        }
        self.latest = self.latest.max(Some(last));
    }

    /// The report so far, with these connections.
    pub fn provisional(&self, (mut connections, mut sums): (Vec<Connection>, Sums)) -> Report {
        let icmp = self.icmp(&mut connections);
        self.fit_to_captures(&mut connections);
        names::fill(&mut connections, self.aside.names.all());
        find::fill(&mut connections);
        find::fill_failures(&mut connections, &mut sums.totals);
        let mut report = Report {
            format: FORMAT.to_owned(),
            provisional: true,
            captures: self.captures.clone(),
            with: Vec::new(),
            command: None,
            lookups: self.aside.names.lookups().0,
            icmp,
            findings: Vec::new(),
            attachments: BTreeMap::new(),
            totals: sums.totals,
            connections,
        };
        find::fill_whole(&mut report);
        report
    }

    /// Says something of all captures behind the last of them.
    fn remark(&mut self, kind: QualityKind, count: u64, note: &str) {
        if count > 0
            && let Some(capture) = self.captures.last_mut()
        {
            let (kind, note) = (kind.name().to_owned(), note.to_owned());
            capture.quality.push(Quality { kind, count, note });
        }
    }

    /// The report over everything read, with its connections and what was forgotten of them.
    pub fn finish(
        mut self,
        (mut connections, mut sums, forgotten): (Vec<Connection>, Sums, Forgotten),
    ) -> Report {
        let icmp = self.icmp(&mut connections);
        self.fit_to_captures(&mut connections);
        names::fill(&mut connections, self.aside.names.all());
        find::fill(&mut connections);
        find::fill_failures(&mut connections, &mut sums.totals);
        let (lookups, more_lookups) = self.aside.names.lookups();
        for (kind, count, note) in [
            (
                QualityKind::Other,
                more_lookups,
                "more questions to name servers were counted and not listed",
            ),
            (
                QualityKind::Other,
                self.aside.errors.more(),
                "more ICMP errors were counted and not told apart",
            ),
            (
                QualityKind::Duplicates,
                sums.duplicates,
                "packets were captured twice; the copies are left out",
            ),
            (
                QualityKind::Duplicates,
                sums.came_twice,
                "packets came twice: doubled on the way, or captured twice; the copies are left out",
            ),
            (
                QualityKind::MissedByCapture,
                sums.not_captured,
                "segments were acknowledged, or never came though later ones did, that the capture does not hold; they are not taken for loss",
            ),
            (
                QualityKind::HalfOpenForgotten,
                forgotten.half_open,
                "half-open connections were counted and forgotten to bound memory",
            ),
            (
                QualityKind::SlightForgotten,
                forgotten.slight,
                "connections of up to 3 packets, without data of both sides, were counted and forgotten to bound memory",
            ),
        ] {
            self.remark(kind, count, note);
        }
        let mut report = Report {
            format: FORMAT.to_owned(),
            provisional: false,
            captures: self.captures,
            with: Vec::new(),
            command: None,
            lookups,
            icmp,
            findings: Vec::new(),
            attachments: self.aside.attachments,
            totals: sums.totals,
            connections,
        };
        find::fill_whole(&mut report);
        report
    }

    /// Gives connections what ICMP errors said of them; what was said of others.
    fn icmp(&self, connections: &mut [Connection]) -> Vec<IcmpErrors> {
        let mut others = self.aside.errors.attach(connections);
        if self.undated > 0 {
            let theirs = connections.iter_mut().flat_map(|connection| &mut connection.icmp);
            for errors in others.iter_mut().chain(theirs) {
                errors.start = without_date(&errors.start);
            }
        }
        others
    }

    /// Gives connections the names of their listings, and takes out of them what these captures do
    /// not define: Wireshark numbers the streams of one file; a listing may lack the date.
    fn fit_to_captures(&self, connections: &mut [Connection]) {
        let one_file = self.captures.len() == 1 && self.listings == 0;
        if one_file && self.undated == 0 && self.reader.listing().is_none() {
            return;
        }
        for connection in connections {
            if !one_file {
                connection.stream = None;
            }
            for (end, name) in [
                (connection.client, &mut connection.client_name),
                (connection.server, &mut connection.server_name),
            ] {
                // A listing that is still being read has its names to itself.
                let read_now = self.reader.listing().and_then(|listing| listing.names().name(end));
                *name = self.names.name(end).or(read_now).map(Into::into);
            }
            if self.undated > 0 {
                connection.start = without_date(&connection.start);
            }
        }
    }

    /// Counts what was read of the capture begun last, and keeps what ended it.
    fn count(&mut self, packets: u64, segments: u64, error: Option<&CaptureError>) {
        let capture = self.captures.last_mut().expect("a capture was begun");
        self.packets += packets;
        capture.packets += packets;
        capture.tcp_segments += segments;
        if let Some(error) = error {
            // The first damage is the cause; what its end says after that follows from it.
            if capture.error.is_none() {
                capture.damage = error.place().map(|(packet, offset)| Damage { packet, offset });
                capture.error = Some(error.to_string());
            }
        }
    }

    /// Takes the next bytes, or the end.
    pub(super) fn read(
        &mut self,
        bytes: Option<&[u8]>,
        to: &mut impl Follow,
    ) -> Result<(), CaptureError> {
        let Self { reader, aside, frames_before, clock, longest, .. } = self;
        let frames_before = *frames_before;
        let (packets, segments) = (0, 0);
        let mut reading = Reading { to, aside, clock, longest, frames_before, packets, segments };
        let result = match bytes {
            Some(bytes) => reader.push(bytes, &mut reading),
            None => reader.finish(&mut reading),
        };
        let Reading { packets, segments, .. } = reading;
        self.count(packets, segments, result.as_ref().err());
        result
    }
}

/// By more than this rotated files do not overlap. Ours: what several processors and interfaces write waits in buffers for
/// less.
const OVERLAP: Duration = Duration::from_secs(1);

/// A time whose day is not known.
fn without_date(time: &str) -> String {
    let clock = time.split_once('T').map_or(time, |(_, clock)| clock);
    clock.trim_end_matches('Z').to_owned()
}

/// Where the items of a capture go.
struct Reading<'a, To> {
    to: &'a mut To,
    aside: &'a mut Aside,
    clock: &'a mut Clock,
    longest: &'a mut usize,
    frames_before: u64,
    /// Packets and TCP segments met.
    packets: u64,
    segments: u64,
}

impl<To: Follow> Sink for Reading<'_, To> {
    #[expect(clippy::inline_always, reason = "the frames are then never written to memory")]
    #[inline(always)]
    fn frames<'a>(&mut self, frames: &mut (impl Iterator<Item = Frame<'a>> + Clone)) {
        let before = self.frames_before;
        loop {
            if let Some(WentOn { frames, last }) = self.to.gather(frames, before) {
                self.packets += frames;
                self.segments += frames;
                self.clock.go_on(last);
            }
            let Some(frame) = frames.next() else { break };
            self.packets += 1;
            self.any_frame(&Frame { frame: before + frame.frame, ..frame });
        }
    }

    #[inline(never)]
    fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Frame(frame) => self.frames(&mut core::iter::once(frame)),
            Item::Segment(mut segment) => {
                self.packets += 1;
                segment.frame += self.frames_before;
                self.meet(segment.time, segment.frame);
                self.to.push(&segment);
            }
            Item::Icmp(mut error) => {
                self.packets += 1;
                error.frame += self.frames_before;
                self.aside.hear(&error);
                self.tell(&error);
            }
            Item::OtherPacket => {
                self.packets += 1;
                self.aside.skip(Skip::NotTcp);
            }
            Item::WithoutNumbers => {
                self.packets += 1;
                self.aside.skip(Skip::WithoutNumbers);
            }
            Item::Gap => self.to.gap(),
            Item::Quality(mut remark) => self.aside.remark(&mut remark),
            Item::Attachment { name, content } => self.aside.attach(name, content),
        }
    }
}

impl<To: Follow> Reading<'_, To> {
    #[inline(never)]
    fn any_frame(&mut self, frame: &Frame<'_>) {
        *self.longest = (*self.longest).max(frame.data.len());
        if let Some(mut usual) = Usual::read(frame) {
            let head = &mut usual.head;
            self.meet(head.time, head.frame);
            if is_worth_summing(head.flags, head.payload_len, usual.payload) {
                head.link.checksum = wire::checksum(frame);
            }
            return self.to.push_usual(&usual, frame);
        }
        match wire::walked(frame, *self.longest) {
            Ok(mut segment) => {
                self.meet(segment.time, segment.frame);
                if is_worth_summing(segment.flags, segment.payload_len, segment.payload) {
                    segment.link.checksum = wire::checksum(frame);
                }
                self.to.push(&segment);
            }
            Err(skip) => {
                if let Some(error) = self.aside.pass_over(frame, skip) {
                    self.tell(&error);
                }
            }
        }
    }

    /// Whoever follows the connection is to know that its sender repeats at once what was too large.
    fn tell(&mut self, error: &IcmpError) {
        if error.kind == IcmpKind::TooBig {
            self.to.too_big(error);
        }
    }

    #[inline]
    fn meet(&mut self, time: Time, frame: u64) {
        self.segments += 1;
        self.clock.look_at(time, frame);
    }
}

/// Whether the checksum of a segment tells something, and all that it covers may be there: SYNs
/// tell whether a host leaves it to its network card, data whether it arrived undamaged.
#[inline]
fn is_worth_summing(flags: Flags, payload_len: u32, payload: &[u8]) -> bool {
    payload.len() as u64 == u64::from(payload_len) && (payload_len > 0 || flags.has(Flags::SYN))
}
