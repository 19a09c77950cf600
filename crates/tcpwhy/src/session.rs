//! One run of the tool over one or more captures: bytes in, report out.
//!
//! The caller opens files, decompresses and puts rotated files in order; each is announced with
//! [`Session::begin`], fed with [`Session::push`] in chunks of any size and closed with
//! [`Session::end`]. Frame numbers go on through the files of one rotated capture, as
//! `mergecap -a` would number them.
//!
//! A session does all the work where it is called. Who shares the work among threads drives what it is made
//! of: an [`Intake`] that reads, a [`Tracker`] that follows, and the tracker's analysts.

mod apart;
mod aside;
mod clock;
mod intake;
mod segments;

pub use apart::{Cut, Joined};
pub use intake::Intake;
pub use segments::{Captured, Segments};

use crate::capture::CaptureError;
use crate::report::Report;
use crate::tracker::{Config, Tracker};

/// A run over captures.
#[derive(Debug)]
pub struct Session {
    intake: Intake,
    tracker: Tracker,
}

impl Session {
    /// A session that has read nothing.
    pub fn new(config: Config) -> Self {
        Self { intake: Intake::new(), tracker: Tracker::new(config) }
    }

    /// Packets read so far, over all captures.
    pub const fn packets(&self) -> u64 {
        self.intake.packets()
    }

    /// Starts the capture named `source`.
    pub fn begin(&mut self, source: &str) {
        self.intake.begin(source);
    }

    /// Takes the next bytes of the capture begun last.
    ///
    /// # Errors
    /// Damage in the capture. What was read before it stays, and the report names the damage, too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        self.intake.push(bytes, &mut self.tracker)
    }

    /// Ends the capture begun last.
    ///
    /// # Errors
    /// The capture ends in the middle of a record, or held nothing that could be read.
    ///
    /// # Panics
    /// Without a [`Session::begin`] before it.
    pub fn end(&mut self) -> Result<(), CaptureError> {
        self.intake.end(&mut self.tracker)
    }

    /// What is known so far.
    pub fn provisional(&self) -> Report {
        self.intake.provisional(self.tracker.provisional())
    }

    /// The report over everything read.
    pub fn finish(self) -> Report {
        self.intake.finish(self.tracker.finish())
    }
}
