//! When was this written? The times that people and tools put into text.
//!
//! Evidence is dated by `date`, `watch`, `strace` or not at all. A time tells an instant only with its
//! date and zone; else it tells the time of a day in some zone, or a time since some start.

use crate::units::days_since_1970;

/// A time as a file tells it, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stamp {
    /// Since 1970-01-01 00:00 UTC.
    Unix(i64),
    /// Since midnight of some day in some zone.
    OfDay(i64),
    /// Since an unknown start, as the kernel's clock since boot.
    Since(i64),
}

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time that a line of its own tells: what `date` prints in its common forms, or the head of
/// `watch`; `None` for any other line.
pub fn of_line(line: &str) -> Option<Stamp> {
    // Longer lines are no heads; a head may be framed, as `=== 10:45:49 ===`.
    if line.len() > 200 {
        return None;
    }
    let watched = line.starts_with("Every ") && line.contains(": ");
    let mut parts = Parts::default();
    for word in line.split_whitespace() {
        let word =
            word.trim_matches(|c: char| matches!(c, '=' | '#' | '-' | '[' | ']' | '(' | ')'));
        if !word.is_empty() && !parts.take(word) && !watched {
            parts.others += 1;
        }
    }
    // A sentence that mentions a time is no head. Ours.
    if parts.others > 2 { None } else { parts.stamp() }
}

/// What the words of a line told so far.
#[derive(Default)]
struct Parts {
    epoch: Option<i64>,
    clock: Option<i64>,
    days: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    year: Option<i64>,
    zone: Option<i64>,
    afternoon: Option<bool>,
    others: usize,
}

impl Parts {
    /// Whether the word is part of a time.
    fn take(&mut self, word: &str) -> bool {
        if let Some((date, clock)) = word.split_once('T')
            && let Some(days) = iso_date(date)
        {
            self.days = Some(days);
            return self.take_clock(clock);
        }
        if let Some(days) = iso_date(word) {
            self.days = Some(days);
            return true;
        }
        if let Some(epoch) = epoch(word) {
            self.epoch = Some(epoch);
            return true;
        }
        if let Some(month) = MONTHS.iter().position(|name| *name == word) {
            self.month = Some(month as i64 + 1);
            return true;
        }
        match word {
            "AM" | "PM" => self.afternoon = Some(word == "PM"),
            "UTC" | "GMT" | "Z" => self.zone = Some(0),
            "Mon" | "Tue" | "Wed" | "Thu" | "Fri" | "Sat" | "Sun" => {}
            _ => match word.trim_end_matches(',').parse::<i64>() {
                Ok(day @ 1..=31) if word.len() <= 3 => self.day = Some(day),
                Ok(year @ 1970..=2199) => self.year = Some(year),
                _ => return self.take_clock(word),
            },
        }
        true
    }

    /// `10:45:49`, with a fraction after a point or a comma, and perhaps its zone.
    fn take_clock(&mut self, word: &str) -> bool {
        let word = word.trim_end_matches(':');
        let end = word.find(['Z', '+']).or_else(|| word.rfind('-')).unwrap_or(word.len());
        let Some(clock) = time_of_day(&word[..end].replace(',', ".")) else { return false };
        self.clock = Some(clock);
        if end < word.len() {
            self.zone = zone(&word[end..]);
        }
        true
    }

    fn stamp(&self) -> Option<Stamp> {
        if let Some(epoch) = self.epoch {
            return Some(Stamp::Unix(epoch));
        }
        let mut clock = self.clock?;
        let hour = clock / (3600 * SECOND);
        match self.afternoon {
            Some(true) if hour < 12 => clock += 12 * 3600 * SECOND,
            Some(false) if hour == 12 => clock -= 12 * 3600 * SECOND,
            _ => {}
        }
        let days = self.days.or_else(|| Some(days_since_1970(self.year?, self.month?, self.day?)));
        Some(match (days, self.zone) {
            (Some(days), Some(zone)) => {
                Stamp::Unix(days.checked_mul(DAY)?.checked_add(clock - zone)?)
            }
            _ => Stamp::OfDay(clock),
        })
    }
}

/// `HH:MM:SS`, perhaps with a fraction of up to nine digits.
pub fn time_of_day(word: &str) -> Option<i64> {
    let mut parts = word.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    if hours.is_empty() || hours.len() > 2 || minutes.len() != 2 || seconds.len() < 2 {
        return None;
    }
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    let seconds = decimal(seconds)?;
    // 60 is a leap second.
    (hours < 24 && minutes < 60 && seconds < 61 * SECOND)
        .then(|| (hours * 60 + minutes) * 60 * SECOND + seconds)
}

/// Seconds since 1970 in this century: ten digits before the point.
pub fn epoch(word: &str) -> Option<i64> {
    let whole = word.split('.').next()?;
    (whole.len() == 10).then(|| decimal(word)).flatten()
}

/// Seconds with a fraction of up to nine digits, in nanoseconds.
pub fn decimal(word: &str) -> Option<i64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let fraction = if fraction.is_empty() { 0 } else { digits(fraction)? * scale };
    digits(whole)?.checked_mul(SECOND)?.checked_add(fraction)
}

fn iso_date(word: &str) -> Option<i64> {
    let mut parts = word.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    ((1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| days_since_1970(year, month, day))
}

/// `Z`, `+02:00`, `-0530`, `+02`: how far ahead of UTC.
fn zone(word: &str) -> Option<i64> {
    if word == "Z" {
        return Some(0);
    }
    let sign = if word.starts_with('-') { -1 } else { 1 };
    let rest: String = word.get(1..)?.chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match rest.len() {
        2 => (digits(&rest)?, 0),
        4 => (digits(rest.get(..2)?)?, digits(rest.get(2..)?)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60 * SECOND)
}

fn digits(word: &str) -> Option<i64> {
    let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22 10:12:03 UTC.
    const THEN: i64 = 1_795_342_323 * SECOND;
    const OF_DAY: i64 = (10 * 3600 + 12 * 60 + 3) * SECOND;

    #[test]
    fn the_forms_of_date_are_read() {
        for (line, stamp) in [
            ("Sun Nov 22 10:12:03 UTC 2026", Stamp::Unix(THEN)),
            ("Sun Nov 22 10:12:03 AM UTC 2026", Stamp::Unix(THEN)),
            ("Sun 22 Nov 2026 10:12:03 PM UTC", Stamp::Unix(THEN + DAY / 2)),
            ("2026-11-22T10:12:03,123456789+00:00", Stamp::Unix(THEN + 123_456_789)),
            ("2026-11-22T11:12:03+01:00", Stamp::Unix(THEN)),
            ("1795342323.250", Stamp::Unix(THEN + SECOND / 4)),
            ("1795342323", Stamp::Unix(THEN)),
            ("=== 10:12:03.5 ===", Stamp::OfDay(OF_DAY + SECOND / 2)),
            ("Sun Nov 22 10:12:03 CST 2026", Stamp::OfDay(OF_DAY)),
            ("2026-11-22 10:12:03", Stamp::OfDay(OF_DAY)),
            ("Every 0.1s: ss -tin   host: Sun Nov 22 10:12:03 2026", Stamp::OfDay(OF_DAY)),
        ] {
            assert_eq!(of_line(line), Some(stamp), "{line}");
        }
    }

    #[test]
    fn other_lines_tell_no_time() {
        for line in [
            "",
            "ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000",
            "State Recv-Q Send-Q Local Address:Port Peer Address:Port",
            "the run of 10:12:03 was the slow one of these",
            "99:12:03",
            "17",
        ] {
            assert_eq!(of_line(line), None, "{line}");
        }
    }
}
