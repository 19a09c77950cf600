//! From printed times to instants: which clock a listing shows, and where each line stands on it.
//!
//! `10:45:49.05` may be a time of the day, or (`-ttt`) the span since the line before, or
//! (`-ttttt`) the span since the first line, all in the same form. A listing whose first time is
//! less than [`MAY_BE_SPAN`] after midnight is held back until [`HELD`] lines are there, or it
//! ends: spans between lines go down about as often as up, the other two hardly ever do.
//!
//! A clock that falls by more than half a day has passed midnight. Listings without a date count
//! from midnight of day 0, spans from zero.

use super::stamp::{DAY, Stamp};
use crate::units::Time;

/// What the times of a listing are relative to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Clock {
    /// No times are printed (`-t`): every packet got time zero.
    #[default]
    None,
    /// Time of an unknown day (the default form): counts from midnight.
    OfDay,
    /// Date and time of an unnamed zone (`-tttt`): counted as if it were UTC.
    Date,
    /// Seconds since 1970 (`-tt`).
    Epoch,
    /// Spans since the line before (`-ttt`), added up: counts from the first line.
    SincePrevious,
    /// Spans since the first line (`-ttttt`).
    SinceFirst,
}

impl Clock {
    /// Whether the date of a packet is known.
    pub const fn has_date(self) -> bool {
        matches!(self, Self::Date | Self::Epoch)
    }
}

/// How many lines are held back to find out which form the times have.
///
/// Ours: with n random spans the chance of never going down is 1/n!; 64 lines leave none, and
/// still tell spans from a clock that went back a few times.
pub(super) const HELD: usize = 64;
/// Fewer times than this leave a doubt between spans since the first line and since the last.
const SURE: usize = 8;
/// A span between two lines is below this, times of the day hardly ever are.
const MAY_BE_SPAN: i64 = 60_000_000_000;

/// Places printed times on one axis.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// How times of the day are understood; `None` until that is known.
    of_day: Option<Clock>,
    /// The form of the times placed last.
    pub(super) clock: Clock,
    days: i64,
    last: Option<i64>,
    sum: i64,
}

impl Timeline {
    /// Whether `stamp` cannot be placed before [`Self::decide`] has seen those that follow.
    pub(super) fn must_wait(&mut self, stamp: Option<Stamp>) -> bool {
        match stamp {
            Some(Stamp::OfDay(ns)) if self.of_day.is_none() => {
                if ns.abs() < MAY_BE_SPAN {
                    return true;
                }
                self.of_day = Some(Clock::OfDay);
                false
            }
            _ => false,
        }
    }

    /// Finds the form of the times held back; a doubt that remains is returned in words.
    pub(super) fn decide(&mut self, held: impl Iterator<Item = Stamp>) -> Option<&'static str> {
        let times: Vec<i64> = held
            .filter_map(|stamp| if let Stamp::OfDay(ns) = stamp { Some(ns) } else { None })
            .collect();
        let falls = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let spans_since_last = falls > 0 && falls * 8 >= times.len() - 1;
        self.of_day = Some(match times.first() {
            _ if spans_since_last => Clock::SincePrevious,
            Some(0) => Clock::SinceFirst,
            _ => Clock::OfDay,
        });
        (falls == 0 && (3..SURE).contains(&times.len())).then_some(
            "the times are taken as spans since the first line (-ttttt); so few lines do not tell \
             whether they are spans since the line before (-ttt)",
        )
    }

    /// The instant of a line; zero for lines without a time.
    pub(super) fn place(&mut self, stamp: Option<Stamp>) -> Time {
        let (clock, ns) = match stamp {
            None => return Time(0),
            Some(Stamp::Epoch(ns)) => (Clock::Epoch, ns),
            Some(Stamp::Date(ns)) => (Clock::Date, ns),
            Some(Stamp::Delta(ns)) => (Clock::SincePrevious, self.add_up(ns)),
            Some(Stamp::OfDay(ns)) => match self.of_day {
                Some(Clock::SincePrevious) => (Clock::SincePrevious, self.add_up(ns)),
                Some(Clock::SinceFirst) => (Clock::SinceFirst, self.count_days(ns)),
                _ => (Clock::OfDay, self.count_days(ns)),
            },
        };
        self.clock = clock;
        Time(ns)
    }

    fn add_up(&mut self, ns: i64) -> i64 {
        self.sum = self.sum.saturating_add(ns);
        self.sum
    }

    /// The time of the day plus the midnights seen so far.
    fn count_days(&mut self, ns: i64) -> i64 {
        let last = self.last.replace(ns).unwrap_or(ns);
        // A packet from just before midnight may be listed late; an idle night is no reason to
        // believe that, hence 23 hours in this direction.
        if ns < last - DAY / 2 {
            self.days += 1;
        } else if self.days > 0 && ns > last + DAY / 24 * 23 {
            self.days -= 1;
        }
        self.days.saturating_mul(DAY).saturating_add(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = DAY / 24;

    fn placed(times: &[i64]) -> (Vec<i64>, Clock) {
        let mut line = Timeline::default();
        let stamps: Vec<Stamp> = times.iter().map(|&ns| Stamp::OfDay(ns)).collect();
        if line.must_wait(stamps.first().copied()) {
            line.decide(stamps.iter().copied());
        }
        let placed = stamps.iter().map(|&stamp| line.place(Some(stamp)).0).collect();
        (placed, line.clock)
    }

    #[test]
    fn a_clock_that_falls_by_half_a_day_passed_midnight() {
        let (times, clock) = placed(&[23 * HOUR, 5, DAY - 1, 7, 3]);
        assert_eq!(times, [23 * HOUR, DAY + 5, DAY - 1, DAY + 7, DAY + 3]);
        assert_eq!(clock, Clock::OfDay);
    }

    #[test]
    fn spans_that_go_down_are_spans_since_the_line_before() {
        assert_eq!(placed(&[0, 13, 12, 39]), (vec![0, 13, 25, 64], Clock::SincePrevious));
        assert_eq!(placed(&[7, 13, 12]), (vec![7, 20, 32], Clock::SincePrevious));
    }

    #[test]
    fn spans_that_only_grow_are_spans_since_the_first_line() {
        assert_eq!(placed(&[0, 13, 25, 64]), (vec![0, 13, 25, 64], Clock::SinceFirst));
        assert_eq!(placed(&[3, 13, 25, 64]), (vec![3, 13, 25, 64], Clock::OfDay));
    }

    #[test]
    fn one_packet_out_of_order_does_not_make_spans() {
        let mut times: Vec<i64> = (0..40).collect();
        times.swap(20, 21);
        assert_eq!(placed(&times), (times.clone(), Clock::SinceFirst));
    }
}
