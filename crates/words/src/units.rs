//! The physical quantities of the tool: instants, spans, bytes, rates, sequence numbers.
//!
//! Integers throughout (rule 4 of the design: same input, same bytes out). An instant is
//! nanoseconds since the Unix epoch; a span is a signed number of nanoseconds, because two
//! clocks are compared all the time and a difference may well be negative.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds since 1970-01-01 00:00 UTC, as the capture's clock saw it.
///
/// Packet listings without a date count from midnight of an unknown day.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A signed span of time in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Duration(pub i64);

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BitRate(pub u64);

/// A TCP sequence number: a point on a circle of 2^32 bytes (RFC 9293 §3.4).
///
/// It has no total order, so it implements no `Ord`; ask [`Seq::since`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Seq(pub u32);

const DAY_NS: i64 = 86_400_000_000_000;
const HOUR_NS: i64 = DAY_NS / 24;

impl Seq {
    /// Signed distance in bytes from `earlier` to `self`; negative when `self` is older.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }
}

impl Time {
    /// The instant `span` later, at the end of the clock where it would overflow.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// RFC 3339 in UTC with nine decimals: `2026-11-21T10:45:49.051409000Z`.
    pub fn rfc3339(self) -> String {
        let (days, ns) = (self.0.div_euclid(DAY_NS), self.0.rem_euclid(DAY_NS));
        // Days to civil date, proleptic Gregorian: years begin in March, so leap days come last.
        let z = days + DAYS_BEFORE_1970;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let mut text = *b"0000-00-00T00:00:00.000000000Z";
        let parts = [
            (year, 0, 4),
            (month, 5, 7),
            (day, 8, 10),
            (hour, 11, 13),
            (minute, 14, 16),
            (second, 17, 19),
            (fraction, 20, 29),
        ];
        for (number, from, to) in parts {
            set_digits(&mut text[from..to], number);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Reads what [`Time::rfc3339`] writes; `None` for anything else.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
        let number = |digits: &str| {
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok()).flatten()
        };
        let mut parts = date.splitn(3, '-').map(number);
        let days = days_since_1970(parts.next()??, parts.next()??, parts.next()??);
        let (clock, fraction) = clock.split_once('.').filter(|(_, digits)| digits.len() == 9)?;
        let mut parts = clock.splitn(3, ':').map(number);
        let minutes = parts.next()?? * 60 + parts.next()??;
        let seconds = days * 86_400 + minutes * 60 + parts.next()??;
        seconds.checked_mul(1_000_000_000)?.checked_add(number(fraction)?).map(Self)
    }

    /// The span from `earlier` to `self`, saturating.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

/// Days from 1970-01-01 to a day of the proleptic Gregorian calendar.
///
/// Counts years from 1 March, so that the leap day is the last of its year; month lengths from
/// March on follow `(153 m + 2) / 5`.
pub const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + day_of_year - DAYS_BEFORE_1970
}

