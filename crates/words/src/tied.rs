//! Numbers in words for a page: joined with their units by a no-break space, which [`crate::page`] prints as a plain
//! one.

use crate::said as words;
use crate::units::BitRate;

/// A span of time, three significant digits.
pub fn time(ns: i64) -> String {
    tie(&words::time(ns))
}

/// A number of bytes.
pub fn bytes(count: u64) -> String {
    tie(&words::bytes(count))
}

/// A number of bytes to the byte.
pub fn exact_bytes(count: u64) -> String {
    tie(&words::exact_bytes(count))
}

/// A rate.
pub fn rate(bps: u64) -> String {
    tie(&BitRate(bps).to_string())
}

/// `1 segment`, `12,345 segments`.
pub fn count(number: u64, noun: &str) -> String {
    let told = words::count(number, noun);
    told.replacen(' ', "\u{a0}", 1)
}

/// Whole percents: `45 %`.
pub fn percent(part: i64, whole: i64) -> String {
    tie(&words::percent(part, whole))
}

/// Spaces made unbreakable.
pub fn tie(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// The same for those that follow a digit: a number keeps its unit.
pub fn tie_numbers(text: &str) -> String {
    let mut after_digit = false;
    let tied = |letter: char| {
        let tied = if letter == ' ' && after_digit { '\u{a0}' } else { letter };
        after_digit = letter.is_ascii_digit();
        tied
    };
    text.chars().map(tied).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(tie_numbers("took 63.1 ms of 2 s"), "took 63.1\u{a0}ms of 2\u{a0}s");
    }
}
