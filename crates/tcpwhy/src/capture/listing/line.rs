//! What one line of a pasted listing is.
//!
//! ```text
//! > 12  10:45:49.051409 eth0  In  IP (tos 0x0, ttl 64, ..) 10.0.0.1.80 > 10.0.0.2.4711: Flags [.], ..
//! quote number  time    interface    header of -v          the two ends                 transport
//! ```
//!
//! All in front of the ends is optional, and with `-v` the ends stand on a line of their own. The
//! ends are what makes a packet: two words around ` > `, the second with a colon. Lines that are
//! none of this are prose and passed over; only those that begin like a packet and then cannot be
//! understood are worth a remark.

use super::digits::{leading_number, number_after};
use super::names::Endpoint;
use super::said::{Body, Footer, Line, Link, Packet};
use super::segment::{self, Transport};
use super::stamp::{self, next_word};
use super::{icmp, rows, snoop};
use crate::frame::Direction;
use crate::wire::IpInfo;

/// Reads one line.
pub(super) fn read(raw: &str) -> Line<'_> {
    let text = unquoted(raw);
    if text.is_empty() {
        return Line::Prose;
    }
    if is_hex_dump(text) {
        return Line::Dump;
    }
    if text.contains("listening on ") || text.contains("reading from file ") {
        return Line::Start;
    }
    if let Some(footer) = footer(text) {
        return Line::Footer(footer);
    }
    if is_gap(text) {
        return Line::Gap;
    }
    packet(raw, text)
}

fn packet<'a>(raw: &str, whole: &'a str) -> Line<'a> {
    let (number, text) = numbered(whole);
    let timed = stamp::read(text).or_else(|| stamp::behind_a_prefix(text));
    let (stamp, rest) = timed.map_or((None, text), |(stamp, rest)| (Some(stamp), rest));
    let mut found = find_ends(rest);
    if found.is_none()
        && let Some(line) = rows::read(whole).or_else(|| snoop::read(whole))
    {
        return line;
    }
    let before = found.as_ref().map_or(rest, |ends| ends.before);
    let link = link(before);
    let mut ip = ip_info(before);
    let known = stamp.is_some() || is_protocol(next_word(rest).0);
    let nested = raw.starts_with('\t');
    if let Some(said) = icmp::read(rest).filter(|_| known || is_indented(raw)) {
        let body = Body::Icmp(Box::new(said));
        return Line::Packet(Packet { number, stamp, link, ip, body, nested });
    }
    let body = match found.take().map(|ends| (ends.transport.clone(), ends)) {
        // Of two ends with one name nobody knows who speaks.
        Some((Transport::Tcp(_), ends)) if ends.from == ends.to && ends.from.lacks_port() => {
            Body::TooLittle
        }
        Some((Transport::Tcp(printed), ends)) => {
            if ip == IpInfo::default() {
                ip = ip_info(ends.after);
            }
            let v6 = ends.is_v6();
            Body::Tcp { from: ends.from, to: ends.to, v6, printed }
        }
        Some((Transport::TooLittle, _)) => Body::TooLittle,
        Some((Transport::Unreadable, _)) => return Line::Unreadable,
        Some((Transport::Other, ends)) if known || is_indented(raw) => {
            if ends.opens_tunnel() {
                Body::Header
            } else {
                Body::Other
            }
        }
        None if known && is_header(rest) => Body::Header,
        None if known && is_other_protocol(rest, &link) => Body::Other,
        None if is_indented(raw) && has_portless_ends(rest) => Body::Other,
        None if stamp.is_some() || rest.contains(": Flags [") => return Line::Unreadable,
        Some(_) | None => return Line::Prose,
    };
    Line::Packet(Packet { number, stamp, link, ip, body, nested })
}

/// Without indentation, quote marks, list marks and what a terminal adds.
fn unquoted(raw: &str) -> &str {
    let mut text = raw.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    loop {
        let rest = text.trim_start_matches(['>', '|']).trim_start();
        let rest = rest.strip_prefix("^C").unwrap_or(rest);
        let rest =
            ["* ", "- ", "+ "].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest);
        if rest.len() == text.len() {
            return text;
        }
        text = rest.trim_start();
    }
}

fn is_indented(raw: &str) -> bool {
    raw.starts_with([' ', '\t'])
}

