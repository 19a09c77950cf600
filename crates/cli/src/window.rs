//! Which part of the capture does the user mean?
//!
//! `--from` and `--to` take an instant in one of three forms: `+1.5s` after the first TCP segment
//! read, a clock time `10:45:49.05`, or a full RFC 3339 instant. Clock times are those of the
//! report: UTC for capture files, the listing's own clock for listings. Both ends belong to the
//! window.

use std::str::FromStr;

use tcpwhy::units::{Duration, Time, days_since_1970};

/// A span of the capture, open where nothing was given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Window {
    /// Nothing before this.
    pub from: Option<Instant>,
    /// Nothing after this.
    pub to: Option<Instant>,
}

/// An instant as users name it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Instant {
    /// This long after the first segment.
    After(Duration),
    /// This long after midnight.
    Clock(Duration),
    /// Exactly then.
    At(Time),
}

/// The text names no instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("give a time such as +1.5s, 10:45:49.05 or 2026-11-21T10:45:49.05Z")]
pub struct NotAnInstant;

impl Window {
    /// Whether everything is inside.
    pub const fn is_open(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether it ends before it begins, as far as the text alone shows.
    pub fn is_empty(&self) -> bool {
        match (self.from, self.to) {
            (Some(Instant::After(from)), Some(Instant::After(to))) => to < from,
            (Some(Instant::At(from)), Some(Instant::At(to))) => to < from,
            _ => false,
        }
    }

    /// Its first and last instant, in a capture whose first segment is at `first`.
    pub fn bounds(&self, first: Time) -> (Time, Time) {
        (
            self.from.map_or(Time(i64::MIN), |from| from.resolve(first)),
            self.to.map_or(Time(i64::MAX), |to| to.resolve(first)),
        )
    }
}

impl Instant {
    /// The instant meant in a capture that begins at `first`.
    ///
    /// A clock time is the one on the day of `first`, or on the next day if that would be more
    /// than twelve hours before it: a capture through midnight goes on past 00:00.
    fn resolve(self, first: Time) -> Time {
        match self {
            Self::At(time) => time,
            Self::After(span) => first + span,
            Self::Clock(clock) => {
                let since_midnight = Duration(first.0.rem_euclid(DAY.0));
                let time = first - since_midnight + clock;
                if first - time > Duration(DAY.0 / 2) { time + DAY } else { time }
            }
        }
    }
}

impl FromStr for Instant {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        let instant = if let Some(span) = text.strip_prefix('+') {
            span_of(span).map(Self::After)
        } else if let Some((date, clock)) = text.split_once(['T', 't', ' ']) {
            rfc3339(date, clock).map(Self::At)
        } else {
            clock_of(text).map(Self::Clock)
        };
        instant.ok_or(NotAnInstant)
    }
}

/// `1.5s`, `20ms`, `90m`; seconds where no unit is given.
fn span_of(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => SECOND,
        "m" | "min" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        _ => return None,
    };
    decimal(number, unit_ns).map(Duration)
}

/// `10:45:49.05` or `10:45`.
fn clock_of(text: &str) -> Option<Duration> {
    let mut parts = text.splitn(3, ':');
    let hours = two_digits(parts.next()?, 23)?;
    let minutes = two_digits(parts.next()?, 59)?;
    let seconds = parts.next().unwrap_or("00");
    two_digits(seconds.get(..2)?, 59)?;
    let seconds = decimal(seconds, SECOND)?;
    Some(Duration((hours * 60 + minutes) * 60 * SECOND + seconds))
}

/// RFC 3339 §5.6; without an offset UTC is meant.
fn rfc3339(date: &str, clock: &str) -> Option<Time> {
    let mut parts = date.splitn(3, '-');
    let year = parts.next().filter(|year| year.len() == 4).and_then(whole)?;
    let month = two_digits(parts.next()?, 12).filter(|&month| month > 0)?;
    let day = two_digits(parts.next()?, days_in(year, month)).filter(|&day| day > 0)?;
    let (clock, offset) = match clock.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, Duration::ZERO),
        None => match clock.rfind(['+', '-']) {
            None => (clock, Duration::ZERO),
            Some(at) => {
                let (clock, offset) = clock.split_at(at);
                let span = clock_of(&offset[1..])?;
                (clock, if offset.starts_with('-') { -span } else { span })
            }
        },
    };
    let midnight = days_since_1970(year, month, day).checked_mul(DAY.0)?;
    let since_midnight = clock_of(clock)? - offset;
    midnight.checked_add(since_midnight.0).map(Time)
}

