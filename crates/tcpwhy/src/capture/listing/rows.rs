//! A row of a packet list: what Wireshark shows in its window and `tshark` prints by default.
//!
//! ```text
//!   3 0.101097   10.1.1.2 → 10.1.1.1  TCP 60 [TCP Retransmission] 7890 → 51122 [ACK] Seq=1 Ack=324 Win=..
//! No. time       source    destination protocol, length           ports          flags  fields
//! ```
//!
//! Rows are copied with blanks or tabs between the columns, or exported as comma-separated values; the number
//! and the arrow between the addresses may be missing, and other columns may stand after the time. What
//! packet-tcp.c writes into the Info column is read; where it shows a protocol above TCP, its numbers are hidden.
//!
//! Left out: lists whose columns stand in another order, without addresses.

use std::borrow::Cow;

use super::digits::leading_number;
use super::icmp;
use super::names::Endpoint;
use super::said::{Body, Line, Link, Packet};
use super::segment::{Dialect, Printed};
use super::stamp::{self, Stamp, next_word};
use crate::wire::{Flags, IpInfo, Options};
use tcpwhy_words::units::Seq;

/// The arrow of newer versions, of older ones, and what is left of the first where UTF-8 was taken for Latin.
const ARROWS: [&str; 4] = ["→", ">", "->", "â†’"];

/// Without the marks of comma-separated values: quotes around each column, commas between them.
pub(super) fn plain(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = unescaped(text);
    let bare = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == ',');
    match bare.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(columns) if columns.contains("\",\"") => Cow::Owned(columns.replace("\",\"", " ")),
        _ => text,
    }
}

/// Without what web pages make of a text: entities in place of marks, and spaces that do not break.
fn unescaped(mut text: Cow<'_, str>) -> Cow<'_, str> {
    for (entity, mark) in [("&gt;", ">"), ("&lt;", "<"), ("&nbsp;", " "), ("&amp;", "&")] {
        if text.contains(entity) {
            text = Cow::Owned(text.replace(entity, mark));
        }
    }
    let is_fixed = |c: char| matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}');
    if !text.is_ascii() && text.contains(is_fixed) {
        text = Cow::Owned(text.replace(is_fixed, " "));
    }
    text
}

/// Reads one row; `None` if the text is none.
pub(super) fn read(text: &str) -> Option<Line<'_>> {
    if let Some(packet) = tcp(text) {
        return Some(Line::Packet(packet));
    }
    let (number, stamp, rest) = head(text);
    let (source, destination, protocol, info) = columns(rest)?;
    (stamp.is_some() && (number.is_some() || !info.is_empty())).then_some(())?;
    let hidden = is_above_tcp(protocol);
    let has_arrow = rest.split_ascii_whitespace().take(4).any(is_arrow);
    let are_hosts = is_address(source) && is_address(destination);
    (has_arrow || are_hosts || (number.is_some() && hidden)).then_some(())?;
    let said = icmp::read_row(source, destination, protocol, info);
    let body = match said {
        Some(said) => Body::Icmp(Box::new(said)),
        None if hidden => Body::TooLittle,
        None => Body::Other,
    };
    Some(Line::Packet(of(number, stamp, body)))
}

/// Whether a row stops before its Info column says anything.
pub(super) fn ends_early(text: &str) -> bool {
    let (number, stamp, rest) = head(text);
    number.is_some() && stamp.is_some() && columns(rest).is_some_and(|(.., info)| info.is_empty())
}

/// Whether a line begins with what the Info column says behind the ports of a TCP segment.
pub(super) fn is_tail(text: &str) -> bool {
    let word = next_word(text).0;
    word.split_once('=').is_some_and(|(name, value)| {
        value.starts_with(|c: char| c.is_ascii_digit()) && FIELDS.contains(&name)
    })
}

const FIELDS: [&str; 14] = [
    "Seq",
    "Ack",
    "Win",
    "Len",
    "MSS",
    "WS",
    "SACK_PERM",
    "TSval",
    "TSecr",
    "TSV",
    "TSER",
    "SLE",
    "SRE",
    "TFO",
];

fn of(number: Option<u64>, stamp: Option<Stamp>, body: Body<'_>) -> Packet<'_> {
    Packet { number, stamp, link: Link::default(), ip: IpInfo::default(), body, nested: false }
}

/// A row with a TCP segment.
fn tcp(text: &str) -> Option<Packet<'_>> {
    let (before, ports, flags, fields) = ports(text)?;
    let (number, stamp, rest) = head(before);
    let (source, destination) = addresses(rest)?;
    let from = Endpoint::of(source, ports.0)?;
    let to = Endpoint::of(destination, ports.1)?;
    let v6 = from.is_v6().or(to.is_v6()).unwrap_or(false);
    let printed = Box::new(printed(flags, fields));
    Some(of(number, stamp, Body::Tcp { from, to, v6, printed }))
}

