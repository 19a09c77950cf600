//! The time at the start of a line of `tcpdump`, in each of its forms.
//!
//! | option   | printed                        | read as                 |
//! |----------|--------------------------------|-------------------------|
//! | none     | `10:45:49.051409`              | [`Stamp::OfDay`]        |
//! | `-tt`    | `1706697949.051409`            | [`Stamp::Epoch`]        |
//! | `-ttt`   | `00:00:00.003586`, old `003586`| `OfDay`, [`Stamp::Delta`] |
//! | `-tttt`  | `2024-01-31 10:45:49.051409`   | [`Stamp::Date`]         |
//! | `-ttttt` | `00:00:00.063063`              | `OfDay`                 |
//!
//! Which of the three `OfDay` forms it is, one line cannot tell; `clock` finds out. Fractions
//! have six digits, or nine with `--nano`; any number of them is read.

use tcpwhy_words::units::days_since_1970;

/// A time as printed, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stamp {
    /// Since 1970-01-01 00:00 UTC.
    Epoch(i64),
    /// A date and a time of an unnamed zone, counted as if it were UTC.
    Date(i64),
    /// A time of the day, or a span in the same form.
    OfDay(i64),
    /// A span since the line before, in the form of tcpdump 3.
    Delta(i64),
    /// Seconds since the first packet, or since the one before: packet lists show both in one form.
    Span(i64),
}

const SECOND: i64 = 1_000_000_000;
/// One day.
pub(super) const DAY: i64 = 86_400 * SECOND;

/// The time at the start of `text`, and what follows it.
pub(super) fn read(text: &str) -> Option<(Stamp, &str)> {
    let (word, rest) = next_word(text);
    if let Some(ns) = time_of_day(word) {
        return Some((Stamp::OfDay(ns), rest));
    }
    if let Some(days) = date(word) {
        let (clock, rest) = next_word(rest);
        let ns = days.checked_mul(DAY)?.checked_add(time_of_day(clock)?)?;
        return Some((Stamp::Date(ns), rest));
    }
    if let Some((seconds, digits)) = word.split_once('.') {
        if digits.is_empty() {
            let (micros, rest) = next_word(rest);
            return Some((Stamp::Delta(seconds_and_micros(seconds, micros)?), rest));
        }
        if digits.len() >= 6 {
            let ns = number(seconds)?.checked_mul(SECOND)?.checked_add(fraction(digits)?)?;
            return Some((Stamp::Epoch(ns), rest));
        }
        return None;
    }
    // `-#` pads its numbers with two spaces; the six digits of tcpdump 3 have one behind them.
    let one_space = !text.get(word.len()..)?.starts_with("  ");
    (one_space && !text.starts_with(' '))
        .then(|| seconds_and_micros("0", word))
        .flatten()
        .map(|ns| (Stamp::Delta(ns), rest))
}

/// The last time in front of the ends of a packet, and what follows it: before it stand a prompt, who said it in a chat,
/// or the file and number of `grep -Hn`. A bare number is no time there.
pub(super) fn behind_a_prefix(text: &str) -> Option<(Stamp, &str)> {
    let (before, _) = text.split_once(" > ")?;
    let read_at = |(at, c): (usize, char)| {
        let last = before.get(..at)?.chars().next_back()?;
        let is_word = last.is_whitespace();
        if !c.is_ascii_digit() || !(is_word || matches!(last, ':' | '-')) {
            return None;
        }
        let (stamp, rest) = read(text.get(at..)?)?;
        // Behind a colon seconds with their fraction are the end of a clock's time.
        let is_told = match stamp {
            Stamp::OfDay(_) => true,
            Stamp::Date(_) | Stamp::Epoch(_) => is_word,
            Stamp::Delta(_) | Stamp::Span(_) => false,
        };
        is_told.then_some((stamp, rest))
    };
    // A date belongs to the time behind it, which comes later in the text.
    let mut found: Option<(Stamp, &str)> = None;
    for (stamp, rest) in before.char_indices().filter_map(read_at) {
        let is_of_date = matches!(found, Some((Stamp::Date(_), before)) if before == rest);
        if !is_of_date {
            found = Some((stamp, rest));
        }
    }
    found
}

