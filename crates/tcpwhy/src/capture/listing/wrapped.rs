//! A packet over several lines, as mail programs and narrow terminals break it.
//!
//! A line that begins with a time and ends before its packet does waits for the next one. Mail breaks lines
//! between words and may put a quote mark before each, terminals break anywhere: of all ways to put both together
//! the one is taken that makes the best packet. Lines that begin a packet of their own are never joined.

use super::line;
use super::rows;
use super::said::{Body, Line, Packet};
use super::segment::{Dialect, Printed};
use super::stamp::{self, Stamp};

/// How well a packet line is put together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Wholeness {
    /// No packet at all.
    Nonsense,
    /// The start of a packet.
    Piece,
    /// It has its end, but words in it that mean nothing.
    Odd,
    /// All of it is understood.
    Whole,
}

/// Whether `text`, which reads as `line`, may be the start of a packet that goes on in the next line.
pub(super) fn may_go_on(text: &str, line: &Line<'_>) -> bool {
    match line {
        Line::Packet(Packet { body: Body::Tcp { printed, .. }, .. }) => {
            // Options stand behind the length in a packet list.
            !printed.complete || printed.dialect == Dialect::Wireshark
        }
        Line::Packet(Packet { stamp: Some(_), body: Body::Icmp(_) | Body::Other, .. })
            if is_piece_of_icmp(text) =>
        {
            true
        }
        Line::Packet(Packet { body: Body::Other | Body::TooLittle, .. })
        | Line::Unreadable
        | Line::Prose => line::ends_early(text),
        _ => false,
    }
}

/// Whether a line of ICMP stops before its length, with which tcpdump ends it (`icmp_print`).
fn is_piece_of_icmp(text: &str) -> bool {
    let Some((_, said)) = text.split_once(": ICMP") else { return false };
    let length = said.rsplit_once("length ").map(|(_, length)| length.trim());
    !length.is_some_and(|length| !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()))
}

/// `start` and the line behind it in one, and whether more may follow; `None` if that is no part of it.
pub(super) fn join(start: &str, text: &str) -> Option<(String, bool)> {
    if text.trim().is_empty() || (begins_a_packet(text) && !is_first_half(start, text)) {
        return None;
    }
    if is_piece_of_icmp(start) {
        // Only a line that brings its length is the rest of it, and no prose.
        let whole = format!("{} {}", start.trim_end(), unquoted(text));
        return (!is_piece_of_icmp(&whole)).then_some((whole, false));
    }
    if wholeness(start) > Wholeness::Piece {
        // Only options may follow.
        let tail =
            [text.trim_start(), unquoted(text)].into_iter().find(|text| rows::is_tail(text))?;
        return Some((format!("{} {tail}", start.trim_end()), true));
    }
    let spaced = |tail: &str| format!("{} {}", start.trim_end(), tail);
    let mut ways = vec![spaced(text.trim_start()), format!("{start}{text}")];
    if let Some(less) = as_quoted_as(start, text) {
        // An arrow may stand behind the marks.
        ways.push(spaced(less.trim_start()));
    }
    if start.trim_start().starts_with(['>', '|']) {
        ways.insert(0, spaced(unquoted(text)));
        ways.push(format!("{start}{}", unquoted(text)));
    } else if unquoted(text).len() < text.trim_start().len() {
        ways.push(spaced(unquoted(text)));
    }
    let mut best = (Wholeness::Nonsense, None);
    for way in ways {
        let wholeness = wholeness(&way);
        if wholeness > best.0 {
            best = (wholeness, Some(way));
        }
    }
    let (wholeness, way) = (best.0, best.1?);
    let may_go_on = wholeness == Wholeness::Piece || may_go_on(&way, &line::read(&way));
    Some((way, may_go_on))
}

/// Without the marks that mail puts before each quoted line.
fn unquoted(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '>' | '|'))
}

/// `text` without as many quote marks as `start` begins with.
fn as_quoted_as<'a>(start: &str, text: &'a str) -> Option<&'a str> {
    let is_mark = |c: char| matches!(c, '>' | '|');
    let mut marks = start.chars().take_while(|c| c.is_whitespace() || is_mark(*c));
    let depth = marks.by_ref().filter(|c| is_mark(*c)).count();
    (0..depth).try_fold(text, |text, _| text.trim_start().strip_prefix(is_mark))
}

/// Whether `start` ends before the protocol, with which `text` begins.
fn is_first_half(start: &str, text: &str) -> bool {
    let has_protocol = start.split_ascii_whitespace().any(|word| word.starts_with("IP"));
    !has_protocol && unquoted(text).starts_with("IP") && line::ends_early(start)
}

