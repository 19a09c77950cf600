//! `reads`: the pace of the program that reads. The fit has how it reads, so the fit is what changes.

use std::borrow::Cow;

use crate::fit::Fit;
use crate::scenario::Quantity;

/// The pace of the receiver's program.
pub(super) const KEY: &str = "reads";

/// The receiver's program reads what has come as soon as it comes.
pub(super) const AT_ONCE: &str = "reads=at-once";

/// How its program is to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Pace {
    AtOnce,
    /// Bits in a second.
    Rate(u64),
}

/// Whether a program is to read at once.
pub(super) fn is_at_once(changes: &[String]) -> bool {
    changes.iter().any(|change| pace(change) == Some(Pace::AtOnce))
}

/// The fit whose program reads as `changes` say, and the changes that are left for its scenario.
pub(super) fn split<'a>(fit: &'a Fit, changes: &[String]) -> (Cow<'a, Fit>, Vec<String>) {
    let mut fit = Cow::Borrowed(fit);
    let mut left = Vec::new();
    for change in changes {
        match pace(change) {
            Some(Pace::AtOnce) => fit = Cow::Owned(fit.reading_all()),
            Some(Pace::Rate(rate)) => fit = Cow::Owned(fit.reading_at(rate)),
            None => left.push(change.clone()),
        }
    }
    (fit, left)
}

/// What one change says of it; a value that says nothing is left to the scenario, which refuses it.
fn pace(change: &str) -> Option<Pace> {
    let (key, value) = change.split_once('=')?;
    match (key.trim(), value.trim()) {
        (KEY, "at-once") => Some(Pace::AtOnce),
        (KEY, rate) => Some(Pace::Rate(Quantity::Rate.read(rate).ok().filter(|rate| *rate > 0)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_at_once_or_a_rate() {
        assert_eq!(pace(AT_ONCE), Some(Pace::AtOnce));
        assert_eq!(pace("reads = 8mbit"), Some(Pace::Rate(8_000_000)));
        for other in ["reads=slowly", "reads=0mbit", "reads", "client.reads=at-once"] {
            assert_eq!(pace(other), None, "{other}");
        }
    }
}
