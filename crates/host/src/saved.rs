//! A saved snapshot as it is read again.
//!
//! Anybody may have written, joined or cut the file. Names in it are shown as they are of a live host ([`shown`]),
//! for a terminal and a shell obey some characters; and its looks are put in order, for growth is counted from the
//! first to the last.
//!
//! ```text
//! text -> harmless text -> JSON -> Snapshot -> looks in order
//! ```

use std::borrow::Cow;

use super::shown::{prints, shown};
use super::snapshot::{FORMAT, Look, Snapshot};

/// What a saved text holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The snapshot, its looks in order.
    pub snapshot: Snapshot,
    /// What was done about its looks, in words.
    pub remark: Option<&'static str>,
}

/// Why a text is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum NotSaved {
    /// The text ends within it.
    #[error(
        "the text ends within it, after {0} bytes, as a full disk or a broken copy leaves it; copy or take it again"
    )]
    Cut(usize),
    /// It is not in JSON, or not in that of a snapshot.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is of something else.
    #[error("it has no `format`; a snapshot of this version says `{FORMAT}`")]
    NoFormat,
    /// It is of another version, or no snapshot.
    #[error("its format is `{0}`, this version reads `{FORMAT}`")]
    Format(String),
    /// Nothing was looked at.
    #[error("it holds no look at a host")]
    NoLook,
    /// Nothing can have grown from one to the other.
    #[error(
        "two of its looks are of the same instant, so that one of them is there twice or lost its time; leave \
         one out"
    )]
    AtOnce,
}

/// Reads what `tcpwhy check --save` wrote.
///
/// # Errors
/// It is no snapshot, or not in a way that can be judged.
pub fn read(text: &str) -> Result<Saved, NotSaved> {
    let mut snapshot: Snapshot = serde_json::from_str(&harmless(text)).map_err(|error| {
        if error.is_eof() { NotSaved::Cut(text.len()) } else { NotSaved::Json(error) }
    })?;
    match snapshot.format.as_str() {
        FORMAT => {}
        "" => return Err(NotSaved::NoFormat),
        _ => return Err(NotSaved::Format(snapshot.format)),
    }
    if snapshot.looks.is_empty() {
        return Err(NotSaved::NoLook);
    }
    let remark = put_in_order(&mut snapshot.looks)?;
    Ok(Saved { snapshot, remark })
}

/// The same JSON, with the letters escaped that no name shows as itself. In JSON a backslash is in strings only,
/// and control characters of ASCII stand in none (RFC 8259 section 7), so that strings need not be told from the rest.
fn harmless(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == b'\\' || byte >= 0x7f) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '\\' || c >= '\u{7f}') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (letter, length) = letter_at(from);
        match letter {
            Some(letter) if !prints(letter) => {
                out.push('\\');
                out.push_str(&shown(letter.encode_utf8(&mut [0; 4]).as_bytes()));
            }
            _ => out.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The letter that `text` begins with and how many bytes it takes; `None` for a part of one, and for nonsense, which
/// the parser names.
fn letter_at(text: &str) -> (Option<char>, usize) {
    let mut letters = text.chars();
    let first = letters.next().unwrap_or_default();
    if first != '\\' {
        return (Some(first), first.len_utf8());
    }
    let Some(kind) = letters.next() else { return (None, 1) };
    let letter = match kind {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode_at(text),
        _ => return (None, 1 + kind.len_utf8()),
    };
    (Some(letter), 2)
}

/// The same of `\u001b`, and of the pairs of halves that JSON writes for letters of more than 16 bits.
fn unicode_at(text: &str) -> (Option<char>, usize) {
    let half = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let Some(first) = half(text) else { return (None, 2) };
    let second = text.get(6..).and_then(half).filter(|_| (0xd800..0xdc00).contains(&first));
    let halves = [Some(first), second].into_iter().flatten();
    let letter = char::decode_utf16(halves).next().and_then(Result::ok);
    (letter, if letter.is_some() && second.is_some() { 12 } else { 6 })
}

/// Between two looks a clock may drift from the time since the start of the host by so much: ours, a second, and of
/// the time between a thousandth (`MAXFREQ`, Linux v6.18 `include/linux/timex.h`, lets it drift by half of that).
const DRIFT_NS: i128 = 1_000_000_000;
const DRIFT_OF: i128 = 1_000;

fn put_in_order(looks: &mut Vec<Look>) -> Result<Option<&'static str>, NotSaved> {
    if looks.len() < 2 {
        return Ok(None);
    }
    let both = |look: &Look| look.uptime_ns.zip(look.t_ns);
    let Some(times) = looks.iter().map(both).collect::<Option<Vec<_>>>() else {
        return by(looks, |look| look.t_ns);
    };
    let is_of_one_start = times.windows(2).all(|pair| {
        let [(up, at), (later_up, later_at)] =
            [pair[0], pair[1]].map(|(up, at)| (i128::from(up), i128::from(at)));
        let (since_start, by_clock) = (later_up - up, later_at - at);
        (since_start - by_clock).abs() <= DRIFT_NS + since_start.abs() / DRIFT_OF
    });
    if is_of_one_start {
        return by(looks, |look| look.uptime_ns);
    }
    looks.sort_by_key(|look| look.t_ns);
    looks.drain(..looks.len() - 1);
    Ok(Some(
        "between its looks the host started anew or its clock was set: what grew is not known, and the latest \
         look is judged alone",
    ))
}

