//! What `tcpdump` prints of a TCP header, from the flags on.
//!
//! Two dialects: `Flags [P.], seq 1:148, ack 1, win 502, options [..], length 147: HTTP` since
//! tcpdump 4.1, and `P 1:148(147) ack 1 win 502 <..> (DF)` before. Numbers are kept as printed;
//! `numbers` puts them back on the wire's circle. What follows the length (decoded payload) is
//! not read.

use super::digits::{closing, leading_number, number_after};
use super::options;
use crate::wire::{Checksum, Flags, Options};
use tcpwhy_words::units::Seq;

/// A TCP header as printed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Printed {
    pub(super) flags: Flags,
    pub(super) seq: Option<u32>,
    pub(super) ack: Option<u32>,
    /// Every header has a window; without it the line is broken off. Packet lists may show it scaled.
    pub(super) window: Option<u32>,
    pub(super) payload_len: u32,
    /// SACK edges as printed, too.
    pub(super) options: Options,
    pub(super) checksum: Option<Checksum>,
    /// Nothing is missing at the end; a line that was wrapped lacks its length.
    pub(super) complete: bool,
    /// Every field is known; two halves of a word are not.
    pub(super) plain: bool,
    pub(super) dialect: Dialect,
}

/// Which program printed a header; they count numbers and windows differently.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Dialect {
    #[default]
    Tcpdump,
    /// Numbers from zero in each direction, or as on the wire; windows scaled where the SYN was seen.
    Wireshark,
    /// Numbers and windows as on the wire.
    Snoop,
}

impl Printed {
    /// The SACK blocks, each put through `place`.
    pub(super) fn sack(&self, place: impl Fn((Seq, Seq)) -> (Seq, Seq)) -> [(Seq, Seq); 4] {
        let mut blocks = self.options.sack;
        let sent = usize::from(self.options.sack_count).min(blocks.len());
        blocks[..sent].iter_mut().for_each(|block| *block = place(*block));
        blocks
    }
}

/// What the text behind `A > B: ` says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Transport {
    /// A TCP header.
    Tcp(Box<Printed>),
    /// TCP, but without numbers: printed with `-q`, or cut by the snap length.
    TooLittle,
    /// TCP that cannot be understood.
    Unreadable,
    /// Another protocol.
    Other,
}

/// Reads the text behind `A > B: `.
pub(super) fn read(text: &str) -> Transport {
    let text = text.trim_start();
    let found = if let Some(rest) = text.strip_prefix("Flags [") {
        modern(rest)
    } else if text.starts_with("[|tcp]") || is_quiet(text) {
        return Transport::TooLittle;
    } else if let Some((flags, rest)) = old_flags(text) {
        old(flags, rest)
    } else {
        return Transport::Other;
    };
    match found {
        None => Transport::Unreadable,
        Some(printed) if printed.complete && printed.window.is_none() => Transport::TooLittle,
        Some(printed) => Transport::Tcp(Box::new(printed)),
    }
}

/// `tcp 147`, as `-q` prints it.
fn is_quiet(text: &str) -> bool {
    let count = text.strip_prefix("tcp ").unwrap_or_default();
    count.starts_with(|c: char| c.is_ascii_digit())
}

fn modern(text: &str) -> Option<Printed> {
    let (letters, mut rest) = text.split_once(']')?;
    let mut printed = Printed { flags: flags(letters)?, ..Printed::default() };
    let mut fields = Fields::default();
    while fields.length.is_none() {
        let Some(field) = rest.trim_start().strip_prefix(',') else { break };
        let field = field.trim_start();
        if let Some(list) = field.strip_prefix("options [") {
            let end = closing(list, '[', ']');
            printed.options = options::read(list.get(..end)?, end == list.len());
            rest = list.get(end + 1..).unwrap_or_default();
            continue;
        }
        let end = field.find(", ").unwrap_or(field.len());
        if fields.take(field.get(..end)?, &mut printed).is_none() {
            // The last field may have been cut off by a line break; any other is nonsense.
            if end < field.len() {
                return None;
            }
            break;
        }
        rest = field.get(end..)?;
    }
    let cut = text.contains("[|tcp") || text.contains("[bad hdr");
    printed.complete = fields.length.is_some() || cut;
    printed.plain = !fields.unknown && printed.ack.is_some() == printed.flags.has(Flags::ACK);
    printed.options.incomplete |= cut;
    let range = printed.seq.zip(fields.last).map(|(first, last)| last.wrapping_sub(first));
    printed.payload_len = fields.length.or(range).unwrap_or_default();
    if printed.ack.is_none() && printed.complete {
        printed.flags = Flags(printed.flags.0 & !Flags::ACK.0);
    }
    Some(printed)
}