/// Whether a line is not the rest of another: it has a time, or is no text of a packet.
fn begins_a_packet(text: &str) -> bool {
    match line::read(text) {
        Line::Start | Line::Footer(_) | Line::Dump => true,
        Line::Packet(Packet { stamp, .. }) => {
            stamp.is_some() || text.trim_start().starts_with("IP")
        }
        Line::Unreadable => matches!(
            stamp::read(unquoted(text)),
            Some((Stamp::OfDay(_) | Stamp::Date(_) | Stamp::Epoch(_), _))
        ),
        Line::Gap | Line::Prose => false,
    }
}

fn wholeness(text: &str) -> Wholeness {
    if line::ends_early(text) {
        return Wholeness::Piece;
    }
    match line::read(text) {
        Line::Packet(Packet { body: Body::Tcp { printed, .. }, .. }) => match *printed {
            Printed { complete: false, .. } => Wholeness::Piece,
            Printed { plain: true, options, .. } if !options.incomplete => Wholeness::Whole,
            _ => Wholeness::Odd,
        },
        Line::Packet(_) => Wholeness::Odd,
        _ => Wholeness::Nonsense,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "10:45:49.051409 eth0  In  IP 192.0.2.1.51231 > 10.0.0.2.8080: Flags [S], seq 7, win 65535, \
                         options [mss 1000,nop,nop,sackOK,nop,wscale 6], length 0";

    /// What the pieces of a packet come to, and whether all of them were taken.
    fn joined<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mut pieces = pieces.into_iter();
        let mut whole = pieces.next()?.to_owned();
        for piece in pieces {
            assert!(may_go_on(&whole, &line::read(&whole)), "{whole}");
            whole = join(&whole, piece)?.0;
        }
        Some(whole)
    }

    #[test]
    fn a_packet_broken_between_any_two_words_is_put_together() {
        let breaks = WHOLE.match_indices(' ').map(|(at, _)| at).filter(|at| (20..120).contains(at));
        for at in breaks {
            let (start, end) = (&WHOLE[..at], &WHOLE[at + 1..]);
            assert_eq!(
                joined([start, end]).as_deref().map(wholeness),
                Some(Wholeness::Whole),
                "{start}"
            );
            let quoted = [format!("> {start}"), format!("> {end}")];
            let whole = joined(quoted.iter().map(String::as_str));
            assert_eq!(whole.as_deref().map(wholeness), Some(Wholeness::Whole), "> {start}");
        }
    }

    #[test]
    fn a_packet_broken_anywhere_behind_its_ends_is_put_together() {
        for at in WHOLE.find("Flags").expect("there")..WHOLE.len() - 9 {
            let whole = joined([&WHOLE[..at], &WHOLE[at..]]).expect("a packet");
            assert_eq!(wholeness(&whole), Wholeness::Whole, "{whole}");
        }
    }

    #[test]
    fn an_icmp_error_is_whole_with_its_length_and_takes_no_prose() {
        let whole = "10:45:49.051409 IP 10.0.0.3 > 10.0.0.1: ICMP host 10.0.0.2 unreachable - admin prohibited filter, length 68";
        let from = whole.find("ICMP").expect("there") + 5;
        for (at, _) in whole.match_indices(' ').filter(|(at, _)| *at >= from) {
            let (start, end) = (&whole[..at], &whole[at + 1..]);
            assert_eq!(joined([start, end]).as_deref(), Some(whole), "{start}");
        }
        let old = "10:45:49.051409 IP 10.0.0.3 > 10.0.0.1: ICMP host 10.0.0.2 unreachable";
        assert_eq!(join(old, "and admin prohibited it is, I think"), None);
        assert!(!may_go_on(whole, &line::read(whole)));
    }

    #[test]
    fn a_packet_and_what_stands_for_itself_are_not_joined() {
        let start = WHOLE.split_once(" win").expect("there").0;
        for next in [
            WHOLE,
            "",
            "3 packets captured",
            "0x0000:  4500",
            "IP 10.0.0.1.1 > 10.0.0.2.2: Flags [.], ack 1, win 2, length 0",
        ] {
            assert_eq!(join(start, next), None, "{next}");
        }
        let row = "1 0.0 10.0.0.1 → 10.0.0.2 TCP 66 4711 → 80 [ACK] Seq=1 Ack=1 Win=9 Len=0";
        assert_eq!(join(row, "Here the client waits."), None);
        assert!(join(row, "TSval=5 TSecr=6").is_some());
    }
}
