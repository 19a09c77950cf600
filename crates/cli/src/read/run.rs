//! A capture's analysis with those who work for it.

use tcpwhy::capture::CaptureError;
use tcpwhy::report::Report;
use tcpwhy::session::{Intake, Session};
use tcpwhy::tracker::Config;

use super::crew::Crew;

/// A run over captures.
pub struct Run(Who);

/// Who does the work.
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Who {
    One(Session),
    Crew(Intake, Crew),
}

impl Run {
    /// A run that has read nothing, on this many threads.
    pub fn new(config: Config, threads: usize) -> Self {
        Self(if threads > 1 {
            Who::Crew(Intake::new(), Crew::new(config, threads))
        } else {
            Who::One(Session::new(config))
        })
    }

    /// Packets read so far.
    pub const fn packets(&self) -> u64 {
        match &self.0 {
            Who::One(session) => session.packets(),
            Who::Crew(intake, _) => intake.packets(),
        }
    }

    /// Starts the capture named `source`.
    pub fn begin(&mut self, source: &str) {
        match &mut self.0 {
            Who::One(session) => session.begin(source),
            Who::Crew(intake, _) => intake.begin(source),
        }
    }

    /// Takes the next bytes of the capture begun last.
    ///
    /// # Errors
    /// Damage in the capture, which the report tells too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        match &mut self.0 {
            Who::One(session) => session.push(bytes),
            Who::Crew(intake, crew) => crew.push(intake, bytes),
        }
    }

    /// Ends the capture begun last. Any damage it tells is in the capture's `error`.
    pub fn end(&mut self) {
        match &mut self.0 {
            Who::One(session) => {
                let _ = session.end();
            }
            Who::Crew(intake, crew) => crew.end(intake),
        }
    }

    /// What is known so far.
    pub fn provisional(&mut self) -> Report {
        match &mut self.0 {
            Who::One(session) => session.provisional(),
            Who::Crew(intake, crew) => crew.provisional(intake),
        }
    }

    /// The report over everything read.
    pub fn finish(self) -> Report {
        match self.0 {
            Who::One(session) => session.finish(),
            Who::Crew(intake, crew) => crew.finish(intake),
        }
    }
}