/// What the fields of the modern dialect tell besides the header.
#[derive(Default)]
struct Fields {
    /// Sequence number behind the payload.
    last: Option<u32>,
    length: Option<u32>,
    unknown: bool,
}

impl Fields {
    /// Reads one field; `None` if its value is not what its name asks for.
    fn take(&mut self, field: &str, printed: &mut Printed) -> Option<()> {
        let (name, value) = field.split_once(' ').unwrap_or((field, ""));
        match name {
            "seq" => {
                let (first, last) =
                    value.split_once(':').map_or((value, None), |(a, b)| (a, Some(b)));
                printed.seq = Some(whole_number(first)?);
                self.last = match last {
                    Some(last) => Some(whole_number(last)?),
                    None => None,
                };
            }
            "ack" => printed.ack = Some(whole_number(value)?),
            "win" => printed.window = Some(u16::try_from(whole_number(value)?).ok()?.into()),
            "length" => self.length = Some(leading_number(value)?),
            "cksum" => printed.checksum = value.contains("(correct").then_some(Checksum::Good),
            "urg" => {}
            _ => self.unknown = true,
        }
        Some(())
    }
}

/// `P 1:148(147) ack 1 win 502 <nop,nop,timestamp 1 2> (DF)`.
fn old(mut flags: Flags, text: &str) -> Option<Printed> {
    let mut printed = Printed { complete: true, plain: true, ..Printed::default() };
    let (main, listed) = text.split_once('<').unwrap_or((text, ""));
    if let Some(end) = listed.find('>') {
        printed.options = options::read(listed.get(..end)?, false);
    }
    let mut words = main.split_ascii_whitespace();
    while let Some(word) = words.next() {
        match word {
            "ack" => {
                printed.ack = Some(leading_number(words.next()?)?);
                flags = flags.with(Flags::ACK);
            }
            "win" => {
                printed.window = Some(u16::try_from(leading_number(words.next()?)?).ok()?.into());
            }
            _ if word.starts_with(|c: char| c.is_ascii_digit()) && printed.seq.is_none() => {
                let (numbers, length) = word.split_once('(')?;
                printed.seq = Some(leading_number(numbers)?);
                printed.payload_len = leading_number(length)?;
            }
            _ => {}
        }
    }
    printed.checksum = match text {
        _ if text.contains("[tcp sum ok]") => Some(Checksum::Good),
        _ => None,
    };
    printed.flags = flags;
    Some(printed)
}

/// The flags of the old dialect, if the text behind them is TCP too.
fn old_flags(text: &str) -> Option<(Flags, &str)> {
    let (letters, rest) = text.split_once(' ')?;
    let flags = flags(letters)?;
    // The dot means "none of these" here, not ACK.
    let flags = Flags(flags.0 & !Flags::ACK.0);
    let rest = rest.trim_start();
    // A checksum remark of -v may stand between.
    let body = rest.strip_prefix('[').and_then(|r| r.split_once(']')).map_or(rest, |(_, r)| r);
    let first = body.split_ascii_whitespace().next()?;
    let is_range = first.contains(':') && first.contains('(');
    let tcp =
        number_after(body, "win ").is_some() && (is_range || first == "ack" || first == "win");
    tcp.then_some((flags, rest))
}