/// The time at the start of a row of a packet list: seconds in any precision, or one with a clock.
pub(super) fn read_of_list(text: &str) -> Option<(Stamp, &str)> {
    let (word, rest) = next_word(text);
    if let Some((seconds, digits)) = word.split_once('.')
        && let Some(seconds) = number(seconds)
    {
        let ns = seconds.checked_mul(SECOND)?.checked_add(fraction(digits)?)?;
        return Some((
            if seconds < EARLIEST_EPOCH { Stamp::Span(ns) } else { Stamp::Epoch(ns) },
            rest,
        ));
    }
    read(text).filter(|(stamp, _)| matches!(stamp, Stamp::OfDay(_) | Stamp::Date(_)))
}

/// Fewer seconds are no time since 1970. Ours: nothing captured TCP before 1980.
const EARLIEST_EPOCH: i64 = 315_532_800;

/// The first word of `text` and what follows the white space behind it.
pub(super) fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

fn seconds_and_micros(seconds: &str, micros: &str) -> Option<i64> {
    let six = micros.len() == 6;
    let ns = number(seconds)?.checked_mul(SECOND)?.checked_add(fraction(micros)?)?;
    six.then_some(ns)
}

/// `HH:MM:SS.ffffff`, perhaps with a minus sign, as packets before the first one get it.
fn time_of_day(word: &str) -> Option<i64> {
    let (sign, word) = match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word),
    };
    let mut parts = word.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, digits) = seconds.split_once('.')?;
    if hours.len() != 2 || minutes.len() != 2 || seconds.len() != 2 {
        return None;
    }
    let (hours, minutes, seconds) = (number(hours)?, number(minutes)?, number(seconds)?);
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(sign * (((hours * 60 + minutes) * 60 + seconds) * SECOND + fraction(digits)?))
}

/// `YYYY-MM-DD` as days since 1970-01-01.
fn date(word: &str) -> Option<i64> {
    let mut parts = word.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_since_1970(year, month, day))
}

/// Decimal digits and nothing else.
fn number(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// The digits behind the decimal point, in nanoseconds.
fn fraction(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded = digits.bytes().chain(core::iter::repeat(b'0')).take(9);
    Some(padded.fold(0, |ns, digit| ns * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_time_is_told_from_the_others() {
        let ns = 38_749_051_409_000;
        for (text, stamp) in [
            ("10:45:49.051409 IP", Stamp::OfDay(ns)),
            ("10:45:49.051409123 IP", Stamp::OfDay(ns + 123)),
            ("1706697949.051409 IP", Stamp::Epoch(1_706_697_949_051_409_000)),
            ("2024-01-31 10:45:49.051409 IP", Stamp::Date(19_753 * DAY + ns)),
            ("1970-01-01 00:00:00.000001 IP", Stamp::Date(1_000)),
            ("2000-02-29 00:00:00.000000 IP", Stamp::Date(11_016 * DAY)),
            ("-00:00:00.000012 IP", Stamp::OfDay(-12_000)),
            ("003586 IP", Stamp::Delta(3_586_000)),
            ("2. 003586 IP", Stamp::Delta(2_003_586_000)),
        ] {
            assert_eq!(read(text), Some((stamp, "IP")), "{text}");
        }
    }

    #[test]
    fn a_time_behind_a_prompt_a_speaker_or_a_number_is_found() {
        let ns = 38_749_051_409_000;
        let packet = "IP 10.0.0.1.80 > 10.0.0.2.9: x";
        for (prefix, stamp) in [
            ("1:10:45:49.051409", Stamp::OfDay(ns)),
            ("12-10:45:49.051409", Stamp::OfDay(ns)),
            ("cap.txt:12:10:45:49.051409", Stamp::OfDay(ns)),
            ("[14:02] bob: 10:45:49.051409", Stamp::OfDay(ns)),
            ("root@box:~# 2024-01-31 10:45:49.051409", Stamp::Date(19_753 * DAY + ns)),
            ("Jan 31 14:02:11.123456 host: 10:45:49.051409", Stamp::OfDay(ns)),
        ] {
            let text = format!("{prefix} {packet}");
            assert_eq!(behind_a_prefix(&text), Some((stamp, packet)), "{text}");
        }
        for text in [
            "IP 10.0.0.1.80 > 10.0.0.2.9: x",
            "10.0.0.1.80 > 10.0.0.2.9: at 10:45:49.051409 x",
            "rows 100000 10.0.0.1.80 > 10.0.0.2.9: x",
        ] {
            assert_eq!(behind_a_prefix(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for text in [
            "",
            "IP",
            "24:00:00.1 x",
            "10:45:49 x",
            "2024-13-01 10:00:00.1 x",
            "100000  IP",
            "192.168.1.1.80 > x",
            "1.5 x",
            "99999999999999999999.123456 IP",
            "１２:00:00.1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
