//! A line of `snoop`, the packet printer of Solaris and illumos.
//!
//! ```text
//!   3   0.00026   client -> server       TCP D=80 S=32789 Syn Seq=17 Len=0 Win=8760 Options=<mss 1460>
//! No.   time      source    destination  ports, flags, numbers as on the wire
//! ```
//!
//! The time is the span since the line before, since the first (`-t r`), or a clock's (`-t a`). Left out: the
//! many lines for each packet of `-v`, and lines that show a protocol above TCP instead of it.

use super::digits::leading_number;
use super::names::Endpoint;
use super::options;
use super::said::{Body, Line, Link, Packet};
use super::segment::{Dialect, Printed};
use super::stamp::{self, next_word};
use crate::wire::{Flags, IpInfo};

/// Reads one line; `None` if the text is none.
pub(super) fn read(text: &str) -> Option<Line<'_>> {
    let (before, header) = text.split_once(" TCP D=")?;
    let (destination_port, header) = next_word(header);
    let (source_port, header) = next_word(header.strip_prefix("S=")?);
    let (number, rest) = next_word(before);
    let number = number.parse().ok()?;
    let (stamp, rest) =
        stamp::read_of_list(rest).map_or((None, rest), |(stamp, rest)| (Some(stamp), rest));
    let (left, right) = rest.split_once("->")?;
    let source = left.split_ascii_whitespace().next_back()?;
    let destination = next_word(right).0;
    let from = Endpoint::of(source, source_port)?;
    let to = Endpoint::of(destination, destination_port)?;
    let v6 = from.is_v6().or(to.is_v6()).unwrap_or(false);
    let body = Body::Tcp { from, to, v6, printed: Box::new(printed(header)) };
    let (link, ip) = (Link::default(), IpInfo::default());
    Some(Line::Packet(Packet { number: Some(number), stamp, link, ip, body, nested: false }))
}

fn printed(text: &str) -> Printed {
    let (header, listed) = text.split_once("Options=<").unwrap_or((text, ""));
    let mut printed = Printed { plain: true, dialect: Dialect::Snoop, ..Printed::default() };
    if !listed.is_empty() {
        let end = listed.find('>');
        printed.options =
            options::read(listed.get(..end.unwrap_or(listed.len())).unwrap_or(""), end.is_none());
    }
    for word in header.split_ascii_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let value = leading_number(value);
        match name {
            "Syn" => printed.flags = printed.flags.with(Flags::SYN),
            "Fin" => printed.flags = printed.flags.with(Flags::FIN),
            "Rst" => printed.flags = printed.flags.with(Flags::RST),
            "Push" => printed.flags = printed.flags.with(Flags::PSH),
            "Ack" => (printed.flags, printed.ack) = (printed.flags.with(Flags::ACK), value),
            "Seq" => printed.seq = value,
            "Len" => printed.payload_len = value.unwrap_or_default(),
            "Win" => {
                printed.window = value.filter(|&w| u16::try_from(w).is_ok());
                printed.complete = true;
            }
            _ => {}
        }
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_header() {
        let text = "3   0.00026 client.example -> 10.0.0.2     TCP D=80 S=32789 Syn Ack=9 Seq=17 Len=3 Win=8760 Options=<mss 1460,nop,wscale 2,sackOK,tstamp 5 6>";
        let Some(Line::Packet(Packet { number, body: Body::Tcp { printed, .. }, .. })) = read(text)
        else {
            panic!("no packet");
        };
        assert_eq!((number, printed.seq, printed.ack), (Some(3), Some(17), Some(9)));
        assert_eq!(
            (printed.window, printed.payload_len, printed.flags),
            (Some(8760), 3, Flags(0x12))
        );
        let options = printed.options;
        assert_eq!(
            (options.mss, options.window_scale, options.timestamps),
            (Some(1460), Some(2), Some((5, 6)))
        );
        assert!(options.sack_permitted && printed.complete);
    }

    #[test]
    fn other_lines_are_left_alone() {
        for text in
            ["", "3 0.1 a -> b UDP D=53 S=53 LEN=9", "x TCP D=80 S=81", "3 0.1 a -> b TCP D=80"]
        {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
