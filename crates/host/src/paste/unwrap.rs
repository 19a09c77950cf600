//! Lines that a mail program broke at its margin, joined again.
//!
//! ```text
//! > ESTAB    0      0                 192.0.2.6:35432
//! > 192.0.2.8:6945
//! > sack cubic wscale:7,7 rto:201 rtt:0.11/0.02 bytes_acked:610139 pacing_rate
//! > 249Mbps delivery_rate 417Mbps
//! ```
//!
//! A line is joined to the one above only where that one is unfinished, or where it has nothing but words that `ss`
//! puts below a socket and that are not above already. Words tell what follows, not the width: people choose other
//! margins.

use core::iter::{Enumerate, Peekable};
use core::str::SplitInclusive;
use std::borrow::Cow;

use super::LONGEST_LINE;
use super::marks::unquoted;
use super::ss::{self, Row};

/// The lines of a text, with the number of the first of each that was broken.
pub(super) struct Unwrapped<'a> {
    lines: Peekable<Enumerate<SplitInclusive<'a, char>>>,
}

/// One of them.
pub(super) struct Whole<'a> {
    pub(super) number: u64,
    pub(super) text: Cow<'a, str>,
    /// The text goes on behind it.
    pub(super) is_ended: bool,
}

impl<'a> Unwrapped<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { lines: text.split_inclusive('\n').enumerate().peekable() }
    }
}

impl<'a> Iterator for Unwrapped<'a> {
    type Item = Whole<'a>;

    fn next(&mut self) -> Option<Whole<'a>> {
        let (at, line) = self.lines.next()?;
        let mut is_ended = line.ends_with('\n');
        let mut text = Cow::Borrowed(line.strip_suffix('\n').unwrap_or(line));
        while let Some((_, next)) = self.lines.peek() {
            let below = unquoted(next).trim_end();
            if text.len() + below.len() > LONGEST_LINE
                || !goes_on(unquoted(&text).trim_end(), below)
            {
                break;
            }
            is_ended = next.ends_with('\n');
            text = Cow::Owned(format!("{} {}", text.trim_end(), below.trim_start()));
            self.lines.next();
        }
        Some(Whole { number: at as u64 + 1, text, is_ended })
    }
}

/// Whether `below` is the rest of `line`.
fn goes_on(line: &str, below: &str) -> bool {
    let Some(first) = below.split_whitespace().next() else { return false };
    let is_indented = below.starts_with([' ', '\t']);
    if is_socket(line) {
        if Row::of(line.trim()).is_err_and(|why| why.starts_with(ss::TOO_SHORT)) {
            return first.contains(':') && !first.contains('(');
        }
        return !is_indented && ss::is_details(below) && says_no_more_twice(line, below);
    }
    match line.split_whitespace().next() {
        Some("tcp" | "tcp6") => line.split_whitespace().count() == 5 && is_netstat_state(first),
        Some("Sent") => line.contains('(') && !line.contains(')'),
        Some("qdisc") => !is_indented && line.len() >= NARROW && is_of_qdisc(first),
        _ => {
            !is_indented
                && ss::is_details(line)
                && ss::is_details(below)
                && says_no_more_twice(line, below)
        }
    }
}

/// Ours: the narrowest margin that mail programs break at.
const NARROW: usize = 60;

fn is_socket(line: &str) -> bool {
    ss::is_line(line.trim()) && !line.contains("Recv-Q")
}

/// Each figure comes once below a socket: one that comes again is of the next.
fn says_no_more_twice(line: &str, below: &str) -> bool {
    let name = |word: &str| word.split_once(':').map(|(name, _)| format!("{name}:"));
    let mut names = below.split_whitespace().filter_map(name);
    !names.any(|name| line.split_whitespace().any(|word| word.starts_with(&name)))
}

fn is_netstat_state(word: &str) -> bool {
    super::sockets::NETSTAT_STATES.iter().any(|(name, _)| *name == word)
        || matches!(word, "LISTEN" | "TIME_WAIT")
}

fn is_of_qdisc(word: &str) -> bool {
    const WORDS: [&str; 20] = [
        "limit",
        "flows",
        "quantum",
        "target",
        "interval",
        "memory_limit",
        "ecn",
        "drop_batch",
        "delay",
        "loss",
        "rate",
        "burst",
        "lat",
        "bands",
        "priomap",
        "refcnt",
        "default",
        "direct_packets_stat",
        "direct_qlen",
        "buckets",
    ];
    WORDS.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit())
}
