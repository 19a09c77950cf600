//! From printed times to instants: which clock a listing shows, and where each line is on it.
//!
//! `10:45:49.05` may be a time of the day, or (`-ttt`) the span since the line before, or
//! (`-ttttt`) the span since the first line, all in the same form. Lines are held back until two times
//! show a clock, [`HELD`] lines are there, or the listing ends: spans between lines go down about as often
//! as up, the other two hardly ever do. An excerpt of spans may begin with a long one: no clock falls from
//! there to within a minute of midnight.
//!
//! A clock that falls by more than half a day has passed midnight. Listings without a date count
//! from midnight of day 0, spans from zero.

use super::stamp::{DAY, Stamp};
use tcpwhy_words::units::Time;

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
            Some(Stamp::OfDay(_) | Stamp::Span(_)) => self.of_day.is_none(),
            _ => false,
        }
    }

    /// Whether the first two times held back show a clock, so that no more need to wait.
    pub(super) fn is_clock(first: Stamp, second: Stamp) -> bool {
        match (first, second) {
            (Stamp::OfDay(first), Stamp::OfDay(second)) => {
                first.abs() >= MAY_BE_SPAN && !is_long_first_span(first, second)
            }
            (Stamp::Span(_), _) => false,
            _ => true,
        }
    }

    /// Finds the form of the times held back; a doubt that remains is returned in words.
    pub(super) fn decide(&mut self, held: impl Iterator<Item = Stamp>) -> Option<&'static str> {
        let mut are_seconds = false;
        let times: Vec<i64> = held
            .filter_map(|stamp| match stamp {
                Stamp::OfDay(ns) => Some(ns),
                Stamp::Span(ns) => {
                    are_seconds = true;
                    Some(ns)
                }
                _ => None,
            })
            .collect();
        let falls = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let may_be_spans = match times[..] {
            [first, second, ..] => {
                are_seconds || first.abs() < MAY_BE_SPAN || is_long_first_span(first, second)
            }
            _ => false,
        };
        let spans_since_last = may_be_spans && falls > 0 && falls * 8 >= times.len() - 1;
        self.of_day = Some(match times.first() {
            _ if spans_since_last => Clock::SincePrevious,
            _ if are_seconds => Clock::SinceFirst,
            Some(0) => Clock::SinceFirst,
            _ => Clock::OfDay,
        });
        if are_seconds {
            // Seconds since the first packet are what packet lists show unless told otherwise.
            return None;
        }
        (falls == 0 && (3..SURE).contains(&times.len())).then_some(
            "the times are taken as spans since the first line (-ttttt); these few lines do not tell \
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
            Some(Stamp::OfDay(ns) | Stamp::Span(ns)) => match self.of_day {
                Some(Clock::SincePrevious) => (Clock::SincePrevious, self.add_up(ns)),
                Some(Clock::SinceFirst) if matches!(stamp, Some(Stamp::Span(_))) => {
                    (Clock::SinceFirst, ns)
                }
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

/// Whether a listing of spans between lines may begin so: the first is longer than [`MAY_BE_SPAN`]. A clock that
/// falls this far was set back, or passed midnight.
fn is_long_first_span(first: i64, second: i64) -> bool {
    (MAY_BE_SPAN..DAY / 2).contains(&first) && second < MAY_BE_SPAN && second < first / 2
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
    fn an_excerpt_of_spans_may_begin_with_a_long_one() {
        let minute = MAY_BE_SPAN;
        let spans = [61 * minute, 96, 100_277, 90, 6];
        assert_eq!(placed(&spans).1, Clock::SincePrevious);
        assert_eq!(
            placed(&[minute, 96, 100, 90]).0,
            [minute, minute + 96, minute + 196, minute + 286]
        );
        let of_day = |times: &[i64]| placed(times) == (times.to_vec(), Clock::OfDay);
        assert!(of_day(&[20 * minute, 20 * minute - 1, 20 * minute + 5]), "a packet listed late");
        assert!(of_day(&[20 * minute, 11 * minute, 12 * minute]), "a clock that was set back");
        assert_eq!(placed(&[23 * HOUR, 96, 90, 97]).1, Clock::OfDay, "midnight");
    }

    #[test]
    fn seconds_are_since_the_first_packet_unless_they_go_down() {
        let placed = |times: &[i64]| {
            let mut line = Timeline::default();
            line.decide(times.iter().map(|&ns| Stamp::Span(ns)));
            let at: Vec<i64> =
                times.iter().map(|&ns| line.place(Some(Stamp::Span(ns))).0).collect();
            (at, line.clock)
        };
        assert_eq!(placed(&[7, 13, 2 * DAY]), (vec![7, 13, 2 * DAY], Clock::SinceFirst));
        assert_eq!(placed(&[7, 13, 2]), (vec![7, 20, 22], Clock::SincePrevious));
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