/// `0x0010:  7f00 0001 ..`
fn is_hex_dump(text: &str) -> bool {
    text.strip_prefix("0x").and_then(|rest| rest.split_once(':')).is_some_and(|(digits, _)| {
        digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

fn footer(text: &str) -> Option<Footer> {
    let (count, rest) = text.split_once(' ')?;
    let count = count.parse().ok()?;
    let what = rest.strip_prefix("packets ").or_else(|| rest.strip_prefix("packet "))?;
    Some(match what.trim_end() {
        "captured" => Footer::Captured(count),
        "received by filter" => Footer::Received,
        "dropped by kernel" => Footer::KernelDropped(count),
        "dropped by interface" => Footer::InterfaceDropped(count),
        _ => return None,
    })
}

/// `......`, `[...]`, `…`, `(snip)`, `--- 20 lines omitted ---`.
fn is_gap(text: &str) -> bool {
    // Ours: people who cut a listing say so in a few words.
    const WORDS: usize = 60;
    if text.len() > WORDS {
        return text.len() <= 2 * WORDS && text.starts_with("......");
    }
    let bare = text.trim_start_matches(['[', '(', '<', '{', '#', '/', '*', '-', '=', ' ', '~']);
    if bare.starts_with("...") || bare.starts_with('…') || bare.starts_with(". . .") {
        return true;
    }
    let mut words = bare.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.clone().count() <= 6
        && words.any(|word| {
            let word = word.to_lowercase();
            ["snip", "snipped", "omitted", "elided"].contains(&word.as_str())
                || word.contains("省略")
        })
}

/// The number of `-#`, or of an editor, in front of a packet.
fn numbered(text: &str) -> (Option<u64>, &str) {
    let (word, rest) = next_word(text);
    let digits = word.trim_end_matches([':', '.', ')', '|']);
    let is_time = stamp::read(text).is_some();
    match digits.parse() {
        Ok(number) if !is_time && digits.len() <= 9 && !rest.is_empty() => {
            (Some(number), rest.trim_start_matches(['|', ' ', '\t']))
        }
        _ => (None, text),
    }
}

/// The two ends of a packet in its line.
#[derive(Debug)]
struct Ends<'a> {
    before: &'a str,
    from: Endpoint<'a>,
    to: Endpoint<'a>,
    after: &'a str,
    transport: Transport,
}

impl Ends<'_> {
    /// Names do not tell the family; what is before them does.
    fn is_v6(&self) -> bool {
        let literal = self.from.is_v6().or(self.to.is_v6());
        literal.unwrap_or_else(|| self.before.contains("IP6") || self.before.contains("IPv6"))
    }

    /// The inner packet of these comes on a line of its own.
    fn opens_tunnel(&self) -> bool {
        self.after.starts_with("VXLAN,") || self.after.starts_with("Geneve,")
    }
}

/// The ends of the packet in `text`: of the innermost one, where tunnels are shown in one line.
fn find_ends(text: &str) -> Option<Ends<'_>> {
    // Ours: more layers than any path has.
    const LAYERS: usize = 8;
    let mut found = None;
    for (at, arrow) in text.match_indices(" > ").take(LAYERS) {
        let left = text.get(..at)?;
        let from = left.rsplit([' ', '\t', '(']).next().unwrap_or(left);
        let (to, after) = next_word(text.get(at + arrow.len()..)?);
        let Some(to) = to.strip_suffix(':') else { continue };
        let before = left.get(..left.len() - from.len())?;
        let (Some(source), Some(target)) = (Endpoint::read(from), Endpoint::read(to)) else {
            // Ends without ports: a tunnel, or ICMP and the like, whose text may quote anything.
            if is_tunnel(after) {
                continue;
            }
            return ends_without_ports(before, (from, to), after);
        };
        let transport = segment::read(after);
        let ends = Ends { before, from: source, to: target, after, transport };
        if ends.transport != Transport::Other || !is_tunnel(after) {
            return Some(ends);
        }
        found = Some(ends);
    }
    found
}

/// The ends of a TCP segment whose ports somebody took away.
fn ends_without_ports<'a>(
    before: &'a str,
    (from, to): (&'a str, &'a str),
    after: &'a str,
) -> Option<Ends<'a>> {
    let end = |word| Endpoint::read(word).or_else(|| Endpoint::without_port(word));
    let (from, to) = (end(from)?, end(to)?);
    let transport = segment::read(after);
    matches!(transport, Transport::Tcp(_)).then_some(Ends { before, from, to, after, transport })
}