fn days_in(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_since_1970(next.0, next.1, 1) - days_since_1970(year, month, 1)
}

/// A decimal number times `unit`, exactly; digits finer than one are dropped.
fn decimal(text: &str, unit: i64) -> Option<i64> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut value = whole(integer)?.checked_mul(unit)?;
    if fraction.is_empty() {
        return None;
    }
    let mut place = unit;
    for digit in fraction.chars() {
        let digit = i64::from(digit.to_digit(10)?);
        // `place` may not be a multiple of ten (minutes, hours), so multiply first.
        let next = digit.checked_mul(place)? / 10;
        value = value.checked_add(next)?;
        place /= 10;
    }
    Some(value)
}

fn whole(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn two_digits(text: &str, most: i64) -> Option<i64> {
    (text.len() == 2).then(|| whole(text)).flatten().filter(|&value| value <= most)
}

const SECOND: i64 = 1_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instant(text: &str) -> Instant {
        text.parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn spans_have_units() {
        for (text, ns) in [
            ("+1.5s", 1_500_000_000),
            ("+1.5", 1_500_000_000),
            ("+20ms", 20_000_000),
            ("+0.5m", 30 * SECOND),
            ("+7us", 7_000),
            ("+1h", 3_600 * SECOND),
        ] {
            assert_eq!(instant(text), Instant::After(Duration(ns)), "{text}");
        }
    }

    #[test]
    fn instants_are_exact_to_the_nanosecond() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T10:45:49.051409001Z", 1_795_257_949_051_409_001),
            ("2026-11-21 10:45:49.051409001", 1_795_257_949_051_409_001),
            ("2026-11-21T12:45:49.051409001+02:00", 1_795_257_949_051_409_001),
            ("2026-11-21T05:15:49.051409001-05:30", 1_795_257_949_051_409_001),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
            ("1969-12-31T23:59:59Z", -SECOND),
        ] {
            assert_eq!(instant(text), Instant::At(Time(ns)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "+",
            "+s",
            "1.5",
            "+1.s",
            "+1.5x",
            "+-1s",
            "25:00:00",
            "10:60",
            "10:45:61",
            "10:5",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-11-21T",
            "yesterday",
            "+ü",
            "10:45:4ü",
            "9999-12-31T00:00:00Z",
            "+99999999999999h",
        ] {
            assert_eq!(text.parse::<Instant>(), Err(NotAnInstant), "{text}");
        }
    }

    #[test]
    fn a_window_is_where_its_ends_say() {
        let window = Window { from: Some(instant("+1s")), to: Some(instant("+2s")) };
        let first = Time(77 * SECOND);
        let (from, to) = window.bounds(first);
        assert_eq!((from.since(first).0, to.since(first).0), (SECOND, 2 * SECOND));
        assert_eq!(Window::default().bounds(first), (Time(i64::MIN), Time(i64::MAX)));
    }

    #[test]
    fn a_clock_time_is_on_the_day_of_the_first_packet_or_past_midnight() {
        let late = Time(19_000 * DAY.0 + 23 * 3_600 * SECOND);
        let midnight = Time(19_001 * DAY.0);
        assert_eq!(instant("22:00").resolve(late), late - Duration::from_secs(3_600));
        assert_eq!(instant("23:30").resolve(late), late + Duration::from_secs(1_800));
        assert_eq!(instant("00:10").resolve(late), midnight + Duration::from_secs(600));
    }

    #[test]
    fn a_window_that_ends_before_it_begins_is_known() {
        let reversed = Window { from: Some(instant("+2s")), to: Some(instant("+1s")) };
        assert!(reversed.is_empty());
        let across_midnight = Window { from: Some(instant("23:50")), to: Some(instant("00:10")) };
        assert!(!across_midnight.is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r"(\PC|[0-9+:.TZ -]){0,30}") {
            if let Ok(instant) = text.parse::<Instant>() {
                instant.resolve(Time(i64::MAX));
                instant.resolve(Time(i64::MIN));
            }
        }
    }
}
