//! A run whose captures are read in one place and analysed in another.
//!
//! ```text
//! each file:  bytes -> Intake::push_apart -> pieces of each shard, and a Cut: what was beside TCP
//! the whole:  Joined::begin(Cut) for each file in order, Joined::push(piece) -> Report
//! ```
//!
//! The report is the one of a [`super::Session`] that reads the same files, if all intervals are kept ([`Config::detail`]).

use serde::{Deserialize, Serialize};

use super::intake::Intake;
use crate::capture::CaptureError;
use crate::report::{Capture, Report};
use crate::tracker::{Config, Cutter, Odd, Tracker};
use tcpwhy_words::units::Time;

/// What a capture holds beside its segments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cut {
    /// What is known of the file.
    pub capture: Capture,
    /// It is a packet listing, or holds what `tcpwhy record` attached: it has to be read in one place.
    pub is_whole: bool,
    /// When its first and its last segment were captured, in nanoseconds since 1970.
    #[serde(default)]
    pub times: Option<(i64, i64)>,
    /// What was heard beside TCP.
    #[serde(skip)]
    pub heard: Vec<u8>,
}

impl Intake {
    /// An intake whose segments are followed elsewhere.
    pub fn apart() -> Self {
        let mut intake = Self::default();
        intake.aside.log = Some(Vec::new());
        intake
    }

    /// Takes the next bytes of the capture begun last, whose segments `cutter` puts into pieces.
    ///
    /// # Errors
    /// As of [`Intake::push`].
    pub fn push_apart(&mut self, bytes: &[u8], cutter: &mut Cutter) -> Result<(), CaptureError> {
        self.read(Some(bytes), cutter)
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// As of [`Intake::end`]; it is in the capture, too.
    pub fn end_apart(&mut self, cutter: &mut Cutter) -> Result<(), CaptureError> {
        self.close(cutter)
    }

    /// What the capture held beside its segments.
    pub fn cut(mut self) -> Cut {
        let is_whole = self.listings > 0 || !self.aside.attachments.is_empty();
        let capture = self.captures.pop().unwrap_or_default();
        let times = self.times.map(|(first, last)| (first.0, last.0));
        Cut { capture, is_whole, times, heard: self.aside.log.take().unwrap_or_default() }
    }

    /// A capture that was read elsewhere comes next.
    fn join(&mut self, cut: Cut) -> Result<(), Odd> {
        self.aside.hear_again(&cut.heard, self.frames_before)?;
        self.packets += cut.capture.packets;
        self.frames_before += cut.capture.packets;
        self.captures.push(cut.capture);
        self.times = cut.times.map(|(first, last)| (Time(first), Time(last)));
        self.note_overlap();
        Ok(())
    }
}

/// A run over captures that were read elsewhere.
#[derive(Debug)]
pub struct Joined {
    intake: Intake,
    tracker: Tracker,
    /// Frames before each capture.
    before: Vec<u64>,
}

impl Joined {
    /// A run that knows nothing. All intervals are kept, whatever `config` says.
    pub fn new(config: Config) -> Self {
        let config = Config { detail: true, keep: None, ..config };
        Self { intake: Intake::new(), tracker: Tracker::new(config), before: Vec::new() }
    }

    /// The next capture, in their order.
    ///
    /// # Errors
    /// What was heard in it is damaged.
    pub fn begin(&mut self, cut: Cut) -> Result<(), Odd> {
        self.before.push(self.intake.frames_before);
        self.intake.join(cut)
    }

    /// The next piece of its shard, of the capture of this number.
    ///
    /// # Errors
    /// It is damaged, or the capture was not begun.
    pub fn push(&mut self, capture: usize, piece: &[u8]) -> Result<(), Odd> {
        let before = *self.before.get(capture).ok_or(Odd)?;
        self.tracker.follow_piece(piece, before)
    }

    /// The report over all.
    pub fn finish(self) -> Report {
        self.intake.finish(self.tracker.finish())
    }
}