/// Whether a line begins with a time like a packet, and stops before it says what the packet is.
pub(super) fn ends_early(raw: &str) -> bool {
    let text = unquoted(raw);
    let (_, timed) = numbered(text);
    let timed = stamp::read(timed).or_else(|| stamp::behind_a_prefix(timed));
    let Some((_, rest)) = timed else { return rows::ends_early(text) };
    if let Some(ends) = find_ends(rest) {
        let is_flag = |c: char| c.is_ascii_uppercase() || c == '.';
        let flags = ends.after.strip_prefix("Flags [").map(|flags| flags.chars().all(is_flag));
        return flags.unwrap_or_else(|| "Flags [".starts_with(ends.after));
    }
    let mut words = rest.split_ascii_whitespace();
    // Interface and direction may stand before the protocol.
    let is_short = words.clone().count() <= 2;
    let is_ip = is_short || words.any(|word| matches!(word, "IP" | "IP6"));
    let says_more = rest.split_once(" > ").is_some_and(|(_, rest)| {
        let (to, after) = next_word(rest);
        to.ends_with(':') && !after.is_empty()
    });
    is_ip && !says_more && !is_header(rest) || rows::ends_early(text)
}

/// `10.0.0.3 > 10.0.0.1: ICMP ..`, the second line of a packet without ports.
fn has_portless_ends(text: &str) -> bool {
    let (_, rest) = next_word(text);
    let (arrow, rest) = next_word(rest);
    arrow == ">" && next_word(rest).0.ends_with(':')
}

fn is_tunnel(after: &str) -> bool {
    ["IP ", "IP6 ", "GRE", "MPLS", "VXLAN", "Geneve"].iter().any(|mark| after.starts_with(mark))
}

/// The end of the first line of `-v`: `.. proto TCP (6), length 60)`.
fn is_header(text: &str) -> bool {
    text.ends_with(')') && (text.contains("(tos ") || text.contains(" proto "))
}

fn is_protocol(word: &str) -> bool {
    let word = word.trim_end_matches([',', ':']);
    matches!(word, "IP" | "IP6" | "ARP" | "arp" | "RARP" | "MPLS" | "PPPoE" | "LLDP" | "EAPOL")
        || matches!(
            word,
            "STP" | "LACPv1" | "CDPv1" | "CDPv2" | "IPX" | "802.1Q" | "802.3" | "ethertype"
        )
}

/// A packet of a protocol without ports, or of another link layer.
fn is_other_protocol(text: &str, link: &Link<'_>) -> bool {
    let first = next_word(text).0;
    is_protocol(first)
        || is_mac(first)
        || link.direction.is_some()
        || text.contains("ethertype ")
        || text.contains(" MHz ")
        || matches!(
            first.trim_end_matches([',', ':']),
            "unknown" | "00:00:00:00:00:00" | "Loopback,"
        )
}

fn is_mac(word: &str) -> bool {
    word.len() == 17
        && word.split(':').all(|b| b.len() == 2 && b.bytes().all(|d| d.is_ascii_hexdigit()))
}

/// Interface, direction and VLAN tags: `eth0  In  IP`, `Out 00:..`, `.. vlan 100, p 0, ..`.
fn link(before: &str) -> Link<'_> {
    let direction = |word: &str| match word {
        "In" | "B" | "M" => Some(Direction::Incoming),
        "Out" => Some(Direction::Outgoing),
        _ => None,
    };
    let (first, rest) = next_word(before);
    let (second, _) = next_word(rest);
    let mut link = Link::default();
    if let Some(way) = direction(first) {
        link.direction = Some(way);
    } else if second == "P" || direction(second).is_some() {
        link.interface = Some(first);
        link.direction = direction(second);
    }
    for (at, mark) in before.match_indices("vlan ") {
        let tag = before.get(at + mark.len()..).and_then(leading_number).unwrap_or(0);
        link.network = (link.network << 12) | (tag & 0xfff);
    }
    link
}

/// TTL, identification and ECN bits from what `-v` shows.
fn ip_info(text: &str) -> IpInfo {
    let hex = |name: &str| {
        let value = text.split_once(name)?.1;
        let end = value.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(value.len());
        u8::from_str_radix(value.get(..end)?, 16).ok()
    };
    if let Some(hops) = number_after(text, "hlim ") {
        // The class is printed unless it is zero.
        let class = hex("class 0x").unwrap_or(0);
        return IpInfo { id: None, ttl: u8::try_from(hops).ok(), ecn: Some(class & 3) };
    }
    IpInfo {
        id: number_after(text, " id ").and_then(|id| u16::try_from(id).ok()),
        ttl: number_after(text, "ttl ").and_then(|ttl| u8::try_from(ttl).ok()),
        ecn: hex("tos 0x").map(|tos| tos & 3),
    }
}