/// The ports in the Info column, with what is before and behind them: `40986 → 5201 [SYN, ACK] Seq=0`.
fn ports(text: &str) -> Option<(&str, (&str, &str), Flags, &str)> {
    for arrow in ARROWS {
        for (at, _) in text.match_indices(arrow) {
            let left = text.get(..at)?;
            let right = text.get(at + arrow.len()..)?;
            if !left.ends_with(' ') || !right.starts_with(' ') {
                continue;
            }
            let (to, rest) = next_word(right);
            let Some((names, fields)) = rest.strip_prefix('[').and_then(|r| r.split_once(']'))
            else {
                continue;
            };
            let (Some(flags), left) = (flags(names), left.trim_end()) else { continue };
            let from = left.rsplit(char::is_whitespace).next().unwrap_or(left);
            let before = left.get(..left.len() - from.len())?;
            return Some((without_remarks(before), (port(from), port(to)), flags, fields));
        }
    }
    None
}

/// The number of `http(80)`.
fn port(word: &str) -> &str {
    let number = word.strip_suffix(')').and_then(|word| word.split_once('('));
    number.map_or(word, |(_, number)| number)
}

/// Without what Wireshark found out itself: `[TCP Retransmission] [TCP Previous segment not captured]`.
fn without_remarks(mut text: &str) -> &str {
    loop {
        text = text.trim_end();
        match text.strip_suffix(']').and_then(|inside| inside.rfind('[')) {
            Some(at) => text = text.get(..at).unwrap_or_default(),
            None => return text,
        }
    }
}

fn flags(names: &str) -> Option<Flags> {
    if names == "<None>" {
        return Some(Flags::default());
    }
    names.split(',').try_fold(Flags::default(), |flags, name| {
        Some(flags.with(match name.trim() {
            "FIN" => Flags::FIN,
            "SYN" => Flags::SYN,
            "RST" => Flags::RST,
            "PSH" => Flags::PSH,
            "ACK" => Flags::ACK,
            "URG" => Flags::URG,
            "ECE" | "ECN" => Flags::ECE,
            "CWR" => Flags::CWR,
            "AE" | "NS" | "AECN" => Flags::AE,
            "Reserved" | "R" => Flags::default(),
            _ => return None,
        }))
    })
}

/// The fields behind the flags. The first field of each name is the header's.
fn printed(flags: Flags, fields: &str) -> Printed {
    let mut printed =
        Printed { flags, plain: true, dialect: Dialect::Wireshark, ..Printed::default() };
    let mut left = None;
    let (mut shift_shown, mut bytes) = (false, 0_u32);
    for word in fields.split_ascii_whitespace() {
        let Some((name, value)) = word.split_once('=') else {
            // Since 4.0 without a value (packet-tcp.c, tcpopt_sack_perm).
            if word == "SACK_PERM" {
                (printed.options.sack_permitted, bytes) = (true, bytes + 4);
            }
            continue;
        };
        let Some(number) = leading_number(value) else {
            printed.options.fast_open = match (name, value) {
                ("TFO", "R") => Some(0),
                ("TFO", "C") => Some(8),
                _ => printed.options.fast_open,
            };
            continue;
        };
        let options = &mut printed.options;
        match name {
            "Seq" if printed.seq.is_none() => printed.seq = Some(number),
            "Ack" if printed.ack.is_none() => printed.ack = Some(number),
            "Win" if printed.window.is_none() => printed.window = Some(number),
            "Len" if !printed.complete => {
                (printed.payload_len, printed.complete) = (number, true);
            }
            "MSS" => (options.mss, bytes) = (u16::try_from(number).ok(), bytes + 4),
            "WS" => (options.window_scale, bytes) = (Some(shift(number)), bytes + 4),
            "SACK_PERM" => (options.sack_permitted, bytes) = (true, bytes + 4),
            "TSval" | "TSV" => {
                shift_shown |= name == "TSV";
                (options.timestamps, bytes) = (Some((number, 0)), bytes + 12);
            }
            "TSecr" | "TSER" => {
                options.timestamps = options.timestamps.map(|(value, _)| (value, number));
            }
            "SLE" => left = Some(number),
            "SRE" => add_block(options, left.take(), number),
            _ => {}
        }
    }
    if shift_shown || printed.options.window_scale == Some(NO_MULTIPLIER) {
        // Versions that wrote TSV showed the shift itself (packet-tcp.c before 1.8).
        let shown = fields.split_once("WS=").and_then(|(_, value)| leading_number(value));
        printed.options.window_scale = shown.and_then(|shift| u8::try_from(shift).ok());
    }
    let blocks = u32::from(printed.options.sack_count);
    bytes += if blocks > 0 { 4 + 8 * blocks } else { 0 };
    // A TCP header has room for 40 bytes of options (RFC 9293 section 3.1).
    printed.options.len = bytes.min(40) as u8;
    printed
}