/// From 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Writes the last digits of `number` over `text`. Every connection shows its start, and this takes
/// a tenth of the time of formatting.
fn set_digits(text: &mut [u8], number: i64) {
    let mut rest = number as u32;
    for place in text.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be told.
    pub const MAX: Self = Self(i64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    pub const fn from_micros(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// In milliseconds, for display.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In seconds, for display.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Share of `whole` in percent; zero when `whole` is not positive.
    pub fn percent_of(self, whole: Self) -> f64 {
        if whole.0 <= 0 { 0.0 } else { self.0 as f64 * 100.0 / whole.0 as f64 }
    }
}

impl BitRate {
    /// The rate that moves `bytes` in `span`; `None` when no time passed.
    pub fn of(bytes: Bytes, span: Duration) -> Option<Self> {
        if span.0 <= 0 {
            return None;
        }
        let bits_ns = u128::from(bytes.0) * 8 * 1_000_000_000;
        Some(Self(u64::try_from(bits_ns / span.0 as u128).unwrap_or(u64::MAX)))
    }

    /// Bytes this rate moves in `span` (a bandwidth-delay product).
    pub fn bytes_in(self, span: Duration) -> Bytes {
        if span.0 <= 0 {
            return Bytes(0);
        }
        let bytes = u128::from(self.0) * span.0 as u128 / 8 / 1_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        self.saturating_add(rhs)
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Neg for Duration {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul<i64> for Duration {
    type Output = Self;
    fn mul(self, rhs: i64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}

impl Div<i64> for Duration {
    type Output = Self;
    fn div(self, rhs: i64) -> Self {
        Self(self.0 / rhs)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

/// Three significant digits with the unit that fits: `63.1 ms`, `1.20 s`, `850 ns`. Seconds go up to ten hours, hours to ten days.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.unsigned_abs() as f64;
        let sign = if self.0 < 0 { "-" } else { "" };
        let (value, unit) = match ns {
            n if n >= 10.0 * DAY_NS as f64 => (n / DAY_NS as f64, "d"),
            n if n >= 10.0 * HOUR_NS as f64 => (n / HOUR_NS as f64, "h"),
            n if n >= 1e9 => (n / 1e9, "s"),
            n if n >= 1e6 => (n / 1e6, "ms"),
            n if n >= 1e3 => (n / 1e3, "us"),
            n => (n, "ns"),
        };
        let digits = match value {
            _ if unit == "ns" => 0,
            v if v >= 99.95 => 0,
            v if v >= 9.995 => 1,
            _ => 2,
        };
        f.pad(&format!("{sign}{value:.digits$} {unit}"))
    }
}

/// Binary units as people name file sizes: `147 B`, `512 KiB`, `1.95 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 10_000 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1000.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = usize::from(value < 99.5);
        f.pad(&format!("{value:.digits$} {}", UNITS[unit]))
    }
}

/// Decimal units as links are sold: `96.4 Mbit/s`.
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0 as f64;
        let (value, unit) = match bps {
            b if b >= 1e9 => (b / 1e9, "Gbit/s"),
            b if b >= 1e6 => (b / 1e6, "Mbit/s"),
            b if b >= 1e3 => (b / 1e3, "kbit/s"),
            b => (b, "bit/s"),
        };
        let digits = if value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_compare_across_the_wrap() {
        assert_eq!(Seq(5).since(Seq(u32::MAX - 4)), 10);
        assert_eq!(Seq(u32::MAX - 4).since(Seq(5)), -10);
    }

    #[test]
    fn instants_have_dates() {
        let shown = [0, 951_782_400_000_000_001, -1].map(|ns| Time(ns).rfc3339());
        assert_eq!(
            shown,
            [
                "1970-01-01T00:00:00.000000000Z",
                "2000-02-29T00:00:00.000000001Z",
                "1969-12-31T23:59:59.999999999Z"
            ]
        );
    }

    #[test]
    fn dates_come_back() {
        for ns in [0, 951_782_400_000_000_001, -1, i64::MAX, 1_795_257_949_051_409_001] {
            assert_eq!(Time::from_rfc3339(&Time(ns).rfc3339()), Some(Time(ns)));
        }
        for text in ["", "10:45:49.051409000", "2026-11-21", "2026-11-21T10:45:49Z"] {
            assert_eq!(Time::from_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn long_spans_are_hours_and_days() {
        let shown = [35_999, 36_000, 346_941, 863_999, 864_000, 3_456_000]
            .map(|seconds| Duration::from_secs(seconds).to_string());
        assert_eq!(shown, ["35999 s", "10.0 h", "96.4 h", "240 h", "10.0 d", "40.0 d"]);
    }

    #[test]
    fn spans_read_with_three_digits() {
        let shown: Vec<String> = [850, 1_500, 63_063_000, 120_000_000, 1_204_000_000, -7_200_000]
            .map(|ns| Duration(ns).to_string())
            .to_vec();
        assert_eq!(shown, ["850 ns", "1.50 us", "63.1 ms", "120 ms", "1.20 s", "-7.20 ms"]);
    }

    #[test]
    fn a_rate_is_bytes_by_time_and_back() {
        let rate = BitRate::of(Bytes(1_250_000), Duration::from_millis(100)).expect("time passed");
        assert_eq!(rate, BitRate(100_000_000));
        assert_eq!(rate.bytes_in(Duration::from_millis(100)), Bytes(1_250_000));
        assert_eq!(BitRate::of(Bytes(1), Duration::ZERO), None);
    }
}
