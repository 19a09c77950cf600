//! One run of the tool over one or more captures: bytes in, report out.
//!
//! The caller opens files, decompresses and puts rotated files in order; each is announced with
//! [`Session::begin`], fed with [`Session::push`] in chunks of any size and closed with
//! [`Session::end`]. Frame numbers go on through the files of one rotated capture, as
//! `mergecap -a` would number them.

use std::collections::BTreeMap;

use crate::capture::{CaptureError, Item, QualityKind, Reader};
use crate::report::{Capture, FORMAT, Quality, Report, Skipped};
use crate::tracker::{Config, Tracker};
use crate::wire::{self, Skip};

/// A run over captures.
#[derive(Debug)]
pub struct Session {
    tracker: Tracker,
    reader: Reader,
    captures: Vec<Capture>,
    skipped: BTreeMap<Skip, u64>,
    quality: BTreeMap<(QualityKind, String), u64>,
    frames_before: u64,
    /// Packet listings among the captures, and whether all of them tell the date.
    listings: u64,
    dated: bool,
}

impl Session {
    /// A session that has read nothing.
    pub fn new(config: Config) -> Self {
        Self {
            tracker: Tracker::new(config),
            reader: Reader::new(),
            captures: Vec::new(),
            skipped: BTreeMap::new(),
            quality: BTreeMap::new(),
            frames_before: 0,
            listings: 0,
            dated: true,
        }
    }

    /// Starts the capture named `source`.
    pub fn begin(&mut self, source: &str) {
        self.reader = Reader::new();
        self.captures.push(Capture { source: source.to_owned(), ..Capture::default() });
    }

    /// Takes the next bytes of the capture begun last.
    ///
    /// # Errors
    /// Damage in the capture; what was read before it stays, and is told in the report too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        self.read(|reader, each| reader.push(bytes, each))
    }

    /// Ends the capture begun last.
    ///
    /// # Errors
    /// The capture ends in the middle of a record, or held nothing that could be read.
    pub fn end(&mut self) -> Result<(), CaptureError> {
        let result = self.read(|reader, each| reader.finish(each));
        if let Some(listing) = self.reader.listing() {
            self.listings += 1;
            self.dated &= listing.clock().has_date();
        }
        let capture = self.captures.last_mut().expect("a capture was begun");
        self.frames_before += capture.packets;
        for (skip, count) in core::mem::take(&mut self.skipped) {
            capture.skipped.push(Skipped { reason: skip.reason().to_owned(), count });
        }
        for ((kind, note), count) in core::mem::take(&mut self.quality) {
            capture.quality.push(Quality { kind: kind.name().to_owned(), count, note });
        }
        result
    }

    /// What is known so far.
    pub fn provisional(&self) -> Report {
        Report {
            format: FORMAT.to_owned(),
            provisional: true,
            captures: self.captures.clone(),
            connections: self.tracker.provisional(),
        }
    }

    /// The report over everything read.
    pub fn finish(mut self) -> Report {
        let (mut connections, forgotten) = self.tracker.finish();
        let one_file = self.captures.len() == 1 && self.listings == 0;
        for connection in &mut connections {
            if !one_file {
                connection.stream = None;
            }
            if !self.dated
                && let Some((_, clock)) = connection.start.split_once('T')
            {
                connection.start = clock.trim_end_matches('Z').to_owned();
            }
        }
        if forgotten > 0
            && let Some(capture) = self.captures.last_mut()
        {
            capture.quality.push(Quality {
                kind: QualityKind::HalfOpenForgotten.name().to_owned(),
                count: forgotten,
                note: "half-open connections were counted and forgotten to bound memory".to_owned(),
            });
        }
        Report {
            format: FORMAT.to_owned(),
            provisional: false,
            captures: self.captures,
            connections,
        }
    }

    fn read(
        &mut self,
        step: impl FnOnce(&mut Reader, &mut dyn FnMut(Item<'_>)) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        let Self { tracker, reader, captures, skipped, quality, frames_before, .. } = self;
        let capture = captures.last_mut().expect("a capture was begun");
        let mut each = |item: Item<'_>| match item {
            Item::Frame(frame) => {
                capture.packets += 1;
                match wire::parse(&frame) {
                    Ok(mut segment) => {
                        capture.tcp_segments += 1;
                        segment.frame += *frames_before;
                        tracker.push(&segment);
                    }
                    Err(skip) => *skipped.entry(skip).or_default() += 1,
                }
            }
            Item::Segment(mut segment) => {
                capture.packets += 1;
                capture.tcp_segments += 1;
                segment.frame += *frames_before;
                tracker.push(&segment);
            }
            Item::OtherPacket => {
                capture.packets += 1;
                *skipped.entry(Skip::NotTcp).or_default() += 1;
            }
            Item::Gap => tracker.gap(),
            Item::Quality(remark) => {
                *quality.entry((remark.kind, remark.note)).or_default() += remark.count;
            }
        };
        let result = step(reader, &mut each);
        if let Err(error) = &result {
            capture.error = Some(error.to_string());
        }
        result
    }
}
