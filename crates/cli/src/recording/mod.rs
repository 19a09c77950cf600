//! A recording's file, and the folder in which its packets wait until they are narrowed.

mod output;

use tcpwhy::units::Time;

pub(crate) use output::{Output, SPOOL, is_stdout};

/// `tcpwhy-20261122-101500`: the usual name of a recording, by its begin in nanoseconds since 1970, in UTC.
pub(crate) fn usual_stem(begins_ns: u64) -> String {
    let begins = Time(begins_ns.cast_signed()).rfc3339();
    let digits: String =
        begins.chars().take_while(|&c| c != '.').filter(char::is_ascii_digit).collect();
    let (date, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    format!("tcpwhy-{date}-{time}")
}