/// No power of two.
const NO_MULTIPLIER: u8 = u8::MAX;

/// The shift of a multiplier.
fn shift(multiplier: u32) -> u8 {
    if multiplier.is_power_of_two() { multiplier.trailing_zeros() as u8 } else { NO_MULTIPLIER }
}

fn add_block(options: &mut Options, left: Option<u32>, right: u32) {
    let count = usize::from(options.sack_count);
    if let (Some(left), Some(place)) = (left, options.sack.get_mut(count)) {
        *place = (Seq(left), Seq(right));
        options.sack_count += 1;
    }
}

/// Number and time at the start of a row.
fn head(text: &str) -> (Option<u64>, Option<Stamp>, &str) {
    let timed = |text| match stamp::read_of_list(text) {
        Some((stamp, rest)) => (Some(stamp), rest),
        None => (None, text),
    };
    let (word, rest) = next_word(text);
    let (number, rest) = word.parse().map_or((None, text), |number| (Some(number), rest));
    let (stamp, rest) = timed(rest);
    (number, stamp, rest)
}

/// An address of IP, or of a link: `00:00:5e:00:53:01`, or with the maker's name, `Cisco_00:53:01`.
fn is_address(word: &str) -> bool {
    word.parse::<core::net::IpAddr>().is_ok()
        || word == "Broadcast"
        || word.matches(':').count() >= 2
            && word.rsplit(':').next().is_some_and(|last| last.len() == 2)
}

fn is_arrow(word: &str) -> bool {
    ARROWS.contains(&word)
}

/// Source and destination: the two addresses that stand side by side, or else what is before the protocol.
fn addresses(columns: &str) -> Option<(&str, &str)> {
    let words = || columns.split_ascii_whitespace().filter(|word| !is_arrow(word));
    let is_address = |word: &&str| word.parse::<core::net::IpAddr>().is_ok();
    let pairs = words().zip(words().skip(1));
    if let Some(pair) = pairs.into_iter().find(|(a, b)| is_address(a) && is_address(b)) {
        return Some(pair);
    }
    let mut last: Vec<&str> = words().collect();
    last.pop_if(|word| word.bytes().all(|b| b.is_ascii_digit()));
    match last[..] {
        [.., source, destination, _] => Some((source, destination)),
        _ => None,
    }
}

/// The columns behind the time: source, destination, protocol, and what is behind the length.
fn columns(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (first, rest) = next_word(text);
    // A column with the span since the row before may stand between.
    let is_span = first.contains('.') && first.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_span = is_span && first.parse::<core::net::IpAddr>().is_err();
    let (source, rest) = if is_span { next_word(rest) } else { (first, rest) };
    let (word, after) = next_word(rest);
    let (destination, rest) = if is_arrow(word) { next_word(after) } else { (word, after) };
    let (protocol, rest) = next_word(rest);
    let (length, info) = next_word(rest);
    let is_protocol = protocol.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !destination.ends_with(':')
        && !protocol.ends_with(',');
    let is_length = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    (is_protocol && is_length && !is_arrow(protocol)).then_some((
        source,
        destination,
        protocol,
        info,
    ))
}

