//! Numbers in words, the same in findings and in every view.

use crate::units::{Bytes, Duration};

/// A span of time, three significant digits.
pub fn time(ns: i64) -> String {
    if ns == 0 { "0".to_owned() } else { Duration(ns).to_string() }
}

/// A number of bytes.
pub fn bytes(count: u64) -> String {
    if count < 10_000 { exact_bytes(count) } else { Bytes(count).to_string() }
}

/// A number of bytes to the byte.
pub fn exact_bytes(count: u64) -> String {
    format!("{} B", grouped(count))
}

/// `1 segment`, `12,345 segments`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// `once`, `3 times`.
pub fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { count(number, "time") }
}

/// Whole percents: `45 %`; what is there but rounds to nothing is `<1 %`, all but a rest `>99 %`.
pub fn percent(part: i64, whole: i64) -> String {
    let share = Duration(part).percent_of(Duration(whole));
    if whole <= 0 {
        return "? %".to_owned();
    }
    if part > 0 && share < 0.5 {
        "<1 %".to_owned()
    } else if part < whole && share >= 99.5 {
        ">99 %".to_owned()
    } else {
        format!("{share:.0} %")
    }
}

/// Thousands set apart by commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0, 999, 1_000, 46_080, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "46,080", "1,234,567"]);
    }

    #[test]
    fn what_was_done_one_time_was_done_once() {
        assert_eq!([0, 1, 2, 1_000].map(times), ["0 times", "once", "2 times", "1,000 times"]);
    }

    #[test]
    fn a_share_that_exists_is_never_shown_as_nothing() {
        assert_eq!(percent(1, 1_000_000), "<1 %");
        assert_eq!(percent(999_999, 1_000_000), ">99 %");
        assert_eq!(percent(0, 1_000_000), "0 %");
        assert_eq!(percent(1, 0), "? %");
    }

    #[test]
    fn lists_read_as_a_person_says_them() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            [listed(&items[..1]), listed(&items[..2]), listed(&items)],
            ["a", "a and b", "a, b and c"]
        );
    }
}
