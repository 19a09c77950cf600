//! Wanted against found, line by line, so that one wrong figure hides no other.

use std::fmt::{Debug, Write as _};
use std::ops::RangeInclusive;

/// One comparison.
struct Line {
    subject: String,
    what: String,
    wanted: String,
    found: String,
    good: bool,
}

/// The comparisons of one test.
#[derive(Default)]
pub(crate) struct Sheet(Vec<Line>);

impl Sheet {
    /// `found` is `wanted`.
    #[expect(clippy::needless_pass_by_value, reason = "callers compare literals and results")]
    pub(crate) fn equal<T: Debug + PartialEq>(
        &mut self,
        subject: &str,
        what: &str,
        wanted: T,
        found: T,
    ) {
        let good = wanted == found;
        self.line(subject, what, format!("{wanted:?}"), format!("{found:?}"), good);
    }

    /// `found` is not outside `wanted`; nothing found is outside.
    pub(crate) fn within<T: Debug + PartialOrd>(
        &mut self,
        subject: &str,
        what: &str,
        wanted: &RangeInclusive<T>,
        found: Option<T>,
    ) {
        let good = found.as_ref().is_some_and(|f| wanted.contains(f));
        let shown = found.map_or("nothing".to_owned(), |f| format!("{f:?}"));
        self.line(subject, what, format!("{wanted:?}"), shown, good);
    }

    /// `good`, in words.
    pub(crate) fn holds(
        &mut self,
        subject: &str,
        what: &str,
        wanted: &str,
        found: &str,
        good: bool,
    ) {
        self.line(subject, what, wanted.to_owned(), found.to_owned(), good);
    }

    /// Nothing is wrong; `found` says what is.
    pub(crate) fn clean(&mut self, subject: &str, what: &str, found: Result<(), String>) {
        let good = found.is_ok();
        self.line(subject, what, "no fault".to_owned(), found.err().unwrap_or_default(), good);
    }

    /// Ends the test: fails with all that was wrong, if anything was.
    pub(crate) fn settle(self) {
        assert!(!self.0.is_empty(), "nothing was compared");
        let wrong: Vec<&Line> = self.0.iter().filter(|line| !line.good).collect();
        let mut told = String::new();
        for line in &wrong {
            let Line { subject, what, wanted, found, .. } = line;
            writeln!(told, "{subject:24} {what:34} wanted {wanted:28} found {found}")
                .expect("a string takes everything");
        }
        assert!(wrong.is_empty(), "{} of {} are wrong:\n{told}", wrong.len(), self.0.len());
    }

    fn line(&mut self, subject: &str, what: &str, wanted: String, found: String, good: bool) {
        let (subject, what) = (subject.to_owned(), what.to_owned());
        self.0.push(Line { subject, what, wanted, found, good });
    }
}