/// By one clock; as they are where it did not tell all of them.
fn by(
    looks: &mut [Look],
    time: fn(&Look) -> Option<u64>,
) -> Result<Option<&'static str>, NotSaved> {
    if looks.iter().any(|look| time(look).is_none()) {
        return Ok(None);
    }
    let is_in_order = looks.is_sorted_by_key(time);
    looks.sort_by_key(time);
    if looks.windows(2).any(|pair| time(&pair[0]) == time(&pair[1])) {
        return Err(NotSaved::AtOnce);
    }
    Ok((!is_in_order).then_some(
        "its looks were not in the order of their times: the earliest is taken as the first",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Link, Process};

    const SECOND: u64 = 1_000_000_000;

    /// A look at this second since 1970, and since the start.
    fn look(at: u64, up: u64) -> Look {
        Look { t_ns: Some(at * SECOND), uptime_ns: Some(up * SECOND), ..Look::default() }
    }

    fn text(looks: Vec<Look>) -> String {
        let snapshot = Snapshot { format: FORMAT.to_owned(), looks, ..Snapshot::default() };
        serde_json::to_string(&snapshot).expect("plain data")
    }

    /// The seconds since the start at which the looks are judged, and whether something was said.
    fn ordered(looks: Vec<Look>) -> (Vec<u64>, bool) {
        let saved = read(&text(looks)).expect("a snapshot");
        let up = saved.snapshot.looks.iter().filter_map(|look| look.uptime_ns);
        (up.map(|ns| ns / SECOND).collect(), saved.remark.is_some())
    }

    #[test]
    fn looks_are_judged_in_the_order_of_their_times() {
        assert_eq!(ordered(vec![look(1_000, 50), look(1_010, 60)]), (vec![50, 60], false));
        assert_eq!(ordered(vec![look(1_010, 60), look(1_000, 50)]), (vec![50, 60], true));
        let three = vec![look(1_010, 60), look(1_020, 70), look(1_000, 50)];
        assert_eq!(ordered(three), (vec![50, 60, 70], true));
        let mut untold = [look(1_010, 60), look(1_000, 50)];
        for look in &mut untold {
            look.uptime_ns = None;
        }
        let saved = read(&text(untold.to_vec())).expect("a snapshot");
        assert_eq!(saved.snapshot.looks[0].t_ns, Some(1_000 * SECOND), "by the clock alone");
    }

    #[test]
    fn two_looks_of_one_instant_are_refused() {
        let twice = vec![look(1_000, 50), look(1_000, 50)];
        assert!(matches!(read(&text(twice)), Err(NotSaved::AtOnce)));
        let next =
            Look { t_ns: Some(1_000 * SECOND + 1), uptime_ns: Some(50 * SECOND + 1), ..look(0, 0) };
        assert!(read(&text(vec![look(1_000, 50), next])).is_ok());
    }

    #[test]
    fn of_a_host_that_started_anew_between_them_the_last_look_is_judged() {
        assert_eq!(ordered(vec![look(1_000, 900), look(1_060, 20)]), (vec![20], true));
        assert_eq!(ordered(vec![look(1_060, 20), look(1_000, 900)]), (vec![20], true));
        assert_eq!(
            ordered(vec![look(1_000, 50), look(940, 60)]),
            (vec![50], true),
            "a clock set back"
        );
        // The drift that is allowed: a second and, of ten, 10 ms.
        let drifted = |ns| Look { t_ns: Some(1_010 * SECOND + ns), ..look(0, 60) };
        assert_eq!(ordered(vec![look(1_000, 50), drifted(1_010_000_000)]), (vec![50, 60], false));
        assert_eq!(ordered(vec![look(1_000, 50), drifted(1_010_000_001)]), (vec![60], true));
    }

    #[test]
    fn names_of_strangers_are_shown_as_those_of_a_live_host() {
        let name = "a\n\t\u{1b}[2J\0\u{7f}\u{85}\u{202e}\"'\\ü\u{1f600}";
        let process = Process { name: name.to_owned(), ..Process::default() };
        let seen = Look {
            links: Some(vec![Link { name: name.to_owned(), ..Link::default() }]),
            processes: Some([(7, process)].into()),
            ..look(1, 1)
        };
        let text = text(vec![seen]);
        let saved = read(&text).expect("a snapshot").snapshot;
        let look = &saved.looks[0];
        assert_eq!(look.links.as_ref().expect("links")[0].name, shown(name.as_bytes()));
        assert_eq!(look.processes.as_ref().expect("processes")[&7].name, shown(name.as_bytes()));
        let again = serde_json::to_string(&saved).expect("plain data");
        assert_eq!(read(&again).expect("a snapshot").snapshot, saved, "and no further");
        let escaped = r#"{"format":"tcpwhy-host/1","looks":[{}],"kernel":"\u001b\u009B\ud83d\ude00\udb40\udc01"}"#;
        let kernel = read(escaped).expect("a snapshot").snapshot.kernel;
        assert_eq!(kernel.as_deref(), Some("\\u{1b}\\u{9b}\u{1f600}\\u{e0001}"));
    }

    #[test]
    fn what_is_no_snapshot_is_told_with_what_it_is() {
        let whole = text(vec![look(1, 1)]);
        for length in 1..whole.len() {
            assert!(
                matches!(read(&whole[..length]), Err(NotSaved::Cut(at)) if at == length),
                "{length}"
            );
        }
        assert!(matches!(read("{}"), Err(NotSaved::NoFormat)));
        assert!(matches!(read(r#"{"format":"tcpwhy/2"}"#), Err(NotSaved::Format(_))));
        assert!(matches!(read(r#"{"format":"tcpwhy-host/1"}"#), Err(NotSaved::NoLook)));
        for odd in [
            r#"{"kernel":"\"#,
            r#"{"kernel":"\u12"#,
            r#"{"kernel":"\u12"}"#,
            r#"{"kernel":"\ü"}"#,
            "{]",
        ] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
