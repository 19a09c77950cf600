//! A session with those who work for it.

use tcpwhy::capture::CaptureError;
use tcpwhy::report::Report;
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;

use super::crew::Crew;

/// A session, and its analysts where there are several.
pub struct Run {
    session: Session,
    crew: Option<Crew>,
}

impl Run {
    /// A run that has read nothing, on so many threads.
    pub fn new(config: Config, threads: usize) -> Self {
        if threads > 1 {
            let crew = Some(Crew::new(config, threads));
            Self { session: Session::handing_on(config), crew }
        } else {
            Self { session: Session::new(config), crew: None }
        }
    }

    /// Packets read so far.
    pub const fn packets(&self) -> u64 {
        self.session.packets()
    }

    /// Starts the capture named `source`.
    pub fn begin(&mut self, source: &str) {
        self.session.begin(source);
    }

    /// Takes the next bytes of the capture begun last.
    ///
    /// # Errors
    /// Damage in the capture, which the report tells too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        let pushed = self.session.push(bytes);
        self.hand_on();
        pushed
    }

    /// Ends the capture begun last. Any damage it tells is in the capture's `error`.
    pub fn end(&mut self) {
        let _ = self.session.end();
        self.hand_on();
    }

    /// What is known so far.
    pub fn provisional(&mut self) -> Report {
        match &mut self.crew {
            Some(crew) => crew.provisional(&self.session),
            None => self.session.provisional(),
        }
    }

    /// The report over everything read.
    pub fn finish(self) -> Report {
        match self.crew {
            Some(crew) => crew.finish(self.session),
            None => self.session.finish(),
        }
    }

    fn hand_on(&mut self) {
        if let Some(crew) = &mut self.crew {
            crew.take_from(&mut self.session);
        }
    }
}