/// Protocols that only TCP carries: the row of a segment that Wireshark took apart further.
fn is_above_tcp(protocol: &str) -> bool {
    let starts =
        ["TCP", "TLS", "SSL", "HTTP", "SSH", "SMB", "FTP", "MySQL", "PGSQL", "Redis", "RESP"];
    let whole = [
        "NBSS",
        "SMTP",
        "IMAP",
        "POP",
        "iSCSI",
        "TELNET",
        "TDS",
        "BGP",
        "MQTT",
        "AMQP",
        "WebSocket",
        "LDAP",
        "RTMP",
    ];
    starts.iter().any(|start| protocol.starts_with(start)) || whole.contains(&protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> (Option<u64>, Option<Stamp>, Printed) {
        match read(text) {
            Some(Line::Packet(Packet {
                number, stamp, body: Body::Tcp { printed, .. }, ..
            })) => (number, stamp, *printed),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn rows_of_the_window_of_tshark_and_of_an_export_are_the_same() {
        let info = "40986 → 5201 [PSH, ACK] Seq=1 Ack=7 Win=65408 Len=100 TSval=5 TSecr=6";
        let csv = format!("\"1\",\"0.25\",\"10.0.0.9\",\"10.0.0.62\",\"TCP\",\"166\",\"{info}\"");
        for text in [
            format!("1 0.25   10.0.0.9 → 10.0.0.62  TCP 166 {info}"),
            format!("1\t0.25\t10.0.0.9\t10.0.0.62\tTCP\t166\t{info}"),
            format!("1 0.25 0.003 10.0.0.9 10.0.0.62 TCP 166 {info}").replace('→', ">"),
            format!(
                "1 0.25 client.example server TCP 166 [TCP Out-Of-Order] [TCP Window Full] {info}"
            ),
            plain(Cow::Borrowed(&csv)).into_owned(),
        ] {
            let (number, stamp, read) = row(&text);
            assert_eq!((number, stamp), (Some(1), Some(Stamp::Span(250_000_000))), "{text}");
            assert_eq!((read.seq, read.ack, read.window), (Some(1), Some(7), Some(65_408)));
            assert_eq!((read.payload_len, read.options.timestamps), (100, Some((5, 6))));
            assert!(read.complete && read.flags == Flags(0x18));
        }
    }

    #[test]
    fn a_syn_shows_its_scale_as_a_multiplier_and_once_as_a_shift() {
        let syn = |options: &str| {
            row(&format!("0.0 10.0.0.1 → 10.0.0.2 TCP 74 4711 → http(80) [SYN] Seq=0 Win=64240 Len=0 {options}")).2
        };
        let read = syn("MSS=1460 SACK_PERM TSval=1 TSecr=0 WS=128");
        assert_eq!((read.options.mss, read.options.window_scale), (Some(1460), Some(7)));
        assert!(read.options.sack_permitted);
        assert_eq!(syn("MSS=1460 WS=7").options.window_scale, Some(7));
        assert_eq!(syn("MSS=1460 TSV=1 TSER=0 WS=2").options.window_scale, Some(2));
        assert_eq!(syn("MSS=1460 WS=4").options.window_scale, Some(2));
    }

    #[test]
    fn blocks_come_with_their_edges() {
        let text = "9 1.5 ::1 → ::1 TCP 94 [TCP Dup ACK 7#1] 80 → 81 [ACK] Seq=1 Ack=1 Win=9 Len=0 SLE=5 SRE=9 SLE=20 SRE=30";
        let read = row(text).2;
        assert_eq!(read.options.sack_blocks(), [(Seq(5), Seq(9)), (Seq(20), Seq(30))]);
    }

    #[test]
    fn rows_of_other_protocols_are_packets_too() {
        let body = |text: &str| match read(text) {
            Some(Line::Packet(Packet { body, .. })) => Some(matches!(body, Body::TooLittle)),
            _ => None,
        };
        assert_eq!(body("5 0.1 10.0.0.1 → 10.0.0.2 TLSv1.2 583 Client Hello"), Some(true));
        assert_eq!(body("5 0.1 10.0.0.1 10.0.0.2 HTTP 583 GET / HTTP/1.1"), Some(true));
        assert_eq!(
            body("5 0.1 10.0.0.1 → 8.8.8.8 DNS 74 Standard query 0x1 A example.com"),
            Some(false)
        );
        assert_eq!(body("5 0.1 VMware_c0:00:08 → Broadcast ARP 42 Who has 10.0.0.1?"), Some(false));
        for text in [
            "5 0.1 seconds is the time it took",
            "12 10:45:49.05 IP 10.0.0.1 > 10.0.0.2: ICMP",
            "1 2 3 4 5 6",
        ] {
            assert_eq!(body(text), None, "{text}");
        }
    }

    #[test]
    fn a_row_that_ends_early_goes_on_with_its_fields() {
        assert!(ends_early("1 0.0 10.0.0.9 → 10.0.0.62 TCP 166"));
        assert!(!ends_early("1 0.0 10.0.0.9 → 10.0.0.62 DNS 166 Standard"));
        assert!(is_tail("TSval=5 TSecr=6") && !is_tail("Time=5") && !is_tail("Then Len=5"));
    }
}