/// The letters of print-tcp.c; `e` is the AE bit of RFC 9768.
fn flags(letters: &str) -> Option<Flags> {
    if letters == "none" {
        return Some(Flags::default());
    }
    letters.chars().try_fold(Flags::default(), |flags, letter| {
        Some(flags.with(match letter {
            'F' => Flags::FIN,
            'S' => Flags::SYN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            '.' => Flags::ACK,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            'e' => Flags::AE,
            _ => return None,
        }))
    })
}

/// A number and nothing else but a mark that the rest was cut.
fn whole_number(text: &str) -> Option<u32> {
    text.trim_end().trim_end_matches("[|tcp]").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Printed {
        match read(text) {
            Transport::Tcp(printed) => *printed,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn flags_have_their_bits() {
        for (letters, bits) in [
            ("S", 0x02),
            ("S.", 0x12),
            (".", 0x10),
            ("P.", 0x18),
            ("F.", 0x11),
            ("R", 0x04),
            ("R.", 0x14),
            ("SEW", 0xc2),
            ("S.E", 0x52),
            ("FP.", 0x19),
            ("none", 0),
            ("W.", 0x90),
            ("E", 0x40),
            ("SEWe", 0x1c2),
            ("P.U", 0x38),
        ] {
            let text = format!("Flags [{letters}], seq 1, ack 2, win 3, length 0");
            assert_eq!(tcp(&text).flags, Flags(bits), "{letters}");
        }
        assert_eq!(read("Flags [x], seq 1, win 3, length 0"), Transport::Unreadable);
    }

    #[test]
    fn the_modern_dialect() {
        let text = "Flags [P.U], cksum 0xfe30 (incorrect -> 0xa657), seq 1:148, ack 7, win 502, \
                    urg 9, options [nop,nop,TS val 5 ecr 6], length 147: HTTP, length: 147";
        let read = tcp(text);
        assert_eq!(
            (read.seq, read.ack, read.window, read.payload_len),
            (Some(1), Some(7), Some(502), 147)
        );
        assert_eq!(read.checksum, None);
        assert_eq!(read.options.timestamps, Some((5, 6)));
        assert!(read.complete);
    }

    #[test]
    fn a_header_cut_by_the_snap_length_keeps_what_was_seen() {
        let read = tcp("Flags [S], seq 17, win 64240, options [mss 1460,sackOK,TS[|tcp]>");
        assert_eq!((read.seq, read.options.mss, read.window), (Some(17), Some(1460), Some(64240)));
        assert!(read.complete && read.options.incomplete);
        assert_eq!(super::read("[|tcp]"), Transport::TooLittle);
        assert_eq!(super::read("tcp 147"), Transport::TooLittle);
    }

    #[test]
    fn a_wrapped_line_is_seen_to_be_incomplete() {
        assert!(!tcp("Flags [.], seq 1:2897, ack 148, win 235, options [nop,nop,TS val").complete);
        assert!(!tcp("Flags [.], seq 1:2897, ack").complete);
    }

    #[test]
    fn the_old_dialect() {
        let read = tcp("P 1:148(147) ack 1 win 502 <nop,nop,timestamp 3 4> (DF)");
        assert_eq!(
            (read.seq, read.ack, read.window, read.payload_len),
            (Some(1), Some(1), Some(502), 147)
        );
        assert_eq!((read.flags, read.options.timestamps), (Flags(0x18), Some((3, 4))));
        let read = tcp("S [tcp sum ok] 123:123(0) win 5840 <mss 1460,sackOK,wscale 2>");
        assert_eq!(
            (read.flags, read.seq, read.options.window_scale),
            (Flags(2), Some(123), Some(2))
        );
        assert_eq!(read.checksum, Some(Checksum::Good));
        assert_eq!(tcp(". ack 4345 win 65535").flags, Flags(0x10));
    }

    #[test]
    fn other_protocols_are_left_alone() {
        for text in [
            "UDP, length 3",
            "12345+ A? example.com. (29)",
            "ICMP echo request, id 1",
            "P 1 2 3",
            "",
            "S",
            "NTPv4, Client, length 48",
        ] {
            assert_eq!(read(text), Transport::Other, "{text}");
        }
    }
}
